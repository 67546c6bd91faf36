"""What crosses a sandbox's wall, as JSON and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermit.domain import codec
from hermit.domain.trial import JudgeResult, RunOutput

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
HUGE = 10**400


@given(JSON)
def test_what_is_dumped_is_ascii_on_one_line_and_loads_as_it_was(document):
    data = codec.dump(document)
    assert data.isascii()
    assert b"\n" not in data
    assert codec.load(data) == document


def test_a_lone_surrogate_crosses_and_comes_back():
    assert codec.load(codec.dump({"text": "\ud800"})) == {"text": "\ud800"}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), [[float("nan")]]])
def test_a_number_that_is_not_finite_is_not_dumped(value):
    with pytest.raises(ValueError, match=r"."):
        codec.dump(value)


@pytest.mark.parametrize("data", [b"NaN", b"Infinity", b"-Infinity", b'{"a":[NaN]}', b"1e999", b"[-1e999]"])
def test_a_number_that_is_not_finite_is_not_loaded(data):
    with pytest.raises(ValueError, match=r"."):
        codec.load(data)


@pytest.mark.parametrize("data", [b"", b"{", b"{} x", b"\xff", b"\xef\xbb\xbf{}", b"'a'", b"{'a':1}", b"\0"])
def test_what_is_not_json_is_refused(data):
    with pytest.raises(ValueError, match=r"."):
        codec.load(data)


def test_an_integer_of_too_many_digits_is_refused():
    with pytest.raises(ValueError, match=r"."):
        codec.load(b"9" * 100_000)


@pytest.mark.parametrize("data", [b"[" * 100_000, b'{"a":' * 100_000, b"[" * 100_000 + b"]" * 100_000])
def test_a_text_nested_too_deep_is_refused(data):
    with pytest.raises(ValueError, match=r"."):
        codec.load(data)


def test_a_value_nested_too_deep_or_holding_itself_is_refused():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    round_and_round: list = []
    round_and_round.append(round_and_round)
    for value in (deep, round_and_round):
        with pytest.raises(ValueError, match=r"."):
            codec.dump(value)


@pytest.mark.parametrize("value", [object(), b"bytes", {1, 2}, 1j])
def test_a_value_without_a_json_form_is_refused(value):
    with pytest.raises(TypeError):
        codec.dump({"a": value})


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"output": None},
        {"output": [1, "a"], "log": "", "cost_usd": 0, "wall_s": None, "api_speed": 1.5},
        {"messages": [{}], "tokens": {"in": 1}, "extra": {"a": 1}},
    ],
)
def test_an_output_has_the_fields_it_was_given(document):
    expected = {**vars(RunOutput()), **document}
    assert vars(codec.run_output(document)) == expected


@pytest.mark.parametrize("document", [None, [], "x", 1])
def test_an_output_is_an_object(document):
    with pytest.raises(TypeError, match="an output is an object"):
        codec.run_output(document)


@pytest.mark.parametrize("name", codec.NUMBERS)
@pytest.mark.parametrize("value", [True, "1", [], float("nan"), float("inf"), HUGE])
def test_a_number_of_an_output_is_finite(name, value):
    with pytest.raises(TypeError, match=name):
        codec.run_output({name: value})


@pytest.mark.parametrize(
    ("name", "value"), [("log", None), ("log", 1), ("messages", {}), ("tokens", []), ("extra", None)]
)
def test_a_field_of_an_output_has_its_type(name, value):
    with pytest.raises(TypeError, match=name):
        codec.run_output({name: value})


@pytest.mark.parametrize("name", ["score", "self", "__class__", ""])
def test_an_output_has_no_other_fields(name):
    with pytest.raises(TypeError, match="has no field"):
        codec.run_output({name: 1})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, JudgeResult(1.0)),
        (0.5, JudgeResult(0.5)),
        ({"score": 1}, JudgeResult(1.0)),
        ({"score": -2.5, "feedback": "no"}, JudgeResult(-2.5, "no")),
        ({"score": 0, "why": "x"}, JudgeResult(0.0, "", {"why": "x"})),
        ({"score": 0, "extra": {"why": "x"}}, JudgeResult(0.0, "", {"why": "x"})),
        ({"score": 0, "extra": {"why": "x"}, "more": 1}, JudgeResult(0.0, "", {"why": "x", "more": 1})),
        (JudgeResult(1.0, "yes", {"a": 1}), JudgeResult(1.0, "yes", {"a": 1})),
    ],
)
def test_a_judge_says_its_score_in_three_forms(value, expected):
    assert codec.judge_result(value) == expected


@pytest.mark.parametrize(
    "value", [None, "1", [], {}, {"score": None}, {"score": "1"}, {"feedback": "x"}, JudgeResult("1")]
)
def test_a_score_that_is_no_number_is_refused(value):
    with pytest.raises(TypeError, match="a score must be a number"):
        codec.judge_result(value)


@pytest.mark.parametrize("score", [float("nan"), float("inf"), -float("inf"), HUGE, -HUGE])
def test_a_score_that_is_not_finite_is_refused(score):
    for value in (score, {"score": score}, JudgeResult(score)):
        with pytest.raises(ValueError, match="finite"):
            codec.judge_result(value)


def test_feedback_has_a_bound():
    assert codec.judge_result({"score": 1, "feedback": "x" * codec.MOST_FEEDBACK}).score == 1.0
    with pytest.raises(ValueError, match="feedback may have"):
        codec.judge_result({"score": 1, "feedback": "x" * (codec.MOST_FEEDBACK + 1)})


@pytest.mark.parametrize("feedback", [None, 1, ["x"]])
def test_feedback_that_is_no_text_is_refused(feedback):
    with pytest.raises(TypeError, match="feedback"):
        codec.judge_result({"score": 1, "feedback": feedback})


def test_what_a_judge_returned_is_not_changed():
    given_value = {"score": 1, "extra": {"a": 1}, "b": 2}
    codec.judge_result(given_value)
    assert given_value == {"score": 1, "extra": {"a": 1}, "b": 2}
