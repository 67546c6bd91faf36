"""What GitHub Actions shows of an evaluation beside its log: annotations, and a page of the job.

Both carry words of agents and judges into a program that obeys lines and renders Markdown. In an annotation everything
that could end its line is escaped; in the page every mark is spelled as a number, so nothing is a link or an image.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any

from hermit.domain.attempt import Side
from hermit.run.junit import Verdict, title, verdict, whose, why, words
from hermit.run.report import kept_rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# GitHub shows no more than ten of a kind for each step.
MOST_ANNOTATIONS = 10
MOST_LINES = 50
# Characters of what was said: of an annotation, and of a line of the page.
MOST_SAID = 800
MOST_SHOWN = 200


def remarks(results: Path) -> Iterator[str]:
    """A line for each of the first attempts that did not pass: what we broke, then the judge's errors, then failures.

    Args:
        results: The file ``results.jsonl``.
    """
    errors = [*islice(_not_passed(results, Side.INFRASTRUCTURE), MOST_ANNOTATIONS)]
    errors += islice(_not_passed(results, Side.JUDGE), MOST_ANNOTATIONS - len(errors))
    for row in errors:
        yield annotation("error", title=title(row), said=f"{whose(row)}: {why(row)}: {words(row)[:MOST_SAID]}")
    for row in islice(_not_passed(results, Side.AGENT), MOST_ANNOTATIONS):
        yield annotation("warning", title=title(row), said=f"{why(row)}: {words(row)[:MOST_SAID]}")


def _not_passed(results: Path, side: Side) -> Iterator[dict[str, Any]]:
    return (row for row in kept_rows(results) if verdict(row) is not Verdict.PASSED and whose(row) == side.value)


def annotation(level: str, *, title: str, said: str) -> str:
    """One workflow command on one line.

    Args:
        level: ``error``, ``warning`` or ``notice``.
        title: What it is about.
        said: What is said of it.
    """
    return f"::{level} title={_escaped(title, more=':,')}::{_escaped(said)}"


def _escaped(said: str, *, more: str = "") -> str:
    marks = re.compile(f"[%\\x00-\\x1f\\x7f-\\x9f\u2028\u2029\ud800-\udfff{more}]")
    return marks.sub(lambda found: "".join(f"%{byte:02X}" for byte in _bytes(found[0])), said)


def _bytes(character: str) -> bytes:
    return character.encode("utf-8", "replace")  # half a surrogate becomes a question mark


def page(results: Path, summary: dict[str, Any]) -> str:
    """The summary as Markdown, with the first attempts that did not pass.

    Args:
        results: The file ``results.jsonl``.
        summary: The document of ``summary.json``.
    """
    mean, around = summary["mean_score"], summary["mean_interval"]
    shown = "none" if mean is None else f"{mean:.4f}"
    counts = [summary[name] for name in ("tasks", "attempts", "solved_once")]
    facts = (*counts, *summary["failed_by"].values(), f"{summary['wall_s']:.1f} s")
    lines = [
        f"### hermit eval: mean score {shown}",
        "",
        "| adapter | tasks | attempts | solved once | agent errors | judge errors | infrastructure errors | time |",
        "|---|---|---|---|---|---|---|---|",
        f"| {code(summary['adapter'])} | {' | '.join(map(str, facts))} |",
    ]
    if around:
        lines += ["", f"95 % interval of the mean: {around['low']:.4f} to {around['high']:.4f}"]
    if not summary["confinement"]["every"]:
        scored, proven = (summary["confinement"][name] for name in ("scored", "proven"))
        lines += ["", f"{proven} of {scored} scored attempts are shown to have been confined."]
    if summary["unconfined"]:
        lines += ["", f"**{summary['unconfined']} attempts ran without a sandbox.**"]
    short = (row for row in kept_rows(results) if verdict(row) is not Verdict.PASSED)
    table = [
        f"| {code(title(row))} | {whose(row)} | {why(row)} | {code(words(row)[:MOST_SAID])} |"
        for row in islice(short, MOST_LINES)
    ]
    if table:
        lines += ["", "| attempt | whose | came to | words |", "|---|---|---|---|", *table]
    more = sum(1 for _ in short)
    lines += ["", f"and {more} more"] if more else []
    return "\n".join((*lines, ""))


def code(said: str) -> str:
    """Words as they are: no mark of them is Markdown or HTML."""
    kept = said if len(said) <= MOST_SHOWN else f"{said[:MOST_SHOWN]} ..."
    spelled = "".join(letter if letter.isalnum() or letter == " " else _number(letter) for letter in kept)
    return f"<code>{spelled}</code>" if spelled.strip() else ""


def _number(letter: str) -> str:
    return f"&#{ord(letter)};" if letter.isprintable() else " "
