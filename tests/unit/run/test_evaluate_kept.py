"""What a run keeps when something ends it, and in which order; what it leaves of one that was cut off."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hermit.domain.attempt import Status
from hermit.errors import ConfigError
from hermit.run import trial
from hermit.run.report import Row

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def doing(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Any], object]], list[str]]:
    """Attempts do this and then end well; which were made."""

    def make(what: Callable[[Any], object]) -> list[str]:
        made: list[str] = []

        def attempt(bench: Any, attempt: Any) -> Row:
            made.append(attempt.key[0])
            what(attempt)
            return Row(id=attempt.key[0], repeat=attempt.key[1], status=Status.OK)

        monkeypatch.setattr(trial, "attempt", attempt)
        return made

    return make


def test_what_ends_beside_an_error_of_ours_is_kept(run: Any, doing: Any) -> None:
    failed = threading.Event()

    def fail(attempt: Any) -> None:
        if attempt.key[0] == "t/0":
            failed.set()
            raise ZeroDivisionError
        assert failed.wait(60)
        time.sleep(0.2)  # so that the failure is seen before this attempt ends

    doing(fail)
    with pytest.raises(ZeroDivisionError):
        run.evaluate("agent.concurrency=2")
    assert "t/1" in {row["id"] for row in run.rows}


def test_rows_end_in_the_order_of_the_split_whatever_order_they_came_in(run: Any, doing: Any) -> None:
    def later(attempt: Any) -> None:
        time.sleep({"t/0": 0.6, "t/1": 0.3, "t/2": 0}[attempt.key[0]])

    doing(later)
    shown: list[Any] = []
    run.evaluate("agent.concurrency=3", shown=shown)
    assert shown[1].row.id != "t/0"
    assert [row["id"] for row in run.rows] == ["t/0", "t/1", "t/2"]
    first = run.evaluation / "results.jsonl"
    first.write_bytes(b"".join(reversed(first.read_bytes().splitlines(keepends=True))))
    run.evaluate()
    assert [row["id"] for row in run.rows] == ["t/0", "t/1", "t/2"]


def test_attempts_wait_for_memory_and_the_console_hears_of_it_once(run: Any, doing: Any) -> None:
    inside, most = [0], [0]

    def count(attempt: Any) -> None:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        time.sleep(0.1)
        inside[0] -= 1

    doing(count)
    shown: list[Any] = []
    run.evaluate("agent.concurrency=3", f"environment.resources.memory_mb={1 << 30}", shown=shown)
    assert (most[0], len(run.rows)) == (1, 3)
    assert [one.note[:24] for one in shown if one.note] == ["attempts wait for memory"]


def test_results_that_nothing_says_the_origin_of_are_not_added_to(run: Any, doing: Any) -> None:
    made = doing(lambda _: None)
    run.evaluate()
    (run.evaluation / "lock.json").unlink()
    made.clear()
    with pytest.raises(ConfigError, match="nothing that says of what"):
        run.evaluate("judge.mode=shared")
    assert made == []


def test_rows_are_dropped_first_and_the_lock_last(run: Any, doing: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    doing(lambda _: None)
    run.evaluate()
    gone, real = [], Path.unlink

    def unlink(path: Path, *more: Any, **named: Any) -> None:
        gone.append(path.name)
        real(path, *more, **named)

    monkeypatch.setattr(Path, "unlink", unlink)
    run.evaluate(fresh=True)
    assert (gone[0], gone[-1]) == ("results.jsonl", "lock.json")


def test_files_that_were_growing_when_a_run_was_killed_are_gone(run: Any, doing: Any) -> None:
    doing(lambda _: None)
    run.evaluate()
    (run.evaluation / ".summary.json.x1y2").write_text("{")
    run.evaluate()
    assert sorted(os.listdir(run.evaluation)) == ["lock.json", "results.jsonl", "summary.json"]


def test_what_an_attempt_that_was_cut_off_had_printed_is_not_taken_for_that_of_the_next(run: Any) -> None:
    old = run.evaluation / "logs" / "t%2F0-0" / "agent.out"
    old.parent.mkdir(parents=True)
    old.write_text("half a word")
    run.evaluate()
    assert not old.exists()
