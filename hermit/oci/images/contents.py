"""What an image holds: every package of Debian and of Python, as a list and as an SBOM in SPDX.

It runs while an image is built, in the image itself, and leaves two files beside the seccomp profile:
``contents.tsv``, a line for each package, and ``sbom.spdx.json``. Equal images get equal files.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
import time
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

DIRECTORY = "/opt/hermit/share"
LIST, SBOM = "contents.tsv", "sbom.spdx.json"
HEADER = "kind\tname\tversion\tbytes"
DPKG = "/var/lib/dpkg/status"


@dataclass(frozen=True, order=True)
class Package:
    """One package in an image.

    Args:
        kind: ``deb`` and ``python``, or ``source`` for what was built from a source package.
        name: Its name.
        version: Its version.
        size: Bytes that it takes; of a Debian package, what that says of itself.
        source: The digest of its source where it was built from that, such as ``sha256:...``.
    """

    kind: str
    name: str
    version: str
    size: int
    source: str = ""


def debian(status: str) -> list[Package]:
    """The installed packages of a dpkg database."""
    found = []
    for paragraph in status.split("\n\n"):
        fields = dict(re.findall(r"^([\w-]+): (.*)$", paragraph, re.MULTILINE))
        if fields.get("Status", "").endswith(" installed"):
            size = int(fields.get("Installed-Size", "0")) * 1024
            found.append(Package("deb", fields["Package"], fields["Version"], size))
    return found


def python(directories: Sequence[str]) -> list[Package]:
    """The distributions in these directories; the first directory that has one counts."""
    found: dict[str, Package] = {}
    for directory in directories:
        for distribution in distributions(path=[directory]):
            name = re.sub(r"[-_.]+", "-", distribution.metadata["Name"]).lower()
            size = _bytes(distribution, Path(directory))
            found.setdefault(name, Package("python", name, distribution.version, size))
    return list(found.values())


def _bytes(distribution: Distribution, directory: Path) -> int:
    """Bytes of everything below the names that a distribution installed, its byte code too."""
    names = {file.parts[0] for file in distribution.files or () if file.parts[0] not in ("..", "__pycache__")}
    total = 0
    for name in names:
        if (directory / name).is_file():
            total += (directory / name).lstat().st_size
        for where, _, files in os.walk(directory / name):
            total += sum(os.lstat(os.path.join(where, file)).st_size for file in files)
    return total


def listed(packages: Iterable[Package]) -> str:
    """The list of packages, a line each."""
    lines = [f"{one.kind}\t{one.name}\t{one.version}\t{one.size}" for one in sorted(packages)]
    return "\n".join([HEADER, *lines, ""])


def parsed(text: str) -> list[Package]:
    """The packages of a list that :func:`listed` made."""
    rows = [line.split("\t") for line in text.splitlines()[1:]]
    return [Package(kind, name, version, int(size)) for kind, name, version, size in rows]


def spdx(packages: Iterable[Package], *, title: str, version: str, epoch: int) -> dict[str, Any]:
    """The packages as an SPDX 2.3 document.

    Args:
        packages: What the image holds.
        title: The image's name.
        version: The image's version.
        epoch: The time it is said to be made at, in seconds since 1970.
    """
    ordered = sorted(packages)
    # The name of a document has to be its own: it follows from what the document lists.
    key = hashlib.sha256(listed(ordered).encode()).hexdigest()
    image = {
        "SPDXID": "SPDXRef-image",
        "name": title,
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "primaryPackagePurpose": "CONTAINER",
    }
    entries = [_spdx_package(number, one) for number, one in enumerate(ordered)]
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-image")]
    relations += [("SPDXRef-image", "CONTAINS", entry["SPDXID"]) for entry in entries]
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"{title}-{version}",
        "documentNamespace": f"urn:hermit:sbom:{title}:{version}:{key}",
        "creationInfo": {
            "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch)),
            "creators": [f"Tool: hermit-{version}"],
        },
        "packages": [image, *entries],
        "relationships": [
            {"spdxElementId": one, "relationshipType": how, "relatedSpdxElement": other}
            for one, how, other in relations
        ],
    }


def _spdx_package(number: int, package: Package) -> dict[str, Any]:
    kind = {"deb": "deb/debian", "python": "pypi", "source": "deb/debian"}[package.kind]
    tail = "?arch=source" if package.kind == "source" else ""
    locator = f"pkg:{kind}/{quote(package.name)}@{quote(package.version, safe='')}{tail}"
    entry: dict[str, Any] = {
        "SPDXID": f"SPDXRef-{number}-{re.sub(r'[^A-Za-z0-9.-]', '-', package.name)}",
        "name": package.name,
        "versionInfo": package.version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "externalRefs": [
            {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": locator}
        ],
    }
    if package.source:
        entry["comment"] = f"built from the source archive {package.source}"
    return entry


def main(output: str, built: str, *directories: str) -> None:
    """Writes both files.

    Args:
        output: The directory they go to.
        built: A JSON file: ``title``, ``version``, ``epoch``, and ``source``, a list of what was built from source.
        directories: Where Python packages lie that are not installed yet, before those that are.
    """
    document = json.loads(Path(built).read_text(encoding="utf-8"))
    installed = [path for path in sys.path if path.startswith(sys.prefix) and path.endswith("-packages")]
    packages = [
        *debian(Path(DPKG).read_text(encoding="utf-8")),
        *python([*directories, *installed]),
        *(Package("source", one["name"], one["version"], 0, one["digest"]) for one in document["source"]),
    ]
    made = spdx(packages, title=document["title"], version=document["version"], epoch=document["epoch"])
    (Path(output) / LIST).write_text(listed(packages), encoding="utf-8")
    (Path(output) / SBOM).write_text(json.dumps(made, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
