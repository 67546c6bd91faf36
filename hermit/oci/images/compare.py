"""Two images side by side: what differs between them, layer by layer and file by file."""

from __future__ import annotations

import hashlib
import json
import tarfile
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from hermit.oci.images.layer import BLOCK, XATTR, plain_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

KINDS = {
    tarfile.DIRTYPE: "directory",
    tarfile.SYMTYPE: "link",
    tarfile.LNKTYPE: "hard link",
    tarfile.CHRTYPE: "device",
    tarfile.BLKTYPE: "device",
    tarfile.FIFOTYPE: "pipe",
}


@dataclass(frozen=True, order=True)
class Difference:
    """One thing in which two images differ.

    Args:
        where: The layer's number from 1 and what lies in it, ``config`` for the image's settings.
        path: The file, or the key of the settings.
        what: How they differ, the first image named first.
    """

    where: str
    path: str
    what: str


def configs(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[Difference]:
    """In which settings two images differ, as the engine describes them."""
    found = []
    for key in ("Architecture", "Os", "Created"):
        found += _differing(key, one.get(key), other.get(key))
    mine, theirs = one.get("Config") or {}, other.get("Config") or {}
    for key in sorted({*mine, *theirs}):
        if key == "Labels":
            here, there = mine.get(key) or {}, theirs.get(key) or {}
            for label in sorted({*here, *there}):
                found += _differing(f"label {label}", here.get(label), there.get(label))
        else:
            found += _differing(key, mine.get(key), theirs.get(key))
    return found


def _differing(key: str, one: object, other: object) -> list[Difference]:
    # Absent and empty mean the same to an engine.
    if (one or None) == (other or None):
        return []
    return [Difference("config", key, f"{json.dumps(one)} -> {json.dumps(other)}")]


def layers(one: Sequence[str], other: Sequence[str]) -> list[int]:
    """Which layers differ, by their place from 0; equal digests are equal files."""
    return [number for number, (mine, theirs) in enumerate(zip(one, other, strict=False)) if mine != theirs]


def files(where: str, one: IO[bytes], other: IO[bytes]) -> Iterator[Difference]:
    """In which files two layers differ.

    Args:
        where: What the layers are, for a person.
        one: The archive of the first.
        other: The archive of the second.
    """
    here, there = _members(one), _members(other)
    for path in sorted({*here, *there}):
        words = _words(here.get(path), there.get(path))
        if words:
            yield Difference(where, path, words)


def _words(one: dict[str, object] | None, other: dict[str, object] | None) -> str:
    if one is None or other is None:
        return "only in the second" if one is None else "only in the first"
    return ", ".join(f"{key} {one[key]} -> {other[key]}" for key in one if one[key] != other[key])


def _members(archive: IO[bytes]) -> dict[str, dict[str, object]]:
    found = {}
    with tarfile.open(fileobj=archive) as opened:
        for member in opened:
            found[plain_name(member.name)] = {
                "kind": KINDS.get(member.type, "file"),
                "mode": f"{member.mode:04o}",
                "owner": f"{member.uid}:{member.gid}",
                "time": int(member.mtime),
                "size": member.size,
                "target": member.linkname,
                "attributes": {key: value for key, value in member.pax_headers.items() if key.startswith(XATTR)},
                "content": _digest(opened, member),
            }
    return found


def _digest(archive: tarfile.TarFile, member: tarfile.TarInfo) -> str:
    data = archive.extractfile(member) if member.isreg() else None
    hashed = hashlib.sha256()
    while data is not None and (block := data.read(BLOCK)):
        hashed.update(block)
    return hashed.hexdigest()[:12] if data is not None else ""
