"""What `hermit check` says of a config that trains."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermit.run import train_check

if TYPE_CHECKING:
    from hermit.run.doctor.finding import Finding
    from tests.unit.run.conftest import School


def found(school: School, *overrides: str) -> dict[str, Finding]:
    config = school.config(*overrides)
    return {each.id: each for each in train_check.findings(config, config_file=school.root / "run.yaml")}


def test_a_config_that_can_train_is_fit_and_nothing_is_created_or_called(school: School) -> None:
    before = sorted(school.root.rglob("*"))
    assert [(name, each.ok) for name, each in found(school).items()] == [
        ("template", True),
        ("learner", True),
        ("training_budget", True),
        ("training_run", True),
    ]
    assert sorted(school.root.rglob("*")) == before


def test_a_config_without_a_learner_has_no_finding_of_it(school: School) -> None:
    assert found(school, "evolver.name=null") == {}


@pytest.mark.parametrize(
    ("override", "named"),
    [
        ("template=nothing", "template"),
        ("evolver.name=nothing", "learner"),
        ("data.train=null", "learner"),
        ("template=null", "learner"),
    ],
)
def test_what_is_missing_is_one_finding_with_a_cure(school: School, override: str, named: str) -> None:
    *_, last = found(school, override).values()
    assert (last.id, last.ok, bool(last.cure), last.level.value) == (named, False, True, "unfit")


def test_a_learner_that_needs_what_the_config_does_not_name_is_told(school: School) -> None:
    school.learns(said="class: learner.py:Learner\nneeds: [validation_data]\n")
    assert "needs validation data" in found(school)["learner"].found
    (school.root / "data" / "val.txt").write_text("e\n")
    assert found(school, "data.val=data/val.txt")["learner"].ok


def test_a_learner_with_models_and_no_bound_is_pointed_out(school: School, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789-of-a-model")
    unbounded = found(school, "evolver.params.model=openai/x")["training_budget"]
    assert (unbounded.ok, unbounded.needed) == (False, False)
    assert found(school, "evolver.params.model=openai/x", "trainer.budget.usd=3")["training_budget"].ok


def test_a_run_that_has_ended_or_is_of_something_else_is_told_and_no_fault(school: School) -> None:
    school.train("data.step_size=4")
    ended = found(school, "data.step_size=4")["training_run"]
    assert (ended.ok, ended.needed, "has ended" in ended.found) == (False, False, True)
    school.paths.summary.unlink()
    assert found(school, "data.step_size=4")["training_run"].found == "one goes on"
    assert "something else" in found(school, "data.step_size=2")["training_run"].found
