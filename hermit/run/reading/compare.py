"""Two runs over the same tasks, compared task by task, and what differs between what they ran."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hermit.errors import ConfigError
from hermit.run.reading import isolation, words
from hermit.run.reading.paired import SAME, Paired, paired
from hermit.run.reading.table import came_to, mean_score

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from hermit.run.reading.load import Result, Run

TASKS = "contents.data.tasks"
# What makes scores mean something else when it changes.
JUDGE = ("contents.judge.path", "contents.judge.tests", "settings.judge.")
MOST_VALUE = 120
ABSENT = "-"


@dataclass(frozen=True)
class Pair:
    """One task of both runs.

    Args:
        task: Its id.
        before: The mean score of its attempts in the first run, ``None`` where sandboxes broke all of them.
        after: The same of the second.
        came_to: What its attempts came to in each, in words.
        changed: Whether their statuses are others now.
    """

    task: str
    before: float | None
    after: float | None
    came_to: tuple[str, str]
    changed: bool

    @property
    def difference(self) -> float | None:
        """How much better it is now; ``None`` where one of the two has no score."""
        return None if self.before is None or self.after is None else self.after - self.before

    @property
    def word(self) -> str:
        """``won``, ``lost``, ``same``, or ``no score``."""
        difference = self.difference
        if difference is None:
            return "no score"
        if abs(difference) <= SAME:
            return "same"
        return "won" if difference > 0 else "lost"


@dataclass(frozen=True)
class Change:
    """Something that is another in the second run."""

    what: str
    before: str
    after: str


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What two runs say together.

    Args:
        names: Of the runs.
        pairs: The tasks of both.
        only: The tasks of one alone.
        means: The mean over the tasks that have a score in both.
        paired: What the differences of these say; ``None`` where no task has a score in both.
        changes: What differs between what they ran.
        warnings: What makes the comparison mean less than it seems to.
    """

    names: tuple[str, str]
    pairs: tuple[Pair, ...]
    only: tuple[tuple[str, ...], tuple[str, ...]]
    means: tuple[float, float] | None
    paired: Paired | None
    changes: tuple[Change, ...]
    warnings: tuple[str, ...]

    @property
    def differing(self) -> tuple[Pair, ...]:
        """The tasks that are not the same in both."""
        return tuple(pair for pair in self.pairs if pair.word != "same" or pair.changed)

    def as_json(self) -> dict[str, Any]:
        """The comparison for machines."""
        said = self.paired
        return {
            "before": self.names[0],
            "after": self.names[1],
            "tasks": len(self.pairs),
            "mean_before": self.means and self.means[0],
            "mean_after": self.means and self.means[1],
            "difference": said and said.mean,
            "interval": None
            if said is None or said.low is None
            else {"low": said.low, "high": said.high, "level": 0.95},
            "sign_test_p": said and said.sign_p,
            **{name: getattr(said, name) if said else 0 for name in ("won", "lost", "same")},
            "no_score": [pair.task for pair in self.pairs if pair.difference is None],
            "only_before": list(self.only[0]),
            "only_after": list(self.only[1]),
            "changes": [vars(change) for change in self.changes],
            "warnings": list(self.warnings),
            "pairs": [
                {
                    "id": pair.task,
                    "before": pair.before,
                    "after": pair.after,
                    "word": pair.word,
                    "came_to_before": pair.came_to[0],
                    "came_to_after": pair.came_to[1],
                    "status_changed": pair.changed,
                }
                for pair in self.pairs
            ],
        }


def compared(before: Run, after: Run) -> Comparison:
    """What two runs say together.

    Raises:
        ConfigError: They are one run, ran on other tasks, or have no task in common.
    """
    names = (before.name, after.name)
    where = f"{before.paths.evaluation} and {after.paths.evaluation}"
    locks = (settings(before), settings(after))
    refuse((before.paths.evaluation, after.paths.evaluation), locks)
    tasks = (before.tasks, after.tasks)
    both = [task for task in tasks[0] if task in tasks[1]]
    if not both:
        what = "these runs cannot be compared: no task has results in both"
        raise ConfigError(what, where=where, cure="score both on one split")
    pairs = tuple(_pair(task, tasks[0][task], tasks[1][task]) for task in both)
    scored = [(pair.before, pair.after) for pair in pairs if pair.before is not None and pair.after is not None]
    sides = tuple(zip(*scored, strict=True))
    changed = tuple(changes(*locks))
    return Comparison(
        names=names,
        pairs=pairs,
        only=(
            tuple(task for task in tasks[0] if task not in tasks[1]),
            tuple(task for task in tasks[1] if task not in tasks[0]),
        ),
        means=(math.fsum(sides[0]) / len(scored), math.fsum(sides[1]) / len(scored)) if scored else None,
        paired=paired([after - before for before, after in scored]) if scored else None,
        changes=changed,
        warnings=tuple(_warnings((before, after), changed, pairs)),
    )


def refuse(directories: tuple[Path, Path], locks: tuple[Mapping[str, str], Mapping[str, str]]) -> None:
    """Refuses what cannot be compared, whatever came of it.

    Raises:
        ConfigError: It is one run, or they ran on other tasks.
    """
    where = f"{directories[0]} and {directories[1]}"
    if directories[0] == directories[1]:
        raise ConfigError("this is one run, named twice", where=where, cure="name two runs")
    digests = tuple(lock.get(TASKS) for lock in locks)
    if all(digests) and digests[0] != digests[1]:
        what = "these runs cannot be compared: their data.tasks holds other tasks, or the same ones in other words"
        raise ConfigError(what, where=where, cure="score both on one file of tasks")


def _pair(task: str, before: list[Result], after: list[Result]) -> Pair:
    statuses = [Counter(result.status for result in tries) for tries in (before, after)]
    same = set(statuses[0]) == set(statuses[1]) if len(before) != len(after) else statuses[0] == statuses[1]
    return Pair(task, mean_score(before), mean_score(after), (came_to(before), came_to(after)), not same)


def settings(run: Run) -> dict[str, str]:
    """What ran, each setting and each digest by its own name."""
    found = {**locked(run.lock), "selector": run.paths.selector}
    images, backends = Counter[str](), Counter[str]()
    overview = isolation.of_run(run)
    images.update({image or "this machine": count for image, count in overview.images.items()})
    backends.update(overview.held_by)
    found["started in"] = ", ".join(sorted(images))
    found["held by"] = ", ".join(sorted(backends))
    return found


def locked(lock: Mapping[str, Any]) -> dict[str, str]:
    """What a lock says, each setting and each digest by its own name."""
    found = {"hermit": words.told(lock.get("hermit"))}
    for part in ("settings", "contents"):
        found |= dict(_flat(lock.get(part, {}), name=part))
    return found


def _flat(value: Any, *, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(inner, name=f"{name}.{key}")
    else:
        yield name, value if isinstance(value, str) else json.dumps(value)


def changes(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Change]:
    """What is another in the second of two."""
    for what in dict.fromkeys((*before, *after)):
        values = [words.line(lock.get(what) or ABSENT, most=MOST_VALUE) for lock in (before, after)]
        if before.get(what) != after.get(what):
            yield Change(words.line(what, most=MOST_VALUE), *values)


def _warnings(runs: tuple[Run, Run], changes: tuple[Change, ...], pairs: tuple[Pair, ...]) -> Iterator[str]:
    for run in runs:
        if not run.lock:
            yield f"{run.name} does not say what ran: it has no lock.json that can be read"
        if run.tally.unconfined:
            yield f"{run.tally.unconfined} attempts of {run.name} ran without a sandbox"
        if run.summary.get("complete") is not True:
            yield f"{run.name} is not complete"
    if any(change.what.startswith(JUDGE) for change in changes):
        yield "the judges differ, so equal scores need not mean the same"
    lost = sum(pair.difference is None for pair in pairs)
    if lost:
        yield f"{lost} tasks have no score in one of the runs, because sandboxes broke; they are left out of the means"
