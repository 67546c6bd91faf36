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


@pytest.fixture
def trained(made: Path) -> Path:
    """The directory of a training run with one step of two attempts, one evaluation, and hostile words of its learner."""
    directory = made.with_name("trained")
    os.rename(made, directory)
    said = "done \x1b[2J\u202e ##[add-mask]x"
    learner = {"status": "done", "error": "", "summary": said, "rationale": "", "usage": {}, "tools": {}, "wall_s": 1}
    line = {"step": 1, "epoch": 1, "adapter": "a", "commit": "b", "outcome": "kept", "learner": learner, "wall_s": 2}
    line |= {"mean_score": 0.5, "budget": {"usd": 4.0}, "rollouts": {"cost_usd": 1, "tokens": 5, "unknown_cost": 1}}
    (directory / "steps.jsonl").write_text(f"{json.dumps(line)}\ntorn\n\n")
    step = directory / "step_0001"
    step.mkdir()
    (step / "results.jsonl").write_bytes((directory / "eval" / "none" / "results.jsonl").read_bytes())
    return directory


def test_a_training_run_has_a_line_for_each_step_and_a_page_of_its_own(
    hermit: Callable[..., Any], trained: Path
) -> None:
    said = hermit("report", str(trained))
    assert (said.code, said.err) == (0, "")
    lines = said.out.splitlines()
    assert lines[0].split()[:4] == ["change", "was", "step", "score"]
    assert lines[1].split()[:6] == ["kept", "step", "1,", "epoch", "1", "0.5"]
    for fact in (
        "steps        1; it has not ended",
        "mean score   0.5000 in the first step, 0.5000 in the last",
        "test split   none: 0.5000",
        "cost         $1.0000, unknown for 1 calls; 5 tokens, 2.0 s",
        "budget       1 of 4 usd (25%)",
        "note         line 2 of steps.jsonl is no step, and is left out",
        f"page         {trained / 'report.html'}",
    ):
        assert fact in said.out
    assert (trained / "report.html").read_bytes().startswith(b"<!doctype html>")
    assert all(letter.isprintable() or letter == "\n" for letter in said.out)
    assert r"done \x1b[2J\u202e" in said.out
    assert "##[" not in said.out


def test_a_training_run_as_json_is_one_document(hermit: Callable[..., Any], trained: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    document = hermit("report", str(trained), "--json", "--page", str(page)).document
    assert (document["training"], document["steps"][0]["mean_score"], document["page"]) == (True, 0.5, str(page))
    assert page.exists()


def test_one_step_and_one_evaluation_of_a_training_run_are_still_their_own(
    hermit: Callable[..., Any], trained: Path
) -> None:
    for inner in ("step_0001", "eval/none"):
        document = hermit("report", str(trained / inner), "--json").document
        assert [each["id"] for each in document["attempts"]] == ["a", "b"]
        assert document["page"] == str(trained / inner / "report.html")
