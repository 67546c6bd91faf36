"""The far end of a copy that is made inside a sandbox: starts it, and checks and writes what comes out as it comes.

What comes out is not believed: not that it ends, not a name, a length or a reason. A stream that makes no sense, or is
torn, is the failure of a sandbox, and what was written so far is worth nothing.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import threading
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, BinaryIO

from hermit import untrusted
from hermit.domain.command import Command
from hermit.domain.limits import Limits
from hermit.domain.sandbox import Sandbox
from hermit.errors import SandboxError
from hermit.handoff import archive, budget
from hermit.handoff.collect import Collection
from hermit.handoff.sanitize import Copy, Malformed
from hermit.handoff.walk import CHUNK, SMALL, write_all
from hermit.streams import Streams

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hermit.domain.command import Outcome
    from hermit.domain.record import Record
    from hermit.sandbox import Place

WORKER = "hermit.handoff.archive:pack"
BUFFER = 1 << 18
PIPE = 1 << 20


@dataclass(frozen=True)
class Whole:
    """The content of a small file."""

    data: bytes

    @property
    def length(self) -> int:
        """How long it is."""
        return len(self.data)

    def whole(self) -> bytes:
        """All of it."""
        return self.data

    def pieces(self) -> Iterator[tuple[int, int]]:
        """None: it is taken whole."""
        return iter(())

    def move(self, target: int, count: int) -> int:  # noqa: ARG002 - it has no pieces
        """Nothing."""
        return 0

    def end(self) -> int:
        """How long it is."""
        return len(self.data)


class Stream:
    """What comes out, read in order and never further than it has to be.

    Args:
        descriptor: A pipe.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._buffer = b""
        self._at = 0
        self._splices = True

    def take(self, count: int) -> bytes:
        """The next bytes.

        Raises:
            Malformed: The stream ends before them.
        """
        while len(self._buffer) - self._at < count:
            more = os.read(self._descriptor, BUFFER)
            if not more:
                raise Malformed("it ends in the middle")
            self._buffer = self._buffer[self._at :] + more
            self._at = 0
        found = self._buffer[self._at : self._at + count]
        self._at += count
        return found

    def number(self, width: int) -> int:
        """The next number."""
        return int.from_bytes(self.take(width), "big")

    def name(self) -> str:
        """The next name."""
        return os.fsdecode(self.take(self.number(2)))

    def move(self, target: int, count: int) -> int:
        """Writes up to ``count`` of the next bytes to a file, by the kernel where it can.

        Raises:
            Malformed: The stream has ended.
        """
        ahead = self._buffer[self._at : self._at + count]
        if ahead:
            self._at += len(ahead)
            write_all(target, ahead)
            return len(ahead)
        if self._splices and count >= SMALL:
            try:
                moved = os.splice(self._descriptor, target, count)
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise
                self._splices = False  # not into this file system
            else:
                if not moved:
                    raise Malformed("it ends in the middle of a file")
                return moved
        data = self.take(min(count, BUFFER))
        write_all(target, data)
        return len(data)

    def refuse_more(self) -> None:
        """Reads on to the end.

        Raises:
            Malformed: There is more.
        """
        if self._at < len(self._buffer) or os.read(self._descriptor, 1):
            raise Malformed("there is more after its end")


class Pieces:
    """The content of a file that comes in pieces.

    Args:
        stream: Where they come from.
        length: How long the file was said to be.
        limits: The most the copy takes.
    """

    def __init__(self, stream: Stream, length: int, limits: budget.Budget) -> None:
        self.length = length
        self._stream = stream
        self._limits = limits
        self._end = 0

    def whole(self) -> None:
        """It is not small."""

    def pieces(self) -> Iterator[tuple[int, int]]:
        """Where the pieces belong, as they come.

        Raises:
            Malformed: Something else comes.
        """
        while (kind := self._stream.take(1)) == b"P":
            offset, count = self._stream.number(8), self._stream.number(4)
            if not 0 < count <= CHUNK:
                raise Malformed(f"a piece of {count} bytes")
            yield offset, count
        if kind == b"T":
            raise _refused(self._stream.name(), self._limits)
        if kind != b"E":
            raise Malformed(f"{kind!r} in the middle of a file")
        self._end = self._stream.number(8)

    def move(self, target: int, count: int) -> int:
        """Writes some of the piece."""
        return self._stream.move(target, count)

    def end(self) -> int:
        """How long it is said to be in the end."""
        return self._end


def unpack(stream: Stream, copy: Copy) -> None:
    """Makes what a stream says.

    Raises:
        Malformed: It makes no sense.
        budget.TooMuch: There is more than the copy takes.
        OSError: The copy cannot be written.
    """
    if stream.take(len(archive.FIRST)) != archive.FIRST:
        raise Malformed("it is no archive of ours")
    depth = 0
    while (kind := stream.take(1)) != b"Z":
        depth += (kind == b"D") - (kind == b"U")
        try:
            _unpack_one(kind, stream, copy)
        except FileExistsError:
            raise Malformed("a name is there twice") from None
    if depth:
        raise Malformed("a directory never ends")
    stream.refuse_more()


def _unpack_one(kind: bytes, stream: Stream, copy: Copy) -> None:
    match kind:
        case b"D":
            copy.enter(stream.name())
        case b"U":
            copy.leave()
        case b"L":
            copy.link(stream.name(), stream.name())
        case b"S":
            name, executable, length = stream.name(), stream.number(1) == 1, stream.number(4)
            if length > SMALL:
                raise Malformed(f"a small file of {length} bytes")
            copy.file(name, Whole(stream.take(length)), executable=executable)
        case b"F":
            name, executable, length = stream.name(), stream.number(1) == 1, stream.number(8)
            copy.file(name, Pieces(stream, length, copy.copied.budget), executable=executable)
        case b"N":
            copy.drop(stream.name(), times=stream.number(8))
        case b"T":
            raise _refused(stream.name(), copy.copied.budget)
        case _:
            raise Malformed(f"a frame of kind {kind!r}")


def _refused(name: str, limits: budget.Budget) -> Exception:
    if name not in asdict(limits):
        return Malformed(f"a budget of the name {untrusted.shown(name[:40])}")
    return budget.TooMuch(name, f"more than {getattr(limits, name)}")


def carry(
    place: Place,
    tree: str,
    *,
    into: str,
    limits: budget.Budget = budget.DEFAULT,
    manifest: BinaryIO | None = None,
    keep: Callable[[Record], None],
    cancel: int | None = None,
    wall_s: float = 600,
) -> Collection:
    """Copies a tree out of a sandbox that shows nothing else of the machine, to ``into``, which exists and is empty.

    Args:
        place: Where the sandbox is started.
        tree: The tree's path.
        into: The directory that gets the copy.
        limits: The most it takes.
        manifest: Gets a line for each entry.
        keep: Takes the record of the start.
        cancel: A descriptor that becomes readable when the run is given up.
        wall_s: How long it may take, in seconds.

    Raises:
        budget.TooMuch: There is more than the copy takes.
        untrusted.Refused: The tree is a link or no directory.
        SandboxError: The sandbox failed, or what came out makes no sense.
        Interrupted: The run was given up.
        OSError: The copy cannot be written.
    """
    with untrusted.directory(tree):  # a sandbox would show what a link leads to
        pass
    sandbox = Sandbox(role="tool", read=(tree,), limits=Limits(wall_s=wall_s))
    job = json.dumps({"tree": tree, "budget": asdict(limits)}).encode("ascii")
    command = Command(worker=WORKER, job=job)
    reader, writer = os.pipe()
    with contextlib.suppress(OSError):  # more than this user may have
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, PIPE)
    run = _Run(lambda: place.run(sandbox, command, keep=keep, streams=Streams(stdout=writer), cancel=cancel), writer)
    run.start()
    try:
        # When the stream is closed, a sandbox that has more to say ends: nobody waits for it to come to its end.
        with (
            untrusted.closing(reader),
            untrusted.directory(into) as target,
            Copy(target, limits=limits, manifest=manifest) as copy,
        ):
            unpack(Stream(reader), copy)
    except Malformed as error:
        raise SandboxError(f"what was copied out makes no sense: {error}{run.words()}", cause="copy") from None
    except BaseException:
        run.end()
        raise
    run.join()
    return Collection.of(copy)


class _Run:
    """The sandbox, in a thread of its own: whoever starts one waits for it, and the stream is read meanwhile.

    Args:
        start: Starts it and waits.
        writer: The pipe's end that the sandbox got a copy of; closed here when it has ended.
    """

    def __init__(self, start: Callable[[], Outcome], writer: int) -> None:
        self._start = start
        self._writer = writer
        self._outcome: Outcome | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="carry")

    def start(self) -> None:
        """Starts it."""
        self._thread.start()

    def _work(self) -> None:
        try:
            self._outcome = self._start()
        except BaseException as error:  # noqa: BLE001 - it belongs to the thread that waits
            self._error = error
        finally:
            os.close(self._writer)

    def end(self) -> None:
        """Waits until it has ended, however: there is another failure to tell of."""
        self._thread.join()

    def join(self) -> None:
        """Waits until it has ended.

        Raises:
            SandboxError: It failed.
            Interrupted: The run was given up.
        """
        self._thread.join()
        if self._error is not None:
            raise self._error

    def words(self) -> str:
        """How it ended, for a sentence that needs it; its own failure is raised instead."""
        self.join()
        outcome = self._outcome
        assert outcome is not None  # noqa: S101 - else it has raised
        said = outcome.stderr.kept.decode("utf-8", "backslashreplace").strip().splitlines()
        return f" ({outcome.ending}{': ' + said[-1][:500] if said else ''})"
