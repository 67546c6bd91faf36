"""The far end of a copy: writes down what somebody else's tree is said to hold, and takes nothing on trust.

It is told names, never paths, so there is nothing that could lead out: each entry is made in the directory that is open,
and nothing that exists is overwritten or followed. A link is made where its text stays inside the tree; modes keep the
owner's execute bit alone; owners, times and attributes are those of a new file. Everything is counted against a budget
before it is written. What came is written into a manifest, a line of JSON for each entry, with the BLAKE3 of each file.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
from concurrent import futures
from concurrent.futures import ThreadPoolExecutor
from json.encoder import encode_basestring_ascii as quoted
from typing import TYPE_CHECKING, BinaryIO, Self

from blake3 import blake3

from hermit.handoff import budget
from hermit.handoff.walk import CHUNK, write_all

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future

    from hermit.handoff.walk import Content

MOVED = 2 << 20  # little enough that what is digested is still in a cache (decision 0027)
LONGEST_TEXT = 4095  # of a link, by the kernel
NEW_FILE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Malformed(Exception):
    """Whoever says what is there says something that cannot be; the message says what."""


class Copy:
    """A copy in the making; a context, for it holds descriptors and a thread.

    Args:
        into: Descriptor of the directory that gets it; nobody else works there.
        budget: The most it takes.
        manifest: Gets the lines of the manifest; no file is digested without one.
    """

    def __init__(self, into: int, *, limits: budget.Budget = budget.DEFAULT, manifest: BinaryIO | None = None) -> None:
        self.copied = budget.Copied(limits)
        self._manifest = manifest
        self._lines = bytearray()
        self._whole = blake3()
        self._into = into
        self._here = into
        # For each directory it is in: the path of what lies there, and the names it has, in one case.
        self._prefixes = [""]
        self._folded: list[set[str]] = [set()]
        self._digests: ThreadPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._digests is not None:
            self._digests.shutdown(cancel_futures=True)
        self._step(self._into)

    def finish(self) -> str:
        """Writes what is left of the manifest; its BLAKE3, in hexadecimal, empty without one."""
        self._write_lines()
        return self._whole.hexdigest() if self._manifest is not None else ""

    def enter(self, name: str) -> None:
        """Makes a directory; what comes next is in it.

        Raises:
            budget.TooMuch: There is more than the budget takes.
            Malformed: It is no name.
            OSError: It is there, or cannot be made.
        """
        self.copied.refuse_depth(len(self._prefixes))
        self._take_name(name)
        os.mkdir(name, 0o700, dir_fd=self._here)
        self._say(name, '"kind": "directory"')
        self._go(name)

    @contextlib.contextmanager
    def below(self, names: list[str]) -> Iterator[None]:
        """Goes into directories that are only on the way to what is copied: they are no entries of the copy."""
        for name in names:
            self.copied.refuse_depth(len(self._prefixes))
            self._check(name)
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=self._here)
            self._go(name)
        yield
        for _ in names:
            self.leave()

    def _go(self, name: str) -> None:
        self._step(os.open(name, DIRECTORY, dir_fd=self._here))
        self._prefixes.append(f"{self._prefixes[-1]}{name}/")
        self._folded.append(set())

    def leave(self) -> None:
        """The directory is over.

        Raises:
            Malformed: There is none to leave.
        """
        if len(self._prefixes) == 1:
            raise Malformed("a directory ends that never began")
        # Nobody else works here, so `..` is where we came from.
        self._step(self._into if not self._prefixes[-2] else os.open("..", DIRECTORY, dir_fd=self._here))
        self._prefixes.pop()
        self._folded.pop()

    def _step(self, there: int) -> None:
        if self._here != self._into:
            os.close(self._here)
        self._here = there

    def link(self, name: str, text: str) -> None:
        """Makes a link, where its text stays inside the tree; else it is dropped.

        Raises:
            budget.TooMuch: There is more than the budget takes.
            Malformed: It is no name, or no link can have the text.
            OSError: It is there, or cannot be made.
        """
        if not 0 < len(os.fsencode(text)) <= LONGEST_TEXT or "\0" in text:
            raise Malformed("a link has a text that no link can have")
        if leaves(text, self._prefixes[-1]):
            self.drop(budget.LINK_LEAVES)
            return
        self._take_name(name, beside=len(text))
        os.symlink(text, name, dir_fd=self._here)
        self._say(name, f'"kind": "link", "to": {quoted(text)}')

    def file(self, name: str, content: Content, *, executable: bool) -> None:
        """Makes a file.

        Raises:
            budget.TooMuch: There is more than the budget takes.
            Malformed: It is no name, or its content makes no sense.
            OSError: It is there, or cannot be read or written.
        """
        self._take_name(name)
        self.copied.take_length(content.length)
        target = os.open(name, NEW_FILE, 0o700 if executable else 0o600, dir_fd=self._here)
        try:
            data = content.whole()
            if data is None:
                length, digest = self._take_pieces(target, content)
            else:
                self.copied.take_bytes(len(data))
                write_all(target, data)
                length, digest = len(data), blake3(data).hexdigest() if self._manifest else ""
        finally:
            os.close(target)
        run = "true" if executable else "false"
        self._say(name, f'"kind": "file", "bytes": {length}, "executable": {run}, "blake3": "{digest}"')

    def drop(self, reason: str, *, times: int = 1) -> None:
        """Counts something that was left behind.

        Raises:
            Malformed: There is no such reason.
        """
        if reason not in budget.REASONS:
            raise Malformed(f"something was left behind for no known reason: {reason[:40]!r}")
        self.copied.dropped[reason] += times

    def _take_pieces(self, target: int, content: Content) -> tuple[int, str]:
        """Writes a file piece by piece, and digests what has been written in another thread meanwhile."""
        written, digests = 0, _Digest(target, self._digester())
        try:
            for offset, count in content.pieces():
                if offset < written or offset + count > content.length:
                    raise Malformed("the pieces of a file overlap, or are longer than the file")
                self.copied.take_bytes(count)
                os.lseek(target, offset, os.SEEK_SET)
                left = count
                while left and (moved := content.move(target, min(left, MOVED))):
                    left -= moved
                    written = offset + count - left
                    digests.reach(written)
                if left:  # it has shrunk
                    break
            length = content.end()
            if length > content.length:
                raise Malformed("a file is longer than it was said to be")
            if length < written:
                digests.restart()
            if length != written:
                os.ftruncate(target, length)
            return length, digests.hexdigest(length)
        finally:
            digests.wait()

    def _digester(self) -> ThreadPoolExecutor | None:
        if self._manifest is not None and self._digests is None:
            self._digests = ThreadPoolExecutor(1, thread_name_prefix="digest")
        return self._digests

    def _take_name(self, name: str, *, beside: int = 0) -> None:
        self._check(name)
        self.copied.take_entry(name, path_bytes=len(self._prefixes[-1]) + len(name) + beside)
        folded, names = name.casefold(), self._folded[-1]
        self.copied.same_but_case += folded in names
        names.add(folded)

    @staticmethod
    def _check(name: str) -> None:
        if name in ("", ".", "..") or "/" in name or "\0" in name:
            raise Malformed(f"{name[:40]!r} is no name of a file")

    def _say(self, name: str, rest: str) -> None:
        if self._manifest is None:
            return
        self._lines += f'{{"path": {quoted(self._prefixes[-1] + name)}, {rest}}}\n'.encode("ascii")
        if len(self._lines) > CHUNK:
            self._write_lines()

    def _write_lines(self) -> None:
        if self._manifest is not None:
            self._manifest.write(self._lines)
            self._whole.update(self._lines)
            self._lines.clear()


class _Digest:
    """The BLAKE3 of a file that is being written, made in another thread from what is there already.

    Args:
        file: Descriptor of the file, open for reading too.
        thread: Where it is made; ``None`` where nobody wants it.
    """

    def __init__(self, file: int, thread: ThreadPoolExecutor | None) -> None:
        self._file = file
        self._thread = thread
        self._sum = blake3()
        self._read = self._asked = 0
        self._last: Future[None] | None = None

    def reach(self, written: int) -> None:
        """Says that so much of the file is there for good."""
        if self._thread is not None and written - self._asked >= MOVED:
            self._ask(written)

    def restart(self) -> None:
        """Forgets what it knows: the file has become shorter."""
        self.wait()
        self._sum, self._read, self._asked = blake3(), 0, 0

    def hexdigest(self, length: int) -> str:
        """The digest of the whole file, which is that long; empty where nobody wants it."""
        if self._thread is None:
            return ""
        self._ask(length)
        assert self._last is not None  # noqa: S101 - it was just asked for
        self._last.result()
        return self._sum.hexdigest()

    def wait(self) -> None:
        """Waits until nobody reads the file any more."""
        if self._last is not None:
            futures.wait((self._last,))

    def _ask(self, end: int) -> None:
        assert self._thread is not None  # noqa: S101 - the callers have looked
        self._asked = end
        self._last = self._thread.submit(self._add, end)

    def _add(self, end: int) -> None:
        buffer = memoryview(bytearray(CHUNK))
        while self._read < end:
            count = os.preadv(self._file, [buffer[: min(CHUNK, end - self._read)]], self._read)
            if not count:
                raise OSError("a copy became shorter while it was digested")
            self._sum.update(buffer[:count])
            self._read += count


def leaves(text: str, directory: str) -> bool:
    """Whether a link's text may lead out of the tree.

    Args:
        text: The text.
        directory: The path of the directory that holds the link, from the root of the tree.
    """
    # One that climbs after a name may climb out of another link's target: then its text says nothing.
    climbs_late = ".." in text.lstrip("./").split("/")
    target = posixpath.normpath(posixpath.join(directory, text))
    return text.startswith("/") or climbs_late or target == ".." or target.startswith("../")
