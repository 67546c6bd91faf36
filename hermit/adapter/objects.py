"""What Git calls things: the ids of files, directories and commits, and their form.

An id is a digest of what it names, so the same files with the same history have the same ids on every machine, and what was
read is what was written where the ids agree. Nothing here has an effect; ``hermit/adapter/git.py`` has.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hermit.adapter.files import Files

FILE, PROGRAM, DIRECTORY = "100644", "100755", "40000"
# Of every commit: who made a change is the run, and its branch says which.
WHO = "Hermit <hermit@localhost>"
MOST_MESSAGE = 64 * 1024


@dataclass(frozen=True)
class Commit:
    """A version.

    Args:
        tree: The id of its files.
        parents: The ids of the versions it comes from.
        when: Its date, in seconds since 1970.
        message: What it says of itself.
    """

    tree: str
    parents: tuple[str, ...]
    when: int
    message: str

    def encoded(self) -> bytes:
        """The object itself."""
        lines = [f"tree {self.tree}", *(f"parent {parent}" for parent in self.parents)]
        lines += [f"{role} {WHO} {self.when} +0000" for role in ("author", "committer")]
        return ("\n".join(lines) + f"\n\n{self.message}").encode()

    @property
    def id(self) -> str:
        """Its id."""
        return object_id("commit", self.encoded())

    @classmethod
    def decoded(cls, data: bytes) -> Commit:
        """The commit that an object is.

        Raises:
            ValueError: It is none that Hermit makes.
        """
        head, _, message = data.decode("utf-8", "replace").partition("\n\n")
        rows = [line.partition(" ")[::2] for line in head.split("\n")]
        trees, parents, dates = (
            [value for key, value in rows if key == wanted] for wanted in ("tree", "parent", "committer")
        )
        if len(trees) != 1 or len(dates) != 1:
            raise ValueError("it is no commit")
        when = dates[0].split(" ")[-2:-1]
        if not when or not when[0].isdigit():
            raise ValueError("it is a commit without a date")
        return cls(trees[0], tuple(parents), int(when[0]), message)


def object_id(kind: str, data: bytes) -> str:
    """The id of an object."""
    return hashlib.sha1(f"{kind} {len(data)}\0".encode() + data, usedforsecurity=False).hexdigest()


def tree_id(files: Files) -> str:
    """The id of the directory that holds these files."""
    directories: dict[str, dict[str, tuple[str, str]]] = {"": {}}
    for path, file in files.by_path.items():
        steps = path.split("/")
        for count in range(1, len(steps)):
            directories.setdefault("/".join(steps[:count]), {})
        mode = PROGRAM if file.executable else FILE
        directories["/".join(steps[:-1])][steps[-1]] = (mode, object_id("blob", file.data))
    # The deepest first, so that each knows the ids of those in it.
    for directory in sorted(directories, key=lambda each: each.count("/"), reverse=True):
        if directory:
            above, _, name = directory.rpartition("/")
            directories[above][name] = (DIRECTORY, _directory_id(directories[directory]))
    return _directory_id(directories[""])


def _directory_id(rows: Mapping[str, tuple[str, str]]) -> str:
    # Git sorts a directory as if its name ended with a slash.
    ordered = sorted(rows.items(), key=lambda row: row[0].encode() + (b"/" if row[1][0] == DIRECTORY else b""))
    encoded = (f"{mode} {name}\0".encode() + bytes.fromhex(identity) for name, (mode, identity) in ordered)
    return object_id("tree", b"".join(encoded))


def entries(data: bytes) -> Iterator[tuple[str, str, str]]:
    """What a directory's object holds: the mode, the name and the id of each entry.

    Raises:
        ValueError: It is no such object.
    """
    at = 0
    while at < len(data):
        space, end = data.find(b" ", at), data.find(b"\0", at)
        if not at < space < end or end + 21 > len(data):
            raise ValueError("it is no directory")
        yield data[at:space].decode("ascii"), data[space + 1 : end].decode(), data[end + 1 : end + 21].hex()
        at = end + 21


def message(text: str) -> str:
    """A text as a commit keeps it: what can be printed, in lines, with an end."""
    lines = ["".join(filter(str.isprintable, line)).rstrip() for line in text[:MOST_MESSAGE].splitlines()]
    return "\n".join(lines).strip("\n") + "\n"
