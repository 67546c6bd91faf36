"""`hermit diff`: two runs over the same tasks, compared task by task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermit.cli import console
from hermit.cli.eval import JsonOption
from hermit.cli.report import RunArgument
from hermit.errors import ConfigError, ExitCode
from hermit.run.reading import compare, load, trained, training_compare, words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from hermit.run.reading.compare import Change, Comparison, Pair
    from hermit.run.reading.training_compare import StepPair, TrainingComparison

HELP = """Compare two runs over the same tasks, task by task.

It prints the tasks that differ, the difference of the means over the tasks of both with its 95% interval and the sign test,
and what differs between what ran. Of two training runs it prints their steps side by side, and what their versions came to on the
test split. It ends with 0 whichever run is better, and with 2 where the two cannot be compared.

\b
Examples:
  hermit diff runs/before runs/after
  hermit diff runs/trained runs/longer
  hermit diff runs/mine/eval/none runs/mine/eval/adapter-0123456789ab --json
"""


def command(before: RunArgument, after: RunArgument, *, as_json: JsonOption = False) -> int:
    """Runs the command and returns its exit code."""
    kinds = {trained.found(before), trained.found(after)}
    if len(kinds) > 1:
        what = "one of these is a training run, and the other is none"
        cure = "name two training runs, or two evaluations: eval/<selector> of a run, or step_NNNN of a training run"
        raise ConfigError(what, where=f"{before} and {after}", cure=cure)
    if kinds == {True}:
        return _training(before, after, as_json=as_json)
    with load.opened(before) as first, load.opened(after) as second:
        comparison = compare.compared(first, second)
    if as_json:
        console.print_json(comparison.as_json())
        return ExitCode.OK
    if comparison.differing:
        console.print_rows(("task", "", "before", "after", "came to"), map(_cells, comparison.differing))
    _print_changes(comparison.changes)
    console.print_facts(facts(comparison))
    return ExitCode.OK


def _print_changes(changes: Sequence[Change]) -> None:
    if changes:
        cells = [(change.what, change.before, change.after) for change in changes]
        console.print_rows(("what ran", "before", "after"), cells)


def _training(before: Path, after: Path, *, as_json: bool) -> int:
    with trained.opened(before) as first, trained.opened(after) as second:
        comparison = training_compare.compared_training(first, second)
    if as_json:
        console.print_json(comparison.as_json())
        return ExitCode.OK
    if comparison.steps:
        console.print_rows(("mean score", "before", "after", "difference", ""), map(_step_cells, comparison.steps))
    if comparison.evaluations:
        head = ("test split", "before", "after", "difference", "95% interval", "won", "lost", "same", "sign test")
        console.print_rows(head, (_tested_cells(*each) for each in comparison.evaluations))
    _print_changes(comparison.changes)
    console.print_facts(training_facts(comparison))
    return ExitCode.OK


def _step_cells(pair: StepPair) -> tuple[str, ...]:
    alike = "" if pair.alike or pair.difference is None else "other tasks"
    return (pair.title, _number(pair.before), _number(pair.after), _number(pair.difference, sign="+"), alike)


def _tested_cells(selector: str, comparison: Comparison) -> tuple[str, ...]:
    said, means = comparison.paired, comparison.means or (None, None)
    name, scores = words.line(selector, most=80), tuple(map(_number, means))
    if said is None:
        return (name, *scores, *("",) * 6)
    between = "" if said.low is None or said.high is None else f"{said.low:+.4f} to {said.high:+.4f}"
    chance = "" if said.sign_p is None else f"p = {said.sign_p:.3g}"
    counts = (str(count) for count in (said.won, said.lost, said.same))
    return (name, *scores, f"{said.mean:+.4f}", between, *counts, chance)


def _number(value: float | None, *, sign: str = "") -> str:
    return "" if value is None else f"{value:{sign}.4f}"


def training_facts(comparison: TrainingComparison) -> Iterator[tuple[str, str]]:
    """What stands below the tables of two training runs."""
    for when, run in zip(("before", "after"), comparison.runs, strict=True):
        spent = run.spent.all
        unknown = f", unknown for {spent.unknown} calls" if spent.unknown else ""
        yield (
            when,
            f"{run.name}: {len(run.scored)} steps, ${spent.usd:.4f}{unknown}, {spent.tokens:,} tokens, {spent.seconds:.1f} s",
        )
    for selector, _ in comparison.evaluations[:1]:
        both = " ".join(str(run.paths.root / "eval" / selector) for run in comparison.runs)
        yield "task by task", f"hermit diff {both}"
    for warning in comparison.warnings:
        yield "note", warning


def _cells(pair: Pair) -> tuple[str, ...]:
    before, after = pair.came_to
    scores = ("none" if score is None else f"{score:.4g}" for score in (pair.before, pair.after))
    came_to = before if before == after else f"{before} -> {after}"
    return (words.line(pair.task, most=80), pair.word, *scores, came_to)


def facts(comparison: Comparison) -> Iterator[tuple[str, str]]:
    """What stands below the tables."""
    said = comparison.paired
    yield "before", comparison.names[0]
    yield "after", comparison.names[1]
    yield (
        "tasks",
        f"{len(comparison.pairs)} in both"
        + "".join(
            f", {len(only)} only {when}"
            for only, when in zip(comparison.only, ("before", "after"), strict=True)
            if only
        ),
    )
    if said is not None and comparison.means is not None:
        between = "no interval: the differences do not vary"
        if said.low is not None and said.high is not None:
            between = f"95% interval {said.low:+.4f} to {said.high:+.4f}"
        yield "mean score", f"{comparison.means[0]:.4f} -> {comparison.means[1]:.4f}"
        yield "difference", f"{said.mean:+.4f} ({between})"
        chance = "" if said.sign_p is None else f" (sign test: p = {said.sign_p:.3g})"
        yield "tasks now", f"{said.won} won, {said.lost} lost, {said.same} the same{chance}"
    yield "statuses", f"{sum(pair.changed for pair in comparison.pairs)} tasks came to another status"
    for warning in comparison.warnings:
        yield "note", warning
