"""What calls leave behind for each other in ``environment.write``: noted before a call and after it, and compared.

Somebody else's code fills these directories. They are walked by descriptor, no link in them is followed and no file is
opened; a change shows in the numbers of an entry, of which the kernel alone sets the time of the last change.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MOST_ENTRIES = 100_000
MOST_NAMES = 100

Entry = tuple[int, ...]


def noted(paths: Iterable[str]) -> dict[str, Entry] | None:
    """Every entry at and below these paths with the numbers that tell it apart; ``None`` where there are too many."""
    entries: dict[str, Entry] = {}
    for root in paths:
        if not _note(entries, root):
            return None
    return entries


def _note(entries: dict[str, Entry], root: str) -> bool:
    """Adds what one path holds; whether it had room."""
    try:
        entries[root] = _numbers(os.stat(root), changing=False)
        if not os.path.isdir(root):
            entries[root] = _numbers(os.stat(root))
            return True
    except OSError:
        return True
    for directory, names, files, descriptor in os.fwalk(root, follow_symlinks=False, onerror=None):
        for name in (*names, *files):
            try:
                status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            except OSError:  # another call has removed it meanwhile
                continue
            entries[os.path.join(directory, name)] = _numbers(status, changing=name not in names)
            if len(entries) > MOST_ENTRIES:
                return False
    return True


def _numbers(status: os.stat_result, *, changing: bool = True) -> Entry:
    """What tells an entry apart; a directory's times change with what lies in it, which is noted by itself."""
    kept = (status.st_dev, status.st_ino, status.st_mode)
    return (*kept, status.st_size, status.st_ctime_ns) if changing else kept


def between(before: Mapping[str, Entry] | None, after: Mapping[str, Entry] | None) -> dict[str, Any]:
    """What came, changed and went: how many of each, and the first names, as JSON."""
    if before is None or after is None:
        return {"compared": False, "reason": f"environment.write holds more than {MOST_ENTRIES} entries"}
    kinds = {
        "created": sorted(after.keys() - before.keys()),
        "changed": sorted(path for path in after.keys() & before.keys() if after[path] != before[path]),
        "removed": sorted(before.keys() - after.keys()),
    }
    counts = {kind: len(paths) for kind, paths in kinds.items()}
    return {"compared": True, **counts, "names": {kind: paths[:MOST_NAMES] for kind, paths in kinds.items() if paths}}
