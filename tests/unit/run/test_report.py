"""What a run comes to: an attempt that we broke has no score, and what was finished is never made again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermit.domain.attempt import WAYS, Phase, Side, Status
from hermit.domain.trial import JudgeResult, RunOutput
from hermit.errors import ConfigError
from hermit.run.report import Row, Tally, proven, resume
from hermit.run.results import Results

if TYPE_CHECKING:
    from pathlib import Path


def row(task_id: str, score: float | None = 1.0, *, repeat: int = 0, status: Status = Status.OK, **more: Any) -> Row:
    """A row with this score, or without a judge's word; one that failed did so in the first way there is."""
    judge = None if score is None else JudgeResult(score)
    if status is not Status.OK:
        phase, causes = next(iter(WAYS[status].items()))
        more = {"phase": phase, "cause": min(causes), **more}
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
    summary = tally(*rows).summary(adapter="none", commit=None, tasks=2, repeats=2, wall_s=1.23456)
    around = summary["mean_interval"]
    around |= {"low": round(around["low"], 1), "high": round(around["high"], 1)}
    assert summary == {
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
        "mean_interval": {"low": 0.0, "high": 1.0, "level": 0.95, "method": "wilson", "tasks": 2},
        "scored": 4,
        "statuses": {"ok": 3, "agent_error": 0, "timeout": 1, "judge_error": 0, "sandbox_error": 0},
        "failed_by": {"agent": 1, "judge": 0, "infrastructure": 0},
        "failures": [{"status": "timeout", "phase": "agent", "cause": "timeout", "attempts": 1}],
        "unconfined": 0,
        "confinement": {
            "every": False,
            "scored": 4,
            "proven": 0,
            "starts": 0,
            "checks": 0,
            "passed": 0,
            "records": 0,
            "backends": {},
        },
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


def start(role: str = "task", *, confined: bool = True, checks: int = 3, passed: int = 3, record: str = "r") -> Any:
    """What a row says of one start."""
    return {"role": role, "backend": "b 1", "confined": confined, "checks": checks, "passed": passed, "record": record}


@pytest.mark.parametrize(
    ("judged", "starts", "shown"),
    [
        ("separate", [start(), start("judge")], True),
        ("host", [start(), start("judge", confined=False, checks=0, passed=0)], True),
        ("separate", [start()], True),  # the agent failed, and no judge was started
        ("separate", [], False),
        ("separate", [start("judge")], False),
        ("separate", [start(confined=False), start("judge")], False),
        ("separate", [start(), start("judge", confined=False)], False),
        ("separate", [start(passed=2), start("judge")], False),
        ("separate", [start(checks=0, passed=0), start("judge")], False),
        ("separate", [start(record=""), start("judge")], False),
    ],
)
def test_a_row_is_shown_to_have_been_confined_by_its_own_evidence_alone(
    judged: str, starts: list[Any], *, shown: bool
) -> None:
    made = row("a", judged=judged, evidence=tuple(starts)).as_json()
    assert proven(made) is shown
    assert not proven(made | {"confined": False})
    assert tally(row("a", judged=judged, evidence=tuple(starts))).confinement.as_json()["every"] is shown


def test_a_row_of_an_older_run_shows_nothing() -> None:
    made = row("a").as_json()
    del made["evidence"]
    found = Tally()
    found.add(made)
    assert found.confinement.as_json()["proven"] == 0


def test_the_summary_says_what_shows_that_every_scored_row_was_confined() -> None:
    starts = (start(), start("judge"))
    rows = [row("a", judged="shared", evidence=starts), row("b", judged="shared", evidence=starts), BROKEN]
    assert tally(*rows).confinement.as_json() == {
        "every": True,
        "scored": 2,
        "proven": 2,
        "starts": 4,
        "checks": 12,
        "passed": 12,
        "records": 4,
        "backends": {"b 1": 4},
    }
    assert not tally(BROKEN).confinement.as_json()["every"]


def test_each_side_and_each_way_to_fail_is_counted_apart() -> None:
    failed = [row("a", None, status=status) for status in Status if status is not Status.OK]
    found = tally(*failed, BROKEN, row("c"))
    assert found.failed_by == {side.value: 2 if side is not Side.JUDGE else 1 for side in Side}
    summary = found.summary(adapter="none", commit=None, tasks=1, repeats=1, wall_s=1.0)
    assert [(each["status"], each["attempts"]) for each in summary["failures"]] == [
        ("agent_error", 1),
        ("judge_error", 1),
        ("sandbox_error", 2),
        ("timeout", 1),
    ]
    assert (summary["attempts"], summary["scored"]) == (6, 4)


def test_a_row_that_failed_says_in_which_phase_by_which_cause_and_whose_it_was() -> None:
    made = row("a", None, status=Status.SANDBOX_ERROR, phase=Phase.COLLECT, cause="copy").as_json()
    assert [made[name] for name in ("status", "failed_by", "phase", "cause")] == [
        *("sandbox_error", "infrastructure", "collect", "copy")
    ]
    assert [row("a").as_json()[name] for name in ("failed_by", "phase", "cause")] == ["", "", ""]
    with pytest.raises(ValueError, match="has the phase"):
        Row(id="a", repeat=0, status=Status.SANDBOX_ERROR)
