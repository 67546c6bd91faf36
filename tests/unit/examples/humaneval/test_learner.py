from __future__ import annotations

import json
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from hermit.adapter import files, spec, template

from .conftest import EXAMPLE, load

if TYPE_CHECKING:
    from pathlib import Path

PASSED = ("passed", "every test passed")
NAME = ("exception", "solution.py does not define the function f")
IMPORT = ("exception", "loading solution.py raised NameError: name 'List' is not defined")
TAB = ("syntax", "solution.py is not Python: inconsistent use of tabs and spaces in indentation")
NONE = ("assertion", "a test failed on what call 1 returned")
NOT_USED = ("exception", "a test could not use what call 1 returned: TypeError")
OTHER = ("timeout", "the tests did not end within 10 s")


@pytest.fixture
def learner() -> ModuleType:
    return load(EXAMPLE / "learner" / "learner.py")


@pytest.fixture
def context(tmp_path: Path) -> Any:
    (tmp_path / "adapter").mkdir()
    template.named("skills-and-tools").files.write(str(tmp_path / "adapter"))
    (tmp_path / "material" / "current" / "tasks").mkdir(parents=True)
    workspace = SimpleNamespace(adapter=tmp_path / "adapter", learning_material=tmp_path / "material")
    return SimpleNamespace(workspace=workspace)


def say(context: Any, *verdicts: tuple[str, str]) -> None:
    """What the material holds of the last step's attempts."""
    for number, (outcome, feedback) in enumerate(verdicts):
        attempt = {"score": float(outcome == "passed"), "feedback": feedback, "extra": {"outcome": outcome}}
        path = context.workspace.learning_material / "current" / "tasks" / f"{number}.json"
        path.write_text(json.dumps({"attempts": [attempt]}))


def rules_in(learner: ModuleType, context: Any) -> list[str]:
    text = (context.workspace.adapter / learner.SKILL).read_text()
    return [line for line in text.splitlines() if line.startswith("- ")]


@pytest.mark.parametrize(
    ("verdict", "words"),
    [(NAME, "the name"), (IMPORT, "the imports"), (TAB, "spaces"), (NONE, "a return"), (NOT_USED, "a return")],
)
def test_each_failure_has_its_rule(learner: ModuleType, context: Any, verdict: tuple[str, str], words: str) -> None:
    say(context, PASSED, verdict)
    learner.Learner().step(context)
    (rule,) = rules_in(learner, context)
    assert words in rule


def test_every_rule_is_one_that_the_agent_has_a_technique_for(learner: ModuleType) -> None:
    assert {rule for *_, rule in learner.LESSONS} == set(load(EXAMPLE / "skilled.py").TECHNIQUES)


def test_the_rule_that_most_attempts_need_comes_first(learner: ModuleType, context: Any) -> None:
    say(context, TAB, NAME, NAME)
    result = learner.Learner().step(context)
    assert [rule[:12] for rule in rules_in(learner, context)] == ["- Give the f", "- Indent wit"]
    assert result.rationale.startswith("2 of 3 attempts failed for want of it: Give the function")


def test_a_rule_that_is_there_is_kept_and_not_written_again(learner: ModuleType, context: Any) -> None:
    say(context, NAME)
    learner.Learner().step(context)
    say(context, TAB)
    learner.Learner().step(context)
    before = (context.workspace.adapter / learner.SKILL).read_text()
    assert len(rules_in(learner, context)) == 2
    learner.Learner().step(context)
    assert (context.workspace.adapter / learner.SKILL).read_text() == before


def test_where_no_rule_helps_the_adapter_stays_as_it_is(learner: ModuleType, context: Any) -> None:
    say(context, PASSED, OTHER)
    assert learner.Learner().step(context).summary == "No failure asks for another rule"
    assert not (context.workspace.adapter / learner.SKILL).exists()


def test_an_attempt_without_a_verdict_teaches_nothing(learner: ModuleType) -> None:
    assert learner.lesson_of({"score": 0.0, "feedback": "", "extra": {}}) is None


def test_the_skill_falls_under_the_rules_of_the_template(learner: ModuleType, context: Any) -> None:
    say(context, NAME, IMPORT, TAB, NONE)
    learner.Learner().step(context)
    ours = template.named("skills-and-tools")
    reading = files.read(str(context.workspace.adapter), structure=ours.manifest.structure)
    assert learner.SKILL in reading.files.paths
    assert spec.examined(reading, ours).failed == ()
