"""The end of a launcher inside its container: ``python -m hermit.resident EXCHANGE`` (its other end: ``oci/launcher.py``).

Theory of operation. One process, started by the container's init, for as long as the container lives. It proves first
that it sees what the host means: it reads ``asked.json`` in the exchange directory, leaves a file of its own there, and
connects to the socket beside it. The host answers by taking the connection and removing the socket: nobody else can
ever connect. It then starts one sandbox to find out whether it can, and greets.

*Descriptors.* The connection keeps message borders. Each message is one byte and a set of descriptors: a channel of this
start's own, the request in memory, and what the request says the others are (streams, a worker's job and result, the
channel for listening sockets). They go to bubblewrap as they came; no byte of output passes through here.

*Threads.* One for each start that is under way, because bubblewrap dies with the thread that started it, and one that
waits for the next. A start's thread runs on the processor of the host's thread that asked, for the two take turns. It
runs the very core that this machine's own sandboxes have (``bwrap/launch.py``), and writes the answer to the start's
channel. The channel is also how a start is given up: it becomes readable when the host says so, or has gone.

*Who dies first.* A sandbox before its thread's answer. When the connection ends, because the host closed it or died,
this process ends at once; bubblewrap and every sandbox die with it, then the container's init, then the container.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import platform
import socket
import sys
import threading
from typing import TYPE_CHECKING

from hermit import __version__, proc
from hermit import sandbox as sandboxes
from hermit.domain import wire
from hermit.errors import HermitError, PlaceError, SandboxError
from hermit.signals import Caught
from hermit.streams import Streams

if TYPE_CHECKING:
    from hermit.domain.command import Outcome
    from hermit.domain.record import Record
    from hermit.sandbox import Place

# In the exchange directory: what the host asks to be shown, its socket, and what is left there to prove who writes.
ASKED, SOCKET, WRITTEN = "asked.json", "socket", "written"
# Why this end gave up before it could speak; the host knows each by its code.
NOT_SEEN, NOT_WRITABLE, NOT_CONNECTED = 64, 65, 66
MOST_DESCRIPTORS = 16
NUMBER = 4  # bytes of a descriptor in a message
# Where the kernel counts, in its older and its newer control groups.
KILLS = ("/sys/fs/cgroup/memory/memory.oom_control", "/sys/fs/cgroup/memory.events")


FULL = SandboxError(
    "the memory of the whole container was full, and the kernel ended processes in it",
    cause="container memory",
    cure="run fewer attempts at once, or give each less memory",
)


def main(arguments: list[str]) -> int:
    """Serves one host until it goes; returns why it could not."""
    (directory,) = arguments
    try:
        with open(os.path.join(directory, ASKED), "rb") as file:
            asked = json.loads(file.read())
    except (OSError, ValueError):
        return NOT_SEEN
    try:
        with open(os.path.join(directory, WRITTEN), "xb"):
            pass
    except OSError:
        return NOT_WRITABLE
    control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        control.connect(address(directory))
    except OSError:
        return NOT_CONNECTED
    greeting = {"nonce": asked["nonce"], "version": __version__, "machine": platform.machine()}
    greeting["paths"] = [identity(path) for path in asked["paths"]]
    try:
        place = sandboxes.preflight()
    except PlaceError as error:
        control.send(json.dumps({**greeting, "refused": wire.failure_document(error)}).encode("ascii"))
        return 0
    record = wire.record_document(place.record) if place.record is not None else None
    control.send(json.dumps({**greeting, "record": record}).encode("ascii"))
    Desk(control, place).wait()
    return 0


def address(directory: str) -> str:
    """The socket of an exchange directory, by a name that fits into an address however long the directory's is."""
    held = os.open(directory, os.O_PATH | os.O_DIRECTORY)  # not closed: the name holds as long as it is open
    return f"/proc/self/fd/{held}/{SOCKET}"


def identity(path: str) -> list[int] | None:
    """Which file a path is, whoever looks at it on one kernel; ``None`` where there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return [status.st_dev, status.st_ino]


class Desk:
    """Where starts are asked for: threads wait here, and each that gets one makes sure that another waits.

    A thread that handed what came to another one would have to wake it first, which costs as much as a part of a start.
    """

    def __init__(self, control: socket.socket, place: Place) -> None:
        self._control = control
        self._place = place
        self._lock = threading.Lock()
        self._waiting = 0

    def wait(self) -> None:
        """Takes what is asked for, one start after another, until the host goes; then everything ends."""
        while True:
            with self._lock:
                self._waiting += 1
            descriptors = self._next()
            with self._lock:
                self._waiting -= 1
                alone = self._waiting == 0
            if not descriptors:
                os._exit(0)  # the sandboxes of the other threads die with their threads
            if alone:
                threading.Thread(target=self.wait, daemon=True).start()
            answer(descriptors, self._place)

    def _next(self) -> list[int]:
        """The descriptors of one start; none when the host has gone."""
        room = socket.CMSG_SPACE(MOST_DESCRIPTORS * NUMBER)
        try:
            _, ancillary, _, _ = self._control.recvmsg(1, room, socket.MSG_CMSG_CLOEXEC)
        except OSError:
            return []
        numbers = b"".join(piece for _, _, piece in ancillary)
        return [int.from_bytes(numbers[at : at + NUMBER], sys.byteorder) for at in range(0, len(numbers), NUMBER)]


def answer(descriptors: list[int], place: Place) -> None:
    """One start, from its request to its answer; every descriptor of it is closed before the answer leaves."""
    with socket.socket(fileno=descriptors[0]) as channel:
        try:
            found = started(channel, descriptors[1:], place)
        finally:
            for descriptor in descriptors[1:]:
                os.close(descriptor)
        try:
            channel.sendall(found.as_json())
        except OSError:  # the host has gone
            return


def started(channel: socket.socket, descriptors: list[int], place: Place) -> wire.Answer:
    """What came of the start that is asked for on these descriptors."""
    records: list[Record] = []
    signals = None
    before = memory_kills()
    try:
        size = os.fstat(descriptors[0]).st_size
        request = wire.request(os.pread(descriptors[0], size, 0))
        proc.settle(request.processor)
        given = dict(zip(request.gets, descriptors[1:], strict=True))
        signals = Caught(given.pop("signals")) if "signals" in given else None
        outcome: Outcome | None = place.backend.run(
            request.sandbox,
            request.command,
            environ=request.variables,
            keep=records.append,
            streams=Streams(**given, signals=signals),
            cancel=channel.fileno(),
        )
        raised: HermitError | None = None
    except HermitError as error:
        outcome, raised = None, error
    except Exception as error:  # noqa: BLE001 - whatever it is, the host has to hear of it
        outcome, raised = None, unexpected(error)
    if (
        outcome is not None
        and outcome.code != 0
        and not (outcome.timed_out or outcome.limit)
        and memory_kills() > before
    ):
        outcome, raised = None, FULL
    record = records[0] if records else None
    return wire.Answer(outcome=outcome, raised=raised, record=record, ended_by=signals.ended_by if signals else 0)


def memory_kills() -> int:
    """How many processes of the container the kernel has ended for want of memory, as far as anybody counts."""
    for path in KILLS:
        with contextlib.suppress(OSError, ValueError), open(path, encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("oom_kill "))
    return 0


def unexpected(error: Exception) -> SandboxError:
    """A failure that no start knows, as the sandbox's."""
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    words = f"{type(error).__name__}: {error}"
    return SandboxError(words, where="the launcher in the image", cause="disk full" if full else "launcher")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
