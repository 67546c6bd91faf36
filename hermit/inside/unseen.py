"""Whether a mount shows a secret of the run, whatever name it has inside."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Seen = tuple[bool, str]
Mount = tuple[str, bytes, bytes, bool, bytes]

MOST_NAMED = 16


def unseen(secrets: dict[str, Any], mounted: list[Mount]) -> Seen:
    """No mount shows a secret, a directory that holds one or a part of one, by its numbers and by what it is mounted from."""
    numbers = {tuple(identity) for identity in secrets["identities"]}
    spots = [(device, as_directory(path)) for device, path in secrets["spots"]]
    found = []
    for target, root, _, _, device in mounted:
        if overlapping(device, as_directory(root), spots) or identity(target) in numbers:
            found.append(target)
    return not found, ", ".join(found[:MOST_NAMED]) or f"{len(mounted)} mounts compared with {len(spots)} paths"


def as_directory(path: bytes) -> bytes:
    """A path with one slash at its end: what lies below it begins with that, and nothing else does."""
    return path.rstrip(b"/") + b"/"


def overlapping(device: bytes, root: bytes, spots: list[tuple[bytes, bytes]]) -> bool:
    """Whether a directory of a file system is, holds or lies inside one of these."""
    return any(device == other and (root.startswith(path) or path.startswith(root)) for other, path in spots)


def identity(path: str) -> tuple[int, int] | None:
    """What a path is, whatever its name; ``None`` where nothing can be reached by it."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino
