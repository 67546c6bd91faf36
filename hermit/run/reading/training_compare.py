"""Two training runs, compared: their curves step by step, and their versions on the test split task by task.

The steps are shown and not tested: the tasks of a step are few, and each score belongs to another version. What says which run
learned more is the test split.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hermit.errors import ConfigError
from hermit.run.paths import RunPaths
from hermit.run.reading import load
from hermit.run.reading.compare import Change, Comparison, changes, compared, locked, refuse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermit.run.reading.steps import Step
    from hermit.run.reading.trained import Training

# Whose evaluations are looked at first.
FIRST = ("final", "root", "none")


@dataclass(frozen=True)
class StepPair:
    """The steps of one number.

    Args:
        title: What they are called.
        before: The score of that of the first run; ``None`` where it has none.
        after: The same of the second.
        alike: Whether they took the same tasks.
    """

    title: str
    before: float | None
    after: float | None
    alike: bool

    @property
    def difference(self) -> float | None:
        """How much better the second is; ``None`` where one of the two has no score."""
        return None if self.before is None or self.after is None else self.after - self.before


@dataclass(frozen=True, kw_only=True)
class TrainingComparison:
    """What two training runs say together.

    Args:
        runs: The two.
        steps: Their steps, by number.
        evaluations: What was evaluated under one name in both, task by task.
        changes: What differs between what they trained.
        warnings: What makes the comparison mean less than it seems to.
    """

    runs: tuple[Training, Training]
    steps: tuple[StepPair, ...]
    evaluations: tuple[tuple[str, Comparison], ...]
    changes: tuple[Change, ...]
    warnings: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """The comparison for machines."""
        before, after = self.runs
        return {
            "training": True,
            "before": before.name,
            "after": after.name,
            "steps": [{**vars(pair), "difference": pair.difference} for pair in self.steps],
            "evaluations": {selector: comparison.as_json() for selector, comparison in self.evaluations},
            "cost_before": before.spent.as_json(),
            "cost_after": after.spent.as_json(),
            "changes": [vars(change) for change in self.changes],
            "warnings": list(self.warnings),
        }


def compared_training(before: Training, after: Training) -> TrainingComparison:
    """What two training runs say together.

    Raises:
        ConfigError: They are one run, or trained on other tasks.
    """
    locks = (locked(before.lock), locked(after.lock))
    refuse((before.paths.root, after.paths.root), locks)
    steps = tuple(_steps(before, after))
    broken: list[str] = []
    evaluations = tuple(_evaluations(before, after, broken))
    return TrainingComparison(
        runs=(before, after),
        steps=steps,
        evaluations=evaluations,
        changes=tuple(changes(*locks)),
        warnings=(*_warnings((before, after), steps, evaluations), *broken),
    )


def _steps(before: Training, after: Training) -> Iterator[StepPair]:
    sides = [{step.number: step for step in run.scored} for run in (before, after)]
    for number in sorted({*sides[0], *sides[1]}):
        pair = [side.get(number) for side in sides]
        first, second = (_score(step) for step in pair)
        alike = all(step is not None for step in pair) and len({step.tasks for step in pair if step}) == 1
        yield StepPair(f"step {number}", first, second, alike)


def _score(step: Step | None) -> float | None:
    return None if step is None else step.mean_score


def _evaluations(before: Training, after: Training, broken: list[str]) -> Iterator[tuple[str, Comparison]]:
    """What was evaluated under one name in both; what cannot be compared is told."""
    theirs = {each.selector for each in after.evaluations}
    both = [each.selector for each in before.evaluations if each.selector in theirs]
    for selector in sorted(both, key=lambda name: (FIRST.index(name) if name in FIRST else len(FIRST), name)):
        places = (RunPaths(run.top.path, selector) for run in (before, after))
        try:
            with (
                load.attempts(before.top, next(places)) as first,
                load.attempts(after.top, next(places)) as second,
            ):
                yield selector, compared(first, second)
        except ConfigError as error:
            broken.append(f"{selector}: {error.what}")


def _warnings(
    runs: tuple[Training, Training],
    steps: tuple[StepPair, ...],
    evaluations: tuple[tuple[str, Comparison], ...],
) -> Iterator[str]:
    for run in runs:
        if not run.lock:
            yield f"{run.name} does not say what it trained: it has no lock.json that can be read"
        if not run.ended:
            yield f"{run.name} has not ended"
        yield from (f"{run.name}: {note}" for note in run.notes)
    if any(pair.difference is not None and not pair.alike for pair in steps):
        yield "steps of one number took other tasks, so their scores say little together"
    if not any(selector == "final" for selector, _ in evaluations):
        yield "the last versions cannot be compared: run `hermit eval --adapter final` with the config of each run"
    for selector, comparison in evaluations:
        yield from (f"{selector}: {warning}" for warning in comparison.warnings)
