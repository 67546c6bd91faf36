"""What a separate judge gets: copies of the paths it names, out of the agent's work directory."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Self

from hermit import untrusted
from hermit.handoff import budget
from hermit.handoff.sanitize import Copy
from hermit.handoff.walk import Walk

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True)
class Collection:
    """What came of the collecting.

    Args:
        missing: The paths of which nothing came: they did not exist, or were dropped whole.
        entries: How many files, directories and links were copied.
        bytes: How many bytes they hold.
        apparent_bytes: How long the files are, holes included.
        same_but_case: How many names differ from another one in their directory by nothing but case.
        digest: BLAKE3 of the manifest, in hexadecimal; empty where there is none.
        dropped: How many entries, or parts of them, were left behind, by reason.
    """

    missing: tuple[str, ...] = ()
    entries: int = 0
    bytes: int = 0
    apparent_bytes: int = 0
    same_but_case: int = 0
    digest: str = ""
    dropped: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, copy: Copy, *, missing: tuple[str, ...] = ()) -> Self:
        """What a copy has come to."""
        copied = copy.copied
        dropped = tuple(sorted(copied.dropped.items()))
        return cls(
            missing, copied.entries, copied.bytes, copied.apparent_bytes, copied.same_but_case, copy.finish(), dropped
        )

    def as_json(self) -> dict[str, Any]:
        """What stands in a row beside ``missing`` and ``dropped``."""
        return {name: value for name, value in vars(self).items() if name not in ("missing", "dropped")}


def collect(
    work: str,
    paths: Iterable[str],
    *,
    into: str,
    limits: budget.Budget = budget.DEFAULT,
    manifest: BinaryIO | None = None,
) -> Collection:
    """Copies each path, relative to ``work``, to the same place below ``into``, which exists and is empty.

    Nobody works in ``work`` any more: the sandbox that did has ended, and the kernel has shown that it is empty.

    Args:
        work: The agent's work directory, on this machine.
        paths: What is copied.
        into: The directory that gets the copy.
        limits: The most it takes.
        manifest: Gets a line of JSON for each entry that was copied.

    Raises:
        budget.TooMuch: There is more than a copy may take.
        untrusted.Refused: The work directory is no directory any more.
        OSError: The copy cannot be written.
    """
    with (
        untrusted.directory(work) as source,
        untrusted.directory(into) as target,
        Copy(target, limits=limits, manifest=manifest) as copy,
    ):
        walk = Walk(source, copy)
        found = {path: _collect_one(walk, copy, path, source=source) for path in _topmost(paths)}
        return Collection.of(copy, missing=tuple(path for path, there in found.items() if not there))


def _topmost(paths: Iterable[str]) -> list[str]:
    """Each path once, in normal form; one that lies inside another comes with it."""
    wanted = sorted({posixpath.normpath(path) for path in paths})
    if "." in wanted:
        return ["."]
    return [path for path in wanted if not any(path != top and path.startswith(top + "/") for top in wanted)]


def _collect_one(walk: Walk, copy: Copy, path: str, *, source: int) -> bool:
    """Copies one path; whether anything came of it."""
    if path == ".":
        walk.take_all()
        return True
    above, _, name = path.rpartition("/")
    before = copy.copied.entries
    if not above:
        walk.take(name, at=source)
        return copy.copied.entries > before
    try:
        parent = untrusted.open_directory_beneath(above, at=source)
    except untrusted.Refused:  # absent, or over a link: nothing to be had that way
        return False
    with untrusted.closing(parent), copy.below(above.split("/")):
        walk.take(name, at=parent)
    return copy.copied.entries > before
