"""What the host does in a build: it fetches, with the proxies, certificates and indexes that it is set up with."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from hermit.errors import PlaceError
from hermit.oci.images.archive import Platform
from hermit.oci.images.checkout import STEPS, digest
from hermit.oci.images.contents import DPKG
from hermit.oci.images.contents import debian as packages_of
from hermit.oci.images.layer import Layer, canonical, regular
from hermit.oci.images.site import Part, part, script, step
from hermit.proc import capture

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hermit.oci.images.site import Site

DEBIAN_LOCK = "base/debian.lock"
# In the root filesystem: each package with the digest that its archive had.
DIGESTS = "/usr/share/hermit/debian.sha256"
ASKED_S = 20.0
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
PROXIES = ("http_proxy", "https_proxy", "no_proxy")
SHOWN = 5


def debian(site: Site, packages: Sequence[str], *, base: str) -> Part:
    """A Debian root filesystem with these packages, as one layer: another image completed, or one made by mmdebstrap.

    Raises:
        PlaceError: The packages cannot be fetched.
    """
    return _from_image(site, packages, base=base) if base else _from_packages(site, packages)


def _from_packages(site: Site, packages: Sequence[str]) -> Part:
    _ensure_mmdebstrap(site)
    suite, output = site.checkout.pins["debian"]["suite"], site.work / "rootfs.tar"
    site.say(f"making a root filesystem of Debian {suite}")
    cure = "it needs a Debian mirror, and root or user namespaces"
    script(site, f"{STEPS}/rootfs.sh", suite, ",".join(packages), str(output), what="mmdebstrap", cure=cure)
    place = Path(tempfile.mkdtemp(dir=site.work)) / "layer.tar"
    with open(output, "rb") as file:
        made = canonical(file, str(place), epoch=site.checkout.epoch)
    output.unlink()
    return Part(made, {}, _platform(site))


def _platform(site: Site) -> Platform:
    """The platform of the engine, which is this machine's where mmdebstrap makes what it runs."""
    system, _, architecture = site.store.engine.platform.partition("/")
    return Platform(system, architecture)


def _from_image(site: Site, packages: Sequence[str], *, base: str) -> Part:
    site.say(f"completing {base}")
    context = Path(tempfile.mkdtemp(dir=site.work))
    (context / "host").mkdir()
    shutil.copy(site.checkout.images / STEPS / "packages.sh", context)
    settings = ""
    with contextlib.suppress(OSError):
        dumped = capture(["apt-config", "dump"], timeout_s=ASKED_S, env=site.environ).stdout.decode(errors="replace")
        settings = "".join(
            f"{line}\n" for line in dumped.splitlines() if re.match(r"Acquire::https?::proxy", line, re.IGNORECASE)
        )
    (context / "host" / "apt.conf").write_text(settings, encoding="utf-8")
    trusted = Path(site.environ.get("SSL_CERT_FILE") or CERTIFICATES)
    (context / "host" / "ca.pem").write_bytes(trusted.read_bytes() if trusted.is_file() else b"")
    # The host's network, because its proxy may listen on its loopback; the proxy variables are the builder's own
    # predefined arguments, which leave no trace in the history.
    arguments = {name: "" for name in PROXIES if site.environ.get(name)}
    arguments |= {"BASE_IMAGE": base, "SUITE": site.checkout.pins["debian"]["suite"], "PACKAGES": ",".join(packages)}
    return part(site, "base/rootfs.Dockerfile", context, arguments=arguments, network="host")


def _ensure_mmdebstrap(site: Site) -> None:
    if shutil.which("mmdebstrap", path=site.environ.get("PATH", "")):
        return
    if os.geteuid() != 0:
        cure = "sudo apt-get install -y mmdebstrap, or name a Debian image with BASE_IMAGE="
        raise PlaceError("mmdebstrap is missing", where="PATH", cure=cure)
    site.say("installing mmdebstrap")
    quiet = ["apt-get", "-qq"]
    step(site, [*quiet, "update"], what="apt-get update")
    install = [*quiet, "install", "-y", "--no-install-recommends", "mmdebstrap"]
    step(site, install, what="the installation of mmdebstrap", variables={"DEBIAN_FRONTEND": "noninteractive"})


def sources(site: Site, directory: Path) -> None:
    """Fetches the source package of bubblewrap, by the digests of the pins."""
    pins = site.checkout.pins["bubblewrap"]
    for name, hashed in pins["files"].items():
        kept = site.cache / f"{hashed[:12]}-{name}"
        if not kept.exists():
            arguments = (f"{pins['path']}/{name}", hashed, str(kept))
            cure = "name a mirror of Debian that has it with DEBIAN_MIRROR=, or raise the version in images/pins.toml"
            script(site, f"{STEPS}/source.sh", *arguments, what=f"fetching {name}", cure=cure)
        shutil.copy(kept, directory / name)


def wheels(site: Site, lock: str) -> Path:
    """The wheels of a lock file, fetched once for each content of it."""
    text = (site.checkout.images / lock).read_text(encoding="utf-8")
    name = Path(lock).parent.name
    place = site.cache / f"wheels-{name}-{digest(text)}"
    if not place.is_dir():
        site.say(f"fetching the wheels of {lock}")
        for old in site.cache.glob(f"wheels-{name}-*"):
            shutil.rmtree(old, ignore_errors=True)
        _fetch(site, lock, place, options=pip_platform(site, os.uname().machine))
    return place


def tools(site: Site) -> Path:
    """The wheels that only the build needs."""
    lock = "base/tools.txt"
    place = site.cache / f"tools-{digest((site.checkout.images / lock).read_text(encoding='utf-8'))}"
    if not place.is_dir():
        _fetch(site, lock, place, options=pip_platform(site, os.uname().machine))
    return place


def pip_platform(site: Site, machine: str) -> list[str]:
    """The options by which pip looks for wheels of the images' interpreter instead of its own."""
    pins = site.checkout.pins["python"]
    systems = [f"manylinux_{libc}_{machine}" for libc in pins["glibc"]] + [f"manylinux2014_{machine}"]
    options = [word for system in systems for word in ("--platform", system)]
    return [*options, "--implementation", "cp", "--python-version", pins["version"], *_abis(pins["abi"])]


def _abis(own: str) -> list[str]:
    return ["--abi", own, "--abi", "abi3", "--abi", "none"]


def _fetch(site: Site, lock: str, place: Path, *, options: Sequence[str]) -> None:
    step_file = f"{STEPS}/wheels.sh"
    arguments = (site.python, str(site.checkout.images / lock), str(place), *options)
    cure = (
        "where the complaint is about torch: its CPU build is not on every index; point PIP_EXTRA_INDEX_URL at an index "
        "that has it, or PIP_FIND_LINKS at a directory with its wheel"
    )
    script(site, step_file, *arguments, what=f"fetching the wheels of {lock}", cure=cure)


def hermit_wheel(site: Site) -> Path:
    """Hermit's own wheel, made from the checkout."""
    place = Path(tempfile.mkdtemp(dir=site.work))
    arguments = (site.python, str(site.checkout.root), str(tools(site)), str(place))
    script(site, f"{STEPS}/wheel.sh", *arguments, what="the build of Hermit's wheel")
    (wheel,) = place.glob("hermit_oci-*.whl")
    return wheel


def layer(_site: Site, file: Path) -> Layer:
    """A layer that was kept in canonical form."""
    with tarfile.open(file) as archive:
        size = sum(member.size for member in archive)
    return Layer(str(file), f"sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}", size)


def debian_versions(made: Layer) -> dict[str, str]:
    """The packages of a root filesystem and their versions."""
    with tarfile.open(made.file) as archive:
        status = regular(archive, DPKG.lstrip("/")).read().decode()
    return {one.name: one.version for one in packages_of(status)}


def debian_digests(made: Layer) -> dict[str, dict[str, str]]:
    """The digests that the archives of its packages had, by architecture; empty where it was completed from an image."""
    with tarfile.open(made.file) as archive:
        if DIGESTS.lstrip("/") not in archive.getnames():
            return {}
        return {
            name: hashes for name, (_, hashes) in listed(regular(archive, DIGESTS.lstrip("/")).read().decode()).items()
        }


def listed(text: str) -> dict[str, tuple[str, dict[str, str]]]:
    """The version and the digests of each package of such a list; its lines are ``name version architecture=digest``."""
    lines = (line.split() for line in text.splitlines() if line and not line.startswith("#"))
    return {name: (version, dict(hashed.split("=", 1) for hashed in hashes)) for name, version, *hashes in lines}


def compare_with_lock(site: Site, made: Layer, *, refuse: bool) -> None:
    """Refuses a package whose content is not that of its version, and says which are of other versions than the lock's.

    A mirror keeps the latest version of a suite alone, so a lock cannot bring an old one back; it makes the difference
    known.

    Raises:
        PlaceError: A package of the lock's version has another digest; or there are other versions, and ``refuse``.
    """
    lock = listed((site.checkout.images / DEBIAN_LOCK).read_text(encoding="utf-8"))
    found, digests = debian_versions(made), debian_digests(made)
    same = (name for name, (version, _) in lock.items() if found.get(name) == version)
    changed = sorted(name for name in same if digests and _other(lock[name][1], digests.get(name, {})))
    if changed:
        what = f"the mirror has other archives than {DEBIAN_LOCK} of the same versions: {', '.join(changed[:SHOWN])}"
        raise PlaceError(
            what, where=f"images/{DEBIAN_LOCK}", cure="use another mirror: this one is not what was tested"
        )
    named = {name: version for name, (version, _) in lock.items()}
    other = sorted(name for name in named.keys() | found.keys() if named.get(name) != found.get(name))
    if not other:
        return
    shown = ", ".join(f"{name} {named.get(name, '-')} -> {found.get(name, '-')}" for name in other[:SHOWN])
    words = (
        f"{len(other)} of Debian's packages differ from {DEBIAN_LOCK}: {shown}{' ...' if len(other) > SHOWN else ''}"
    )
    if refuse:
        cure = "hermit image lock  takes them in, or build without --locked"
        raise PlaceError(words, where=f"images/{DEBIAN_LOCK}", cure=cure)
    site.say(f"{words}; `hermit image lock` takes them in")


def _other(known: Mapping[str, str], found: Mapping[str, str]) -> bool:
    """Whether the digest of an archive is another one than is known, or is missing where one is known."""
    return bool(known) and (not found or any(known.get(one, hashed) != hashed for one, hashed in found.items()))
