"""What single findings come to, and what a program reads of them."""

from __future__ import annotations

import pytest

from hermit.run.doctor.finding import Finding, Level, verdict

FIT = Finding("right", True, "here", "never said")
WITHOUT = Finding("an extra", False, "none", "get it", needed=False)
BEST_EFFORT = Finding("Sand-box 2", False, "none", "cure", unconfined=True)
UNFIT = Finding("room", False, "none", "make room")


@pytest.mark.parametrize(
    ("findings", "level"),
    [
        ((), Level.FIT),
        ((FIT, WITHOUT), Level.FIT),
        ((FIT, WITHOUT, BEST_EFFORT), Level.BEST_EFFORT),
        ((UNFIT, FIT, BEST_EFFORT), Level.UNFIT),
    ],
)
def test_the_worst_of_what_is_needed_decides(findings: tuple[Finding, ...], level: Level) -> None:
    assert verdict(findings) is level


def test_each_finding_has_a_level_and_an_id_for_programs() -> None:
    assert [finding.level.value for finding in (FIT, WITHOUT, BEST_EFFORT, UNFIT)] == [
        "fit",
        "without",
        "best_effort",
        "unfit",
    ]
    assert BEST_EFFORT.as_json() == {
        "id": "sand_box_2",
        "level": "best_effort",
        "name": "Sand-box 2",
        "found": "none",
        "cure": "cure",
        "group": "",
    }
    assert FIT.as_json()["cure"] == ""
    assert Finding("words that may change", True, "", id="fixed").id == "fixed"
