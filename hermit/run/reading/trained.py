"""A training run, opened for reading: its steps, the evaluations of its versions, and what all of it cost.

A run that has not ended is read as far as it is there, and so is one whose files are torn.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from hermit import untrusted
from hermit.errors import ConfigError
from hermit.run.paths import RunPaths
from hermit.run.reading import load, steps
from hermit.run.reading.outlay import Outlays, number
from hermit.run.train_paths import TrainPaths

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from hermit.run.reading.load import Run, Top
    from hermit.run.reading.steps import Step

MOST_EVALUATIONS = 200
CURE = "wait for the first attempt to end, or run the same command again"


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """What a version came to on the test split.

    Args:
        selector: What chose it.
        commit: Which version it is; empty where it is none of a tree.
        mean: Its mean score, ``None`` where none is known.
        interval: How far that can be trusted.
        tasks: How many tasks it rests on.
        solved: How many of these were solved at least once.
        complete: Whether every attempt was made.
        at: The first and the last place at which the run stood on this version; ``None`` where it never did.
    """

    selector: str
    commit: str
    mean: float | None
    interval: tuple[float, float] | None
    tasks: int
    solved: int
    complete: bool
    at: tuple[int, int] | None


@dataclass(frozen=True, kw_only=True)
class Training:
    """A training run that can be read.

    Args:
        paths: Where its files lie.
        top: Its directory, open.
        steps: Every step, in order; the learner's last call is the last.
        evaluations: What its versions came to on the test split.
        summary: What it came to, where it has ended.
        lock: What is trained.
        budget: What it may use up, as its last line says: by ``usd``, ``tokens`` and ``hours``.
        notes: What could not be read.
    """

    paths: TrainPaths
    top: Top = field(repr=False)
    steps: tuple[Step, ...]
    evaluations: tuple[Evaluation, ...] = ()
    summary: Mapping[str, Any] = field(repr=False)
    lock: Mapping[str, Any] = field(repr=False)
    budget: Mapping[str, float]
    notes: tuple[str, ...]

    @property
    def name(self) -> str:
        """The run."""
        return self.paths.root.name

    @property
    def finished(self) -> tuple[Step, ...]:
        """The steps that have their line."""
        return tuple(step for step in self.steps if step.line)

    @property
    def scored(self) -> tuple[Step, ...]:
        """Those that have a score."""
        return tuple(step for step in self.finished if step.mean_score is not None)

    @property
    def end(self) -> int:
        """The place behind the last finished step, where its version stands."""
        return 1 + max((step.number for step in self.finished), default=0)

    @property
    def commit(self) -> str:
        """The version it stands on."""
        said = self.summary.get("commit")
        if isinstance(said, str):
            return said
        return self.finished[-1].commit if self.finished else ""

    @property
    def spent(self) -> Outlays:
        """What all of it cost."""
        return Outlays.sum(step.spent for step in self.steps)

    @property
    def ended(self) -> bool:
        """Whether it has ended."""
        return self.summary.get("complete") is True

    @contextlib.contextmanager
    def attempts(self, step: Step) -> Iterator[Run | None]:
        """The attempts of a step; ``None`` where it has none.

        Raises:
            ConfigError: Its results cannot be read.
        """
        if self.top.read(step.paths.results, most=1) is None:
            yield None
            return
        with load.attempts(self.top, step.paths) as run:
            yield run


def found(given: Path) -> bool:
    """Whether a directory is that of a training run: the lock of an evaluation lies deeper.

    Raises:
        ConfigError: It cannot be read.
    """
    with load.top(given) as top:
        paths = TrainPaths(top.path)
        here = {path for path in (paths.steps, paths.lock) if top.read(path, most=1) is not None}
        return paths.steps in here or (paths.lock in here and top.path.parent.name != "eval")


@contextlib.contextmanager
def opened(given: Path) -> Iterator[Training]:
    """A training run by its directory.

    Raises:
        ConfigError: It cannot be read, or nothing of it is there yet.
    """
    with load.top(given) as top:
        paths = TrainPaths(top.path)
        notes: list[str] = []
        rows = steps.lines(top, paths, notes)
        made = [steps.finished(top, paths, row, line=line) for line, row in rows]
        made += steps.unfinished(top, paths, after=max((step.number for step in made), default=-1))
        last = steps.last_call(top, paths, place=1 + max((step.number for step in made), default=0))
        training = Training(
            paths=paths,
            top=top,
            steps=(*made, last) if last else tuple(made),
            summary=top.document(paths.summary),
            lock=top.document(paths.lock),
            budget=steps.budget(rows[-1][1]) if rows else {},
            notes=tuple(notes),
        )
        training = replace(training, evaluations=tuple(_evaluations(training)))
        if not training.steps and not training.evaluations:
            raise ConfigError("no attempt has ended yet", where=str(top.path), cure=CURE)
        yield training


def _evaluations(training: Training) -> Iterator[Evaluation]:
    """What stands in ``eval``, with the place of each version in the run."""
    top = training.top
    directory = RunPaths(top.path, "-").evaluation.parent
    try:
        with untrusted.closing(untrusted.open_directory(directory.name, at=top.descriptor)) as listed:
            selectors = load.selectors(listed)[:MOST_EVALUATIONS]
    except (OSError, ConfigError):
        return
    stood: dict[str, list[int]] = {}
    for step in training.finished:
        stood.setdefault(step.adapter, []).append(step.number)
    stood.setdefault(steps.short(training.commit), []).append(training.end)
    for selector in selectors:
        summary = top.document(RunPaths(top.path, selector).summary)
        commit, mean = steps.short(summary.get("commit")), summary.get("mean_score")
        places = stood.get(commit) if commit else None
        yield Evaluation(
            selector=untrusted.shown(selector),
            commit=commit,
            mean=float(mean) if steps.drawn(mean) else None,
            interval=steps.interval(summary),
            tasks=int(number(summary.get("tasks"))),
            solved=int(number(summary.get("solved_once"))),
            complete=summary.get("complete") is True,
            at=(min(places), max(places)) if places else None,
        )
