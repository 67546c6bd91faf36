"""What a worker handed back, read by the host: a value, or how it failed. It was made by somebody else's code."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hermit.domain import codec

if TYPE_CHECKING:
    from hermit.domain.command import Command, Outcome

FAILED = ("exception", "exit", "result")


@dataclass(frozen=True)
class Failure:
    """How a worker failed.

    Args:
        cause: ``exception``, ``exit``, ``signal``, ``timeout``, the bound that ended it (``memory``, ``cpu``, ``pids``,
            ``file size``, ``disk``), or ``result`` for a wrong, oversized or missing one.
        error: What happened, on one line.
        trace: The traceback, where there is one.
    """

    cause: str
    error: str
    trace: str = ""


def handed_back(command: Command, outcome: Outcome) -> dict[str, Any] | Failure:
    """The object a worker handed back, or its failure."""
    if outcome.timed_out:
        return Failure("timeout", f"it was stopped after {outcome.wall_s:.1f} s")
    if outcome.result_total > command.result_bytes:
        return Failure("result", f"it handed back {outcome.result_total} bytes; {command.result_bytes} are accepted")
    if outcome.result is None:
        return _died(outcome)
    try:
        said = codec.load(outcome.result)
    except ValueError as error:
        return Failure("result", f"what it handed back is not JSON: {error}")
    return _read(said)


def _read(said: Any) -> dict[str, Any] | Failure:
    match said:
        case {"value": dict() as value}:
            return value
        case {"failed": str() as cause, "error": str() as words} if cause in FAILED:
            trace = said.get("trace")
            return Failure(cause, words, trace if isinstance(trace, str) else "")
    return Failure("result", "what it handed back is neither a value nor a failure")


def _died(outcome: Outcome) -> Failure:
    if outcome.limit:
        return Failure(outcome.limit, f"it was ended by its bound: {outcome.evidence}")
    if outcome.signal:
        try:
            name = signal.Signals(outcome.signal).name
        except ValueError:  # a real-time signal
            name = f"signal {outcome.signal}"
        return Failure("signal", f"it was ended by {name} and handed back nothing")
    said = outcome.stderr.kept.decode("utf-8", "replace").strip().splitlines()
    if said and outcome.code in (126, 127):
        return Failure("exit", said[-1][:500])
    return Failure("exit", f"it ended with exit code {outcome.code} and handed back nothing")
