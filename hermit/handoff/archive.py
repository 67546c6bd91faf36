"""The near end of a copy that is made inside a sandbox: the walk through the tree, as a stream of frames on standard output.

The frames know names and no paths: a directory begins, what follows is in it, and it ends. So there is nothing in a
stream that could be resolved, and whoever unpacks it (:mod:`hermit.handoff.carry`) makes one entry at a time in the
directory that is open. Numbers are big-endian; a name is two bytes of length and its bytes::

    D name                              a directory begins           U                       it ends
    S name executable:1 length:4 data   a small file, whole          L name text             a link
    F name executable:1 length:8        a file begins; then any number of
      P offset:8 count:4 data           pieces, with holes between them, and
      E length:8                        how long it is in the end
    N reason:name count:8               so much was left behind      T budget:name           there is too much: the end
    Z                                   the end

It needs the standard library and three modules of this package, so a sandbox has to show little for it.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from hermit import untrusted
from hermit.handoff import budget
from hermit.handoff.walk import CHUNK, Walk, write_all

if TYPE_CHECKING:
    from hermit.handoff.walk import Content

FIRST = b"hermit-archive-1\n"
FLUSH = 1 << 18


class Frames:
    """Says what is in a tree, in frames.

    Args:
        out: Descriptor they are written to.
        limits: The most it says.
    """

    def __init__(self, out: int, limits: budget.Budget) -> None:
        self.copied = budget.Copied(limits)
        self._out = out
        self._depth = 0
        self._ahead = bytearray(FIRST)

    def enter(self, name: str) -> None:
        """A directory begins."""
        self.copied.refuse_depth(self._depth + 1)
        self.copied.take_entry(name, path_bytes=len(name))
        self._depth += 1
        self._add(b"D" + named(name))

    def leave(self) -> None:
        """It ends."""
        self._depth -= 1
        self._add(b"U")

    def link(self, name: str, text: str) -> None:
        """A link; where it leads is judged by whoever unpacks it."""
        self.copied.take_entry(name, path_bytes=len(name) + len(text))
        self._add(b"L" + named(name) + named(text))

    def file(self, name: str, content: Content, *, executable: bool) -> None:
        """A file, with its holes."""
        self.copied.take_entry(name, path_bytes=len(name))
        self.copied.take_length(content.length)
        data = content.whole()
        run = b"\1" if executable else b"\0"
        if data is not None:
            self.copied.take_bytes(len(data))
            self._add(b"S" + named(name) + run + len(data).to_bytes(4, "big") + data)
            return
        self._add(b"F" + named(name) + run + content.length.to_bytes(8, "big"))
        for offset, count in content.pieces():
            self.copied.take_bytes(count)
            if not self._pieces(content, offset, offset + count):
                break
        self._add(b"E" + content.end().to_bytes(8, "big"))

    def _pieces(self, content: Content, at: int, end: int) -> bool:
        """A stretch of data, in pieces of bounded length; whether all of it was there."""
        while at < end:
            count = left = min(CHUNK, end - at)
            self._add(b"P" + at.to_bytes(8, "big") + count.to_bytes(4, "big"))
            self.flush()
            while left and (moved := content.move(self._out, left)):
                left -= moved
            if left:  # it has shrunk since, and the length of the piece is said already
                self._add(bytes(left))
                return False
            at += count
        return True

    def drop(self, reason: str) -> None:
        """Something is left behind; how often is said at the end."""
        self.copied.dropped[reason] += 1

    def finish(self) -> None:
        """Says what was left behind, and that this is all."""
        for reason, count in sorted(self.copied.dropped.items()):
            self._add(b"N" + named(reason) + count.to_bytes(8, "big"))
        self._add(b"Z")
        self.flush()

    def refuse(self, error: budget.TooMuch) -> None:
        """Says that there is too much; nothing follows."""
        self._add(b"T" + named(error.budget))
        self.flush()

    def _add(self, data: bytes) -> None:
        self._ahead += data
        if len(self._ahead) > FLUSH:
            self.flush()

    def flush(self) -> None:
        """Writes what is ahead."""
        write_all(self._out, bytes(self._ahead))
        self._ahead.clear()


def named(text: str) -> bytes:
    """A name, or a link's text, in a frame."""
    data = os.fsencode(text)
    return len(data).to_bytes(2, "big") + data


def pack(job_descriptor: int, result_descriptor: int) -> None:
    """The worker: says what is in the tree that the job names, on standard output.

    Args:
        job_descriptor: Where the job comes from: JSON with ``tree`` and the fields of ``budget``.
        result_descriptor: Not used: what it has to say is the stream.
    """
    os.close(result_descriptor)
    with os.fdopen(job_descriptor, "rb") as file:
        job = json.load(file)
    frames = Frames(1, budget.Budget(**job["budget"]))
    with untrusted.directory(job["tree"]) as root:
        try:
            Walk(root, frames).take_all()
        except budget.TooMuch as error:
            frames.refuse(error)
            return
    frames.finish()
