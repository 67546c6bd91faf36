"""Everything Hermit refuses or fails at is one of these, and each has one exit code.

::

    HermitError            1    something went wrong that has no better name here
    ├── ConfigError        2    the command line, the config or the data is wrong; nothing was created
    ├── PlaceError         3    this machine, engine or image cannot hold the sandboxes asked for
    ├── SandboxError       4    a sandbox broke; the attempt it held has no score
    └── Interrupted      130    somebody gave the command up; what was finished is kept

Without an exception of their own: 0 is success, 5 says that the mean score is below ``--fail-under``, 6 is ``hermit check``
where only a run without sandboxes would go on, 7 is ``hermit check --attack`` where a cheat paid, 125 is a failure of ``python -m hermit.sandbox`` itself (the command's own
code passes through otherwise), 126 and 127 say that a command could not be started or was not found.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """The code a Hermit command ends with."""

    OK = 0
    INTERNAL = 1
    CONFIG = 2
    PLACE = 3
    SANDBOX = 4
    SCORE = 5
    BEST_EFFORT = 6
    CHEATED = 7
    FRONT_DOOR = 125
    NOT_EXECUTABLE = 126
    NOT_FOUND = 127
    INTERRUPTED = 130


class HermitError(Exception):
    """A failure that a person can act on: what happened, where, and what to do next.

    Args:
        what: What happened, one sentence without a full stop.
        where: The file, line and key, or the command it concerns.
        cure: What to do next.
    """

    exit_code: ExitCode = ExitCode.INTERNAL

    def __init__(self, what: str, *, where: str = "", cure: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.cure = cure

    def __str__(self) -> str:
        head = f"{self.where}: {self.what}" if self.where else self.what
        return f"{head}\n  -> {self.cure}" if self.cure else head


class ConfigError(HermitError):
    """The command line, the config or the data is wrong, and nothing was created."""

    exit_code = ExitCode.CONFIG


class PlaceError(HermitError):
    """The machine, engine or image cannot hold the sandboxes that were asked for."""

    exit_code = ExitCode.PLACE


class SandboxError(HermitError):
    """A sandbox broke before or while it held a command: ours to mend, and never a score.

    Args:
        what: What happened.
        where: The sandbox and the part of it that broke.
        cure: What to do next.
        cause: A short fixed name of the cause, such as ``check`` or ``mount``.
        again: Whether the place ended under the sandbox, through no doing of the command: a fresh one may hold it.
    """

    exit_code = ExitCode.SANDBOX

    def __init__(
        self, what: str, *, where: str = "", cure: str = "", cause: str = "unknown", again: bool = False
    ) -> None:
        super().__init__(what, where=where, cure=cure)
        self.cause = cause
        self.again = again


class Interrupted(HermitError):
    """Somebody gave the command up; what was finished is kept."""

    exit_code = ExitCode.INTERRUPTED
