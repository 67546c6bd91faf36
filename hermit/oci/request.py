"""One start that is asked for over a launcher's connection, as its host sees it, from the request to the outcome.

Every descriptor of it is made here: pipes for what the command writes, memory for what it reads. The far ends go through
the connection to the launcher and on to the sandbox; the near ends are read here, by the one thread that asked, as they
are where bubblewrap is this process's own child. The listening sockets of what a sandbox reaches come out over a channel
that the relay inside gets directly: they belong to the sandbox's network, whoever holds them, so the host serves them
itself and the container needs no network.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from hermit import proc
from hermit.clock import GRACE_S, KILL_S, START_S
from hermit.domain import wire
from hermit.domain.command import Stream
from hermit.errors import SandboxError
from hermit.net import reach
from hermit.streams import Sink, Streams

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hermit.domain.command import Command, Outcome
    from hermit.domain.record import Record
    from hermit.domain.sandbox import Sandbox

CHUNK = 1 << 18
# A record of a thousand paths is a few hundred kilobytes; more than this is not our launcher.
MOST_ANSWER = 64 << 20
# A launcher ends each start within its own bounds; one that is this much later does not answer any more.
SLACK_S = 60.0


class Lost(Exception):
    """The launcher has gone, or does not answer any more."""


class Unsent(Lost):
    """The launcher had gone before it was asked: nothing was begun."""


def run(
    send: Callable[[list[int]], None],
    sandbox: Sandbox,
    command: Command,
    *,
    environ: Mapping[str, str],
    keep: Callable[[Record], None],
    streams: Streams,
    cancel: int | None,
) -> Outcome:
    """Asks for one start and stays with it to its end.

    Args:
        send: Sends these descriptors over the launcher's connection.
        sandbox: The sandbox.
        command: What runs in it.
        environ: The host's variables; only those that pass in leave this process.
        keep: Takes the record, where the start came far enough to have one.
        streams: Descriptors the command takes over.
        cancel: Becomes readable when the start is given up.

    Raises:
        SandboxError: The sandbox failed.
        Interrupted: ``cancel`` became readable.
        Lost: No answer came.
    """
    variables = {name: value for name, value in environ.items() if sandbox.passes(name)}
    reached = reach.of(sandbox, {**variables, **dict(sandbox.env)})
    with (
        reach.served(reached, environ) as server,
        Request(sandbox, command, streams, cancel=cancel) as request,
        # The launcher's thread for this start takes the same one: the two take turns.
        proc.on_one_processor(),
    ):
        if server is not None:
            request.hand_over(server.take)
        request.send(send, variables)
        answer = request.follow()
        if answer.record is not None:
            decisions = server.ended() if server is not None else ()
            keep(replace(answer.record, decisions=decisions))
        if streams.signals is not None:
            streams.signals.ended_by = answer.ended_by
        if answer.outcome is None:
            assert answer.raised is not None  # noqa: S101 - an answer is one of the two
            raise answer.raised
        return request.outcome(answer.outcome)


class Request:
    """The descriptors of one start, and the watch over the near ends; used once, in one thread."""

    def __init__(self, sandbox: Sandbox, command: Command, streams: Streams, *, cancel: int | None) -> None:
        self._sandbox = sandbox
        self._command = command
        self._cancel = cancel
        self._ends = contextlib.ExitStack()
        self._far = contextlib.ExitStack()
        self._selector = selectors.DefaultSelector()
        self._ends.callback(self._selector.close)
        self._ends.callback(self._far.close)
        self._sinks: dict[int, Sink] = {}
        self._named: dict[str, Sink] = {}
        self._take: dict[int, Callable[[], bool]] = {}
        self._heard = bytearray()
        self._gets: dict[str, int] = {}
        self._channel, far = socket.socketpair()
        self._ends.callback(self._channel.close)
        self._far.callback(far.close)
        self._first = far.fileno()
        self._selector.register(self._channel, selectors.EVENT_READ)
        cap = sandbox.limits.output_bytes
        self._gets["stdin"] = self._memory(command.stdin) if streams.stdin is None else streams.stdin
        self._gets["stdout"] = self._pipe("stdout", cap) if streams.stdout is None else streams.stdout
        self._gets["stderr"] = self._pipe("stderr", cap) if streams.stderr is None else streams.stderr
        if command.worker:
            self._gets["job"] = self._memory(command.job)
            self._gets["result"] = self._pipe("result", command.result_bytes)
        if streams.signals is not None:
            self._gets["signals"] = streams.signals.descriptor
        if cancel is not None:
            self._selector.register(cancel, selectors.EVENT_READ)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.close()

    def hand_over(self, take: Callable[[socket.socket], bool]) -> None:
        """Lets the relay inside hand its listening sockets to ``take``."""
        near, far = socket.socketpair()
        self._ends.callback(near.close)
        self._far.callback(far.close)
        self._gets["handover"] = far.fileno()
        self._selector.register(near, selectors.EVENT_READ)
        self._take[near.fileno()] = lambda: take(near)

    def send(self, send: Callable[[list[int]], None], variables: Mapping[str, str]) -> None:
        """Asks; from now on the far ends are the launcher's."""
        document = wire.Request(
            sandbox=self._sandbox,
            command=self._command,
            variables=variables,
            gets=tuple(self._gets),
            processor=proc.processors()[0],
        )
        memory = self._memory(document.as_json())
        send([self._first, memory, *self._gets.values()])
        self._far.close()

    def follow(self) -> wire.Answer:
        """Watches until the launcher has answered.

        Raises:
            Lost: It closed the channel without an answer, or is too late.
            SandboxError: Its answer is none.
        """
        wall_s = self._sandbox.limits.wall_s
        due = None if wall_s is None else time.monotonic() + wall_s + START_S + GRACE_S + 2 * KILL_S + SLACK_S
        answered = False
        while not answered:
            left = None if due is None else due - time.monotonic()
            if left is not None and left <= 0:
                raise Lost
            for key, _ in self._selector.select(left):
                if key.fd == self._cancel:
                    self._selector.unregister(key.fd)
                    with contextlib.suppress(OSError):
                        self._channel.shutdown(socket.SHUT_WR)
                    due = time.monotonic() + SLACK_S
                elif key.fd == self._channel.fileno():
                    answered = self._hear()
                else:
                    self._read(key.fd)
        for descriptor in tuple(self._sinks):  # the sandbox is empty: what it wrote is there, and no more will be
            while descriptor in self._sinks and self._read(descriptor):
                pass
        if not self._heard.endswith(b"\n"):
            raise Lost
        try:
            return wire.answer(bytes(self._heard))
        except ValueError as error:
            raise SandboxError(str(error), where="the launcher's answer", cause="launcher") from None

    def outcome(self, told: Outcome) -> Outcome:
        """The whole outcome: what was told of it, and what was read here."""
        stdout, stderr = (
            self._named[name].stream() if name in self._named else Stream() for name in ("stdout", "stderr")
        )
        result = self._named.get("result")
        whole = result is not None and 0 < result.total <= result.cap
        return replace(
            told,
            stdout=stdout,
            stderr=told.stderr if told.stderr.total else stderr,
            result=bytes(result.kept) if result is not None and whole else None,
            result_total=result.total if result is not None else 0,
        )

    def _memory(self, data: bytes) -> int:
        descriptor = os.memfd_create("hermit-request", os.MFD_CLOEXEC)
        self._far.callback(os.close, descriptor)
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        os.lseek(descriptor, 0, os.SEEK_SET)
        return descriptor

    def _pipe(self, name: str, cap: int) -> int:
        reader, writer = os.pipe()
        self._far.callback(os.close, writer)
        self._ends.callback(os.close, reader)
        os.set_blocking(reader, False)
        self._sinks[reader] = self._named[name] = Sink(cap)
        self._selector.register(reader, selectors.EVENT_READ)
        return writer

    def _hear(self) -> bool:
        """Takes a piece of the answer; whether that was all."""
        try:
            data = self._channel.recv(CHUNK)
        except ConnectionResetError:
            data = b""
        self._heard += data
        if len(self._heard) > MOST_ANSWER:
            raise SandboxError("the launcher said far more than a launcher says", cause="launcher")
        return not data

    def _read(self, descriptor: int) -> bool:
        """Takes what has come on a descriptor; whether more may be there."""
        if descriptor in self._take:
            if not self._take[descriptor]():
                self._selector.unregister(descriptor)
            return False
        try:
            data = os.read(descriptor, CHUNK)
        except BlockingIOError:
            return False
        if data:
            self._sinks[descriptor].take(data)
            return True
        self._selector.unregister(descriptor)
        del self._sinks[descriptor]
        return False
