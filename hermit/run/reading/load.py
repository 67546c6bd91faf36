"""A run, opened for reading: its results as light values, and its files by descriptor.

The files are the host's own, but agents chose much of what they hold, and a run may come from somebody else. So they
are opened as an agent's would be (``untrusted``), their sizes are bounded, and what is no row is one clear refusal. A
torn last line is what a killed run leaves: it is left out, as a resumed run would.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeGuard

from hermit import untrusted
from hermit.domain.attempt import Status
from hermit.errors import ConfigError
from hermit.run.paths import RunPaths
from hermit.run.report import Tally
from hermit.run.train_paths import StepPaths, TrainPaths

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SOLVED = 1.0
# What an attempt is to somebody who looks through a run: the word a page marks it with, and what it is called.
KINDS = {
    "solved": "solved",
    "partly": "partly solved",
    "unsolved": "not solved",
    "agent_error": "agent error",
    "timeout": "timeout",
    "judge_error": "judge error",
    "sandbox_error": "sandbox error",
}
# A worker hands back 16 MiB at most, and JSON may spell each byte with six.
MOST_LINE = 256 << 20
OF_A_START = {"role", "backend", "confined", "checks", "passed", "record"}
MOST_DOCUMENT = 16 << 20
MOST_EVALUATIONS = 1000
# What stands below a run's directory, where it is no evaluation but the attempts of a training step.
A_STEP = re.compile(r"step_[0-9]{4,9}")
_CURE = "name the directory of a run, <output_dir>/<run_name>, or eval/<selector> or step_NNNN in it"


@dataclass(frozen=True, kw_only=True)
class Result:
    """One attempt that was made; what it said is read when it is asked for.

    Args:
        id: The task's id.
        repeat: Which attempt at it, from 0.
        status: What it came to.
        score: Its score, ``None`` where a sandbox broke.
        phase: Where it failed, empty where it did not.
        cause: How it failed, as one short word.
        wall_s: Seconds it took.
        cost_usd: What it cost, ``None`` where unknown.
        confined: Whether the agent was confined.
        records: The names of the records of its starts.
        at: Where its line begins in the results.
        size: How long its line is.
        number: Which line it is, from 1.
    """

    id: str
    repeat: int
    status: Status
    score: float | None
    phase: str
    cause: str
    wall_s: float
    cost_usd: float | None
    confined: bool
    records: tuple[str, ...]
    at: int
    size: int
    number: int

    @property
    def solved(self) -> bool:
        """Whether the judge gave it a full score."""
        return self.status is Status.OK and self.score is not None and self.score >= SOLVED

    @property
    def kind(self) -> str:
        """Which of ``KINDS`` it is."""
        if self.status is not Status.OK:
            return str(self.status.value)
        if self.solved:
            return "solved"
        return "partly" if self.score else "unsolved"

    @property
    def title(self) -> str:
        """The task's id, with a number from the second attempt on."""
        return self.id if not self.repeat else f"{self.id} (attempt {self.repeat + 1})"


@dataclass(frozen=True)
class Top:
    """A run's directory, open: its files are read by their names below it.

    Args:
        path: Its path.
        descriptor: Its descriptor, which whoever opened it closes.
    """

    path: Path
    descriptor: int

    def read(self, path: Path, *, most: int) -> untrusted.Content | None:
        """The beginning of one of the run's files; ``None`` where it is not there or is no file."""
        with contextlib.suppress(OSError, ValueError):  # a name that no file has is a file that is not there
            return untrusted.read(self.below(path), at=self.descriptor, most=most)
        return None

    def below(self, path: Path) -> str:
        """A path of the run as it is named from its root."""
        return str(path.relative_to(self.path))

    def document(self, path: Path) -> dict[str, Any]:
        """One of the run's JSON documents; empty where there is none that can be read."""
        content = self.read(path, most=MOST_DOCUMENT)
        try:
            document = {} if content is None else json.loads(content.data)
        except (ValueError, RecursionError):
            return {}
        return document if isinstance(document, dict) else {}


@dataclass(frozen=True)
class Run:
    """An evaluation that can be read.

    Args:
        paths: Where its files lie.
        results: Every attempt, by the task's id, whose numbers count as numbers.
        tally: What they come to.
        summary: The summary that was left with just these attempts; empty where there is none.
        lock: What ran; empty where that is not known.
        file: The results, open.
        top: The run's directory, open.
    """

    paths: RunPaths
    results: tuple[Result, ...]
    tally: Tally
    summary: Mapping[str, Any] = field(repr=False)
    lock: Mapping[str, Any] = field(repr=False)
    file: BinaryIO = field(repr=False)
    top: Top = field(repr=False)

    @property
    def name(self) -> str:
        """The run and what was evaluated."""
        return f"{self.paths.root.name}/{self.paths.selector}"

    @property
    def tasks(self) -> dict[str, list[Result]]:
        """The attempts at each task."""
        tasks: dict[str, list[Result]] = {}
        for result in self.results:
            tasks.setdefault(result.id, []).append(result)
        return tasks

    def row(self, result: Result) -> dict[str, Any]:
        """The whole row of an attempt."""
        self.file.seek(result.at)
        row: dict[str, Any] = json.loads(self.file.read(result.size))
        return row


@contextlib.contextmanager
def opened(given: Path) -> Iterator[Run]:
    """A run by its directory, or by that of one of its evaluations or of a training step.

    Raises:
        ConfigError: There is no run, it is not clear which evaluation is meant, or its results are none.
    """
    with top(given) as where:
        paths = _found(where.path)
        if paths.root == where.path:
            with attempts(where, paths) as run:
                yield run
        else:
            with top(paths.root) as above, attempts(above, paths) as run:
                yield run


@contextlib.contextmanager
def top(given: Path) -> Iterator[Top]:
    """A directory that a person named, which may be a link.

    Raises:
        ConfigError: There is none that can be read.
    """
    where = Path(os.path.realpath(given))
    with refused(where):
        opened = untrusted.open_top(str(where))
    with untrusted.closing(opened) as descriptor:
        yield Top(where, descriptor)


@contextlib.contextmanager
def refused(where: Path) -> Iterator[None]:
    """Says of what cannot be read that there is no run."""
    try:
        yield
    except untrusted.Refused as error:
        what = "it is missing" if error.reason == "missing" else f"it cannot be read: {error.reason}"
        raise ConfigError(what, where=untrusted.shown(str(where / error.path)), cure=_CURE) from None
    except OSError as error:
        raise ConfigError(f"it cannot be read: {error.strerror}", where=str(where), cure=_CURE) from None


@contextlib.contextmanager
def attempts(top: Top, paths: RunPaths) -> Iterator[Run]:
    """The attempts of an evaluation or of a step of a run that is open.

    Raises:
        ConfigError: There are none, or they cannot be read.
    """
    with contextlib.ExitStack() as ends:
        with refused(top.path):
            descriptor = untrusted.open_file_beneath(top.below(paths.results), at=top.descriptor)[0]
            file = ends.enter_context(os.fdopen(descriptor, "rb"))
            tally = Tally()
            results = _results(file, where=paths.results, tally=tally)
        if not results:
            cure = "wait for the first attempt to end, or run the same command again"
            raise ConfigError("no attempt has ended yet", where=str(paths.results), cure=cure)
        lock, summary = top.document(paths.lock), top.document(paths.summary)
        if isinstance(paths, StepPaths):  # one lock for all of its steps
            lock = top.document(TrainPaths(paths.root).lock)
        if summary.get("attempts") != len(results):  # of an earlier or a later state
            summary = {}
        yield Run(paths, results, tally, summary, lock, file, top)


def _found(where: Path) -> RunPaths:
    """Which attempts of which run are meant."""
    with untrusted.directory(str(where)) as top:
        if _has(top, RunPaths(where, "-").results.name):
            named = _named(where)
            if named is not None:
                return named
        evaluations = RunPaths(where, "-").evaluation.parent.name
        try:
            with untrusted.closing(untrusted.open_directory(evaluations, at=top)) as listed:
                names = selectors(listed)
        except untrusted.Refused:
            raise ConfigError("there is no run here", where=str(where), cure=_CURE) from None
    if len(names) == 1:
        return RunPaths(where, names[0])
    if not names:
        raise ConfigError("no evaluation of this run has results", where=str(where), cure="run `hermit eval` first")
    known = ", ".join(untrusted.shown(name) for name in names)
    cure = f"name one of them, such as {where / evaluations / names[0]}"
    raise ConfigError(f"this run holds several evaluations: {known}", where=str(where), cure=untrusted.shown(cure))


def _named(where: Path) -> RunPaths | None:
    """The attempts whose own directory this is: of an evaluation, of a step, or those that a learner asked for in one."""
    above = where.parent
    if above.name == "eval":
        return RunPaths(above.parent, where.name)
    if A_STEP.fullmatch(where.name):
        return StepPaths(above, where.name)
    step = above.parent
    asked = StepPaths(step.parent, step.name).rollout(int(where.name)) if where.name.isdecimal() else None
    return asked if asked is not None and asked.evaluation == where else None


def selectors(listed: int) -> list[str]:
    """The evaluations in a directory of them that have results.

    Raises:
        ConfigError: There are too many.
    """
    try:
        entries = untrusted.entries(listed, most=MOST_EVALUATIONS)
    except untrusted.TooMany:
        raise ConfigError(f"there are more than {MOST_EVALUATIONS} evaluations", where="eval", cure=_CURE) from None
    found = []
    for name, kind in entries:
        if kind is untrusted.Kind.DIRECTORY:
            with untrusted.closing(untrusted.open_directory(name, at=listed)) as inner:
                found += [name] if _has(inner, RunPaths(Path(), name).results.name) else []
    return found


def _has(descriptor: int, name: str) -> bool:
    try:
        untrusted.status(name, at=descriptor)
    except untrusted.Refused:
        return False
    return True


def _results(file: BinaryIO, *, where: Path, tally: Tally) -> tuple[Result, ...]:
    """Every attempt of a file; the last line of each counts, as it does for a run that goes on."""
    kept: dict[tuple[str, int], tuple[Result, dict[str, Any]]] = {}
    at = number = 0
    while piece := file.readline(MOST_LINE + 1):
        number += 1
        whole = piece.endswith(b"\n")
        if len(piece) > MOST_LINE:
            what = f"this line is longer than {MOST_LINE} bytes, which no row is"
            raise ConfigError(what, where=f"{where}, line {number}", cure="restore the file, or run with --fresh")
        row = _row(piece)
        if row is not None:
            result = _result(row, at=at, size=len(piece), number=number)
            kept[result.id, result.repeat] = result, _counted(row)
        elif whole and piece.strip():
            cure = "restore the file, or run with --fresh"
            raise ConfigError("this is no row of results", where=f"{where}, line {number}", cure=cure)
        at += len(piece)
    for _, counted in kept.values():
        tally.add(counted)
    found = (result for result, _ in kept.values())
    return tuple(sorted(found, key=lambda result: (natural(result.id), result.repeat)))


def interval(summary: Mapping[str, Any]) -> tuple[float, float] | None:
    """The confidence interval of the mean, where the summary has one."""
    around = summary.get("mean_interval")
    if not isinstance(around, dict):
        return None
    low, high = around.get("low"), around.get("high")
    return (float(low), float(high)) if finite(low) and finite(high) else None


def finite(value: Any) -> TypeGuard[float]:
    """Whether a value of JSON is a number that can be drawn."""
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # a whole number past what a float holds
        return False


def natural(task_id: str) -> list[tuple[int, str]]:
    """What ids are ordered by: their numbers as numbers, so that 9 comes before 10."""
    parts = re.split(r"([0-9]{1,18})", task_id)
    return [(int(part), part) if odd else (-1, part) for odd, part in zip(itertools.cycle((False, True)), parts)]


def _row(line: bytes) -> dict[str, Any] | None:
    """What a line says, if it is a row of a run of this or an earlier version."""
    try:
        row = json.loads(line)
        Status(row["status"])
        score = row["judge"] and row["judge"]["score"]
        row["id"].encode()  # a name of files: half a surrogate is none
        known = isinstance(row["id"], str) and isinstance(row["repeat"], int) and _number(score)
        known = known and _number(row["cost_usd"]) and _number(row.get("wall_s"))
        known = known and all(isinstance(name, str) for name in row.get("records", ()))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return row if known else None


def _number(value: Any) -> bool:
    return value is None or finite(value)


def _result(row: dict[str, Any], *, at: int, size: int, number: int) -> Result:
    status = Status(row["status"])
    judge = row["judge"]
    score = float(judge["score"]) if judge else 0.0
    return Result(
        id=row["id"],
        repeat=row["repeat"],
        status=status,
        score=None if status is Status.SANDBOX_ERROR else score,
        phase=str(row.get("phase") or ""),
        cause=str(row.get("cause") or ""),
        wall_s=float(row.get("wall_s") or 0.0),
        cost_usd=row["cost_usd"],
        confined=row.get("confined") is True,
        records=tuple(row.get("records", ())),
        at=at,
        size=size,
        number=number,
    )


def _counted(row: dict[str, Any]) -> dict[str, Any]:
    """What a tally wants of a row, without what makes rows large."""
    large = dict.fromkeys(("output", "log", "error", "left", "collected"))
    starts = row.get("evidence")
    whole = [start for start in starts if isinstance(start, dict) and start.keys() >= OF_A_START] if starts else []
    score = row["judge"] and {"score": row["judge"]["score"]}
    # What an earlier version did not say is taken for the worse.
    return {"confined": False, "judged": "", **row, **large, "evidence": whole, "judge": score}
