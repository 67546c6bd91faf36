"""Words of an agent in GitHub's log and page are words: they give no command, and show no link and no image."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from hermit.domain.attempt import Phase, Status
from hermit.domain.trial import JudgeResult
from hermit.run import github
from hermit.run.report import Row, Tally
from hermit.run.results import Results

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def made(tmp_path: Path) -> Any:
    """Writes rows, and returns their file and their summary."""

    def make(*rows: Row) -> tuple[Path, dict[str, Any]]:
        file, tally = tmp_path / "results.jsonl", Tally()
        with Results(file) as results:
            for row in rows:
                results.add(row.as_json())
                tally.add(row.as_json())
        return file, tally.summary(adapter="none", commit=None, tasks=len(rows), repeats=1, wall_s=1.5)

    return make


def failed(task_id: str, words: str, status: Status = Status.AGENT_ERROR) -> Row:
    ways = {Status.SANDBOX_ERROR: (Phase.START, "check"), Status.JUDGE_ERROR: (Phase.JUDGE, "exception")}
    phase, cause = ways.get(status, (Phase.AGENT, "exception"))
    return Row(id=task_id, repeat=0, status=status, error=words, phase=phase, cause=cause)


def scored(task_id: str, score: float, feedback: str = "") -> Row:
    return Row(id=task_id, repeat=0, status=Status.OK, judge=JudgeResult(score, feedback))


def test_errors_come_before_failures_and_ten_of_a_kind(made: Any) -> None:
    rows = [failed(f"a{number}", "why") for number in range(12)]
    broken = failed("d", "fell", Status.SANDBOX_ERROR)
    file, _ = made(*rows, scored("b", 0.5, "close"), failed("e", "why", Status.JUDGE_ERROR), scored("c", 1.0), broken)
    lines = list(github.remarks(file))
    assert lines[0] == "::error title=d::infrastructure: sandbox_error (start, check): fell"
    assert lines[1] == "::error title=e::judge: judge_error (judge, exception): why"
    assert lines[2] == "::warning title=a0::agent_error (agent, exception): why"
    assert [line.split(" ")[0] for line in lines] == ["::error"] * 2 + ["::warning"] * 10


@given(said=st.text(st.characters(), max_size=60), title=st.text(st.characters(), max_size=20))
def test_whatever_is_said_an_annotation_is_one_line_and_one_command(said: str, title: str) -> None:
    line = github.annotation("warning", title=title, said=said)
    assert line.splitlines() == [line]
    line.encode()
    head, name, rest = line.split("::", 2) if title == "" else ("", *line[2:].split("::", 1))
    assert head == ""
    assert name.startswith("warning title=")
    assert not set(name.removeprefix("warning title=")) & set(":,\r\n")
    assert "\n" not in rest


def test_the_marks_of_a_command_are_escaped_as_github_reads_them() -> None:
    line = github.annotation("error", title="a:b,c", said="50%\n::add-mask::x\r")
    assert line == "::error title=a%3Ab%2Cc::50%25%0A::add-mask::x%0D"


HOSTILE = "](http://h) ![i](http://h/i.png) <img src=http://h> www.h.org `x` | a | b\n# head\n|---| **b** &lt; http://h"


@pytest.mark.parametrize("said", [HOSTILE, "</code></td><script>", "a\\|b", "\x1b[2J", "http://h.org/x", "- x"])
def test_words_on_the_page_are_text_in_one_cell(made: Any, said: str) -> None:
    file, summary = made(failed(said, said), scored("b", 0.0, said))
    page = github.page(file, summary)
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(page)
    flat = [token for top in tokens for token in (top, *(top.children or ()))]
    kinds = {token.type for token in flat}
    assert not kinds & {"link_open", "image", "html_block", "code_inline", "strong_open", "bullet_list_open"}
    assert {token.content for token in flat if token.type == "html_inline"} <= {"<code>", "</code>"}
    assert sum(token.type == "heading_open" for token in flat) == 1
    assert sum(token.type == "table_open" for token in flat) == 2
    assert sum(token.type == "tr_open" for token in flat) == 2 + 1 + 2
    assert {cell.count("|") for cell in page.splitlines() if cell.startswith("| <code>")} <= {5, 9}
    for mark in ("http:", "www.", "<img", "<script", "`"):
        assert mark not in page


def test_the_page_says_what_it_came_to_and_how_many_it_leaves_out(made: Any) -> None:
    file, summary = made(*(failed(f"a{number}", "why") for number in range(60)), scored("b", 1.0))
    page = github.page(file, summary)
    assert page.startswith("### hermit eval: mean score 0.0164\n")
    assert "| <code>none</code> | 61 | 61 | 1 | 60 | 0 | 0 | 1.5 s |" in page
    assert page.rstrip().endswith("and 10 more")
    assert page.count("agent_error (agent, exception)") == 50


def test_the_page_of_a_run_that_we_broke_has_no_mean_and_names_what_was_not_confined(made: Any) -> None:
    row = failed("a", "fell", Status.SANDBOX_ERROR)
    page = github.page(*made(row, replace(row, id="b", confined=False)))
    assert "| 2 | 0 | 0 | 0 | 2 | 1.5 s |" in page
    assert "| infrastructure | sandbox_error (start, check) |" in page
    assert "mean score none" in page
    assert "0 of 0 scored attempts are shown to have been confined." in page
    assert "**1 attempts ran without a sandbox.**" in page


def test_a_flood_of_words_is_cut(made: Any) -> None:
    file, summary = made(failed("a" * 5000, "\x00" * 1_000_000))
    assert len(github.page(file, summary)) < 5000
    assert len(next(github.remarks(file))) < 20_000
