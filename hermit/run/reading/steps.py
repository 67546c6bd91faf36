"""The steps of a training run as values: from their lines, and from what lies there of one that has none yet.

Nothing of a line is believed before its kind is looked at, for a run may come from somebody else. A line that is no step is
named and left out; a torn last line is only left out.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeGuard

from hermit import untrusted
from hermit.run.reading import load, outlay, words
from hermit.run.reading.outlay import Outlays, number
from hermit.run.reading.words import Excerpt, excerpt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermit.run.reading.load import Top
    from hermit.run.train_paths import StepPaths, TrainPaths

# What became of a step's change: the word a page marks it with, and what it is called.
OUTCOMES = {
    "kept": "kept",
    "repaired": "repaired",
    "taken_back": "taken back",
    "not_taken": "not taken",
    "nothing": "nothing",
    "unfinished": "not finished",
}
KIND_OF = {name: kind for kind, name in OUTCOMES.items() if kind != "unfinished"}
MOST_STEPS_BYTES = 64 << 20
MOST_NUMBER = 1_000_000
MOST_NOTES = 20
MOST_DRAWN = 1e100
MOST_ENTRIES = 100_000
MOST_NAME, MOST_WORDS = 120, 160


@dataclass(frozen=True)
class Said:
    """What came of a learner's call.

    Args:
        status: In one word; empty where no call was made.
        error: How it failed, in words.
        summary: What the learner says it did.
        rationale: Why.
    """

    status: str = ""
    error: Excerpt = field(default_factory=lambda: Excerpt(""))
    summary: Excerpt = field(default_factory=lambda: Excerpt(""))
    rationale: Excerpt = field(default_factory=lambda: Excerpt(""))

    @property
    def line(self) -> str:
        """How it failed, or what it says, on one line."""
        return words.line(self.error.head or self.summary.head, most=MOST_WORDS)


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step, the bootstrap before the first, or the learner's last call.

    Args:
        title: What it is called.
        key: Its name on a page.
        kind: Which of ``OUTCOMES`` it is.
        paths: Where its files lie.
        number: Its place in the run, from 0.
        epoch: Which pass over the split it belongs to; 0 for none.
        ends_epoch: Whether it is the last of its epoch.
        tasks: The ids of its tasks.
        mean_score: The mean score of its attempts, which is that of the version it began with.
        interval: How far that can be trusted, where its summary says so.
        adapter: The version it began with.
        commit: The version it ended with.
        changed: Whether they differ.
        checkpoint: The tag it got; empty without one.
        said: What came of the learner's call.
        spent: What it cost, by who spent it.
        line: Which line of ``steps.jsonl`` it is; 0 for none.
    """

    title: str
    key: str
    kind: str
    paths: StepPaths = field(repr=False)
    number: int
    epoch: int = 0
    ends_epoch: bool = False
    tasks: tuple[str, ...] = ()
    mean_score: float | None = None
    interval: tuple[float, float] | None = None
    adapter: str = ""
    commit: str = ""
    changed: bool = False
    checkpoint: str = ""
    said: Said = field(default_factory=Said)
    spent: Outlays = field(default_factory=Outlays)
    line: int = 0


def lines(top: Top, paths: TrainPaths, notes: list[str]) -> list[tuple[int, dict[str, Any]]]:
    """The lines that are steps, in the order of the steps, each with its number in the file."""
    content = top.read(paths.steps, most=MOST_STEPS_BYTES)
    if content is None:
        return []
    kept: dict[int, tuple[int, dict[str, Any]]] = {}
    wrong = []
    lines = content.data.split(b"\n")
    for number_of_line, line in enumerate(lines, 1):
        row = _row(line)
        if row is not None:
            kept[row["step"]] = (number_of_line, row)
        elif line.strip() and number_of_line < len(lines):  # a torn last line is what a copy of a run may have
            wrong.append(number_of_line)
    notes += [f"line {each} of {paths.steps.name} is no step, and is left out" for each in wrong[:MOST_NOTES]]
    if wrong[MOST_NOTES:]:
        notes.append(f"{len(wrong) - MOST_NOTES} more lines of {paths.steps.name} are none")
    if content.cut:
        notes.append(f"{paths.steps.name} is longer than {MOST_STEPS_BYTES} bytes; what follows is left out")
    return [kept[step] for step in sorted(kept)]


def _row(line: bytes) -> dict[str, Any] | None:
    """What a line says, where it is a step."""
    try:
        row = json.loads(line)
        whole = (
            _count(row["step"])
            and _count(row["epoch"])
            and row["outcome"] in KIND_OF
            and all(isinstance(row[name], str) for name in ("adapter", "commit"))
            and isinstance(row["learner"], dict)
            and (row.get("mean_score") is None or drawn(row["mean_score"]))
        )
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return row if whole else None


def drawn(value: Any) -> TypeGuard[float]:
    """Whether a value of JSON is a number whose place on an axis can be told."""
    return load.finite(value) and abs(value) < MOST_DRAWN


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MOST_NUMBER


def finished(top: Top, paths: TrainPaths, row: dict[str, Any], *, line: int) -> Step:
    """The step that a line says, with what its own files add.

    Args:
        top: The run's directory, open.
        paths: Where its files lie.
        row: What the line says.
        line: Its number.
    """
    place, learner = paths.step(row["step"]), row["learner"]
    took = number(learner.get("wall_s"))
    own, tools = outlay.of_call(learner.get("usage"), learner.get("tools"), seconds=took)
    counted = row.get("statuses")
    statuses = {name: int(number(count)) for name, count in counted.items()} if isinstance(counted, dict) else {}
    tried = outlay.of_attempts(row.get("rollouts"), statuses, seconds=number(row.get("wall_s")) - took)
    score = None if row.get("mean_score") is None else float(row["mean_score"])
    summary = top.document(place.summary)
    tasks = row.get("tasks")
    return Step(
        title=f"step {row['step']}" if row["step"] else "bootstrap",
        key=f"s{row['step']}",
        kind=KIND_OF[row["outcome"]],
        paths=place,
        number=row["step"],
        epoch=row["epoch"],
        ends_epoch=row.get("ends_epoch") is True,
        tasks=tuple(map(str, tasks)) if isinstance(tasks, list) else (),
        mean_score=score,
        interval=interval(summary) if _same(summary.get("mean_score"), score) else None,
        adapter=short(row["adapter"]),
        commit=short(row["commit"]),
        changed=row["adapter"] != row["commit"],
        checkpoint=short(row.get("checkpoint")),
        said=_said(learner, learner.get("status"), learner.get("error")),
        spent=Outlays(tried, own, tools),
        line=line,
    )


def _same(told: Any, score: float | None) -> bool:
    """Whether a summary is of this score: one of an earlier or a later state is not believed."""
    return drawn(told) and score is not None and math.isclose(told, score, abs_tol=1e-9)


def interval(summary: Mapping[str, Any]) -> tuple[float, float] | None:
    """The interval of a summary, where it can be drawn."""
    around = load.interval(summary)
    return around if around is not None and all(map(drawn, around)) else None


def unfinished(top: Top, paths: TrainPaths, *, after: int) -> list[Step]:
    """Steps that have begun and have no line: the one that was, or is being, made."""
    listed = untrusted.some_entries(top.descriptor, most=MOST_ENTRIES)
    names = {name for name, kind in listed if kind is untrusted.Kind.DIRECTORY and load.A_STEP.fullmatch(name)}
    ahead = sorted(found for found in (int(name.partition("_")[2]) for name in names) if found > after)
    steps = []
    for found in ahead[:MOST_NOTES]:
        place = paths.step(found)
        said, spent = _answer(top, place)
        title = f"step {found}" if found else "bootstrap"
        steps.append(
            Step(title=title, key=f"s{found}", kind="unfinished", paths=place, number=found, said=said, spent=spent)
        )
    return steps


def last_call(top: Top, paths: TrainPaths, *, place: int) -> Step | None:
    """The learner's last call, where it was made."""
    said, spent = _answer(top, paths.final)
    if not said.status:
        return None
    outcome = top.document(paths.final.check).get("outcome")
    kind = KIND_OF.get(outcome, "not_taken") if isinstance(outcome, str) else "not_taken"
    changed = top.read(paths.final.change, most=1) is not None
    return Step(
        title="finalize",
        key="final",
        kind=kind,
        paths=paths.final,
        number=place,
        changed=changed,
        said=said,
        spent=spent,
    )


def _answer(top: Top, place: StepPaths) -> tuple[Said, Outlays]:
    """What a call left that has no line; nothing where it left none."""
    kept = top.document(place.call / "answer.json")
    if not kept:
        return Said(), Outlays()
    result = kept["result"] if isinstance(kept.get("result"), dict) else {}
    failure = kept["failure"] if isinstance(kept.get("failure"), dict) else {}
    error = f"{failure.get('cause')}: {failure.get('error')}" if failure else ""
    own, tools = outlay.of_call(result.get("usage"), kept.get("meters"), seconds=number(kept.get("wall_s")))
    return _said(result, "failed" if failure else result.get("status", "done"), error), Outlays(
        learner=own, tools=tools
    )


def _said(result: Mapping[str, Any], status: Any, error: Any) -> Said:
    summary, rationale, failed = (
        excerpt(value if isinstance(value, str) else "")
        for value in (result.get("summary"), result.get("rationale"), error)
    )
    return Said(short(status), failed, summary, rationale)


def short(value: Any) -> str:
    """A text of which one line says enough; empty for what is none."""
    return words.line(value, most=MOST_NAME) if isinstance(value, str) else ""


def budget(row: Mapping[str, Any]) -> dict[str, float]:
    """The bounds that the last step was made under."""
    said = row.get("budget")
    known = said if isinstance(said, dict) else {}
    return {name: float(known[name]) for name in ("usd", "tokens", "hours") if drawn(known.get(name))}
