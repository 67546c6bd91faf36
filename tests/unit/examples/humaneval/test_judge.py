from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from .conftest import EXAMPLE, PROMPT, Bench, in_a_fork, load

if TYPE_CHECKING:
    from collections.abc import Callable

RIGHT = "def double(value):\n    return value * 2\n"
JUDGE = load(EXAMPLE / "judge.py")

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
keys = st.recursive(scalars, lambda inner: st.lists(inner).map(tuple) | st.frozensets(inner), max_leaves=5)
values = st.recursive(
    keys,
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.sets(keys) | st.dictionaries(keys, inner),
    max_leaves=20,
)


def test_a_right_solution_scores_one(bench: Bench) -> None:
    verdict = bench.verdict(RIGHT)
    assert (verdict.score, verdict.outcome) == (1.0, "passed")


def test_a_test_may_call_a_helper_of_the_prompt_that_the_solution_does_not_have(bench: Bench) -> None:
    assert "half" not in RIGHT
    assert bench.verdict(RIGHT).score == 1.0


def test_a_helper_of_the_solution_does_not_replace_the_one_of_the_prompt(bench: Bench) -> None:
    wrong = "def half(value):\n    return 3\ndef double(value):\n    return value * 2 if value != 3 else 0\n"
    assert bench.verdict(wrong).outcome == "assertion"


def test_a_test_may_call_the_solution_by_its_name(bench: Bench) -> None:
    bench.set_problem(test="def check(candidate):\n    assert double(2) == 4\n")
    assert bench.verdict(RIGHT).score == 1.0


def test_a_solution_may_print_as_much_as_it_likes(bench: Bench) -> None:
    assert bench.verdict("print('x' * 10_000_000)\n" + RIGHT).score == 1.0


def test_a_solution_may_define_dataclasses(bench: Bench) -> None:
    source = "from __future__ import annotations\nfrom dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n"
    assert bench.verdict(source + RIGHT).score == 1.0


@pytest.mark.parametrize(
    ("source", "outcome", "words"),
    [
        ("def double(value):\n    return value * 3\n", "assertion", "call 1"),
        ("def double(value):\n    return value + 1\n", "assertion", "call 1"),
        ("def double(value):\n    return 4\n", "assertion", "call 2"),
        ("def double(value):\n    return 1 / 0\n", "exception", "ZeroDivisionError: division by zero"),
        ("def double(value):\n    raise AssertionError('a\\nb')\n", "exception", "AssertionError: a b"),
        ("raise KeyError('at load')\n", "exception", "loading solution.py raised KeyError"),
        ("def double(value:\n", "syntax", "line 1"),
        ("def triple(value):\n    return value\n", "exception", "does not define the function double"),
        ("double = 3\n", "exception", "does not define the function double"),
        (PROMPT, "assertion", "call 1"),
        ("", "exception", "does not define"),
        (b"def double(value):\n    return '\xff'\n", "encoding", "byte 31"),
        (b"#" * (1024 * 1024 + 1), "too-large", "1048576 bytes"),
    ],
)
def test_a_wrong_solution_scores_zero_and_one_line_says_why(
    bench: Bench, source: str | bytes, outcome: str, words: str
) -> None:
    verdict = bench.verdict(source)
    assert (verdict.score, verdict.outcome) == (0.0, outcome)
    assert words in verdict.feedback


def test_a_solution_with_a_nul_byte_scores_zero(bench: Bench) -> None:
    verdict = bench.verdict("def double(value):\n    return value * 2  # \0\n")
    assert verdict.score == 0.0
    assert "null" in verdict.feedback


def test_a_missing_solution_scores_zero(bench: Bench) -> None:
    verdict = bench.verdict()
    assert (verdict.score, verdict.outcome) == (0.0, "missing")
    assert "there is no solution.py" in verdict.feedback


def test_a_solution_that_is_a_link_to_a_right_one_scores_zero(bench: Bench) -> None:
    (bench.root / "right.py").write_text(RIGHT)
    bench.solution.symlink_to(bench.root / "right.py")
    assert bench.verdict().outcome == "missing"


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_solution_that_is_no_regular_file_scores_zero(bench: Bench, make: Callable[[str], None]) -> None:
    make(str(bench.solution))
    assert bench.verdict().outcome == "missing"


def test_an_endless_loop_is_a_timeout(hurried: Bench) -> None:
    assert hurried.verdict("while True:\n    pass\n").outcome == "timeout"


def test_a_test_that_catches_exceptions_does_not_hide_a_timeout(hurried: Bench) -> None:
    catching = "def check(candidate):\n    try:\n        candidate(2)\n    except Exception:\n        pass\n"
    hurried.set_problem(test=catching)
    assert hurried.verdict("def double(value):\n    raise ValueError\n").score == 1.0
    assert hurried.verdict("import time\ndef double(value):\n    time.sleep(60)\n").outcome == "timeout"


def test_tests_that_never_call_the_solution_are_a_fault_of_the_judge(bench: Bench) -> None:
    bench.set_problem(test="def check(candidate):\n    pass\n")
    bench.solution.write_text(RIGHT)
    assert "never called" in in_a_fork(bench.score)["raised"]


def test_a_judge_without_its_tests_says_which_file_is_missing(bench: Bench) -> None:
    bench.code.unlink()
    bench.solution.write_text(RIGHT)
    raised = in_a_fork(bench.score)["raised"]
    assert "FileNotFoundError" in raised
    assert "Toy_0.py.code" in raised


def test_byte_code_for_this_interpreter_is_taken_and_that_of_another_is_not(bench: Bench) -> None:
    bench.code.write_bytes(bench.prepare.compiled("def check(candidate):\n    assert candidate(2) == 5\n", "other"))
    assert bench.verdict(RIGHT).outcome == "assertion"
    bench.code.write_bytes(b"????" + bench.code.read_bytes()[4:])
    assert bench.verdict(RIGHT).score == 1.0


def test_a_judge_outside_a_judge_sandbox_says_which_variable_is_missing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HERMIT_WORK")
    assert in_a_fork(bench.score) == {"raised": "KeyError: 'HERMIT_WORK'"}


@pytest.mark.parametrize("source", [RIGHT, "import os; os._exit(0)\n", "1 / 0\n", "def double(value):\n    return 0\n"])
def test_the_judge_leaves_no_descriptor_and_no_child_behind(bench: Bench, source: str) -> None:
    bench.solution.write_text(source)

    def measured() -> dict[str, Any]:
        bench.score()
        before = [os.fstat(number).st_ino for number in _descriptors()]
        bench.score()
        after = [os.fstat(number).st_ino for number in _descriptors()]
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return {"leaked": before != after, "child": False}
        return {"leaked": before != after, "child": True}

    assert in_a_fork(measured) == {"leaked": False, "child": False}


@given(values)
def test_a_plain_value_arrives_as_it_was_sent(value: Any) -> None:
    arrived = JUDGE.decode(JUDGE.codec.load(JUDGE.codec.dump(JUDGE.encode(value))))
    assert arrived == value
    assert type(arrived) is type(value)


def test_infinities_and_nan_arrive() -> None:
    sent = [math.inf, -math.inf, math.nan]
    arrived = JUDGE.decode(JUDGE.codec.load(JUDGE.codec.dump(JUDGE.encode(sent))))
    assert arrived[:2] == sent[:2]
    assert math.isnan(arrived[2])


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"3\n",
        b"[]\n",
        b'["value"]\n',
        b'["value", {}]\n',
        b'["value", []]\n',
        b'["value", ["object"]]\n',
        b'["value", [["list"], 1]]\n',
        b'["value", ["set", ["list"]]]\n',
        b'["value", ["dict", 1]]\n',
        b'["value", 1] ["value", 2]\n',
        b'["passed", "every test passed"]\n',
        b'["timeout", null]\n',
        b'["exception", 3]\n',
        b"[" * 200_000 + b"\n",
        b'["value", ' + b"9" * 5000 + b"]\n",
        b"\xff\xfe\n",
    ],
)
def test_a_message_that_is_no_reply_is_refused(message: bytes) -> None:
    with pytest.raises(JUDGE.Failed) as caught:
        JUDGE.read_reply(message)
    assert caught.value.outcome == "protocol"


def _descriptors() -> list[int]:
    found = []
    for number in range(256):
        try:
            os.fstat(number)
        except OSError:
            continue
        found.append(number)
    return found
