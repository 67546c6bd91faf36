"""The near end of a copy: goes through somebody else's tree and says what is there, to whoever writes it down.

It runs on the host over a tree that lies there, and inside a sandbox over a tree that does not. It holds a descriptor of
every directory it is in, so nothing that is moved or exchanged meanwhile leads it anywhere else, and it follows no link.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import stat
from collections import Counter
from typing import TYPE_CHECKING, Protocol

from hermit import untrusted
from hermit.handoff import budget
from hermit.untrusted import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNK = 1 << 20
SMALL = 1 << 16
# Beyond this many entries nobody looks on for the other names of a file.
MOST_LOOKED_AT = 1_000_000
MOST_DESCRIPTORS = 1 << 16
SPECIAL = {Kind.DEVICE.value: budget.DEVICE, Kind.FIFO.value: budget.FIFO, Kind.SOCKET.value: budget.SOCKET}
BITS = ((stat.S_ISUID, budget.SETUID), (stat.S_ISGID, budget.SETGID), (stat.S_ISVTX, budget.STICKY))


class Content(Protocol):
    """What a file holds, wherever it comes from."""

    @property
    def length(self) -> int:
        """How long it was said to be, holes included."""

    def whole(self) -> bytes | None:
        """All of it, where it is small and nothing of it has been taken; else ``None``."""

    def pieces(self) -> Iterator[tuple[int, int]]:
        """Where there is data, as offset and length, from the beginning to the end; between them are holes."""

    def move(self, target: int, count: int) -> int:
        """Writes up to ``count`` bytes of the piece at the target's own offset; 0 where there are no more."""

    def end(self) -> int:
        """How long it was in the end: no longer than ``length``, shorter where it has shrunk."""


class Sink(Protocol):
    """Who writes down what is there."""

    copied: budget.Copied

    def enter(self, name: str) -> None:
        """A directory; what comes next is in it."""

    def leave(self) -> None:
        """The directory is over."""

    def file(self, name: str, content: Content, *, executable: bool) -> None:
        """A regular file."""

    def link(self, name: str, text: str) -> None:
        """A symbolic link."""

    def drop(self, reason: str) -> None:
        """Something was left behind."""


class Held:
    """The content of a file that is open here; no more of it than there was when it was opened."""

    def __init__(self, descriptor: int, status: os.stat_result) -> None:
        self.length = status.st_size
        self._descriptor = descriptor
        self._sparse = status.st_blocks * 512 < status.st_size
        self._at = 0
        self._copies = True

    def whole(self) -> bytes | None:
        """All of it, where it is small."""
        if self.length > SMALL or self._sparse:
            return None
        data = os.read(self._descriptor, self.length)
        self._at = len(data)
        return data

    def pieces(self) -> Iterator[tuple[int, int]]:
        """The parts that are no holes."""
        start = 0
        while start < self.length:
            begin, end = self._data_from(start) if self._sparse else (start, self.length)
            end = min(end, self.length)
            if begin >= end:
                break
            self._at = begin
            yield begin, end - begin
            start = end
        self._at = self.length

    def _data_from(self, start: int) -> tuple[int, int]:
        try:
            begin = os.lseek(self._descriptor, start, os.SEEK_DATA)
            return begin, os.lseek(self._descriptor, begin, os.SEEK_HOLE)
        except OSError as error:
            if error.errno == errno.ENXIO:  # a hole up to the end
                return self.length, self.length
            return start, self.length

    def move(self, target: int, count: int) -> int:
        """Lets the kernel copy it where it can."""
        moved = self._moved(target, count)
        self._at += moved
        return moved

    def _moved(self, target: int, count: int) -> int:
        if self._copies:
            try:
                return os.copy_file_range(self._descriptor, target, count, self._at)
            except OSError as error:
                if error.errno not in (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
                    raise
                self._copies = False  # to another file system, or into a pipe
        return os.sendfile(target, self._descriptor, self._at, count)

    def end(self) -> int:
        """How long it is now, if that is shorter."""
        return min(self.length, os.fstat(self._descriptor).st_size)


def write_all(descriptor: int, data: bytes) -> None:
    """Writes all of it."""
    written = os.write(descriptor, data)
    while written < len(data):
        written += os.write(descriptor, memoryview(data)[written:])


class Walk:
    """A walk through parts of one tree.

    Args:
        root: Descriptor of the tree's own directory.
        sink: Who writes down what is there.
    """

    def __init__(self, root: int, sink: Sink) -> None:
        make_room()
        self._root = root
        self._sink = sink
        self._names: Counter[tuple[int, int]] | None = None

    def take(self, name: str, *, at: int) -> None:
        """Takes one entry of a directory, with all that lies below it; one that is not there is no error.

        Raises:
            budget.TooMuch: There is more than the sink takes.
            OSError: Something cannot be read that could be opened, or the sink cannot write.
        """
        try:
            kind = untrusted.kind_of(untrusted.status(name, at=at).st_mode)
        except untrusted.Refused as refused:
            if refused.reason != "missing":
                self._sink.drop(budget.UNREADABLE)
            return
        self._take_below(name, kind, at=at)

    def take_all(self) -> None:
        """Takes everything in the tree.

        Raises:
            budget.TooMuch: As for :meth:`take`.
            OSError: As for :meth:`take`.
        """
        for name, kind in self._listed(self._root):
            self._take_below(name, kind, at=self._root)

    def _take_below(self, name: str, kind: Kind | None, *, at: int) -> None:
        """No recursion: somebody else says how deep the tree is."""
        levels: list[tuple[int, Iterator[tuple[str, Kind | None]]]] = [(at, iter([(name, kind)]))]
        try:
            while True:
                here, listed = levels[-1]
                entry = next(listed, None)
                if entry is not None:
                    inner = self._take_one(*entry, at=here)
                    if inner is not None:
                        levels.append((inner, iter(())))
                        levels[-1] = (inner, iter(self._listed(inner)))
                elif len(levels) > 1:
                    levels.pop()
                    os.close(here)
                    self._sink.leave()
                else:
                    return
        finally:
            for descriptor, _ in levels[1:]:
                os.close(descriptor)

    def _listed(self, directory: int) -> list[tuple[str, Kind | None]]:
        try:
            return untrusted.entries(directory, most=self._sink.copied.room)
        except untrusted.TooMany:
            raise self._sink.copied.too_many() from None

    def _take_one(self, name: str, kind: Kind | None, *, at: int) -> int | None:
        """Takes one entry; the descriptor of a directory that has been entered."""
        try:
            if kind is None:
                kind = untrusted.kind_of(untrusted.status(name, at=at).st_mode)
            if kind is Kind.DIRECTORY:
                return self._enter(name, at=at)
            if kind is Kind.LINK:
                self._sink.link(name, untrusted.link_text(name, at=at))
            elif kind is Kind.FILE:
                self._take_file(name, at=at)
            else:
                self._sink.drop(SPECIAL[kind.value])
        except untrusted.Refused as refused:
            reason = budget.UNREADABLE if refused.reason == "unreadable" else budget.EXCHANGED
            self._sink.drop(SPECIAL.get(refused.reason, reason))
        return None

    def _enter(self, name: str, *, at: int) -> int:
        inner = untrusted.open_directory(name, at=at)
        try:
            self._sink.enter(name)
            self._note(inner, os.fstat(inner).st_mode)
        except BaseException:
            os.close(inner)
            raise
        return inner

    def _take_file(self, name: str, *, at: int) -> None:
        descriptor, status = untrusted.open_file(name, at=at)
        try:
            if status.st_nlink > 1 and status.st_nlink > self._names_here(status):
                self._sink.drop(budget.HARD_LINK)
                return
            self._note(descriptor, status.st_mode)
            content = Held(descriptor, status)
            self._sink.file(name, content, executable=bool(status.st_mode & stat.S_IXUSR))
        finally:
            os.close(descriptor)

    def _note(self, descriptor: int, mode: int) -> None:
        """Says what of a file or directory is left behind."""
        if mode & (stat.S_ISUID | stat.S_ISGID | stat.S_ISVTX):
            for bit, reason in BITS:
                if mode & bit:
                    self._sink.drop(reason)
        for attribute in untrusted.attributes(descriptor):
            self._sink.drop(budget.CAPABILITY if attribute == untrusted.CAPABILITY else budget.ATTRIBUTE)

    def _names_here(self, status: os.stat_result) -> int:
        """How many names a file has in the tree; the tree is looked through once, when the first one is asked for."""
        if self._names is None:
            self._names = names_of_files(self._root, depth=self._sink.copied.budget.depth)
        return self._names[status.st_dev, status.st_ino]


def names_of_files(root: int, *, depth: int) -> Counter[tuple[int, int]]:
    """How many names each file with several has in a tree; what is deeper, or comes after a million, is not looked at."""
    found: Counter[tuple[int, int]] = Counter()
    left = MOST_LOOKED_AT
    levels = [(root, untrusted.each_entry(root))]
    try:
        while left and levels:
            here, listed = levels[-1]
            with contextlib.suppress(untrusted.Refused):
                entry = next(listed, None)
                if entry is None:
                    levels.pop()
                    if levels:
                        os.close(here)
                    continue
                left -= 1
                name, kind = entry
                if kind is Kind.FILE:
                    status = untrusted.status(name, at=here)
                    if status.st_nlink > 1:
                        found[status.st_dev, status.st_ino] += 1
                elif kind is Kind.DIRECTORY and len(levels) <= depth:
                    inner = untrusted.open_directory(name, at=here)
                    levels.append((inner, untrusted.each_entry(inner)))
    finally:
        for descriptor, listed in levels:
            listed.close()
            if descriptor != root:
                os.close(descriptor)
    return found


def make_room() -> None:
    """Lets this process hold a descriptor of each directory of as many trees as are copied at once.

    Else an agent could use them up with directories below each other, and its failure would be taken for ours. A
    sandbox's command has a bound of its own.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(MOST_DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
