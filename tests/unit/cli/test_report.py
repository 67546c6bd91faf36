"""`hermit report`: a table on standard output, a page beside the results, and one refusal where there is no run."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from hermit.cli import console
from hermit.run.reading.table import Line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def made(hermit: Callable[..., Any], config: Path) -> Iterator[Path]:
    """The directory of a run with two attempts, of which the second scored 0."""
    assert hermit("eval", "--config", str(config)).code == 0
    return config.parent / "runs" / "one"


def test_the_table_has_a_line_for_each_task_and_says_where_the_page_is(hermit: Callable[..., Any], made: Path) -> None:
    said = hermit("report", str(made))
    assert (said.code, said.err) == (0, "")
    lines = said.out.splitlines()
    assert lines[0].split() == ["came", "to", "task", "score", "time", "what", "was", "said"]
    assert lines[1].split()[:3] == ["solved", "a", "1"]
    assert lines[2].split()[:4] == ["not", "solved", "b", "0"]
    assert "mean score   0.5000" in said.out
    assert "unconfined   2 attempts ran without a sandbox" in said.out
    page = made / "eval" / "none" / "report.html"
    assert f"page         {page}" in said.out
    assert page.read_bytes().startswith(b"<!doctype html>")


def test_json_is_one_document_with_every_attempt(hermit: Callable[..., Any], made: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    document = hermit("report", str(made / "eval" / "none"), "--json", "--page", str(page)).document
    assert [each["score"] for each in document["attempts"]] == [1.0, 0.0]
    assert document["summary"]["mean_score"] == 0.5
    assert document["page"] == str(page)
    assert page.exists()
    assert not (made / "eval" / "none" / "report.html").exists()


def test_a_page_is_no_result_and_stops_no_run_from_going_on(
    hermit: Callable[..., Any], made: Path, config: Path
) -> None:
    hermit("report", str(made))
    before = (made / "eval" / "none" / "results.jsonl").read_bytes()
    assert hermit("eval", "--config", str(config)).code == 0
    assert (made / "eval" / "none" / "results.jsonl").read_bytes() == before


@pytest.mark.parametrize("words", [("report",), ("report", "absent"), ("report", "."), ("diff", "absent", "absent")])
def test_what_is_no_run_is_exit_2_with_what_to_name(
    hermit: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    said = hermit(*words)
    assert (said.code, said.out) == (2, "")
    assert "  -> " in said.err


def test_a_file_that_is_no_page_is_not_replaced(hermit: Callable[..., Any], made: Path, config: Path) -> None:
    before = config.read_bytes()
    said = hermit("report", str(made), "--page", str(config))
    assert (said.code, said.out) == (2, "")
    assert "no page of a run" in said.err
    assert config.read_bytes() == before


def test_a_link_in_the_place_of_the_page_is_replaced_and_not_followed(
    hermit: Callable[..., Any], made: Path, tmp_path: Path
) -> None:
    hermit("report", str(made))
    page, elsewhere = made / "eval" / "none" / "report.html", tmp_path / "elsewhere.html"
    os.rename(page, elsewhere)
    page.symlink_to(elsewhere)
    before = elsewhere.read_bytes(), elsewhere.stat().st_mtime_ns, elsewhere.stat().st_nlink
    assert hermit("report", str(made)).code == 0
    assert not page.is_symlink()
    assert (elsewhere.read_bytes(), elsewhere.stat().st_mtime_ns, elsewhere.stat().st_nlink) == before


def hostile(made: Path) -> None:
    """Rewrites the second row with words that would move a cursor, break a line, or command GitHub's log."""
    results = made / "eval" / "none" / "results.jsonl"
    first, second = map(json.loads, results.read_text().splitlines())
    second["judge"]["feedback"] = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202eevil ##[add-mask]x\nsecond"
    results.write_text(f"{json.dumps(first)}\n{json.dumps(second)}\n")


def test_no_words_of_others_move_the_terminal_or_command_a_log(hermit: Callable[..., Any], made: Path) -> None:
    hostile(made)
    out = hermit("report", str(made)).out
    assert all(letter.isprintable() or letter == "\n" for letter in out)
    assert r"\x1b]0;owned\x07" in out
    assert "##[" not in out


def test_on_a_terminal_the_table_has_colours_and_no_words_of_others_among_its_codes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "screen"
    with path.open("w", encoding="utf-8") as file:
        screen = Console(file=file, force_terminal=True, width=80, highlight=False, soft_wrap=True)
        monkeypatch.setattr(console, "out", lambda: screen)
        long = "[bold]x[/] \x1b[2J " + "word " * 40
        console.print_lines([Line(f"task/{number:03}", "solved", "solved", 1.0, 0.5, long) for number in range(3)])
    text = path.read_text()
    assert text.count("\x1b[32msolved") == 3
    assert r"[bold]x[/] \x1b[2J word" in text
    assert "\x1b[2J" not in text
    assert text.count("\n") == 4  # a line for each, however long the words are
    assert all(f"task/{number:03}" in text for number in range(3))
