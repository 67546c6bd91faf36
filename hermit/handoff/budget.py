"""What a copy may take at most, and the count of what it has taken and dropped."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field

GIB = 1 << 30
MIB = 1 << 20

# Why something did not come along, or came without a part of it; the closed set a row's ``dropped`` speaks in.
LINK_LEAVES = "link that leaves"
HARD_LINK = "hard link from outside"
DEVICE, FIFO, SOCKET = "device", "FIFO", "socket"
UNREADABLE = "unreadable"
EXCHANGED = "exchanged during the copy"
SETUID, SETGID, STICKY = "setuid bit", "setgid bit", "sticky bit"
ATTRIBUTE, CAPABILITY = "extended attribute", "file capability"
REASONS = (
    *(LINK_LEAVES, HARD_LINK, DEVICE, FIFO, SOCKET, UNREADABLE, EXCHANGED),
    *(SETUID, SETGID, STICKY, ATTRIBUTE, CAPABILITY),
)


class TooMuch(Exception):
    """There is more than a copy may take.

    Args:
        budget: Which budget it is, by its name in :class:`Budget`.
        words: What there is too much of.
    """

    def __init__(self, budget: str, words: str) -> None:
        super().__init__(f"{words} (budget: {budget})")
        self.budget = budget


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The most a copy takes; the copy of more is refused whole.

    Args:
        entries: Files, directories and links.
        bytes: What the files hold.
        apparent_bytes: How long the files are; a sparse file counts with its holes.
        depth: Directories below each other.
        name_bytes: One name.
        paths_bytes: All paths from the root of the copy together, and the texts of all links.
    """

    entries: int = 200_000
    bytes: int = 16 * GIB
    apparent_bytes: int = 32 * GIB
    depth: int = 128
    name_bytes: int = 255
    paths_bytes: int = 64 * MIB


DEFAULT = Budget()


@dataclass
class Copied:
    """What a copy has taken and dropped so far.

    Args:
        budget: The most it takes.
        entries: How many files, directories and links were taken.
        bytes: How many bytes the files hold.
        apparent_bytes: How long they are, holes included.
        paths_bytes: How long their paths are together.
        same_but_case: How many names differ from another one in their directory by nothing but case.
        dropped: How many entries, or parts of them, were left behind, by reason.
    """

    budget: Budget = DEFAULT
    entries: int = 0
    bytes: int = 0
    apparent_bytes: int = 0
    paths_bytes: int = 0
    same_but_case: int = 0
    dropped: Counter[str] = field(default_factory=Counter)

    @property
    def room(self) -> int:
        """How many more entries may come."""
        return self.budget.entries - self.entries

    def take_entry(self, name: str, *, path_bytes: int) -> None:
        """Counts one entry.

        Args:
            name: Its name.
            path_bytes: How long its path is, and its text where it is a link.

        Raises:
            TooMuch: There are too many, or its name or all paths are too long.
        """
        self.entries += 1
        self.paths_bytes += path_bytes
        if self.entries > self.budget.entries:
            raise self.too_many()
        if (len(name) if name.isascii() else len(os.fsencode(name))) > self.budget.name_bytes:
            raise TooMuch("name_bytes", f"a name of more than {self.budget.name_bytes} bytes")
        if self.paths_bytes > self.budget.paths_bytes:
            raise TooMuch("paths_bytes", f"paths of more than {_size(self.budget.paths_bytes)}")

    def too_many(self) -> TooMuch:
        """The refusal of one entry too many."""
        return TooMuch("entries", f"more than {self.budget.entries} entries")

    def take_length(self, length: int) -> None:
        """Counts how long a file is, before anything of it is taken.

        Raises:
            TooMuch: All are too long.
        """
        self.apparent_bytes += length
        if self.apparent_bytes > self.budget.apparent_bytes:
            words = f"files longer than {_size(self.budget.apparent_bytes)} together, holes included"
            raise TooMuch("apparent_bytes", words)

    def take_bytes(self, count: int) -> None:
        """Counts bytes of a file, before they are taken.

        Raises:
            TooMuch: There are too many.
        """
        self.bytes += count
        if self.bytes > self.budget.bytes:
            raise TooMuch("bytes", f"files of more than {_size(self.budget.bytes)}")

    def refuse_depth(self, depth: int) -> None:
        """Refuses a directory that many levels below the root.

        Raises:
            TooMuch: That is too deep.
        """
        if depth > self.budget.depth:
            raise TooMuch("depth", f"directories more than {self.budget.depth} deep")


def _size(count: int) -> str:
    for unit, size in (("GiB", GIB), ("MiB", MIB)):
        if count >= size and count % size == 0:
            return f"{count // size} {unit}"
    return f"{count} bytes"
