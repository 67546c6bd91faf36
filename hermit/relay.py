"""The host's end of the relay: what it is told, what it says, and everything the command writes.

Each start owns a set of descriptors (:class:`Line`). The far ends go to the sandbox, the near ends are watched here by
the one thread that started it: output is read as it comes, kept up to a cap and counted beyond it, so a command can
neither fill a pipe nor the host's memory. The relay inside (``hermit/inside``) is described there.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import selectors
import signal
import socket
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from hermit import bundle
from hermit.clock import Clock, Guards
from hermit.domain.command import Outcome, Stream
from hermit.domain.record import Check
from hermit.errors import Interrupted, SandboxError
from hermit.streams import Sink, Streams

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from hermit.domain.command import Command
    from hermit.domain.limits import Limits
    from hermit.domain.python import Python

CHUNK = 1 << 18
# A relay says a few hundred bytes; more than this is not our relay.
MOST_REPORT = 1 << 20


@dataclass
class Said:
    """What the relay has reported so far."""

    checks: list[Check] = field(default_factory=list)
    ready: bool = False
    refused: bool = False
    failed: str = ""
    full: tuple[str, ...] = ()
    tried: int = 0
    end: tuple[int, float, float] | None = None

    def hear(self, line: bytes) -> None:
        """Takes one line of the report; one that makes no sense is not our relay's.

        Raises:
            ValueError: The line is not one the relay says.
        """
        words = line.decode("utf-8", "backslashreplace").split("\t")
        match words:
            case ["check", name, passed, detail]:
                self.checks.append(Check(name, passed == "1", detail))
            case ["ready"]:
                self.ready = True
            case ["refused"]:
                self.refused = True
            case ["failed", reason]:
                self.failed = reason
            case ["full", *paths]:
                self.full = tuple(paths)
            case ["tried", count]:
                self.tried = int(count)
            case ["end", status, cpu_s, max_rss_kb] if 0 <= int(status) < 1 << 16:
                self.end = (int(status), float(cpu_s), int(max_rss_kb) / 1024)
            case _:
                raise ValueError(f"the relay said {line[:80]!r}")


@dataclass(frozen=True, kw_only=True)
class Orders:
    """What the relay is told beside the command: see ``hermit/inside/relay.py``."""

    env: dict[str, str]
    cwd: str
    limits: Limits
    rlimits: dict[str, int]
    checks: dict[str, Any]
    python: Python
    processors: tuple[int, ...] = ()
    search: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    proxy: int = 0


@dataclass(frozen=True)
class _Handover:
    """A channel over which the relay hands listening sockets out."""

    channel: socket.socket
    take: Callable[[socket.socket], bool]

    def receive(self) -> bool:
        """Takes what has come; whether more may come."""
        return self.take(self.channel)


class Line:
    """The descriptors of one start, and the watch over them; used once, in one thread.

    Args:
        command: What is to run.
        orders: What the relay is told.
        streams: Descriptors the command takes over.
        cancel: A descriptor that becomes readable when the run is given up.
        take_sockets: Takes the listening sockets that the relay hands out, from this channel.
    """

    def __init__(
        self,
        command: Command,
        orders: Orders,
        streams: Streams,
        *,
        cancel: int | None = None,
        take_sockets: Callable[[socket.socket], bool] | None = None,
    ) -> None:
        self.said = Said()
        self.on_ready: Callable[[], None] = lambda: None  # done once the relay has said that the sandbox stands
        self.limits = orders.limits
        self._cancel = cancel
        self._signals = streams.signals
        self.alarmed = False
        self._apart: set[int] = set()
        self._near = contextlib.ExitStack()
        self._far = contextlib.ExitStack()
        self._selector = selectors.DefaultSelector()
        self._near.callback(self._selector.close)
        self._sinks: dict[str, Sink] = {}
        self._heard = bytearray()
        # Every descriptor the sandbox has to inherit.
        self.far: list[int] = []
        self._report, far = socket.socketpair()
        self._near.callback(self._report.close)
        self._keep_far(far.detach())
        report = self.far[0]
        self._watch(self._report.fileno(), self._hear)
        # Where the sandbox's own programs may complain.
        self.diagnosis = self._pipe("diagnosis", 1 << 16)
        job: dict[str, Any] = {
            "report": report,
            "streams": self._standard(command, streams),
            "argv": list(command.argv),
            "worker": command.worker,
            "env": orders.env,
            "cwd": orders.cwd,
            "processors": list(orders.processors),
            "limits": orders.rlimits,
            "scratch_mb": orders.limits.tmp_mb,
            "checks": orders.checks,
            "framework": os.path.dirname(orders.python.package),
            "search": list(orders.search),
            "ports": list(orders.ports),
            "proxy": orders.proxy,
        }
        if streams.handover is not None:
            job["handover"] = self.add_copy(streams.handover)
        elif take_sockets is not None:
            job["handover"] = self._channel(take_sockets)
        if command.worker:
            job["worker_job"], job["worker_result"] = self._worker(command, streams)
        # What the sandbox's own programs were started with is closed by then; this is what may be left.
        job["checks"] = {"descriptors": list(self.far), **orders.checks}
        packed = bundle.packed(orders.python, job, worker=command.worker)
        self._bundle = self.add_memory("bundle", packed)

    def _standard(self, command: Command, streams: Streams) -> tuple[int, int, int]:
        """The command's own input, output and error."""
        cap = self.limits.output_bytes
        stdin = self.add_memory("stdin", command.stdin) if streams.stdin is None else self.add_copy(streams.stdin)
        stdout = self._pipe("stdout", cap) if streams.stdout is None else self.add_copy(streams.stdout)
        stderr = self._pipe("stderr", cap) if streams.stderr is None else self.add_copy(streams.stderr)
        return stdin, stdout, stderr

    def _worker(self, command: Command, streams: Streams) -> tuple[int, int]:
        """What a worker reads its job from, and where it hands its result back."""
        cap = command.result_bytes
        job = self.add_memory("job", command.job) if streams.job is None else self.add_copy(streams.job)
        result = self._pipe("result", cap) if streams.result is None else self.add_copy(streams.result)
        return job, result

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._far.close()
        self._near.close()

    def add_memory(self, name: str, data: bytes) -> int:
        """A descriptor that holds ``data`` and goes to the sandbox."""
        descriptor = self._keep_far(os.memfd_create(f"hermit-{name}", os.MFD_CLOEXEC))
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        os.lseek(descriptor, 0, os.SEEK_SET)
        return descriptor

    def add_pipe(self, take: Callable[[bytes], None]) -> int:
        """The writing end of a pipe that goes to the sandbox; ``take`` gets what comes out of it."""
        reader, writer = os.pipe()
        self._near.callback(os.close, reader)
        self._watch(reader, take)
        return self._keep_far(writer)

    def command(self, executable: str) -> tuple[str, ...]:
        """How the relay is started by an interpreter."""
        return bundle.command(executable, self._bundle)

    def started(self) -> None:
        """The sandbox holds the far ends now; closed here, so that their end can be seen."""
        self._far.close()

    def complaints(self) -> str:
        """What the sandbox's own programs wrote to their standard error."""
        return bytes(self._sinks["diagnosis"].kept).decode("utf-8", "replace").strip()

    def follow(
        self,
        process: subprocess.Popen[bytes],
        *,
        kill: Callable[[], None],
        guards: Guards = Guards(),  # noqa: B008 - a frozen value
    ) -> Outcome:
        """Watches until the process and every descriptor have ended.

        Raises:
            SandboxError: It did not start in time, or did not end after KILL.
            Interrupted: The run was given up; everything of this start has been killed.
        """
        began = time.monotonic()
        watch = Clock(wall_s=self.limits.wall_s, ready=lambda: self.said.ready, ask=self.ask, kill=kill)
        ended = os.pidfd_open(process.pid)
        self._near.callback(os.close, ended)
        self._selector.register(ended, selectors.EVENT_READ, None)
        signals = self._signals.descriptor if self._signals is not None else None
        self._apart = {descriptor for descriptor in (self._cancel, guards.alarm, signals) if descriptor is not None}
        for descriptor in self._apart:
            self._selector.register(descriptor, selectors.EVENT_READ, None)
        running = True
        try:
            while running or self._open():
                for key, _ in self._selector.select(guards.within(watch.remaining(running=running))):
                    if key.fd == ended:
                        self._selector.unregister(ended)
                        process.wait()
                        running = False
                    else:
                        self._attend(key, watch)
                if running and guards.tick():
                    watch.strike()
                watch.tick(running=running)
        except BaseException:
            kill()
            if running:
                process.kill()
            process.wait()
            raise
        if watch.cancelled:
            raise Interrupted("the run was given up while this sandbox ran")
        return self._outcome(timed_out=watch.timed_out, wall_s=time.monotonic() - began)

    def ask(self, order: bytes) -> None:
        """Gives the relay an order (``hermit/inside/relay.py``); one that is gone is no error."""
        with contextlib.suppress(OSError):
            self._report.send(order, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)

    def _keep_far(self, descriptor: int) -> int:
        # The sandbox's own three streams take the numbers below 3, and would replace whatever has one of them here.
        kept = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 3)
        os.close(descriptor)
        self._far.callback(os.close, kept)
        self.far.append(kept)
        return kept

    def _channel(self, take: Callable[[socket.socket], bool]) -> int:
        """A socket pair of its own; ``take`` reads the near end itself, for descriptors come over it."""
        near, far = socket.socketpair()
        self._near.callback(near.close)
        self._selector.register(near.fileno(), selectors.EVENT_READ, _Handover(near, take))
        return self._keep_far(far.detach())

    def add_copy(self, descriptor: int) -> int:
        """A copy of a descriptor that goes to the sandbox."""
        return self._keep_far(os.dup(descriptor))

    def _pipe(self, name: str, cap: int) -> int:
        sink = self._sinks[name] = Sink(cap)
        return self.add_pipe(sink.take)

    def _watch(self, descriptor: int, take: Callable[[bytes], None]) -> None:
        os.set_blocking(descriptor, False)
        self._selector.register(descriptor, selectors.EVENT_READ, take)

    def _open(self) -> bool:
        return any(key.fd not in self._apart for key in self._selector.get_map().values())

    def _attend(self, key: selectors.SelectorKey, watch: Clock) -> None:
        if key.fd not in self._apart:
            self._read(key.fd, key.data)
        elif self._signals is not None and key.fd == self._signals.descriptor:
            if not self._signals.passed_on(self.ask, ready=self.said.ready):
                watch.cancel()
        else:
            self._selector.unregister(key.fd)
            if key.fd == self._cancel:
                watch.cancel()
            else:
                self.alarmed = True
                watch.strike()

    def _read(self, descriptor: int, take: Callable[[bytes], None] | _Handover) -> None:
        if isinstance(take, _Handover):
            if not take.receive():
                self._selector.unregister(descriptor)
            return
        try:
            data = os.read(descriptor, CHUNK)
        except BlockingIOError:
            return
        except ConnectionResetError:
            data = b""
        if data:
            take(data)
        else:
            self._selector.unregister(descriptor)

    def _hear(self, data: bytes) -> None:
        self._heard += data
        if len(self._heard) > MOST_REPORT:
            raise SandboxError("the relay said far more than a relay says", cause="relay")
        was_ready = self.said.ready
        *lines, rest = bytes(self._heard).split(b"\n")
        self._heard = bytearray(rest)
        for line in lines:
            try:
                self.said.hear(line)
            except ValueError as error:
                raise SandboxError(str(error), where="the relay's report", cause="relay") from None
        if self.said.ready and not was_ready:
            self.on_ready()

    def _outcome(self, *, timed_out: bool, wall_s: float) -> Outcome:
        result = self._sinks.get("result")
        whole = result is not None and 0 < result.total <= result.cap
        cpu_s = max_rss_mb = None
        status = signal.SIGKILL.value  # a relay that was killed from inside took the command with it
        if self.said.end is not None:
            status, cpu_s, max_rss_mb = self.said.end
        code: int | None = os.waitstatus_to_exitcode(status)
        ended_by = -code if code is not None and code < 0 else 0
        return Outcome(
            code=None if ended_by else code,
            signal=ended_by,
            timed_out=timed_out,
            stdout=self._sinks["stdout"].stream() if "stdout" in self._sinks else Stream(),
            stderr=self._sinks["stderr"].stream() if "stderr" in self._sinks else Stream(),
            result=bytes(result.kept) if result is not None and whole else None,
            result_total=result.total if result is not None else 0,
            wall_s=wall_s,
            cpu_s=cpu_s,
            max_rss_mb=max_rss_mb,
        )


def unstartable(said: Said, outcome: Outcome) -> Outcome | None:
    """The outcome of a command that could not be started in a sandbox that stood, ``None`` when it was started."""
    if not said.failed:
        return None
    number, _, reason = said.failed.partition(" ")
    words = f"hermit: {reason}\n".encode()
    return Outcome(code=int(number), stderr=Stream(kept=words, total=len(words)), wall_s=outcome.wall_s)
