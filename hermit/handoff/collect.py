"""What a separate judge gets: copies of the paths it names, out of the agent's work directory."""

from __future__ import annotations

import contextlib
import os
import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hermit.handoff import sanitize

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@dataclass(frozen=True)
class Collection:
    """What came of the collecting.

    Args:
        missing: The paths of which nothing came: they did not exist, or were dropped whole.
        entries: How many files, directories and links were copied.
        bytes: How many bytes they hold.
        dropped: How many entries were dropped, by reason.
    """

    missing: tuple[str, ...]
    entries: int
    bytes: int
    dropped: tuple[tuple[str, int], ...]


def collect(work: str, paths: Iterable[str], *, into: str) -> Collection:
    """Copies each path, relative to ``work``, to the same place below ``into``, which exists and is empty.

    Raises:
        sanitize.TooMuch: There is more than a copy may take.
        OSError: The copy cannot be written.
    """
    copied = sanitize.Copied()
    with _directory(work) as source, _directory(into) as target:
        found = {path: _collect_one(source, target, path, copied=copied) for path in _topmost(paths)}
    missing = tuple(path for path, there in found.items() if not there)
    return Collection(missing, copied.entries, copied.bytes, tuple(sorted(copied.dropped.items())))


def _topmost(paths: Iterable[str]) -> list[str]:
    """Each path once, in normal form; one that lies inside another comes with it."""
    wanted = sorted({posixpath.normpath(path) for path in paths})
    if "." in wanted:
        return ["."]
    return [path for path in wanted if not any(path != top and path.startswith(top + "/") for top in wanted)]


def _collect_one(source: int, target: int, path: str, *, copied: sanitize.Copied) -> bool:
    if path == ".":
        for name in sorted(os.listdir(source)):
            sanitize.copy(source, name, target, copied=copied)
        return True
    *parents, name = path.split("/")
    with contextlib.ExitStack() as opened:
        here, there = source, target
        for parent in parents:
            try:
                here = opened.enter_context(_directory(parent, inside=here))
            except OSError:  # absent, or a link: nothing to be had that way
                return False
            with contextlib.suppress(FileExistsError):
                os.mkdir(parent, 0o700, dir_fd=there)
            there = opened.enter_context(_directory(parent, inside=there))
        sanitize.copy(here, name, there, copied=copied, inside="/".join(parents))
        return _holds(there, name)


def _holds(directory: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


@contextlib.contextmanager
def _directory(path: str, *, inside: int | None = None) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=inside)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
