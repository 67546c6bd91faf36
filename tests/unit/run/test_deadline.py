"""An agent knows how long it has, whatever somebody does to the time of day."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import hermit
from hermit.domain.trial import DEADLINE, MONOTONIC_DEADLINE
from hermit.run import trial

if TYPE_CHECKING:
    import pytest


def test_a_deadline_is_one_moment_on_two_clocks() -> None:
    found = trial.deadline(10.0)
    assert found is not None
    assert abs((found.clock_s - time.time()) - (found.monotonic_s - time.monotonic())) < 1
    assert 500 < found.monotonic_s - time.monotonic() <= 600
    assert dict(found.variables) == {
        DEADLINE: f"{found.clock_s:.3f}",
        MONOTONIC_DEADLINE: f"{found.monotonic_s:.3f}",
    }


def test_without_a_timeout_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(MONOTONIC_DEADLINE, raising=False)
    assert trial.deadline(None) is None
    assert hermit.time_left() is None


def test_a_step_of_the_time_of_day_takes_and_gives_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    found = trial.deadline(10.0)
    assert found is not None
    for name, value in found.variables:
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(time, "time", lambda: 4e9)
    left = hermit.time_left()
    assert left is not None
    assert 500 < left <= 600.01  # it is told in milliseconds


def test_what_has_passed_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MONOTONIC_DEADLINE, f"{time.monotonic() - 5:.3f}")
    assert hermit.time_left() == 0.0


def test_an_agent_that_stops_in_time_is_judged_and_one_that_does_not_is_a_timeout(run: Any) -> None:
    (run.root / "agent.py").write_text(IN_TIME)
    summary = run.evaluate("agent.timeout_min=0.15", "agent.concurrency=3")
    found = {row["id"]: (row["status"], row["cause"], (row["judge"] or {}).get("score")) for row in run.rows}
    assert found == {"t/0": ("ok", "", 0.0), "t/1": ("ok", "", 0.5), "t/2": ("timeout", "timeout", None)}
    assert summary["failed_by"] == {"agent": 1, "judge": 0, "infrastructure": 0}


IN_TIME = """
import time
import hermit
def run(task, adapter):
    while task["n"] == 2 or hermit.time_left() > 5:
        time.sleep(0.05)
    return hermit.RunOutput(task["n"])
"""
