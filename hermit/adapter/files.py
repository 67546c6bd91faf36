"""The files of an adapter as a value: read once from a directory somebody else filled, and written anew where they are used.

A value cannot change between the look at it and the use of it. It holds regular files alone, by paths that mean one thing
everywhere, within bounds; what a directory held beside that is told, never followed. Empty directories are nothing to it.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hermit import untrusted
from hermit.adapter import names
from hermit.untrusted import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermit.adapter.manifest import Structure

MIB = 1 << 20
MOST_FILES, MOST_BYTES, MOST_FILE = 5000, 64 * MIB, 16 * MIB
# Of one directory, and of all that are looked into; of what is told one by one rather than counted.
MOST_ENTRIES, MOST_DIRECTORIES, MOST_TOLD = 10_000, 10_000, 200
UNDER_NO_RULE = "it is under no rule of the structure"


@dataclass(frozen=True)
class File:
    """A regular file."""

    data: bytes = field(repr=False)
    executable: bool = False


@dataclass(frozen=True)
class Dropped:
    """Something that a directory held and no adapter may.

    Args:
        path: Its path, as text that can be printed.
        reason: Why not, in a few words.
    """

    path: str
    reason: str


@dataclass(frozen=True)
class Files:
    """Files by their path, in the order of the paths."""

    by_path: Mapping[str, File] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_path", dict(sorted(self.by_path.items())))

    @property
    def paths(self) -> tuple[str, ...]:
        """Their paths, in order."""
        return tuple(self.by_path)

    @property
    def size(self) -> int:
        """How many bytes they hold together."""
        return sum(len(file.data) for file in self.by_path.values())

    def get(self, path: str) -> bytes | None:
        """What a file holds; ``None`` where there is none."""
        file = self.by_path.get(path)
        return None if file is None else file.data

    def with_files(self, changes: Mapping[str, File | None]) -> Files:
        """The same with some files put in, and those without one taken out."""
        merged = {**self.by_path, **changes}
        return Files({path: file for path, file in merged.items() if file is not None})

    def digest(self) -> str:
        """SHA-256 over paths, execute bits and contents, in hexadecimal."""
        total = hashlib.sha256()
        for path, file in self.by_path.items():
            total.update(f"{path}\0{'x' if file.executable else '-'}".encode())
            total.update(hashlib.sha256(file.data).digest())
        return total.hexdigest()

    def refuse(self) -> None:
        """Refuses files that are none of an adapter, whoever made the value.

        Raises:
            ValueError: A path is none, two are one on some systems, or there is too much; the message says what.
        """
        for path in self.by_path:
            wrong = names.wrong_path(path)
            if wrong:
                raise ValueError(f"{path!r} is no file of an adapter: {wrong}")
        for path, other in names.collisions(self.by_path).items():
            raise ValueError(f"{path!r} cannot be beside {other!r}: some systems would take one for the other")
        if len(self.by_path) > MOST_FILES or self.size > MOST_BYTES:
            raise ValueError(f"an adapter has at most {MOST_FILES} files and {MOST_BYTES // MIB} MiB")

    def write(self, into: str) -> None:
        """Writes the files into a directory that exists and is empty; all of it can be read by anybody.

        Raises:
            ValueError: They are none of an adapter.
            OSError: Something is there already, or cannot be written.
        """
        self.refuse()
        for path, file in self.by_path.items():
            target = f"{into}/{path}"
            os.makedirs(os.path.dirname(target), exist_ok=True)
            mode = 0o755 if file.executable else 0o644
            descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
            with open(descriptor, "wb") as written:
                written.write(file.data)


@dataclass(frozen=True)
class Reading:
    """What was read of a directory.

    Args:
        files: The files that an adapter may have.
        dropped: What else was there, the first of it; in the order of the paths.
        more: How much more there was, by reason.
    """

    files: Files
    dropped: tuple[Dropped, ...] = ()
    more: tuple[tuple[str, int], ...] = ()


def read(directory: str, *, structure: Structure | None = None) -> Reading:
    """The files of a directory, as far as an adapter may have them.

    Args:
        directory: Whoever filled it may be anybody, and may work there still.
        structure: The rules; a file that none of them is about is not read. Without them every file is.

    Raises:
        untrusted.Refused: It is no directory.
        OSError: It cannot be read.
    """
    walk = _Walk(structure)
    with untrusted.directory(directory) as top:
        walk.take(top, below="")
    return walk.reading()


class _Walk:
    """One walk over a directory: what it has read, and what it has left there."""

    def __init__(self, structure: Structure | None) -> None:
        self._structure = structure
        self._found: dict[str, File] = {}
        self._dropped: list[Dropped] = []
        self._more: Counter[str] = Counter()
        self._bytes = 0
        self._directories = 0

    def reading(self) -> Reading:
        for path, other in names.collisions(sorted(self._found)).items():
            del self._found[path]
            self._drop(path, f"some systems would take it for {other}")
        dropped = sorted(self._dropped, key=lambda each: (each.path, each.reason))
        return Reading(Files(self._found), tuple(dropped), tuple(sorted(self._more.items())))

    def take(self, here: int, *, below: str) -> None:
        """Takes what a directory holds. The depth of an adapter bounds how often this calls itself."""
        self._directories += 1
        try:
            found = untrusted.entries(here, most=MOST_ENTRIES)
        except untrusted.TooMany:
            self._drop(below.rstrip("/") or ".", f"it holds more than {MOST_ENTRIES} entries")
            return
        for name, kind in found:
            path = below + name
            wrong = names.wrong_path(path)
            if wrong:
                self._drop(path, wrong)
            elif kind is Kind.DIRECTORY:
                self._enter(name, at=here, path=path)
            elif kind is Kind.FILE:
                self._file(name, at=here, path=path)
            else:
                self._drop(path, f"it is a {kind.value if kind else 'thing that cannot be looked at'} and no file")

    def _enter(self, name: str, *, at: int, path: str) -> None:
        if self._structure is not None and not self._structure.reaches(path):
            self._drop(path, f"{UNDER_NO_RULE}, and nothing below it would be")
            return
        if self._directories >= MOST_DIRECTORIES:
            self._drop(path, f"there are more than {MOST_DIRECTORIES} directories")
            return
        try:
            inner = untrusted.open_directory(name, at=at)
        except OSError as error:
            self._drop(path, _reason(error))
            return
        with untrusted.closing(inner):
            self.take(inner, below=f"{path}/")

    def _file(self, name: str, *, at: int, path: str) -> None:
        if self._structure is not None and not self._structure.holds(path):
            self._drop(path, UNDER_NO_RULE)
            return
        if len(self._found) >= MOST_FILES:
            self._drop(path, f"there are more than {MOST_FILES} files")
            return
        room = min(MOST_FILE, MOST_BYTES - self._bytes)
        try:
            executable = bool(untrusted.status(name, at=at).st_mode & stat.S_IXUSR)
            content = untrusted.read(name, at=at, most=room)
        except OSError as error:
            self._drop(path, _reason(error))
            return
        if content.cut:
            much = f"the file has more than {MOST_FILE // MIB} MiB" if room == MOST_FILE else "the adapter is full"
            self._drop(path, much)
            return
        self._bytes += len(content.data)
        self._found[path] = File(content.data, executable)

    def _drop(self, path: str, reason: str) -> None:
        if len(self._dropped) < MOST_TOLD:
            self._dropped.append(Dropped(untrusted.shown(path)[:300], reason))
        else:
            self._more[reason] += 1


def _reason(error: OSError) -> str:
    words = error.reason if isinstance(error, untrusted.Refused) else error.strerror or str(error)
    return f"it cannot be read: {words}"
