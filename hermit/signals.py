"""Signals of a process that stands for a command: they come out of a descriptor, to be passed on to it."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from hermit.errors import Interrupted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# What somebody sends to a command. Whoever gets one and has no answer to it ends, but for the last.
PASSED = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGWINCH,
)
ENDING = PASSED[:-1]
# A process that stood still would watch neither the clock nor the memory of its sandbox.
NOT_TAKEN = (signal.SIGTSTP,)

MOST_AT_ONCE = 4096
# How somebody gives a run up: at the terminal, from outside, and by closing the terminal.
GIVING_UP = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
ONE_PRESS_S = 0.3


@dataclass
class Caught:
    """What came instead of doing to this process what it would.

    Args:
        descriptor: Readable when something came.
        ended_by: The signal that ended a start before its command was there; 0 where none did.
    """

    descriptor: int
    ended_by: int = field(default=0, init=False)

    def passed_on(self, ask: Callable[[bytes], None], *, ready: bool) -> bool:
        """Passes on what has come, with the relay's order for it; false where it ends the start instead.

        Before the command is there to answer, a signal does what it would do to any program that has no answer to it.
        """
        for number in os.read(self.descriptor, MOST_AT_ONCE):
            if ready and number in PASSED:
                ask(b"S" + bytes([number]))
            elif not ready and number in ENDING:
                self.ended_by = number
                return False
        return True


@contextlib.contextmanager
def caught() -> Iterator[Caught]:
    """Catches what is passed on, in the main thread; what this process was started to ignore stays ignored."""
    # The descriptor that the interpreter writes to by itself: a handler could run too late, after the wait has begun.
    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    told = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    before = {}
    try:
        for number in (*PASSED, *NOT_TAKEN):
            if signal.getsignal(number) is not signal.SIG_IGN:
                # A handler, for to be ignored is passed on to what this process starts.
                before[number] = signal.signal(number, _nothing)
        yield Caught(reader)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(told)
        os.close(reader)
        os.close(writer)


class GivenUp:
    """What Ctrl-C, TERM and a closed terminal do to a run, while this is open.

    Before the run is ``in_order`` they end it where it stands. From then on nothing is thrown at whatever this thread is
    doing: the first one stops the run, which then ends by itself, and a second Ctrl-C ends the process. A terminal and a
    wrapper may both pass on what was pressed once, and a shell and the kernel both say that the terminal has gone. What
    this process was started to ignore (``nohup``, a shell's ``&``) stays ignored.

    Args:
        stop: Gives the run up.
        leave: Ends this process.
    """

    def __init__(self, stop: Callable[[], None], leave: Callable[[], None]) -> None:
        self.in_order = False
        self._stop = stop
        self._leave = leave
        self._first_s: float | None = None
        self._before: dict[signal.Signals, object] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # only the main thread gets signals
            for number in GIVING_UP:
                if signal.getsignal(number) != signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._came)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # it is what the same function returned

    def _came(self, number: int, _frame: object) -> None:
        now_s = time.monotonic()
        if self._first_s is not None:
            if number == signal.SIGINT and now_s - self._first_s > ONE_PRESS_S:
                self._leave()
            return
        self._first_s = now_s
        if not self.in_order:
            raise Interrupted("the run was given up before it began", cure="run the same command to go on")
        self._stop()


def _nothing(_number: int, _frame: object) -> None:
    return
