"""The page of a training run: how it went, what it cost, and each step with what it changed and what it rests on."""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hermit.errors import ConfigError
from hermit.run.reading import curve, lesson, page, plots, training_table
from hermit.run.reading.page import MOST_BYTES, Sheet, known, setting
from hermit.run.reading.steps import OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermit.run.reading.lesson import Lesson
    from hermit.run.reading.load import Run
    from hermit.run.reading.outlay import Outlay
    from hermit.run.reading.page import Shown
    from hermit.run.reading.plots import Share
    from hermit.run.reading.steps import Step
    from hermit.run.reading.trained import Evaluation, Training


@dataclass(frozen=True, kw_only=True)
class ShownStep:
    """One step of the page.

    Args:
        step: The step.
        place: Its directory.
        full: All that is kept of it; ``None`` where the page is full.
        run: Its attempts; ``None`` where there are none that can be shown.
        shares: What these came to.
        attempts: Each of them, read when its turn comes.
        problem: Why they cannot be shown.
    """

    step: Step
    place: str
    full: Lesson | None
    run: Run | None
    shares: tuple[Share, ...]
    attempts: Iterator[Shown]
    problem: str


class TrainingPage(Sheet):
    """The page of a training run.

    Args:
        training: The run.
        most: As for a sheet.
    """

    template = "training.html"

    def __init__(self, training: Training, *, most: int = MOST_BYTES) -> None:
        super().__init__(most=most)
        self._training = training

    def values(self) -> dict[str, Any]:
        """What its template shows."""
        training = self._training
        records = lesson.records_of_calls(training.top)
        held, tally = lesson.held(training, records)
        counts = Counter(step.kind for step in training.steps)
        total, stopped = training.summary.get("of_steps"), training.summary.get("stopped")
        return {
            "title": training.name,
            "training": training,
            "whose": "agents, judges and learners",
            "about": about(training),
            "tested": tested(training),
            "of_steps": total if isinstance(total, int) else 0,
            "stopped": stopped if isinstance(stopped, str) else "",
            "spent": training.spent,
            "rows": spenders(training),
            "budget": list(training_table.budget(training)),
            "curve": curve.learning(training),
            "costs": curve.spending(training),
            "size": curve,
            "held": "the attempts and the learner",
            "isolation": held,
            "tally": tally,
            "names": OUTCOMES,
            "outcomes": [(kind, counts[kind]) for kind in OUTCOMES if counts[kind]],
            "steps": self._steps(records),
        }

    def _steps(self, records: dict[str, tuple[str, ...]]) -> Iterator[ShownStep]:
        """Every step, read when its turn comes, and its attempts while it is shown."""
        training = self._training
        for step in training.steps:
            run, problem = None, ""
            with contextlib.ExitStack() as ends:
                try:
                    run = ends.enter_context(training.attempts(step))
                except ConfigError as error:
                    problem = error.what
                own = records.get(step.paths.selector, ())
                yield ShownStep(
                    step=step,
                    place=training.top.below(step.paths.evaluation),
                    full=None if self.full else lesson.of_step(training, step, records=own),
                    run=run,
                    shares=plots.shares(run.results) if run else (),
                    attempts=self.attempts(run, prefix=step.key) if run else iter(()),
                    problem=problem,
                )


def tested(training: Training) -> Evaluation | None:
    """What the last version came to on the test split; ``None`` where nobody evaluated it."""
    last = [each for each in training.evaluations if each.at is not None and each.at[1] == training.end]
    return next((each for each in last if each.selector == "final"), last[0] if last else None)


def spenders(training: Training) -> list[tuple[str, Outlay]]:
    """Who spent how much, and all of them."""
    spent = training.spent
    tools = [(f"tool {name}", outlay) for name, outlay in spent.tools.items()]
    return [("attempts", spent.attempts), ("learner", spent.learner), *tools, ("all", spent.all)]


def about(training: Training) -> list[tuple[str, str]]:
    """What was trained, as far as it is known."""
    lock, summary = training.lock, training.summary
    return known(
        ("learner", summary.get("learner") or str(setting(lock, "evolver", "name")).rstrip("/").rpartition("/")[2]),
        ("template", summary.get("template")),
        ("agent", page.agent(lock)),
        ("judge", setting(lock, "judge", "mode")),
        ("version", training.commit[:12]),
        ("tag", summary.get("tag")),
        ("Hermit", lock.get("hermit")),
    )
