"""One call of a judge: three forms of a score are taken, and anything else is the judge's error."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hermit.agent.result import Failure

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("1", {"score": 1.0, "feedback": "", "extra": {}}),
        ("0.25", {"score": 0.25, "feedback": "", "extra": {}}),
        ("-3", {"score": -3.0, "feedback": "", "extra": {}}),
        ("True", {"score": 1.0, "feedback": "", "extra": {}}),
        ("False", {"score": 0.0, "feedback": "", "extra": {}}),
        ("JudgeResult(0.5)", {"score": 0.5, "feedback": "", "extra": {}}),
        ("JudgeResult(1, 'good', {'a': [1]})", {"score": 1.0, "feedback": "good", "extra": {"a": [1]}}),
        ("{'score': 1}", {"score": 1.0, "feedback": "", "extra": {}}),
        ("{'score': 1, 'feedback': 'f', 'way': 'w'}", {"score": 1.0, "feedback": "f", "extra": {"way": "w"}}),
        (
            "{'score': 1, 'extra': {'a': {'b': 2}}, 'c': 3}",
            {"score": 1.0, "feedback": "", "extra": {"a": {"b": 2}, "c": 3}},
        ),
        ("{'score': 0, 'extra': 'text'}", {"score": 0.0, "feedback": "", "extra": {"extra": "text"}}),
    ],
)
def test_a_result_a_mapping_and_a_number_are_scores(
    judge: Callable[..., Any], expression: str, result: dict[str, Any]
) -> None:
    assert judge(expression) == result


@pytest.mark.parametrize(
    "expression",
    [
        "None",
        "'1.0'",
        "float('nan')",
        "float('inf')",
        "-float('inf')",
        "{'score': float('nan')}",
        "JudgeResult(float('inf'))",
        "JudgeResult('1')",
        "{}",
        "{'score': None}",
        "{'score': '1'}",
        "{'score': 1, 'feedback': 2}",
        "[1]",
        "1j",
        "{'score': 1, 'seen': {1, 2}}",
        "{'score': 1, 'seen': float('nan')}",
        "10 ** 400",
        "{'score': 10 ** 400}",
    ],
)
def test_anything_else_is_a_wrong_result_that_says_what_came(judge: Callable[..., Any], expression: str) -> None:
    found = judge(expression)
    assert isinstance(found, Failure), found
    assert found.cause == "result"
    assert found.error


def test_a_judge_that_raises_is_an_exception(judge: Callable[..., Any]) -> None:
    found = judge("1 / 0")
    assert (found.cause, found.error) == ("exception", "ZeroDivisionError: division by zero")


def test_the_judge_gets_the_output_as_the_agent_returned_it(judge: Callable[..., Any]) -> None:
    found = judge("{'score': 1, 'saw': [type(output).__name__, output.output, output.log, output.messages]}")
    assert found["extra"] == {"saw": ["RunOutput", "42", "l", []]}


def test_no_variable_of_pythons_is_heeded_by_a_judge(
    judge: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    planted = tmp_path / "planted"
    planted.mkdir()
    (planted / "sitecustomize.py").write_text("import os; os._exit(9)")
    (planted / "planted.py").write_text("")
    (planted / "start.py").write_text("import os; os._exit(9)")
    monkeypatch.setenv("PYTHONPATH", str(planted))
    monkeypatch.setenv("PYTHONSTARTUP", str(planted / "start.py"))
    monkeypatch.setenv("PYTHONHOME", "/nowhere")
    found = judge(f"{{'score': 1, 'path': {str(planted)!r} in __import__('sys').path}}")
    assert json.loads(json.dumps(found["extra"])) == {"path": False}
