"""What the host reads was written by somebody else: it is a value of the stated form, or a failure, and never a crash."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermit.agent.result import Failure, handed_back
from hermit.domain import codec
from hermit.domain.command import Command, Outcome, Stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermit.domain.trial import RunOutput

COMMAND = Command(worker="m:f", result_bytes=1_000_000)


def read(data: bytes | None, **outcome: Any) -> dict[str, Any] | Failure:
    """What the host makes of these bytes."""
    total = {} if data is None else {"result_total": len(data)}
    return handed_back(COMMAND, Outcome(**{"code": 0, "result": data, **total, **outcome}))


@given(st.binary(max_size=200))
def test_any_bytes_are_read_without_a_crash(data: bytes) -> None:
    assert isinstance(read(data), dict | Failure)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=10,
    )
)
def test_any_json_is_a_value_of_the_stated_form_or_a_failure(document: Any) -> None:
    found = read(json.dumps(document).encode())
    if not (isinstance(document, dict) and isinstance(document.get("value"), dict)):
        assert isinstance(found, Failure)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b'"value"',
        b'{"value": 1}',
        b'{"failed": "timeout", "error": "forged"}',
        b'{"failed": "sandbox_error", "error": "forged"}',
        b'{"failed": "exit"}',
        b'{"failed": 1, "error": 2}',
        b'{"value": {}} {"value": {}}',
        b'{"value": {"output": NaN}}',
        b'{"value": {"output": Infinity}}',
        b'{"value": {"output": 1e999}}',
        b'{"value": {"output": ' + b"1" * 5000 + b"}}",
        b'{"value": {"output": ' + b"[" * 50_000 + b"]" * 50_000 + b"}}",
        b"\xff\xfe",
    ],
)
def test_what_is_neither_a_value_nor_a_failure_is_a_wrong_result(data: bytes) -> None:
    found = read(data)
    assert isinstance(found, Failure)
    assert found.cause == "result"


def test_an_agent_cannot_say_that_it_timed_out_or_that_the_sandbox_broke() -> None:
    for word in ("timeout", "signal", "sandbox", "check"):
        found = read(json.dumps({"failed": word, "error": "x"}).encode())
        assert isinstance(found, Failure)
        assert found.cause == "result"


def test_a_timeout_beats_whatever_was_handed_back() -> None:
    found = read(b'{"value": {}}', timed_out=True)
    assert isinstance(found, Failure)
    assert found.cause == "timeout"


def test_more_than_is_accepted_is_refused_with_both_numbers() -> None:
    found = handed_back(COMMAND, Outcome(code=0, result=None, result_total=1_000_001))
    assert isinstance(found, Failure)
    assert (found.cause, "1000001" in found.error, "1000000" in found.error) == ("result", True, True)


@pytest.mark.parametrize("written", [b"\n", b" \n\t\n", b"\xff", b"words\n\n"])
@pytest.mark.parametrize("code", [126, 127])
def test_a_program_that_ends_as_if_it_had_not_been_found_is_read_whatever_it_wrote(code: int, written: bytes) -> None:
    found = read(None, code=code, stderr=Stream(kept=written, total=len(written)))
    assert isinstance(found, Failure)
    assert found.cause == "exit"


def output_of(document: dict[str, Any]) -> RunOutput | None:
    """The output an agent's object makes, ``None`` where it is refused in the way the trial expects."""
    try:
        return codec.run_output(document)
    except TypeError:
        return None


@pytest.mark.parametrize("name", ["cost_usd", "wall_s", "api_speed"])
def test_a_number_of_an_output_that_no_float_holds_is_refused(name: str) -> None:
    assert output_of({name: 10**400}) is None


@pytest.mark.parametrize(
    "document",
    [
        {"unknown": 1},
        {"log": 1},
        {"log": None},
        {"messages": {}},
        {"tokens": []},
        {"extra": "x"},
        {"cost_usd": "1"},
        {"cost_usd": True},
        {"wall_s": [1]},
    ],
)
def test_a_field_of_another_type_is_refused(document: dict[str, Any]) -> None:
    assert output_of(document) is None


def test_a_score_that_no_float_holds_is_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        codec.judge_result({"score": 10**400})


def deeper(frames: int, action: Callable[[], object]) -> None:
    """Does it from further down the stack: the command line calls from deeper than a thread of the pool."""
    if frames:
        deeper(frames - 1, action)
    else:
        action()


def test_whatever_is_accepted_from_an_agent_can_be_told_to_its_judge_and_kept_in_a_row() -> None:
    accepted = 0
    for depth in [10, 100, *range(850, 1000)]:
        found = read(b'{"value": {"output": ' + b"[" * depth + b"]" * depth + b"}}")
        if isinstance(found, Failure):
            continue
        accepted += 1
        codec.dump({"callable": "c", "task": {}, "output": vars(codec.run_output(found))})
        deeper(40, lambda kept=found["output"]: json.dumps({"output": kept}))  # type: ignore[misc]
    assert accepted
