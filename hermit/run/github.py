"""What GitHub Actions shows of an evaluation beside its log: annotations, and a page of the job.

Both carry words of agents and judges into a program that obeys lines and renders Markdown. In an annotation everything
that could end its line is escaped; in the page every mark is spelled as a number, so nothing is a link or an image.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any

from hermit.run.junit import Verdict, title, verdict, why, words
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
    """A line for each of the first attempts that did not pass, errors before failures.

    Args:
        results: The file ``results.jsonl``.
    """
    for level, wanted in (("error", Verdict.ERROR), ("warning", Verdict.FAILURE)):
        found = (row for row in kept_rows(results) if verdict(row) is wanted)
        for row in islice(found, MOST_ANNOTATIONS):
            yield annotation(level, title=title(row), said=f"{why(row)}: {words(row)[:MOST_SAID]}")


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
    mean = "none" if summary["mean_score"] is None else f"{summary['mean_score']:.4f}"
    facts = (
        summary["tasks"],
        summary["attempts"],
        summary["solved_once"],
        summary["errors"],
        f"{summary['wall_s']:.1f} s",
    )
    lines = [
        f"### hermit eval: mean score {mean}",
        "",
        "| adapter | tasks | attempts | solved once | errors | time |",
        "|---|---|---|---|---|---|",
        f"| {code(summary['adapter'])} | {' | '.join(map(str, facts))} |",
    ]
    if summary["unconfined"]:
        lines += ["", f"**{summary['unconfined']} attempts ran without a sandbox.**"]
    short = (row for row in kept_rows(results) if verdict(row) is not Verdict.PASSED)
    shown = [
        f"| {code(title(row))} | {why(row)} | {code(words(row)[:MOST_SAID])} |" for row in islice(short, MOST_LINES)
    ]
    if shown:
        lines += ["", "| attempt | came to | words |", "|---|---|---|", *shown]
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
