"""Commands and outcomes."""

from __future__ import annotations

import pytest

from hermit.domain.command import Command, Outcome, Stream


@pytest.mark.parametrize("fields", [{}, {"argv": ("true",), "worker": "m:f"}])
def test_a_command_is_a_program_or_a_worker_and_not_both(fields):
    with pytest.raises(ValueError, match="not both"):
        Command(**fields)


def test_an_argument_with_a_nul_byte_is_refused():
    with pytest.raises(ValueError, match="NUL"):
        Command(argv=("echo", "a\0b"))


def test_only_a_worker_takes_a_job():
    with pytest.raises(ValueError, match="only a worker"):
        Command(argv=("true",), job=b"{}")


def test_neither_job_nor_input_stands_in_the_text_of_a_command():
    shown = repr(Command(worker="m:f", job=b"the key", stdin=b"the input"))
    assert "the key" not in shown
    assert "the input" not in shown


@pytest.mark.parametrize(
    ("outcome", "code"),
    [(Outcome(code=7), 7), (Outcome(code=0), 0), (Outcome(signal=9), 137), (Outcome(signal=15), 143)],
)
def test_a_shell_would_show_the_exit_code_or_128_and_the_signal(outcome, code):
    assert outcome.shell_code == code


def test_a_stream_knows_how_much_of_it_was_dropped():
    assert Stream(kept=b"abc", total=10).dropped == 7
