"""A training run as a table: a line for each step, and the same for machines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hermit.run.reading import lesson
from hermit.run.reading.outlay import SECONDS_PER_HOUR
from hermit.run.reading.plots import number_of
from hermit.run.reading.steps import OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermit.run.reading.steps import Said, Step
    from hermit.run.reading.trained import Evaluation, Training


@dataclass(frozen=True)
class StepLine:
    """One step.

    Args:
        outcome: What became of its change, in words.
        step: What it is called, with its epoch.
        score: The mean score of its attempts, ``None`` where it has none.
        version: The version it ended with; empty where it changed nothing.
        usd: What it cost.
        seconds: How long it took.
        words: What was said of it.
    """

    outcome: str
    step: str
    score: float | None
    version: str
    usd: float
    seconds: float
    words: str


def lines(training: Training) -> Iterator[StepLine]:
    """A line for each step, in their order."""
    for step in training.steps:
        spent = step.spent.all
        yield StepLine(
            outcome=OUTCOMES[step.kind],
            step=f"{step.title}, epoch {step.epoch}" if step.epoch else step.title,
            score=step.mean_score,
            version=step.commit[:12] if step.changed else "",
            usd=spent.usd,
            seconds=spent.seconds,
            words=step.said.line,
        )


def budget(training: Training) -> Iterator[tuple[str, str, str, float]]:
    """Of each bound: its unit, what was used, the bound, and what part of it."""
    used = training.spent.all
    amounts = {"usd": used.usd, "tokens": used.tokens, "hours": used.seconds / SECONDS_PER_HOUR}
    for name, bound in training.budget.items():
        yield name, number_of(amounts[name]), number_of(bound), amounts[name] / bound if bound > 0 else 1.0


def document(training: Training) -> dict[str, Any]:
    """The run for machines: its steps, its versions on the test split, what it cost, and what held it."""
    records = lesson.records_of_calls(training.top)
    return {
        "run": training.name,
        "training": True,
        "ended": training.ended,
        "commit": training.commit,
        "summary": dict(training.summary),
        "steps": [_step(training, step) for step in training.steps],
        "evaluations": [_evaluation(each) for each in training.evaluations],
        "cost": training.spent.as_json(),
        "budget": dict(training.budget),
        "isolation": lesson.held(training, records)[0].as_json(),
        "notes": list(training.notes),
    }


def _step(training: Training, step: Step) -> dict[str, Any]:
    full = lesson.of_step(training, step)
    verdict, change = full.verdict, full.change
    return {
        "step": step.title,
        "number": step.number,
        "epoch": step.epoch,
        "ends_epoch": step.ends_epoch,
        "tasks": list(step.tasks),
        "mean_score": step.mean_score,
        "interval": _interval(step.interval),
        "outcome": OUTCOMES[step.kind],
        "adapter": step.adapter,
        "commit": step.commit,
        "changed": step.changed,
        "checkpoint": step.checkpoint,
        "files": [] if change is None else [_without_lines(vars(file)) for file in change.files],
        "found": [] if verdict is None else [vars(each) for each in verdict.found],
        "repairs": [] if verdict is None else [vars(each) for each in verdict.repairs],
        "learner": _said(step.said),
        "tools": [vars(use) for use in full.uses],
        "cost": step.spent.as_json(),
    }


def _without_lines(file: dict[str, Any]) -> dict[str, Any]:
    return {name: file[name] for name in ("path", "how", "added", "removed")}


def _said(said: Said) -> dict[str, Any]:
    return {
        "status": said.status,
        "error": said.error.head,
        "summary": said.summary.head,
        "rationale": said.rationale.head,
    }


def _evaluation(each: Evaluation) -> dict[str, Any]:
    at = None if each.at is None else list(each.at)
    return {**vars(each), "interval": _interval(each.interval), "at": at}


def _interval(around: tuple[float, float] | None) -> dict[str, Any] | None:
    return None if around is None else {"low": around[0], "high": around[1], "level": 0.95}
