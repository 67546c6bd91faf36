"""When a sandbox has to be ready, when its command has to end, and what is done then."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from hermit.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Callable

START_S = 60.0
# After TERM a command has this long, and after KILL the kernel has this long to prove that nothing is left.
GRACE_S = 1.0
KILL_S = 2.0


class Watchdog(Protocol):
    """Looks at a sandbox from time to time, and ends it where it holds too much."""

    @property
    def struck(self) -> object | None:
        """Why it ended the sandbox, ``None`` while it has not."""

    def remaining(self) -> float | None:
        """Seconds until it wants to look, ``None`` for never."""

    def tick(self) -> None:
        """Looks if it is time."""


@dataclass(frozen=True)
class Guards:
    """What else may end a command: a descriptor that becomes readable when it must end, and a watchdog."""

    alarm: int | None = None
    watchdog: Watchdog | None = None

    def within(self, seconds: float | None) -> float | None:
        """How long there is nothing to do, if it is ``seconds`` for everybody else."""
        own = None if self.watchdog is None else self.watchdog.remaining()
        return seconds if own is None else own if seconds is None else min(own, seconds)

    def tick(self) -> bool:
        """Whether the watchdog has just struck."""
        if self.watchdog is None or self.watchdog.struck is not None:
            return False
        self.watchdog.tick()
        return self.watchdog.struck is not None


class Clock:
    """When a start has to be ready, when its command has to end, and what is done then.

    Args:
        wall_s: Seconds a command may take from the moment its sandbox is ready; ``None`` for ever.
        ready: Says whether the sandbox is ready.
        ask: Asks the relay to TERM (``T``) or KILL (``K``) the command's processes.
        kill: Kills the sandbox from outside.
    """

    def __init__(
        self, *, wall_s: float | None, ready: Callable[[], bool], ask: Callable[[bytes], None], kill: Callable[[], None]
    ) -> None:
        self._wall_s = wall_s
        self._ready = ready
        self._ask = ask
        self._kill = kill
        self._due: float | None = time.monotonic() + START_S
        self._phase = "start"
        self.timed_out = False
        self.cancelled = False

    def remaining(self, *, running: bool) -> float | None:
        """Seconds until something has to be done, ``None`` for never."""
        if not running and self._phase != "killed":
            return KILL_S
        return None if self._due is None else max(0.0, self._due - time.monotonic())

    def cancel(self) -> None:
        """The run is given up: everything is killed at once."""
        self.cancelled = True
        self.strike()

    def tick(self, *, running: bool) -> None:
        """Moves on when the moment has come.

        Raises:
            SandboxError: The sandbox did not start in time, or did not end after KILL.
        """
        if not running and self._phase != "killed":
            self.strike()  # what still holds a descriptor has outlived its sandbox
        if self._phase == "start" and self._ready():
            self._phase = "run"
            self._due = None if self._wall_s is None else time.monotonic() + self._wall_s
        if self._due is None or time.monotonic() < self._due:
            return
        if self._phase == "start":
            raise SandboxError(f"the sandbox was not ready after {START_S:g} s", cause="start timeout")
        if self._phase == "run":
            self.timed_out = True
            self._ask(b"T")
            self._phase, self._due = "asked", time.monotonic() + GRACE_S
        elif self._phase == "asked":
            self.strike()
        else:
            raise SandboxError(
                f"processes of the sandbox were alive {KILL_S:g} s after KILL",
                cause="survivors",
                cure="look for processes in state D; the machine may have to be restarted",
            )

    def strike(self) -> None:
        """Kills everything at once."""
        self._ask(b"K")
        self._kill()
        self._phase, self._due = "killed", time.monotonic() + KILL_S
