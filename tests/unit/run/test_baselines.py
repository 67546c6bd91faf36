"""A judge that cannot tell right from wrong is found before a run: the reference must pass, the empty agent must fail."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from hermit import sandbox as sandboxes
from hermit.errors import ConfigError, Interrupted, SandboxError
from hermit.run import baselines, trial

if TYPE_CHECKING:
    from hermit.run.doctor.finding import Finding

JUDGE = (
    "def score(task, output): return {'score': float(output.output == task['n']), 'feedback': f'got {output.output}'}\n"
)
REFERENCE = "from hermit import RunOutput\ndef right(task, adapter): return RunOutput(task['n'])\n"
EMPTY = "from hermit import RunOutput\ndef none(task, adapter): return RunOutput('')\n"
BOTH = ("check.reference=reference.py:right", "check.empty=empty.py:none")


@pytest.fixture
def made(run: Any) -> Any:
    """A run whose config can name a reference and an empty agent."""
    (run.root / "judge.py").write_text(JUDGE)
    (run.root / "reference.py").write_text(REFERENCE)
    (run.root / "empty.py").write_text(EMPTY)
    return run


def tried(made: Any, *overrides: str) -> list[Finding]:
    """What came of the baselines of a config with these overrides, without a sandbox."""
    place = sandboxes.unconfined("a test of the baselines")
    return [found for each in baselines.planned(made.plan(*overrides)) for found in baselines.tried(each, place)]


def told(findings: list[Finding]) -> list[tuple[str, str, bool]]:
    return [(finding.id, finding.name, finding.ok) for finding in findings]


def test_a_judge_that_tells_right_from_wrong_has_both_and_leaves_nothing(made: Any) -> None:
    before = made.files()
    found = tried(made, *BOTH)
    assert told(found) == [("reference_passes", "reference", True), ("empty_fails", "empty", True)]
    assert [finding.found for finding in found] == [
        "3 of 3 tasks pass, as they must",
        "3 of 3 tasks fail, as they must",
    ]
    assert made.files() == before
    assert list(made.scratch.iterdir()) == []


def test_a_config_that_names_none_tries_none(made: Any) -> None:
    assert tried(made) == []
    assert told(tried(made, BOTH[1])) == [("empty_fails", "empty", True)]


def test_a_few_tasks_are_tried_and_as_many_as_are_asked_for(made: Any) -> None:
    assert tried(made, *BOTH, "check.tasks=2")[0].found.startswith("2 of 2 tasks")
    assert tried(made, *BOTH, "check.tasks=50")[0].found.startswith("3 of 3 tasks")


def test_a_judge_that_is_wired_wrongly_is_found_by_each_task_of_the_reference(made: Any) -> None:
    (made.root / "judge.py").write_text("def score(task, output): return {'score': 0, 'feedback': 'no\\x1b[2J'}\n")
    found = tried(made, *BOTH, "check.tasks=2")
    assert told(found) == [
        ("reference_passes", "reference, task t/0", False),
        ("reference_passes", "reference, task t/1", False),
        ("empty_fails", "empty", True),
    ]
    assert found[0].found == "score 0, and 1 passes; the judge says: no\\x1b[2J"
    assert "correct the judge" in found[0].cure


def test_a_judge_that_pays_for_nothing_is_found_by_each_task_of_the_empty_agent(made: Any) -> None:
    (made.root / "judge.py").write_text("def score(task, output): return 1\n")
    found = tried(made, *BOTH, "check.tasks=1")
    assert told(found) == [("reference_passes", "reference", True), ("empty_fails", "empty, task t/0", False)]
    assert "score 1, and 1 passes: the judge pays for nothing" in found[1].found
    assert found[1].needed


def test_what_passes_is_the_configs_to_say(made: Any) -> None:
    (made.root / "judge.py").write_text("def score(task, output): return 0.7 if output.output == task['n'] else 0.3\n")
    assert [finding.ok for finding in tried(made, *BOTH, "check.passes=0.5", "check.tasks=1")] == [True, True]
    assert [finding.ok for finding in tried(made, *BOTH, "check.tasks=1")] == [False, True]
    assert [finding.ok for finding in tried(made, *BOTH, "check.passes=0.2", "check.tasks=1")] == [True, False]


@pytest.mark.parametrize(
    ("file", "source", "words"),
    [
        (
            "empty.py",
            "def none(task, adapter): raise RuntimeError('why')",
            "agent_error in the phase agent, exception: ",
        ),
        (
            "judge.py",
            "def score(task, output): return len(output.output) / 0",
            "judge_error in the phase judge, exception: ",
        ),
    ],
)
def test_an_empty_agent_that_the_judge_had_no_word_on_has_shown_nothing(
    made: Any, file: str, source: str, words: str
) -> None:
    (made.root / file).write_text(source)
    (finding,) = tried(made, BOTH[1], "check.tasks=1")
    assert not finding.ok
    assert words in finding.found
    assert "check.empty" in finding.cure or "score 0, and no error" in finding.cure


def test_a_sandbox_that_breaks_is_no_word_of_the_judges_either(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise SandboxError("it fell over", cause="check")

    monkeypatch.setattr(trial.Trial, "act", fail)
    found = tried(made, *BOTH, "check.tasks=1")
    assert [finding.ok for finding in found] == [False, False]
    assert "sandbox_error in the phase start, check: it fell over" in found[1].found


def test_ctrl_c_is_passed_on(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def give_up(*_: Any) -> None:
        raise Interrupted("given up")

    monkeypatch.setattr(trial.Trial, "act", give_up)
    with pytest.raises(Interrupted):
        tried(made, *BOTH)


def test_a_directory_of_solutions_is_a_reference_too(made: Any) -> None:
    solutions = made.root / "solutions"
    (solutions / "t%2F1" / "deep").mkdir(parents=True)
    (solutions / "t%2F1" / "deep" / "answer").write_text("files")
    (solutions / "t%2F0.json").write_text("0")
    (made.root / "judge.py").write_text(
        "import os\n"
        "def score(task, output):\n"
        "    left = os.path.join(os.environ['HERMIT_WORK'], 'deep', 'answer')\n"
        "    return 1 if output.output == task['n'] or os.path.exists(left) else 0\n"
    )
    found = tried(made, "check.reference=solutions", "check.empty=hermit.agent.solution:nothing", "check.tasks=2")
    assert [finding.ok for finding in found] == [True, True], found
    (missing,) = tried(made, "check.reference=solutions", "check.tasks=3")
    assert missing.name == "reference, task t/2"
    assert "there is no solution of this task" in missing.found


def test_an_agent_that_left_nothing_of_what_the_judge_needs_has_failed_as_it_must(made: Any) -> None:
    overrides = ("judge.mode=separate", "judge.collect=[answer]", "check.empty=hermit.agent.solution:nothing")
    (finding,) = tried(made, *overrides)
    assert finding.ok, finding


def test_what_the_reference_reads_is_a_secret_to_every_agent(made: Any) -> None:
    (made.root / "answers").mkdir()
    plan = made.plan(*BOTH, "check.read=[answers]")
    kept = {(secret.key, os.path.basename(secret.path)) for secret in plan.secrets}
    assert {("check.read", "answers"), ("check.reference", "reference.py")} <= kept
    reference, empty = baselines.planned(plan)
    assert "answers" in {path.name for path in reference.plan.config.environment.read}
    assert not {"check.read", "check.reference"} & {secret.key for secret in reference.plan.secrets}
    assert "answers" not in {path.name for path in empty.plan.config.environment.read}
    assert ("check.read", "answers") in {(s.key, os.path.basename(s.path)) for s in empty.plan.secrets}


def test_an_agent_that_would_see_the_reference_is_refused(made: Any) -> None:
    (made.root / "answers").mkdir()
    for shown in ("answers", "reference.py", "."):
        with pytest.raises(ConfigError, match=r"check.read|check.reference|data.tasks"):
            made.plan(*BOTH, "check.read=[answers]", f"environment.read=[{shown}]")


def test_a_reference_that_is_the_agents_own_file_is_no_secret(made: Any) -> None:
    plan = made.plan("agent.name=reference.py:right", BOTH[0])
    assert "check.reference" not in {secret.key for secret in plan.secrets}


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("check.reference=absent.py:right", "check.reference"),
        ("check.empty=empty.py:other", "check.empty"),
        ("check.reference=nowhere", "check.reference"),
        ("check.reference=data", "check.reference"),
    ],
)
def test_a_baseline_that_cannot_be_tried_is_refused_by_its_own_key(made: Any, override: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        baselines.planned(made.plan(override))
    assert caught.value.where.startswith(words)
    assert caught.value.cure
