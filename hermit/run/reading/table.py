"""A run as a table: a line for each task, and the same for machines with one for each attempt."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hermit.run.reading import isolation, words
from hermit.run.reading.evidence import summary_words
from hermit.run.reading.load import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hermit.run.reading.load import Result, Run

MOST_WORDS = 100


@dataclass(frozen=True)
class Line:
    """One task.

    Args:
        task: Its id.
        kind: What its attempts came to where all came to the same; else ``mixed``.
        came_to: The same in words, with counts where there are several attempts.
        score: Their mean score, ``None`` where none has one.
        wall_s: The mean of their seconds.
        words: What was said of the first that is not solved, or of the first.
    """

    task: str
    kind: str
    came_to: str
    score: float | None
    wall_s: float
    words: str


def lines(run: Run) -> Iterator[Line]:
    """A line for each task, in the order of their ids."""
    for task, tries in run.tasks.items():
        told = next((result for result in tries if not result.solved), tries[0])
        kinds = {result.kind for result in tries}
        yield Line(
            task=words.spelled(task, keeps=""),
            kind=kinds.pop() if len(kinds) == 1 else "mixed",
            came_to=came_to(tries),
            score=mean_score(tries),
            wall_s=math.fsum(result.wall_s for result in tries) / len(tries),
            words=words.line(summary_words(run.row(told)), most=MOST_WORDS),
        )


def came_to(tries: Sequence[Result]) -> str:
    """What the attempts at one task came to, in words."""
    counts = Counter(result.kind for result in tries)
    if len(tries) == 1:
        return KINDS[tries[0].kind]
    return ", ".join(f"{counts[kind]} {name}" for kind, name in KINDS.items() if counts[kind])


def mean_score(tries: Sequence[Result]) -> float | None:
    """The mean of the scores there are."""
    scores = [result.score for result in tries if result.score is not None]
    return math.fsum(scores) / len(scores) if scores else None


def document(run: Run) -> dict[str, Any]:
    """The run for machines: what it came to, what held it, and every attempt."""
    tally = run.tally
    return {
        "run": run.paths.root.name,
        "selector": run.paths.selector,
        "summary": {
            **run.summary,
            "attempts": len(run.results),
            "tasks_with_results": len(run.tasks),
            "mean_score": tally.mean,
            "solved_once": sum(any(result.solved for result in tries) for tries in run.tasks.values()),
            "errors": tally.errors,
            "statuses": dict(tally.statuses),
            "unconfined": tally.unconfined,
            "cost_usd": round(tally.cost_usd, 6),
        },
        "isolation": isolation.of_run(run).as_json(),
        "attempts": [_attempt(run, result) for result in run.results],
    }


def _attempt(run: Run, result: Result) -> dict[str, Any]:
    return {
        "id": result.id,
        "repeat": result.repeat,
        "status": result.status.value,
        "phase": result.phase,
        "cause": result.cause,
        "score": result.score,
        "solved": result.solved,
        "wall_s": result.wall_s,
        "cost_usd": result.cost_usd,
        "confined": result.confined,
        "words": words.line(summary_words(run.row(result)), most=MOST_WORDS),
        "records": list(result.records),
    }
