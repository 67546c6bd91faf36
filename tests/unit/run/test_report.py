"""What a run comes to: an attempt that we broke has no score, and what was finished is never made again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermit.domain.trial import JudgeResult, RunOutput
from hermit.errors import ConfigError
from hermit.run.report import Results, Row, Status, Tally, resume

if TYPE_CHECKING:
    from pathlib import Path


def row(task_id: str, score: float | None = 1.0, *, repeat: int = 0, status: Status = Status.OK, **more: Any) -> Row:
    """A row with this score, or without a judge's word."""
    judge = None if score is None else JudgeResult(score)
    return Row(id=task_id, repeat=repeat, status=status, judge=judge, **more)


def tally(*rows: Row) -> Tally:
    """What these rows come to."""
    made = Tally()
    for one in rows:
        made.add(one.as_json())
    return made


BROKEN = row("b", None, status=Status.SANDBOX_ERROR)


def test_a_row_has_the_fields_that_others_read() -> None:
    made = row("a", 0.5, output=RunOutput("o", "l", 1.5, tokens={"in": 1}, api_speed=2.0), wall_s=1.23456)
    document = json.loads(json.dumps(made.as_json()))
    assert {name: document[name] for name in ("repeat", "id", "status", "error", "output", "cost_usd", "wall_s")} == {
        "repeat": 0,
        "id": "a",
        "status": "ok",
        "error": None,
        "output": "o",
        "cost_usd": 1.5,
        "wall_s": 1.2346,
    }
    assert document["judge"] == {"score": 0.5, "feedback": "", "extra": {}}
    assert (document["tokens"], document["api_speed"], document["log"]) == ({"in": 1}, 2.0, "l")


@pytest.mark.parametrize("status", [Status.AGENT_ERROR, Status.TIMEOUT, Status.JUDGE_ERROR])
def test_an_agent_or_a_judge_that_failed_scores_zero(status: Status) -> None:
    assert row("a", None, status=status).score == 0.0
    assert tally(row("a", None, status=status), row("b", 1.0)).mean == 0.5


def test_an_attempt_that_a_sandbox_broke_has_no_score_and_is_left_out_of_the_mean() -> None:
    assert BROKEN.score is None
    found = tally(row("a", 1.0), BROKEN, row("c", 0.0))
    assert found.mean == 0.5
    assert (found.attempts, found.errors, found.sandbox_errors) == (3, 1, 1)


def test_a_run_in_which_every_sandbox_broke_has_no_mean() -> None:
    found = tally(BROKEN).summary(adapter="none", commit=None, tasks=1, repeats=1, wall_s=1.0)
    assert (found["mean_score"], found["solved_once"], found["errors"]) == (None, 0, 1)
    json.dumps(found, allow_nan=False)


def test_the_summary_counts_tasks_attempts_cost_and_errors() -> None:
    rows = [
        row("a", 0.0, output=RunOutput(cost_usd=0.25)),
        row("a", 1.0, repeat=1, output=RunOutput(cost_usd=0.5)),
        row("b", 0.5, output=RunOutput()),
        row("b", None, repeat=1, status=Status.TIMEOUT),
    ]
    assert tally(*rows).summary(adapter="none", commit=None, tasks=2, repeats=2, wall_s=1.23456) == {
        "adapter": "none",
        "commit": None,
        "tasks": 2,
        "repeats": 2,
        "mean_score": 0.375,
        "solved_once": 1,
        "cost_usd": 0.75,
        "unknown_cost_tasks": 1,
        "errors": 1,
        "wall_s": 1.235,
        "attempts": 4,
        "statuses": {"ok": 3, "agent_error": 0, "timeout": 1, "judge_error": 0, "sandbox_error": 0},
        "unconfined": 0,
        "on_host": {},
        "judge_on_host": {},
        "complete": True,
    }


def test_a_run_that_was_given_up_is_not_complete() -> None:
    assert not tally(row("a")).summary(adapter="none", commit=None, tasks=2, repeats=1, wall_s=0)["complete"]


def test_attempts_without_a_sandbox_are_counted() -> None:
    assert tally(row("a", confined=False), row("b")).unconfined == 1


@given(st.lists(st.tuples(st.sampled_from("abc"), st.none() | st.floats(0, 1)), max_size=20))
def test_the_mean_is_that_of_the_scored_attempts_alone(attempts: list[tuple[str, float | None]]) -> None:
    rows = [
        row(name, score, status=Status.OK if score is not None else Status.SANDBOX_ERROR) for name, score in attempts
    ]
    scores = [score for _, score in attempts if score is not None]
    found = tally(*rows)
    assert found.mean == (sum(sorted(scores)) / len(scores) if scores else None) or found.mean == pytest.approx(
        sum(scores) / len(scores)
    )
    assert found.sandbox_errors == len(attempts) - len(scores)


ROWS = [row("a/é\n", 0.5), row("b", None, status=Status.AGENT_ERROR, error="why"), row("c", 1.0)]
KEYS = [(one.id, one.repeat) for one in ROWS]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A file with the three rows."""
    path = tmp_path / "eval" / "results.jsonl"
    with Results(path) as opened:
        for one in ROWS:
            opened.add(one.as_json())
    return path


def keys(path: Path, *, wanted: list[tuple[str, int]] | None = None) -> list[tuple[str, int]]:
    return [(one["id"], one["repeat"]) for one in resume(path, wanted=KEYS if wanted is None else wanted)]


def test_there_is_nothing_to_go_on_from_where_there_is_no_file(tmp_path: Path) -> None:
    assert resume(tmp_path / "absent", wanted=KEYS) == []


def test_each_row_is_on_a_line_of_its_own_and_there_before_the_next_begins(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    with Results(path) as opened:
        opened.add(ROWS[0].as_json())
        assert keys(path) == KEYS[:1]
        opened.add(ROWS[1].as_json())
        assert path.read_bytes().count(b"\n") == 2


def test_a_file_cut_at_any_byte_keeps_every_whole_row_and_can_be_added_to(results: Path) -> None:
    data = results.read_bytes()
    ends = [index for index, byte in enumerate(data) if byte == 10]
    for cut in range(len(data) + 1):
        results.write_bytes(data[:cut])
        whole = sum(cut >= end for end in ends)  # the line feed itself may be missing
        assert keys(results) == KEYS[:whole], cut
        with Results(results) as opened:
            for one in ROWS[whole:]:
                opened.add(one.as_json())
        assert [json.loads(line)["id"] for line in results.read_bytes().splitlines()] == [one.id for one in ROWS], cut


def test_a_file_that_is_whole_is_not_written_again(results: Path) -> None:
    before = results.stat().st_ino
    assert keys(results) == KEYS
    assert results.stat().st_ino == before


def test_an_attempt_that_stands_there_twice_counts_once(results: Path) -> None:
    with Results(results) as opened:
        opened.add(row("c", 0.25).as_json())
    found = resume(results, wanted=KEYS)
    assert len(found) == 3
    assert len(results.read_bytes().splitlines()) == 3


def test_an_attempt_that_a_sandbox_broke_is_made_again(results: Path) -> None:
    with Results(results) as opened:
        opened.add(BROKEN.as_json() | {"id": "d"})
    assert keys(results, wanted=[*KEYS, ("d", 0)]) == KEYS
    assert b"sandbox_error" not in results.read_bytes()


def test_a_row_that_is_no_longer_wanted_is_dropped(results: Path) -> None:
    assert keys(results, wanted=KEYS[:1]) == KEYS[:1]
    assert len(results.read_bytes().splitlines()) == 1


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"[]",
        b"null",
        b'{"id": "a"}',
        b"\xff",
        b'"text"',
        b'{"id": [], "repeat": 0, "status": "ok", "judge": null, "cost_usd": null}',
    ],
)
def test_a_broken_line_that_is_not_the_last_is_refused_with_its_place_and_the_file_is_kept(
    results: Path, line: bytes
) -> None:
    first, *rest = results.read_bytes().splitlines(keepends=True)
    broken = b"".join([first, line + b"\n", *rest])
    results.write_bytes(broken)
    with pytest.raises(ConfigError, match="this is no row of results") as caught:
        resume(results, wanted=KEYS)
    assert caught.value.where == f"{results}, line 2"
    assert "--fresh" in caught.value.cure
    assert results.read_bytes() == broken
