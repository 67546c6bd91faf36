"""All that a run keeps of one step beside its attempts: the learner's words, its tools, what it changed and why not."""

from __future__ import annotations

import contextlib
import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hermit import untrusted
from hermit.errors import ConfigError
from hermit.run.paths import RunPaths
from hermit.run.reading import change, evidence, isolation, words
from hermit.run.reading.evidence import MOST_READ, Fact, Section
from hermit.run.reading.isolation import Isolation
from hermit.run.reading.outlay import number
from hermit.run.reading.words import excerpt
from hermit.run.report import Tally

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hermit.run.reading.change import Change
    from hermit.run.reading.isolation import Start
    from hermit.run.reading.load import Top
    from hermit.run.reading.steps import Step
    from hermit.run.reading.trained import Training

# Of what checking an adapter found, and of calls of tools that failed: so many are shown.
MOST_TOLD = 50
MOST_REASON = 300
MOST_DIFF = 2 << 20
# Of all starts of a run: names that are looked at.
MOST_RECORDS = 200_000
MOST_STARTS = 30
A_ROLLOUT = re.compile(r"[1-9][0-9]{0,8}")
OF_A_CALL = re.compile(r"[0-9]{8}T[0-9.]+-(?:evolver|tool)-(step_[0-9]{4,9}|final|learner)-0(?:-[0-9]+)?\.json")


@dataclass(frozen=True)
class Finding:
    """Something that a check found, or that was repaired.

    Args:
        what: Which check found it, or what was done.
        path: Where, in the adapter.
        reason: Why.
    """

    what: str
    path: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What checking the adapter found.

    Args:
        found: What was wrong with what the learner left.
        repairs: What was repaired.
        still: What was wrong after the repair.
        not_copied: How many entries were not even copied, by reason.
        more: How much more there is than is shown.
        path: Where all of it is.
    """

    found: tuple[Finding, ...]
    repairs: tuple[Finding, ...]
    still: tuple[Finding, ...]
    not_copied: tuple[tuple[str, int], ...]
    more: int
    path: str


@dataclass(frozen=True)
class Use:
    """What the calls of one tool came to, as they were logged.

    Args:
        tool: Its name.
        came_to: How many calls came to what.
        seconds: Seconds they took.
        usd: What they cost, as far as that is known.
        unknown: How many do not say.
    """

    tool: str
    came_to: str
    seconds: float
    usd: float
    unknown: int


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """One step in full, but for its attempts.

    Args:
        facts: What its line says in a word or a number.
        sections: What the learner said.
        printed: What it printed.
        verdict: What checking the adapter found; ``None`` where nothing was checked.
        change: What it changed; ``None`` where nothing was.
        uses: The tools that were called.
        failed: Calls of them that failed.
        rollouts: Where the attempts lie that the learner asked for.
        files: What the learner left for people.
        starts: The record of each start of its sandbox and of checks, with its name.
        starts_left_out: How many more there are.
    """

    facts: tuple[Fact, ...]
    sections: tuple[Section, ...]
    printed: tuple[Section, ...]
    verdict: Verdict | None
    change: Change | None
    uses: tuple[Use, ...]
    failed: tuple[Finding, ...]
    rollouts: tuple[str, ...]
    files: tuple[Section, ...]
    starts: tuple[tuple[str, Start | None], ...]
    starts_left_out: int


def of_step(training: Training, step: Step, *, records: tuple[str, ...] = ()) -> Lesson:
    """All that is kept of one step, but for its attempts.

    Args:
        training: The run.
        step: The step.
        records: The names of the records of its learner's starts.
    """
    top = training.top
    uses, failed = _tools(top, step)
    return Lesson(
        facts=tuple(_facts(step)),
        sections=tuple(section for section in _said(training, step) if section.text),
        printed=tuple(section for section in _printed(top, step) if section.text),
        verdict=_verdict(top, step),
        change=_change(top, step),
        uses=uses,
        failed=failed,
        rollouts=tuple(_rollouts(top, step)),
        files=tuple(evidence.files_below(top, step.paths.left("output"))),
        starts=tuple((words.spelled(name), isolation.start(top, name)) for name in records[:MOST_STARTS]),
        starts_left_out=len(records[MOST_STARTS:]),
    )


def records_of_calls(top: Top) -> dict[str, tuple[str, ...]]:
    """The names of the records of the learner's starts, by the directory of the step they belong to."""
    directory = RunPaths(top.path, "-").records
    found: dict[str, list[str]] = {}
    try:
        with untrusted.closing(untrusted.open_directory(directory.name, at=top.descriptor)) as listed:
            names = sorted(name for name, _ in untrusted.some_entries(listed, most=MOST_RECORDS))
    except OSError:
        return {}
    for name in names:
        match = OF_A_CALL.fullmatch(name)
        if match:
            found.setdefault(match[1], []).append(name)
    return {step: tuple(each) for step, each in found.items()}


def held(training: Training, records: Mapping[str, tuple[str, ...]]) -> tuple[Isolation, Tally]:
    """What the records of all attempts and of the learner's starts say, and which agents and judges ran on the host."""
    found, tally = Isolation(), Tally()
    for step in training.steps:
        with contextlib.suppress(ConfigError), training.attempts(step) as run:
            if run is not None:
                found.add_run(run)
                tally.on_host.update(run.tally.on_host)
                tally.judge_on_host.update(run.tally.judge_on_host)
    for names in records.values():
        for name in names:
            found.add(isolation.start(training.top, name))
    return found, tally


def _facts(step: Step) -> Iterator[Fact]:
    spent = step.spent
    version = f"{step.adapter[:12]} -> {step.commit[:12]}" if step.changed else step.commit[:12]
    facts = [
        ("version", version),
        ("checkpoint", step.checkpoint),
        ("the learner's call", step.said.status),
        ("time", f"{spent.all.seconds:.1f} s, the learner's {spent.learner.seconds + spent.served.seconds:.1f} s"),
        ("cost", f"${spent.all.usd:.4f}" if spent.all.usd else ""),
        ("tokens", f"{spent.all.tokens:,}" if spent.all.tokens else ""),
        ("calls of unknown cost", str(spent.all.unknown) if spent.all.unknown else ""),
    ]
    for name, value in facts:
        if value:
            yield Fact(name, value)


def _said(training: Training, step: Step) -> Iterator[Section]:
    top, said = training.top, step.said
    where = f"{top.below(training.paths.steps)}, line {step.line}" if step.line else top.below(step.paths.call)
    yield Section("Why the learner's call failed", said.error, where)
    yield Section("What the learner says it did", said.summary, where)
    yield Section("And why", said.rationale, where)


def _printed(top: Top, step: Step) -> Iterator[Section]:
    for name, title in (
        ("learner.out", "What the learner printed"),
        ("learner.err", "What the learner printed as errors"),
    ):
        path = step.paths.evaluation / name
        content = top.read(path, most=MOST_READ)
        if content is not None:
            yield Section(title, excerpt(content.text, more=content.cut), top.below(path))


def _change(top: Top, step: Step) -> Change | None:
    content = top.read(step.paths.change, most=MOST_DIFF)
    if content is None or not content.data:
        return None
    return change.read(content.text, cut=content.cut, path=top.below(step.paths.change))


# What checking found


def _verdict(top: Top, step: Step) -> Verdict | None:
    said = top.document(step.paths.check)
    if not said:
        return None
    after = said.get("after_repair")
    found, still = (tuple(_problems(each)) for each in (said, after if isinstance(after, dict) else {}))
    repairs = tuple(
        _finding(each, what=_text(each.get("done"))) for each in _items(said.get("repairs")) if isinstance(each, dict)
    )
    lists = (found, repairs, still)
    return Verdict(
        found=found[:MOST_TOLD],
        repairs=repairs[:MOST_TOLD],
        still=still[:MOST_TOLD],
        not_copied=tuple(_counts(said.get("not_copied"))),
        more=sum(len(each[MOST_TOLD:]) for each in lists)
        + sum(count for _, count in _counts(said.get("more_repairs"))),
        path=top.below(step.paths.check),
    )


def _problems(said: Mapping[str, Any]) -> Iterator[Finding]:
    """What the checks that failed say, one by one."""
    for check in _items(said.get("checks")):
        if not isinstance(check, dict) or check.get("state") != "failed":
            continue
        what = f"{_text(check.get('number'))} {_text(check.get('name'))}".strip()
        for problem in _items(check.get("problems")):
            if isinstance(problem, dict):
                yield _finding(problem, what=what)


def _finding(said: Mapping[str, Any], *, what: str) -> Finding:
    return Finding(what, _text(said.get("path")), _text(said.get("reason")))


def _counts(value: Any) -> Iterator[tuple[str, int]]:
    if isinstance(value, dict):
        for name, count in list(value.items())[:MOST_TOLD]:
            if isinstance(count, int):
                yield _text(name), count


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    return "" if value is None else words.line(str(value), most=MOST_REASON)


# Tools


def _tools(top: Top, step: Step) -> tuple[tuple[Use, ...], tuple[Finding, ...]]:
    """The tools that were called by their log; a torn line of it is left out."""
    content = top.read(step.paths.tools, most=MOST_READ)
    rows = [] if content is None else [row for line in content.data.split(b"\n") if (row := _call(line)) is not None]
    by_tool: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_tool.setdefault(_text(row.get("tool")), []).append(row)
    uses = tuple(_use(tool, calls) for tool, calls in by_tool.items())
    failed = [
        Finding(_text(row.get("tool")), _text(row.get("status")), _text(row.get("error")))
        for row in rows
        if row.get("status") != "ok"
    ]
    return uses, tuple(failed[:MOST_TOLD])


def _rollouts(top: Top, step: Step) -> Iterator[str]:
    """The directories of the attempts that the learner asked for during its call."""
    directory = top.below(step.paths.rollout(1).evaluation.parent)
    try:
        with untrusted.closing(untrusted.open_directory_beneath(directory, at=top.descriptor)) as listed:
            names = [name for name, _ in untrusted.some_entries(listed, most=MOST_TOLD) if A_ROLLOUT.fullmatch(name)]
    except OSError:
        return
    yield from (f"{directory}/{name}" for name in sorted(names, key=int))


def _use(tool: str, calls: list[dict[str, Any]]) -> Use:
    counted = Counter(_text(call.get("status")) for call in calls)
    return Use(
        tool,
        ", ".join(f"{count} {status}" for status, count in counted.items()),
        seconds=sum(number(call.get("seconds")) for call in calls),
        usd=sum(number(call.get("cost_usd")) for call in calls),
        unknown=sum(call.get("cost_usd") is None for call in calls),
    )


def _call(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None
