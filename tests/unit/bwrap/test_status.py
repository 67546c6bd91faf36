"""Whose failure it was, from what bubblewrap and the relay reported."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermit.bwrap.status import Status, verdict
from hermit.domain.command import Outcome
from hermit.domain.record import Check
from hermit.errors import SandboxError
from hermit.relay import Said

WHOLE = b'{ "child-pid": 4711, "net-namespace": 1 }\n{ "exit-code": 0 }\n'


def status(*pieces):
    found = Status()
    for piece in pieces:
        found.take(piece)
    return found


def test_the_documents_of_bubblewrap_are_read():
    assert status(WHOLE).document() == {"child-pid": 4711, "net-namespace": 1, "exit-code": 0}
    assert status(WHOLE).init == 4711


@given(st.integers(min_value=0, max_value=len(WHOLE)), st.integers(min_value=0, max_value=len(WHOLE)))
def test_a_report_may_come_in_any_pieces(first, second):
    low, high = sorted((first, second))
    assert status(WHOLE[:low], WHOLE[low:high], WHOLE[high:]).document() == status(WHOLE).document()


@given(st.integers(min_value=0, max_value=len(WHOLE) - 1))
def test_a_torn_report_is_read_as_far_as_it_goes(end):
    assert status(WHOLE[:end]).document().items() <= status(WHOLE).document().items()


@given(st.binary(max_size=300))
def test_a_report_of_any_bytes_does_not_break_the_reader(data):
    assert isinstance(status(data).document(), dict)


@pytest.mark.parametrize(
    "data",
    [
        b'{"child-pid": true}',
        b'{"child-pid": "1"}',
        b'{"child-pid": 1.5}',
        b'{"child-pid": null}',
        b'{"child-pid": -1}',
        b'{"child-pid": 0}',
        b'{"child-pid": 1' + b"0" * 30 + b"}",
        b'{"child-pid": ' + b"9" * 5000 + b"}",
        b'{"a":' * 5000,
        b"{}",
        b"",
        b"[1]",
    ],
)
def test_what_is_no_process_id_is_never_taken_for_the_init_of_a_sandbox(data):
    assert status(data).init is None


def test_a_report_without_an_end_is_refused():
    with pytest.raises(SandboxError) as refused:
        status(b"x" * 40_000, b"x" * 40_000)
    assert refused.value.cause == "status"


def said(*, ready=True, refused=False, failed="", checks=()):
    return Said(checks=list(checks), ready=ready, refused=refused, failed=failed)


def test_a_command_that_ran_keeps_its_outcome_whatever_it_was():
    outcome = Outcome(code=1)
    assert verdict(said(), outcome, complaints="", code=1) is outcome


@pytest.mark.parametrize("refused", [True, False])
def test_a_failed_check_is_the_sandboxs_failure_and_is_named(refused):
    checks = (Check("user", passed=True, detail="fine"), Check("network", passed=False, detail="eth0"))
    with pytest.raises(SandboxError, match="network: eth0") as failure:
        verdict(said(refused=refused, checks=checks), Outcome(code=0), complaints="", code=0)
    assert failure.value.cause == "check"
    assert "fine" not in str(failure.value)


def test_a_refusal_without_a_failed_check_is_a_failure_all_the_same():
    with pytest.raises(SandboxError):
        verdict(said(refused=True), Outcome(code=0), complaints="", code=0)


def test_a_sandbox_that_did_not_stand_says_bubblewraps_last_words():
    with pytest.raises(SandboxError, match="bwrap: no mount") as failure:
        verdict(said(ready=False), Outcome(code=1), complaints="warning\nbwrap: no mount", code=1)
    assert failure.value.cause == "start"


def test_a_sandbox_that_did_not_stand_in_silence_is_no_success():
    with pytest.raises(SandboxError, match="said nothing"):
        verdict(said(ready=False), Outcome(code=0), complaints="", code=0)


def test_a_command_that_could_not_be_started_in_a_sandbox_that_stood_is_the_commands_failure():
    outcome = verdict(said(failed="127 nope: No such file"), Outcome(code=0), complaints="", code=0)
    assert (outcome.code, outcome.stderr.kept) == (127, b"hermit: nope: No such file\n")
