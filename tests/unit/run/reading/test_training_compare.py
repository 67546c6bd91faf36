"""Two training runs, compared: step by step, and by what their versions came to on the test split."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hermit.errors import ConfigError
from hermit.run.reading.training_compare import compared_training

from .conftest import LOCK

ENDED = {"complete": True}


@pytest.fixture
def two(maker: Any, step_line: Any, a_row: Any) -> Any:
    """Two runs; the second has a step more, learned more, and another learner."""
    other = {**LOCK, "contents": {**LOCK["contents"], "evolver.name": "another"}}
    first = maker.training([step_line(1, 0.25), step_line(2, 0.5)], name="one", summary=ENDED)
    lines = [step_line(1, 0.25), step_line(2, 0.75, tasks=["c"]), step_line(3, 1.0)]
    second = maker.training(lines, name="two", summary=ENDED, lock=other)
    for name, score in (("one", 0.0), ("two", 1.0)):
        rows = [a_row(f"t/{number}", score if number else 1.0) for number in range(9)]
        maker.run(rows, name=name, selector="final", summary={"complete": True, "attempts": 9})
    return first, second


def test_steps_stand_side_by_side_and_other_tasks_are_said(maker: Any, two: Any) -> None:
    found = compared_training(*map(maker.trained, two))
    assert [(pair.before, pair.after, pair.difference, pair.alike) for pair in found.steps] == [
        (0.25, 0.25, 0.0, True),
        (0.5, 0.75, 0.25, False),
        (None, 1.0, None, False),
    ]
    assert "steps of one number took other tasks, so their scores say little together" in found.warnings


def test_versions_are_compared_task_by_task_on_the_test_split(maker: Any, two: Any) -> None:
    found = compared_training(*map(maker.trained, two))
    ((selector, comparison),) = found.evaluations
    assert (selector, comparison.paired.won, comparison.paired.lost, comparison.paired.same) == ("final", 8, 0, 1)
    assert [change.what for change in found.changes] == ["contents.evolver.name"]
    assert not any("cannot be compared" in warning for warning in found.warnings)


def test_what_was_not_evaluated_in_both_is_said_with_what_to_do(maker: Any, two: Any) -> None:
    (two[0].root / "eval" / "final").rename(two[0].root / "eval" / "mine")
    found = compared_training(*map(maker.trained, two))
    assert found.evaluations == ()
    assert any("run `hermit eval --adapter final`" in warning for warning in found.warnings)


def test_evaluations_that_cannot_be_compared_are_said_and_the_rest_is(maker: Any, two: Any, a_row: Any) -> None:
    results = two[0].root / "eval" / "final" / "results.jsonl"
    results.write_text(json.dumps(a_row("other")) + "\n")
    found = compared_training(*map(maker.trained, two))
    assert (len(found.steps), found.evaluations) == (3, ())
    assert "final: these runs cannot be compared: no task has results in both" in found.warnings


def test_a_run_that_has_not_ended_is_said(maker: Any, two: Any) -> None:
    two[1].summary.unlink()
    assert "two has not ended" in compared_training(*map(maker.trained, two)).warnings


def test_one_run_and_other_tasks_are_refused(maker: Any, two: Any, step_line: Any) -> None:
    one = maker.trained(two[0])
    with pytest.raises(ConfigError, match="named twice"):
        compared_training(one, one)
    other = {**LOCK, "contents": {"data.tasks": "t2"}}
    three = maker.trained(maker.training([step_line(1)], name="three", lock=other))
    with pytest.raises(ConfigError, match="holds other tasks"):
        compared_training(one, three)


def test_the_document_says_all_of_it(maker: Any, two: Any) -> None:
    said = compared_training(*map(maker.trained, two)).as_json()
    assert json.loads(json.dumps(said)) == said
    assert (said["training"], said["before"], said["after"]) == (True, "one", "two")
    assert said["evaluations"]["final"]["won"] == 8
    assert [step["difference"] for step in said["steps"]] == [0.0, 0.25, None]
