"""`hermit diff`: two runs over the same tasks, compared task by task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermit.cli import console
from hermit.cli.eval import JsonOption
from hermit.cli.report import RunArgument
from hermit.errors import ExitCode
from hermit.run.reading import compare, load, words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermit.run.reading.compare import Comparison, Pair

HELP = """Compare two runs over the same tasks, task by task.

It prints the tasks that differ, the difference of the means over the tasks of both with its 95% interval and the sign test,
and what differs between what ran. It ends with 0 whichever run is better, and with 2 where the two cannot be compared.

\b
Examples:
  hermit diff runs/before runs/after
  hermit diff runs/mine/eval/none runs/mine/eval/adapter-0123456789ab --json
"""


def command(before: RunArgument, after: RunArgument, *, as_json: JsonOption = False) -> int:
    """Runs the command and returns its exit code."""
    with load.opened(before) as first, load.opened(after) as second:
        comparison = compare.compared(first, second)
    if as_json:
        console.print_json(comparison.as_json())
        return ExitCode.OK
    if comparison.differing:
        console.print_rows(("task", "", "before", "after", "came to"), map(_cells, comparison.differing))
    if comparison.changes:
        cells = [(change.what, change.before, change.after) for change in comparison.changes]
        console.print_rows(("what ran", "before", "after"), cells)
    console.print_facts(facts(comparison))
    return ExitCode.OK


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
