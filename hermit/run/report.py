"""What came of a run: a row for each attempt, and the summary they fold into."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hermit.domain import attempt, interval
from hermit.domain.attempt import Phase, Side, Status
from hermit.errors import ConfigError
from hermit.run.paths import write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from hermit.domain.trial import JudgeResult, RunOutput

# The least score of a task that is solved.
SOLVED = 1.0


@dataclass(frozen=True, kw_only=True)
class Row:
    """One attempt.

    Args:
        id: The task's id.
        repeat: Which attempt at it, from 0.
        status: What it came to.
        phase: In which step it failed; ``None`` where it did not.
        cause: How it failed, as a short name of the closed set; empty where it did not.
        error: How it failed, in words; ``None`` where it did not.
        output: What the agent handed back, ``None`` where it did not.
        judge: What the judge said, ``None`` where it did not.
        wall_s: Seconds from the start of the agent's sandbox to the judge's last word.
        confined: Whether the agent was confined.
        judged: Where the judge ran: ``host``, ``shared`` or ``separate``.
        missing: Paths the judge was to get of which nothing came.
        dropped: How many entries of the work, or parts of them, were not copied for the judge, by reason.
        collected: What was copied for the judge, as counts, and the BLAKE3 of the manifest beside its logs; ``None``
            where nothing had to be.
        records: The names of the records of its starts, in the run's ``sandbox`` directory.
        on_host: Why the agent ran on the host; empty where it did not.
        judge_on_host: Why the judge ran on the host although another mode was asked for; empty where it did not.
        alone: Whether no process of the agent was alive when the judge started; ``None`` where none did.
        left: What the call left in ``environment.write``, ``None`` where nothing is shared.
        evidence: What was seen of each of its starts, in their order.

    Raises:
        ValueError: No attempt ends with this status, phase and cause.
    """

    id: str
    repeat: int
    status: Status
    phase: Phase | None = None
    cause: str = ""
    error: str | None = None
    output: RunOutput | None = None
    judge: JudgeResult | None = None
    wall_s: float = 0.0
    confined: bool = True
    judged: str = ""
    missing: tuple[str, ...] = ()
    dropped: tuple[tuple[str, int], ...] = ()
    collected: dict[str, Any] | None = None
    records: tuple[str, ...] = ()
    on_host: str = ""
    judge_on_host: str = ""
    alone: bool | None = None
    left: dict[str, Any] | None = None
    evidence: tuple[dict[str, Any], ...] = ()

    def __post_init__(self) -> None:
        attempt.refuse_broken(self.status, self.phase, self.cause)

    @property
    def score(self) -> float | None:
        """Its score: 0 where the agent or the judge failed, ``None`` where the sandbox did."""
        if self.status is Status.SANDBOX_ERROR:
            return None
        return self.judge.score if self.judge is not None else 0.0

    def as_json(self) -> dict[str, Any]:
        """The row as it stands in ``results.jsonl``."""
        output = self.output
        return {
            "repeat": self.repeat,
            "id": self.id,
            "status": self.status.value,
            "failed_by": self.status.failed_by.value if self.status.failed_by else "",
            "phase": self.phase.value if self.phase else "",
            "cause": self.cause,
            "error": self.error,
            "output": None if output is None else output.output,
            "judge": None if self.judge is None else dict(vars(self.judge)),
            "cost_usd": None if output is None else output.cost_usd,
            "wall_s": round(self.wall_s, 4),
            "api_speed": None if output is None else output.api_speed,
            "tokens": {} if output is None else output.tokens,
            "log": "" if output is None else output.log,
            "confined": self.confined,
            "judged": self.judged,
            "missing": list(self.missing),
            "dropped": dict(self.dropped),
            "collected": self.collected,
            "records": list(self.records),
            "on_host": self.on_host,
            "judge_on_host": self.judge_on_host,
            "alone": self.alone,
            "left": self.left,
            "evidence": list(self.evidence),
        }


def proven(row: dict[str, Any]) -> bool:
    """Whether a row's own evidence shows that it was confined.

    Each start of its agent, and of its judge where that has a sandbox, was confined, passed every check that was tried
    from inside, and left a record.
    """
    starts = [start for start in row.get("evidence", ()) if start["role"] == "task" or row.get("judged") != "host"]
    shown = (s["confined"] and 0 < s["checks"] == s["passed"] and bool(s["record"]) for s in starts)
    return bool(row.get("confined")) and any(start["role"] == "task" for start in starts) and all(shown)


@dataclass
class Confinement:
    """Whether every scored row was confined, and what shows it."""

    scored: int = 0
    proven: int = 0
    starts: int = 0
    checks: int = 0
    passed: int = 0
    records: int = 0
    backends: Counter[str] = field(default_factory=Counter)

    def add(self, row: dict[str, Any]) -> None:
        """Takes one scored row in its JSON form."""
        self.scored += 1
        self.proven += proven(row)
        for start in row.get("evidence", ()):
            self.starts += 1
            self.checks += start["checks"]
            self.passed += start["passed"]
            self.records += bool(start["record"])
            self.backends[start["backend"]] += 1

    def as_json(self) -> dict[str, Any]:
        """Its part of a summary."""
        counts = {**vars(self), "backends": dict(self.backends)}
        return {"every": 0 < self.scored == self.proven, **counts}


@dataclass
class Tally:
    """What the rows so far come to; it keeps counts, not rows."""

    scores: dict[str, list[float]] = field(default_factory=dict)
    statuses: Counter[str] = field(default_factory=Counter)
    failures: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    cost_usd: float = 0.0
    unknown_cost: set[str] = field(default_factory=set)
    unconfined: int = 0
    on_host: Counter[str] = field(default_factory=Counter)
    judge_on_host: Counter[str] = field(default_factory=Counter)
    confinement: Confinement = field(default_factory=Confinement)

    def add(self, row: dict[str, Any]) -> None:
        """Takes one row in its JSON form."""
        status = row["status"]
        self.statuses[status] += 1
        if status != Status.OK.value:
            self.failures[status, row.get("phase", ""), row.get("cause", "")] += 1
        self.unconfined += not row.get("confined", True)
        for name, counter in (("on_host", self.on_host), ("judge_on_host", self.judge_on_host)):
            if row.get(name):
                counter[row[name]] += 1
        if status != Status.SANDBOX_ERROR.value:
            judge = row["judge"]
            self.scores.setdefault(row["id"], []).append(judge["score"] if judge else 0.0)
            self.confinement.add(row)
        if row["cost_usd"] is None:
            self.unknown_cost.add(row["id"])
        else:
            self.cost_usd += row["cost_usd"]

    @property
    def attempts(self) -> int:
        """How many rows there are."""
        return self.statuses.total()

    @property
    def mean(self) -> float | None:
        """The mean score of the attempts that have one; ``None`` where none has."""
        scores = [score for attempts in self.scores.values() for score in attempts]
        return interval.mean_of(scores) if scores else None

    @property
    def interval(self) -> dict[str, Any] | None:
        """How far that mean can be trusted; ``None`` for less than two tasks."""
        found = interval.of_mean(self.scores.values())
        return found.as_json() if found else None

    @property
    def errors(self) -> int:
        """How many attempts did not end well."""
        return self.attempts - self.statuses[Status.OK.value]

    @property
    def sandbox_errors(self) -> int:
        """How many attempts we broke."""
        return self.statuses[Status.SANDBOX_ERROR.value]

    @property
    def failed_by(self) -> dict[str, int]:
        """How many attempts each side made fail."""
        counts = dict.fromkeys((side.value for side in Side), 0)
        for status, side in attempt.FAILED_BY.items():
            counts[side.value] += self.statuses[status.value]
        return counts

    def summary(self, *, adapter: str, commit: str | None, tasks: int, repeats: int, wall_s: float) -> dict[str, Any]:
        """The document of ``summary.json``."""
        return {
            "adapter": adapter,
            "commit": commit,
            "tasks": tasks,
            "repeats": repeats,
            "mean_score": self.mean,
            "mean_interval": self.interval,
            "solved_once": sum(max(attempts) >= SOLVED for attempts in self.scores.values()),
            "cost_usd": round(self.cost_usd, 6),
            "unknown_cost_tasks": len(self.unknown_cost),
            "errors": self.errors,
            "wall_s": round(wall_s, 3),
            "attempts": self.attempts,
            "scored": self.attempts - self.sandbox_errors,
            "statuses": {status.value: self.statuses[status.value] for status in Status},
            "failed_by": self.failed_by,
            "failures": [
                {"status": status, "phase": phase, "cause": cause, "attempts": number}
                for (status, phase, cause), number in sorted(self.failures.items())
            ],
            "unconfined": self.unconfined,
            "confinement": self.confinement.as_json(),
            "on_host": dict(self.on_host),
            "judge_on_host": dict(self.judge_on_host),
            "complete": self.attempts == tasks * repeats,
        }


def resume(path: Path, *, wanted: Iterable[tuple[str, int]]) -> list[dict[str, Any]]:
    """The rows that need not be made again, and a file that holds just these.

    A torn last line, an attempt that a sandbox broke and one that is no longer wanted are dropped from the file.

    Raises:
        ConfigError: A line that is not the last one is no row.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    keys = set(wanted)
    kept: dict[tuple[str, int], dict[str, Any]] = {}
    lines = data.split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        row = _row(line)
        if row is None and number == len(lines):
            break
        if row is None:
            raise ConfigError("this is no row of results", where=f"{path}, line {number}", cure="use --fresh")
        key = (row["id"], row["repeat"])
        if key in keys and row["status"] != Status.SANDBOX_ERROR.value:
            kept[key] = row
    whole = b"".join(json.dumps(row).encode("ascii") + b"\n" for row in kept.values())
    if whole != data:
        write_atomically(path, whole)
    return list(kept.values())


def kept_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a file that ``resume`` has looked through, one at a time; none where there is no file."""
    with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
        for line in file:
            row = _row(line)
            if row is not None:
                yield row


def _row(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    needed = ("id", "repeat", "status", "judge", "cost_usd")
    whole = isinstance(row, dict) and all(key in row for key in needed)
    return row if whole and isinstance(row["id"], str) and isinstance(row["repeat"], int) else None
