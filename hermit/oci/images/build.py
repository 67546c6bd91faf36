"""The order of a build: the host fetches, the builder makes files without a network, the layers are stacked here.

Each image carries the digest of what it is made from, so a change rebuilds its own layer and those above it::

    hermit-rootfs:<digest>             Debian and bubblewrap; changes with images/pins.toml
    hermit-environment:<digest>        + /opt/hermit with the packages; changes with images/base/requirements.txt
    hermit-judge-environment:<digest>  + what scorers need; changes with images/judge/requirements.txt
    hermit, hermit-judge               + Hermit; change with the source; named only after both passed their tests
"""

from __future__ import annotations

import json
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hermit.errors import PlaceError
from hermit.oci.images import archive, checkout, contents, host
from hermit.oci.images.checkout import digest
from hermit.oci.images.overview import REVISION
from hermit.oci.images.site import Part, part, step

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from hermit.oci.images.archive import Image
    from hermit.oci.images.checkout import Inputs
    from hermit.oci.images.site import Site
    from hermit.oci.images.store import Store

INPUTS_LABEL = "hermit.inputs"
MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Product:
    """An image that people name.

    Args:
        name: Its name.
        base: The part it stands on.
        parts: What its layers are, lowest first.
    """

    name: str
    base: str
    parts: tuple[str, ...]

    @property
    def test(self) -> str:
        """The script that it has to pass, below ``images``."""
        return "judge/test.sh" if self.base == "judge" else "base/test.sh"


ROOTFS = ("Debian", "bubblewrap")
PRODUCTS = (
    Product("hermit", "environment", (*ROOTFS, "environment", "Hermit")),
    Product("hermit-judge", "judge", (*ROOTFS, "environment", "judge", "Hermit")),
)


def build(site: Site, *, refresh: bool = False, base: str = "", locked: bool = False) -> None:
    """Builds what is missing of both images, tests it and names it.

    Args:
        site: The build's surroundings.
        refresh: Make the root filesystem anew, with the suite's latest fixes.
        base: A Debian image to complete, in place of mmdebstrap.
        locked: Refuse Debian packages of other versions than the lock names.

    Raises:
        PlaceError: Something cannot be fetched or built, or an image does not pass its test.
    """
    store, version, began = site.store, site.checkout.version, time.monotonic()
    known = str((store.attributes(base) or {}).get("Id", base)) if base else ""
    wanted = checkout.inputs(site.checkout, base=known)
    if not refresh and all(_current(site, f"{one.name}:{version}", wanted) for one in PRODUCTS):
        for one in PRODUCTS:
            store.tag(f"{one.name}:{version}", f"{one.name}:latest")
        site.say(f"hermit {version} is up to date")
        return
    # The images in use keep their layers and their names until their successors have passed the test.
    for part_name in wanted.names.values() if refresh else ():
        store.remove(part_name)
    environments(site, wanted, base=base, locked=locked)
    wheel = host.hermit_wheel(site)
    # Half of each build and nearly all of each test is waiting for the engine.
    with ThreadPoolExecutor(len(PRODUCTS)) as pool:
        made = list(pool.map(lambda product: final(site, product, wanted, wheel=wheel), PRODUCTS))
        failed = [*pool.map(lambda pair: refusal(site, *pair), zip(PRODUCTS, made, strict=True))]
    for reason in filter(None, failed):
        for image in made:
            store.remove(image.id)
        raise reason
    for product, image in zip(PRODUCTS, made, strict=True):
        name(site, product, image)
    drop_superseded(store, wanted)
    site.say(f"hermit {version} is ready after {time.monotonic() - began:.0f} s: docker run --rm hermit check")


def _current(site: Site, image: str, wanted: Inputs) -> bool:
    """Whether an image is made of these inputs, and says the commit that they are of."""
    labels = {INPUTS_LABEL: wanted.code, REVISION: site.checkout.revision()}
    return all(site.store.label(image, name) == value for name, value in labels.items())


def environments(site: Site, wanted: Inputs, *, base: str = "", locked: bool = False) -> None:
    """Makes what both images stand on, where it is not there yet."""
    names, store = wanted.names, site.store
    if store.attributes(names["environment"]) is None:
        if store.attributes(names["rootfs"]) is None:
            rootfs(site, wanted, base=base, locked=locked)
        site.say("building the environment, a minute or two")
        _stack(
            site,
            environment(site, wanted),
            on=names["rootfs"],
            parts=(*ROOTFS, "environment"),
            name=names["environment"],
        )
    if store.attributes(names["judge"]) is None:
        site.say("building the judge's packages")
        parts = (*ROOTFS, "environment", "judge")
        _stack(site, judge(site, wanted), on=names["environment"], parts=parts, name=names["judge"])


def rootfs(site: Site, wanted: Inputs, *, base: str, locked: bool) -> None:
    """Makes the root filesystem with bubblewrap, and names it."""
    kept = site.cache / f"bubblewrap-{wanted.bubblewrap}.tar"
    if kept.exists():
        above = host.layer(site, kept)
    else:
        site.say(f"building bubblewrap {site.checkout.pins['bubblewrap']['version']} from its source")
        above = bubblewrap(site, base=base).layer
        for old in site.cache.glob("bubblewrap-*.tar"):
            old.unlink()
        shutil.copyfile(above.file, kept)
    made = host.debian(site, site.checkout.pins["debian"]["packages"], base=base)
    host.compare_with_lock(site, made.layer, refuse=locked)
    image = archive.stacked(
        (),
        (made.layer, above),
        platform=made.platform,
        settings={"Cmd": ["/bin/sh"]},
        names=ROOTFS,
        epoch=site.checkout.epoch,
    )
    site.store.tag(site.store.load(image), wanted.names["rootfs"])


def bubblewrap(site: Site, *, base: str = "") -> Part:
    """The layer with bubblewrap, compiled in a Debian that is thrown away."""
    pins = site.checkout.pins
    context = _context(site, "bubblewrap", ["base/steps/bubblewrap.sh"])
    host.sources(site, context)
    made = host.debian(site, pins["debian"]["builder"], base=base)
    image = archive.stacked(
        (), (made.layer,), platform=made.platform, settings={}, names=("builder",), epoch=site.checkout.epoch
    )
    builder = site.store.load(image)
    name = f"hermit-builder:{digest(builder)}"
    site.store.tag(builder, name)
    try:
        return part(site, "base/bubblewrap.Dockerfile", context, arguments={"BUILDER": name})
    finally:
        site.store.remove(name)


def environment(site: Site, wanted: Inputs) -> Part:
    """The layer with the Python environment."""
    context = _context(site, "environment", ["base/requirements.txt", "base/steps/environment.sh"])
    _linked(host.wheels(site, "base/requirements.txt"), context / "wheels")
    _linked(host.tools(site), context / "tools")
    arguments = {"ROOTFS": wanted.names["rootfs"], "PYTHON": site.checkout.pins["python"]["version"]}
    return part(site, "base/environment.Dockerfile", context, arguments=arguments)


def judge(site: Site, wanted: Inputs) -> Part:
    """The layer with what scorers need."""
    context = _context(site, "judge", ["judge/requirements.txt", "judge/steps/packages.sh"])
    _linked(host.wheels(site, "judge/requirements.txt"), context / "wheels")
    _linked(host.tools(site), context / "tools")
    return part(site, "judge/Dockerfile", context, arguments={"ENVIRONMENT": wanted.names["environment"]})


def final(site: Site, product: Product, wanted: Inputs, *, wheel: Path) -> Image:
    """One image with Hermit in it, loaded and not named yet."""
    made, below = code(site, product, wanted, wheel=wheel), wanted.names[product.base]
    image = archive.stacked(
        digests(site.store, below),
        (made.layer,),
        platform=made.platform,
        settings=made.settings,
        names=product.parts,
        epoch=site.checkout.epoch,
    )
    site.store.load(image)
    return image


def code(site: Site, product: Product, wanted: Inputs, *, wheel: Path) -> Part:
    """The layer with Hermit, and what the image is set to."""
    here = site.checkout
    context = _context(site, product.name, ["seccomp.json", "base/steps/hermit.sh"])
    shutil.copy(wheel, context)
    for pip in host.tools(site).glob("pip-*.whl"):
        shutil.copy(pip, context)
    source = here.pins["bubblewrap"]
    (archives,) = [hashed for name, hashed in source["files"].items() if ".orig." in name]
    built = [{"name": "bubblewrap", "version": source["version"], "digest": f"sha256:{archives}"}]
    about = {"title": product.name, "version": here.version, "epoch": here.epoch, "source": built}
    (context / "built.json").write_text(json.dumps(about), encoding="utf-8")
    arguments = {
        "ENVIRONMENT": wanted.names[product.base],
        "TITLE": product.name,
        "VERSION": here.version,
        "REVISION": here.revision(),
        "INPUTS": wanted.code,
        "LOCK": here.lock,
    }
    return part(site, "base/Dockerfile", context, arguments=arguments)


def refusal(site: Site, product: Product, image: Image) -> PlaceError | None:
    """Tests an image from outside; what it does not pass, or nothing."""
    site.say(f"testing {product.name}, {size(site.store, image.id)}")
    try:
        script = str(site.checkout.images / product.test)
        step(site, ["bash", script, image.id], what=f"the test of the image {product.name}")
    except PlaceError as error:
        return error
    return None


def name(site: Site, product: Product, image: Image) -> None:
    """Gives an image the names that its predecessor had."""
    store, version = site.store, site.checkout.version
    names = (f"{product.name}:{version}", f"{product.name}:latest")
    before = {str((store.attributes(one) or {}).get("Id", "")) for one in names} - {"", image.id}
    for one in names:
        store.tag(image.id, one)
    for old in before:
        store.remove(old)


def size(store: Store, reference: str) -> str:
    """How large an image is, for a person: in all, and without torch, which is more than half of it."""
    whole = int((store.attributes(reference) or {}).get("Size", 0))
    held = store.file(reference, f"{contents.DIRECTORY}/{contents.LIST}")
    torch = sum(one.size for one in contents.parsed((held or b"").decode()) if one.name == "torch")
    return f"{whole / MEGABYTE:.0f} MB, {(whole - torch) / MEGABYTE:.0f} MB of it without torch"


def drop_superseded(store: Store, wanted: Inputs) -> None:
    """Takes away the parts that earlier builds kept under our own names."""
    kept = set(wanted.names.values())
    for name in kept:
        for found in store.listed(name.partition(":")[0]):
            for tag in found.get("RepoTags") or ():
                if tag not in kept:
                    store.remove(tag)


def _stack(site: Site, made: Part, *, on: str, parts: Sequence[str], name: str) -> None:
    image = archive.stacked(
        digests(site.store, on),
        (made.layer,),
        platform=made.platform,
        settings={"Cmd": ["/bin/sh"]},
        names=parts,
        epoch=site.checkout.epoch,
    )
    site.store.tag(site.store.load(image), name)


def digests(store: Store, reference: str) -> tuple[str, ...]:
    """The layers of an image, lowest first, by the digests an engine keeps them under."""
    found: Mapping[str, object] = (store.attributes(reference) or {}).get("RootFS") or {}
    layers = found.get("Layers")
    if not isinstance(layers, list):
        raise PlaceError(f"the image {reference} went away while it was built on", where=store.engine.program)
    return tuple(str(one) for one in layers)


def _context(site: Site, name: str, files: Iterable[str]) -> Path:
    context = site.work / f"context-{name}"
    shutil.rmtree(context, ignore_errors=True)
    context.mkdir()
    for file in files:
        shutil.copy(site.checkout.images / file, context)
    return context


def _linked(directory: Path, place: Path) -> None:
    """Wheels are large, so a context gets links to them."""
    place.mkdir()
    for file in directory.iterdir():
        (place / file.name).hardlink_to(file)


def without_cache(site: Site) -> Site:
    """The same surroundings for a build that takes nothing from an earlier one."""
    return replace(site, cached=False)
