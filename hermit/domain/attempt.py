"""What one attempt can come to: a closed set of statuses, and for each failure its phase, its cause and whose it was."""

from __future__ import annotations

from enum import Enum


class Side(Enum):
    """Whose failure one was."""

    AGENT = "agent"
    JUDGE = "judge"
    INFRASTRUCTURE = "infrastructure"


class Phase(Enum):
    """The steps of an attempt, in their order."""

    PREPARE = "prepare"  # its directories and its sandbox's value are made
    START = "start"  # the agent's sandbox comes up and is checked
    AGENT = "agent"
    COLLECT = "collect"  # what the judge may see of the work is copied
    JUDGE = "judge"  # the judge's sandbox comes up, and the judge scores
    REPORT = "report"  # what is kept of the attempt is scrubbed and copied


class Status(Enum):
    """What one attempt came to. All but ``SANDBOX_ERROR`` have a score; that one is ours, and has none."""

    OK = "ok"
    AGENT_ERROR = "agent_error"
    TIMEOUT = "timeout"
    JUDGE_ERROR = "judge_error"
    SANDBOX_ERROR = "sandbox_error"

    @property
    def failed_by(self) -> Side | None:
        """Whose failure it is; ``None`` where it is none."""
        return FAILED_BY.get(self)


FAILED_BY = {
    Status.AGENT_ERROR: Side.AGENT,
    Status.TIMEOUT: Side.AGENT,
    Status.JUDGE_ERROR: Side.JUDGE,
    Status.SANDBOX_ERROR: Side.INFRASTRUCTURE,
}
# How a call can fail: by itself, or by the bound that ended it.
OF_A_CALL = frozenset({"exception", "exit", "signal", "result", "memory", "cpu", "pids", "file size", "disk"})
# What ends a start before its command is there.
BEFORE_READY = frozenset(
    {
        *(
            "start",
            "start timeout",
            "check",
            "missing source",
            "read-only source",
            "descriptors",
            "declaration",
            "depth",
        ),
        *("bubblewrap", "status", "unconfined", "container start", "container lost"),
    }
)
OTHERWISE_OURS = frozenset(
    {
        *("relay", "survivors", "machine memory", "collect", "copy", "disk full", "host", "launcher", "engine"),
        *("container killed", "container memory", "container gone", "container silent", "unknown"),
    }
)
_OURS = BEFORE_READY | OTHERWISE_OURS
# Every way to fail there is: of each status the phases it can have, and of each of these the causes.
WAYS: dict[Status, dict[Phase, frozenset[str]]] = {
    Status.AGENT_ERROR: {Phase.AGENT: OF_A_CALL, Phase.COLLECT: frozenset({"collect", "missing"})},
    Status.TIMEOUT: {Phase.AGENT: frozenset({"timeout"})},
    Status.JUDGE_ERROR: {Phase.JUDGE: OF_A_CALL | {"timeout"}},
    Status.SANDBOX_ERROR: dict.fromkeys(Phase, _OURS),
}


def ours(cause: str) -> str:
    """The cause of a broken sandbox; ``unknown`` for one that is none of the set."""
    return cause if cause in _OURS else "unknown"


def refuse_broken(status: Status, phase: Phase | None, cause: str) -> None:
    """Refuses an end that no attempt has.

    Raises:
        ValueError: The status has no such phase, or that phase no such cause.
    """
    if status is Status.OK:
        if phase is not None or cause:
            raise ValueError("an attempt that ended well has no phase and no cause")
    elif phase is None or cause not in WAYS[status].get(phase, ()):
        raise ValueError(f"no {status.value} has the phase {phase and phase.value!r} and the cause {cause!r}")
