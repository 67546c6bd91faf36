"""The worker of a learner: makes its object inside its sandbox, calls it once, and hands back what it returned.

A learner's worker is an agent's worker with other calls. No code of a method runs on the host: even what its class says of
itself is asked in a sandbox (:func:`describe`).
"""

from __future__ import annotations

from typing import Any

from hermit.agent import worker
from hermit.domain import codec
from hermit.evolver import wire
from hermit.evolver.base import PHASES, Evolver, FinalResult, StepResult

RETURNED: dict[str, tuple[type, ...]] = {
    "setup": (type(None),),
    "bootstrap": (StepResult, type(None)),
    "step": (StepResult,),
    "finalize": (FinalResult,),
}


def run_evolver(job_descriptor: int, result_descriptor: int) -> None:
    """Makes the one call that the job names."""
    job = worker.take(job_descriptor, result_descriptor)
    worker.hand_back(result_descriptor, lambda: _called(job))


def describe(job_descriptor: int, result_descriptor: int) -> None:
    """Says what the class says of itself: whether it needs the framework, and which calls it defines."""
    job = worker.take(job_descriptor, result_descriptor)
    worker.hand_back(result_descriptor, lambda: _described(_evolver(job)))


def _called(job: dict[str, Any]) -> dict[str, Any]:
    phase = job["phase"]
    evolver = _evolver(job)()
    result: Any = getattr(evolver, phase)(wire.context(job["context"]))
    if type(result) not in RETURNED[phase]:
        wanted = " or ".join("None" if kind is type(None) else kind.__name__ for kind in RETURNED[phase])
        raise codec.WrongResult(f"{phase}() returned {type(result).__name__}, not {wanted}")
    return wire.written(result)


def _evolver(job: dict[str, Any]) -> type[Evolver]:
    found = worker.callable_of(job["callable"], job["code"])
    if not isinstance(found, type) or not issubclass(found, Evolver):
        raise codec.WrongResult(f"{job['callable'].rpartition(':')[2]} is no class that extends hermit.evolver.Evolver")
    return found


def _described(found: type[Evolver]) -> dict[str, Any]:
    own = [name for name in PHASES if getattr(found, name) is not getattr(Evolver, name)]
    if "step" not in own:
        raise codec.WrongResult(f"{found.__name__} has no step(ctx)")
    if not isinstance(found.sandbox_framework, bool):
        raise codec.WrongResult(f"{found.__name__}.sandbox_framework is True or False")
    return {"sandbox_framework": found.sandbox_framework, "phases": own}
