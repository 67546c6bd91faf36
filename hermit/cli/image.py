"""`hermit image`: the images that hold sandboxes."""

from __future__ import annotations

import contextlib
import tempfile
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

import hermit
from hermit import environ
from hermit.cli import console
from hermit.cli.eval import JsonOption
from hermit.errors import ConfigError, ExitCode
from hermit.oci import engine as engines
from hermit.oci.images import build as builds
from hermit.oci.images import checkout, overview, registry, verify
from hermit.oci.images import lock as locks
from hermit.oci.images import site as sites
from hermit.oci.images import store as stores

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermit.oci.images.verify import Verdict

app = typer.Typer(help="The images that hold sandboxes: built here, the same everywhere.", no_args_is_help=True)
Image = Annotated[str, typer.Argument(metavar="IMAGE", help="An image of the engine.")]
Base = Annotated[
    str, typer.Option("--base-image", envvar="BASE_IMAGE", help="A Debian image to complete, in place of mmdebstrap.")
]


@contextlib.contextmanager
def _store() -> Iterator[stores.Store]:
    variables = environ.snapshot()
    with stores.connect(engines.find(variables), environ=variables) as store:
        yield store


@contextlib.contextmanager
def _site() -> Iterator[sites.Site]:
    here = checkout.here()
    with _store() as store, sites.opened(here, store, environ=environ.snapshot(), say=_say) as site:
        yield site


def _say(line: str) -> None:
    console.err().print(f"image: {line}", markup=False)


@app.command(help="Build what is missing of `hermit` and `hermit-judge` from this checkout, test it and name it.")
def build(
    *,
    refresh: Annotated[
        bool, typer.Option("--refresh", help="Make the root filesystem anew, with the suite's latest fixes.")
    ] = False,
    locked: Annotated[
        bool, typer.Option("--locked", help="Refuse Debian packages of other versions than the lock names.")
    ] = False,
    base_image: Base = "",
) -> int:
    """Runs the command and returns its exit code."""
    with _site() as site:
        builds.build(site, refresh=refresh, base=base_image, locked=locked)
    return ExitCode.OK


@app.command("list", help="List the images of Hermit that the engine has.")
def list_(*, as_json: JsonOption = False) -> int:
    """Runs the command and returns its exit code."""
    with _store() as store:
        found = overview.listed(store)
    if as_json:
        console.print_json([asdict(one) for one in found])
    else:
        rows = [
            (one.name, one.id[7:19], f"{one.size / builds.MEGABYTE:.0f} MB", one.version, one.revision) for one in found
        ]
        console.print_rows(("name", "id", "size", "version", "revision"), rows)
    return ExitCode.OK


@app.command(help="Say what an image is: its layers, labels and packages; or print its list of packages or its SBOM.")
def inspect(
    image: Image = "hermit",
    *,
    packages: Annotated[bool, typer.Option("--packages", help="Print the list of its packages alone.")] = False,
    sbom: Annotated[bool, typer.Option("--sbom", help="Print its SBOM alone, in SPDX.")] = False,
    as_json: JsonOption = False,
) -> int:
    """Runs the command and returns its exit code."""
    with _store() as store:
        if packages or sbom:
            print(overview.document(store, image, sbom=sbom), end="")
            return ExitCode.OK
        found = overview.described(store, image)
    if as_json:
        console.print_json(found)
    else:
        console.print_rows(("", ""), [(key, str(value)) for key, value in overview.rows(found)])
    return ExitCode.OK


@app.command(
    name="verify",
    help="Say, file by file, what differs between an image and what this checkout builds, or another image.",
)
def verify_(
    image: Image = "hermit",
    *,
    against: Annotated[str, typer.Option("--against", help="Compare with this image instead of building anew.")] = "",
    whole: Annotated[
        bool, typer.Option("--whole", help="Build the packages' layers anew too, a few minutes more.")
    ] = False,
    as_json: JsonOption = False,
) -> int:
    """Runs the command and returns its exit code."""
    if against:
        with _store() as store, tempfile.TemporaryDirectory(prefix="hermit-verify-") as directory:
            verdict = verify.against(store, image, against, directory=directory)
    else:
        products = {one.name: one for one in builds.PRODUCTS}
        if image not in products:
            raise ConfigError(
                f"this checkout builds {' and '.join(products)}, not {image}",
                where=image,
                cure="name one, or an image --against it",
            )
        with _site() as site:
            verdict = verify.rebuilt(site, products[image], whole=whole)
    _show(verdict, as_json=as_json)
    return ExitCode.OK if verdict.same else ExitCode.PLACE


def _show(verdict: Verdict, *, as_json: bool) -> None:
    if as_json:
        console.print_json({"same": verdict.same, **asdict(verdict)})
        return
    for one in verdict.differences:
        console.out().print(f"{one.where}  {one.path}  {one.what}", markup=False)
    words = "one image" if verdict.same else f"two images, {len(verdict.differences)} differences"
    console.out().print(f"{verdict.first} and {verdict.second}: {words}", markup=False)


@app.command(help="Fetch an image by a tag or a digest, and say its id.")
def pull(image: Image) -> int:
    """Runs the command and returns its exit code."""
    with _store() as store:
        print(registry.fetch(store, image, say=_say))
    return ExitCode.OK


@app.command(help="Send an image to a registry, and say the name with the digest that brings back exactly this one.")
def push(image: Image, target: Annotated[str, typer.Argument(metavar="TARGET", help="REGISTRY/NAME:TAG")]) -> int:
    """Runs the command and returns its exit code."""
    with _store() as store:
        print(registry.send(store, image, target, say=_say))
    return ExitCode.OK


@app.command(help="Remove what builds left: unnamed stages, and parts that no image of this version stands on.")
def prune(*, everything: Annotated[bool, typer.Option("--all", help="Remove every image of Hermit.")] = False) -> int:
    """Runs the command and returns its exit code."""
    with _store() as store:
        removed = overview.pruned(store, version=hermit.__version__, everything=everything)
    for name in removed:
        print(name)
    return ExitCode.OK


@app.command(help="Rewrite the lists that pin every package.")
def lock(
    *,
    upgrade: Annotated[bool, typer.Option("--upgrade", help="Take the newest versions that fit together.")] = False,
    base_image: Base = "",
) -> int:
    """Runs the command and returns its exit code."""
    with _site() as site:
        changed = locks.lock(site, upgrade=upgrade, base=base_image)
    for file in changed:
        print(f"images/{file}")
    return ExitCode.OK
