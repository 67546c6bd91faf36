"""What calls leave behind for each other in ``environment.write``: noted before a call and after it, and compared.

Somebody else's code fills these directories. They are walked by descriptor, no link in them is followed and no file is
opened; a change shows in the numbers of an entry, of which the kernel alone sets the time of the last change.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MOST_ENTRIES = 100_000
MOST_NAMES = 100
MOST_DEPTH = 128

Entry = tuple[int, ...]


def noted(paths: Iterable[str]) -> dict[str, Entry] | None:
    """Every entry at and below these paths with the numbers that tell it apart; ``None`` where there are too many, or they are too deep."""
    entries: dict[str, Entry] = {}
    for root in paths:
        if not _note(entries, root):
            return None
    return entries


def _note(entries: dict[str, Entry], root: str) -> bool:
    """Adds what one path holds; whether it had room."""
    try:
        descriptor = os.open(root, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # a call has removed it
        return True
    try:
        status = os.fstat(descriptor)
        entries[root] = _numbers(status)
        return not stat.S_ISDIR(status.st_mode) or _note_below(entries, root, descriptor, depth=0)
    finally:
        os.close(descriptor)


def _note_below(entries: dict[str, Entry], path: str, above: int, *, depth: int) -> bool:
    """Adds what a directory holds, by a descriptor of it; what another call removes meanwhile is left out."""
    if depth > MOST_DEPTH:
        return False
    try:
        here = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=above)
    except OSError:
        return True
    try:
        with os.scandir(here) as listed:
            names = [entry.name for entry in listed]
        for name in names:
            inner = os.path.join(path, name)
            try:
                descriptor = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
            except OSError:
                continue
            try:
                status = os.fstat(descriptor)
                entries[inner] = _numbers(status)
                room = len(entries) <= MOST_ENTRIES
                if stat.S_ISDIR(status.st_mode):
                    room = room and _note_below(entries, inner, descriptor, depth=depth + 1)
            finally:
                os.close(descriptor)
            if not room:
                return False
    finally:
        os.close(here)
    return True


def _numbers(status: os.stat_result) -> Entry:
    """What tells an entry apart; a directory's times change with what lies in it, which is noted by itself."""
    kept = (status.st_dev, status.st_ino, status.st_mode)
    return kept if stat.S_ISDIR(status.st_mode) else (*kept, status.st_size, status.st_ctime_ns)


def between(before: Mapping[str, Entry] | None, after: Mapping[str, Entry] | None) -> dict[str, Any]:
    """What came, changed and went: how many of each, and the first names, as JSON."""
    if before is None or after is None:
        return {
            "compared": False,
            "reason": f"environment.write holds more than {MOST_ENTRIES} entries, or is more than {MOST_DEPTH} deep",
        }
    kinds = {
        "created": sorted(after.keys() - before.keys()),
        "changed": sorted(path for path in after.keys() & before.keys() if after[path] != before[path]),
        "removed": sorted(before.keys() - after.keys()),
    }
    counts = {kind: len(paths) for kind, paths in kinds.items()}
    return {"compared": True, **counts, "names": {kind: paths[:MOST_NAMES] for kind, paths in kinds.items() if paths}}
