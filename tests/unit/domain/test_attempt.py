"""What an attempt can come to is a closed set, and whose failure it was is never open."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hermit.domain.attempt import OF_A_CALL, WAYS, Phase, Side, Status, ours, refuse_broken

ROOT = Path(__file__).parents[3]


def test_every_failure_has_a_side_and_what_is_ours_alone_has_no_score() -> None:
    assert {status: status.failed_by for status in Status} == {
        Status.OK: None,
        Status.AGENT_ERROR: Side.AGENT,
        Status.TIMEOUT: Side.AGENT,
        Status.JUDGE_ERROR: Side.JUDGE,
        Status.SANDBOX_ERROR: Side.INFRASTRUCTURE,
    }
    assert set(WAYS) == set(Status) - {Status.OK}


def test_no_cause_of_ours_is_an_agents_or_a_judges() -> None:
    theirs = OF_A_CALL | {"timeout", "missing"}
    for causes in WAYS[Status.SANDBOX_ERROR].values():
        assert causes & theirs == set()


@pytest.mark.parametrize(
    ("status", "phase", "cause"),
    [
        (Status.OK, Phase.AGENT, ""),
        (Status.OK, None, "exception"),
        (Status.AGENT_ERROR, None, "exception"),
        (Status.AGENT_ERROR, Phase.AGENT, ""),
        (Status.AGENT_ERROR, Phase.AGENT, "check"),
        (Status.AGENT_ERROR, Phase.JUDGE, "exception"),
        (Status.TIMEOUT, Phase.AGENT, "exception"),
        (Status.JUDGE_ERROR, Phase.AGENT, "exception"),
        (Status.SANDBOX_ERROR, Phase.AGENT, "exception"),
        (Status.SANDBOX_ERROR, Phase.START, "something else"),
    ],
)
def test_an_end_that_no_attempt_has_is_refused(status: Status, phase: Phase | None, cause: str) -> None:
    with pytest.raises(ValueError, match=r"no .* has the phase|has no phase"):
        refuse_broken(status, phase, cause)


def test_every_end_of_the_set_is_one() -> None:
    refuse_broken(Status.OK, None, "")
    for status, phases in WAYS.items():
        for phase, causes in phases.items():
            for cause in causes:
                refuse_broken(status, phase, cause)


def test_every_cause_that_the_package_raises_is_of_the_set() -> None:
    pattern = re.compile(r"""\bcause=?"?:? ?"([a-z -]+)"(?: if \w+ else "([a-z ]+)")?""")
    found = {
        cause
        for path in (ROOT / "hermit").rglob("*.py")
        if path.name != "preflight.py"  # its causes are of machines, not of attempts
        for match in pattern.finditer(path.read_text(encoding="utf-8"))
        for cause in match.groups()
        if cause
    }
    assert {"check", "container killed", "disk full", "survivors", "launcher"} <= found
    assert [cause for cause in sorted(found) if ours(cause) != cause] == []


def test_a_cause_that_nobody_knows_is_told_as_unknown() -> None:
    assert (ours("mount"), ours("check")) == ("unknown", "check")


def test_the_reference_names_every_phase_and_every_cause() -> None:
    text = (ROOT / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
    named = {cause for phases in WAYS.values() for causes in phases.values() for cause in causes}
    named |= {phase.value for phase in Phase}
    assert [name for name in sorted(named) if f"`{name}`" not in text] == []
