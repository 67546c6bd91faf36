"""The lists that pin every package: what they should hold now, and how they are written."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermit.errors import PlaceError
from hermit.oci.images import build, checkout
from hermit.oci.images.checkout import locked, normal
from hermit.oci.images.contents import DPKG
from hermit.oci.images.contents import debian as packages_of
from hermit.oci.images.host import DEBIAN_LOCK, DIGESTS, listed, pip_platform
from hermit.oci.images.site import step

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermit.oci.images.site import Site

BASE, JUDGE = "base/requirements.txt", "judge/requirements.txt"
ABSENT = re.compile(r"No matching distribution found for ([\w.-]+)==")
HEADS = {
    BASE: (
        "# What the image's environment holds: every package, exactly, with the hashes of its wheels for each architecture that",
        "# has one. It follows from pyproject.toml: Hermit's own needs and the extra [sandbox]. `hermit image lock` rewrites it.",
    ),
    JUDGE: (
        "# What the judge's image holds beside the base's packages, with the hashes of its wheels for each architecture. It",
        "# follows from requirements.in. `hermit image lock` rewrites it.",
    ),
    DEBIAN_LOCK: (
        "# The packages of Debian in the images, with their versions and the SHA-256 of their archives by architecture: a build",
        "# refuses another archive of a version, and says where its mirror has other versions. `hermit image lock` rewrites it.",
    ),
}

Hashes = dict[str, tuple[str, set[str]]]


def lock(site: Site, *, upgrade: bool = False, base: str = "") -> list[str]:
    """Writes every list anew and returns those that changed.

    Args:
        site: The build's surroundings.
        upgrade: Take the newest versions; otherwise what is listed keeps its version.
        base: A Debian image that the root filesystem is made from, in place of mmdebstrap.

    Raises:
        PlaceError: The packages contradict each other, or cannot be had.
    """
    _refuse_other_python(site)
    wanted = checkout.inputs(site.checkout, base=base)
    if site.store.attributes(wanted.names["rootfs"]) is None:
        build.rootfs(site, wanted, base=base, locked=False)
    status = (site.store.file(wanted.names["rootfs"], DPKG) or b"").decode()
    project = tomllib.loads((site.checkout.root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    tops = [*project["dependencies"], *project["optional-dependencies"]["sandbox"]]
    below = _resolved(site, tops, constraints=_listed(site, BASE, upgrade=upgrade))
    scorers = [line for line in _text(site, "judge/requirements.in").splitlines() if line and not line.startswith("#")]
    fixed = {name: version for name, (version, _) in below.items()}
    above = _resolved(site, scorers, constraints={**_listed(site, JUDGE, upgrade=upgrade), **fixed})
    texts = {
        BASE: pinned(below, head=HEADS[BASE]),
        JUDGE: pinned({name: one for name, one in above.items() if name not in below}, head=HEADS[JUDGE]),
        DEBIAN_LOCK: debian(
            {one.name: one.version for one in packages_of(status)},
            found=listed((site.store.file(wanted.names["rootfs"], DIGESTS) or b"").decode()),
            before=listed(_text(site, DEBIAN_LOCK)),
        ),
    }
    changed = [file for file, text in texts.items() if _text(site, file) != text]
    for file in changed:
        (site.checkout.images / file).write_text(texts[file], encoding="utf-8")
    return changed


def pinned(packages: Hashes, *, head: Sequence[str]) -> str:
    """A list of requirements with hashes, as pip reads it."""
    lines = [*head]
    for name, (version, hashes) in sorted(packages.items()):
        lines.append(f"{name}=={version} \\")
        lines += [f"    --hash=sha256:{one} \\" for one in sorted(hashes)[:-1]]
        lines.append(f"    --hash=sha256:{max(hashes)}")
    return "\n".join([*lines, ""])


Listed = Mapping[str, tuple[str, Mapping[str, str]]]


def debian(versions: Mapping[str, str], *, found: Listed, before: Listed) -> str:
    """The list of Debian's packages: of another architecture's digests, those of the same version are kept."""
    lines = [*HEADS[DEBIAN_LOCK]]
    for name, version in sorted(versions.items()):
        hashes: dict[str, str] = {}
        for lists in (before, found):
            listed_version, known = lists.get(name, ("", {}))
            hashes.update(known if listed_version == version else {})
        lines.append(" ".join([name, version, *(f"{one}={hashes[one]}" for one in sorted(hashes))]))
    return "\n".join([*lines, ""])


def _refuse_other_python(site: Site) -> None:
    """A condition on the version of Python in a package's needs is judged by the interpreter that pip runs on."""
    wanted = site.checkout.pins["python"]["version"]
    command = [site.python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    found = step(site, command, what="asking for the version of Python").strip()
    if found != wanted:
        cure = f"set PYTHON to an interpreter of Python {wanted} that has pip"
        raise PlaceError(
            f"the lists are for Python {wanted}, and pip here runs on {found}", where=site.python, cure=cure
        )


def _listed(site: Site, file: str, *, upgrade: bool) -> dict[str, str]:
    return {} if upgrade else locked(_text(site, file))


def _text(site: Site, file: str) -> str:
    path = site.checkout.images / file
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _resolved(site: Site, tops: Sequence[str], *, constraints: Mapping[str, str]) -> Hashes:
    """What these requirements come to on the first architecture of the pins, with the hashes for all of them."""
    first, *others = site.checkout.pins["python"]["machines"]
    found: Hashes = {}
    for entry in _report(site, tops, machine=first, constraints=constraints):
        name, version, hashed = _read(entry)
        found[name] = (version, {hashed})
    for machine in others:
        exact = {name: f"{name}=={version}" for name, (version, _) in found.items()}
        for name, _, hashed in map(_read, _exactly(site, exact, machine=machine)):
            found[name][1].add(hashed)
    return found


def _read(entry: Mapping[str, Any]) -> tuple[str, str, str]:
    """Name, version and hash of one package of pip's report; of a version's local part pip's own index knows nothing."""
    data, hashes = entry["metadata"], entry["download_info"]["archive_info"]["hashes"]
    return normal(data["name"]), str(data["version"]).partition("+")[0], hashes["sha256"]


def _exactly(site: Site, exact: Mapping[str, str], *, machine: str) -> list[dict[str, Any]]:
    """The same packages on another architecture; one that has no wheel there is said and left out."""
    wanted = dict(exact)
    while wanted:
        try:
            return _report(site, list(wanted.values()), machine=machine, constraints={}, options=("--no-deps",))
        except PlaceError as error:
            absent = [normal(name) for name in ABSENT.findall(error.what) if normal(name) in wanted]
            if not absent:
                raise
            site.say(f"{absent[0]} has no wheel for {machine}")
            del wanted[absent[0]]
    return []


def _report(
    site: Site, wanted: Sequence[str], *, machine: str, constraints: Mapping[str, str], options: Sequence[str] = ()
) -> list[dict[str, Any]]:
    work = Path(tempfile.mkdtemp(dir=site.work))
    report, limits = work / "report.json", work / "constraints.txt"
    limits.write_text("".join(f"{name}=={version}\n" for name, version in constraints.items()), encoding="utf-8")
    command = [site.python, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--only-binary=:all:"]
    command += ["--target", str(work / "target"), "--report", str(report), "--constraint", str(limits)]
    command += [*pip_platform(site, machine), *options, *wanted]
    step(site, command, what=f"resolving the packages for {machine}")
    found: list[dict[str, Any]] = json.loads(report.read_text(encoding="utf-8"))["install"]
    shutil.rmtree(work)
    return found
