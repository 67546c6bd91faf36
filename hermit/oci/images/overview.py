"""What images of Hermit the engine has, what one is, and what is left over of earlier ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hermit.errors import PlaceError
from hermit.oci.images import contents

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermit.oci.images.store import Store

PARTS = ("hermit-rootfs", "hermit-environment", "hermit-judge-environment", "hermit-builder")
NAMED = ("hermit", "hermit-judge")
VERSION = "org.opencontainers.image.version"
REVISION = "org.opencontainers.image.revision"


@dataclass(frozen=True)
class Listed:
    """One name of an image of Hermit.

    Args:
        name: The name.
        id: The image's id.
        size: Bytes of all its layers, which it shares with the images that stand on the same.
        version: Hermit's version in it, empty for a part that images stand on.
        revision: The commit it was built from.
    """

    name: str
    id: str
    size: int
    version: str
    revision: str


def listed(store: Store) -> list[Listed]:
    """Every image of Hermit that the engine has, by name."""
    found = []
    for one in store.listed():
        labels = one.get("Labels") or {}
        for name in one.get("RepoTags") or ():
            if name.rpartition(":")[0] in (*NAMED, *PARTS):
                version, revision = labels.get(VERSION, ""), labels.get(REVISION, "")
                found.append(Listed(name, one["Id"], int(one["Size"]), version, revision))
    return sorted(found, key=lambda one: one.name)


def described(store: Store, image: str) -> dict[str, Any]:
    """What an image is: its id, platform, size, labels, layers, and how many packages of each kind it holds.

    Raises:
        PlaceError: It does not exist here.
    """
    found = known(store, image)
    held = store.file(image, f"{contents.DIRECTORY}/{contents.LIST}")
    packages = contents.parsed(held.decode()) if held is not None else []
    return {
        "id": found["Id"],
        "platform": f"{found['Os']}/{found['Architecture']}",
        "size": found["Size"],
        "created": found["Created"],
        "labels": dict(sorted((found["Config"].get("Labels") or {}).items())),
        "layers": found["RootFS"]["Layers"],
        "digests": found.get("RepoDigests") or [],
        "packages": {
            kind: sum(one.kind == kind for one in packages) for kind in sorted({one.kind for one in packages})
        },
        "largest": {one.name: one.size for one in sorted(packages, key=lambda one: -one.size)[:5]},
    }


def rows(found: Mapping[str, Any]) -> list[tuple[str, object]]:
    """A description as lines for a person."""
    lines: list[tuple[str, object]] = []
    for key, value in found.items():
        if isinstance(value, dict):
            lines += [(f"{key} {name}", one) for name, one in value.items()]
        elif isinstance(value, list):
            lines += [(f"{key} {number}", one) for number, one in enumerate(value, start=1)]
        else:
            lines.append((key, value))
    return lines


def document(store: Store, image: str, *, sbom: bool) -> str:
    """The list of an image's packages, or its SBOM, read without starting anything of it.

    Raises:
        PlaceError: The image does not exist here, or holds no such file.
    """
    known(store, image)
    path = f"{contents.DIRECTORY}/{contents.SBOM if sbom else contents.LIST}"
    held = store.file(image, path)
    if held is None:
        raise PlaceError(
            f"the image {image} holds no {path}", where=image, cure="it was not built by `hermit image build`"
        )
    return held.decode()


def pruned(store: Store, *, version: str, everything: bool) -> list[str]:
    """Removes what is left over and returns the names that went.

    Args:
        store: The engine's images.
        version: The version whose images stay.
        everything: Remove the images in use too.
    """
    store.prune()
    used: set[tuple[str, ...]] = set()
    for name in () if everything else NAMED:
        layers = _layers(store, f"{name}:{version}")
        used |= {layers[:count] for count in range(1, len(layers))}
    removed = []
    for one in listed(store):
        repository, _, tag = one.name.rpartition(":")
        keep = tag in (version, "latest") if repository in NAMED else _layers(store, one.name) in used
        if (everything or not keep) and store.remove(one.name):
            removed.append(one.name)
    return removed


def _layers(store: Store, image: str) -> tuple[str, ...]:
    return tuple(((store.attributes(image) or {}).get("RootFS") or {}).get("Layers") or ())


def known(store: Store, image: str) -> dict[str, Any]:
    """What the engine says of an image.

    Raises:
        PlaceError: It does not exist here.
    """
    found = store.attributes(image)
    if found is None:
        raise PlaceError(f"the image {image} does not exist here", where=store.engine.program, cure="make image")
    return found
