"""What crosses the wall of the learner's sandbox, and that its values refuse what they are not."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from hermit.evolver import FinalResult, StepResult, Tools
from hermit.evolver.base import MOST_TEXT, STATUSES, Progress
from hermit.evolver.wire import final_result, step_result, written


@pytest.mark.parametrize("status", STATUSES)
def test_a_result_crosses_as_it_is(status: str) -> None:
    result = StepResult(status, "s", "r", {"a": [1]}, {"tokens": 3}, {"x": None})
    assert step_result(written(result)) == result
    final = FinalResult("s", {"cost_usd": 0.5}, {"y": 1})
    assert final_result(written(final)) == final
    assert step_result(written(None)) is None
    assert final_result(written(None)) is None


@pytest.mark.parametrize(
    "document",
    [
        None, 7, [], {}, {"result": {}, "more": 1}, {"result": []}, {"result": {"more": 1}}, {"result": {"status": 7}},
        {"result": {"status": []}}, {"result": {"summary": None}}, {"result": {"summary": "x" * (MOST_TEXT + 1)}},
        {"result": {"rationale": 1}}, {"result": {"usage": []}}, {"result": {"usage": {"a": True}}}, {"result": {"usage": {"a": "1"}}},
        {"result": {"usage": {"a": 1e300}}}, {"result": {"extra": 3}},
    ],
)  # fmt: skip
def test_what_is_no_result_is_refused(document: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        step_result(document)


def test_a_final_result_has_no_status() -> None:
    with pytest.raises(TypeError, match="FinalResult has no field 'status'"):
        final_result({"result": {"status": "done"}})


@pytest.mark.parametrize("value", [StepResult(), FinalResult(), Progress(epoch=1, step=1)])
def test_the_values_of_the_interface_are_frozen(value: Any) -> None:
    name = dataclasses.fields(value)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(value, name, "other")


def test_a_tool_that_is_not_there_is_told_with_those_that_are() -> None:
    with pytest.raises(KeyError, match="there is no tool 'x'; there are none"):
        Tools()["x"]
