"""How a training run goes on, and what it refuses to go on with."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from hermit.errors import ConfigError, Interrupted
from hermit.run import claim, steps, train, training

if TYPE_CHECKING:
    from tests.unit.run.conftest import School

SETTINGS = ("trainer.epochs=2",)


class Killed(BaseException):
    """Stands for a kill: nothing catches it."""


@pytest.fixture
def begun(school: School, monkeypatch: pytest.MonkeyPatch) -> School:
    """A run of four steps that was killed once two had been finished."""
    add = steps.add

    def killed(path: Any, lines: list[dict[str, Any]], line: dict[str, Any]) -> None:
        add(path, lines, line)
        if line["step"] == 2:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(steps, "add", killed)
        with pytest.raises(Killed):
            school.train(*SETTINGS)
    return school


def test_a_run_goes_on_after_its_last_finished_step(begun: School) -> None:
    assert begun.train(*SETTINGS)["steps"] == 4
    assert [call for call in begun.calls if call.startswith("step")] == ["step 1", "step 2", "step 3", "step 4"]
    assert len([call for call in begun.calls if call.startswith("attempt")]) == 8


def test_nothing_of_an_earlier_call_is_left_but_its_answer_and_output(begun: School) -> None:
    (begun.paths.root / "step_0002" / ".results.jsonl.x").touch()
    (begun.paths.root / "learning_material" / ".index.jsonl.x").touch()
    (begun.paths.root / "learning_material" / "step_0001" / ".check_feedback.json.x").touch()
    begun.train(*SETTINGS)
    left = {entry.name for number in (1, 2, 3) for entry in begun.paths.step(number).call.iterdir()}
    assert left == {"answer.json", "output"}
    assert {entry.name for entry in begun.paths.step(4).call.iterdir()} > {"adapter", "state", "home"}
    assert [path for path in begun.paths.root.rglob(".*") if path.name != ".git"] == []


def test_a_call_finds_what_the_call_before_left_where_the_process_was_killed_between_them(
    school: School, monkeypatch: pytest.MonkeyPatch
) -> None:
    school.learns("""
    def step(self, ctx):
        seen = ctx.workspace.state / "seen"
        seen.write_text((seen.read_text() if seen.exists() else "") + str(ctx.progress.step))
        called("seen " + seen.read_text())
        return StepResult()
""")

    def killed(*_: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(steps, "add", killed)
        with pytest.raises(Killed):
            school.train()
    school.train()
    assert [call for call in school.calls if call.startswith("seen")] == ["seen 1", "seen 12"]


def test_two_runs_in_two_directories_give_the_same_commits_and_material(school: School, tmp_path: Any) -> None:
    school.train(*SETTINGS)
    first = school.git("for-each-ref", "--format=%(refname) %(objectname)")
    said = school.text("learning_material/index.jsonl")
    elsewhere = type(school)(tmp_path / "elsewhere")
    shutil.copytree(school.root, elsewhere.root, ignore=lambda _, names: {"runs", "calls"} & set(names))
    elsewhere.learns()
    elsewhere.train(*SETTINGS, "agent.concurrency=1")
    assert elsewhere.git("for-each-ref", "--format=%(refname) %(objectname)") == first
    assert elsewhere.text("learning_material/index.jsonl") == said


@pytest.mark.parametrize("seed", [1, 2])
def test_the_order_of_an_epoch_follows_from_the_seed_and_its_number(school: School, seed: int) -> None:
    def order(name: str) -> list[str]:
        plan = school.plan(
            "data.shuffle=true", f"data.shuffle_seed={seed}", "trainer.epochs=2", f"trainer.run_name={name}"
        )
        return ["".join(task.id for task in batch.tasks) for batch in plan.batches]

    assert order("one") == order("two")
    assert sorted("".join(order("one")[:2])) == sorted("".join(order("one")[2:])) == list("abcd")
    assert order("one")[:2] != order("one")[2:]


def test_a_run_that_has_ended_is_refused_and_another_name_is_not(school: School) -> None:
    said = school.train("data.step_size=4")
    before = sorted(school.paths.root.rglob("*"))
    with pytest.raises(ConfigError, match="this training run has ended"):
        school.train("data.step_size=4")
    assert sorted(school.paths.root.rglob("*")) == before
    again = school.train("data.step_size=4", "trainer.run_name=two")
    assert again["commit"] == said["commit"]


def test_a_run_that_was_begun_is_refused_where_it_is_never_to_go_on(begun: School) -> None:
    with pytest.raises(ConfigError, match="this training run has begun"):
        begun.train(*SETTINGS, "trainer.resume_mode=never")
    assert begun.train(*SETTINGS, "trainer.resume_mode=required")["steps"] == 4


def test_a_run_that_is_to_go_on_has_to_be_there_and_nothing_is_created(school: School) -> None:
    with pytest.raises(ConfigError, match="there is no training run to go on with"):
        school.train("trainer.resume_mode=required")
    assert not (school.root / "runs").exists()


def change_judge(school: School) -> None:
    (school.root / "judge.py").write_text("def score(task, output): return 1\n")


def change_agent(school: School) -> None:
    (school.root / "agent.py").write_text((school.root / "agent.py").read_text() + "# other\n")


def change_learner(school: School) -> None:
    (school.root / "learner" / "more.py").touch()


def change_split(school: School) -> None:
    (school.root / "data" / "train.txt").write_text("a\nb\nd\nc\n")


def change_tasks(school: School) -> None:
    file = school.root / "data" / "tasks.jsonl"
    file.write_text(file.read_text().replace('"n": 7', '"n": 8'))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (change_judge, "contents.judge.path changed"),
        (change_agent, "contents.agent.name changed"),
        (change_learner, "contents.evolver.name changed"),
        (change_split, "contents.data.train changed"),
        (change_tasks, "contents.data.tasks changed"),
    ],
)
def test_a_run_does_not_go_on_with_something_else(begun: School, change: Any, named: str) -> None:
    change(begun)
    with pytest.raises(ConfigError, match=named):
        begun.train(*SETTINGS)


@pytest.mark.parametrize(
    "setting", ["trainer.epochs=3", "data.step_size=4", "evolver.params.x=1", "evolver.resume=true"]
)
def test_a_run_does_not_go_on_with_another_config(begun: School, setting: str) -> None:
    with pytest.raises(ConfigError, match="this run holds results of something else: settings"):
        begun.train(*SETTINGS, setting)


def test_budgets_and_what_is_kept_may_change_and_so_may_what_is_tested_on(begun: School) -> None:
    (begun.root / "data" / "test.txt").write_text("h\n")
    settings = ("trainer.budget.usd=2", "trainer.call_timeout_min=5", "trainer.save_freq.steps=1", "eval.repeats=5")
    said = begun.train(*SETTINGS, *settings, "agent.concurrency=1")
    assert (said["steps"], said["stopped"]) == (2, "trainer.budget.usd is used up: 2 of 2")


def test_a_tree_that_holds_none_of_the_run_is_refused(begun: School) -> None:
    with pytest.raises(ConfigError, match="the tree has no version"):
        begun.train(*SETTINGS, f"trainer.tree_dir={begun.root / 'other-tree'}")


def test_a_config_may_change_as_long_as_nothing_was_made(school: School, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(train.Training, "run", lambda _: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            school.train("data.step_size=1")
    assert school.paths.lock.exists()
    assert school.train("data.step_size=4")["steps"] == 1


def test_a_line_that_is_no_step_is_refused_by_its_number(begun: School) -> None:
    begun.paths.steps.write_text(begun.paths.steps.read_text() + "{}\n")
    with pytest.raises(ConfigError, match="this is no step of a training run") as refused:
        begun.train(*SETTINGS)
    assert refused.value.where.endswith("steps.jsonl, line 3")


def test_another_process_may_not_work_in_the_run(school: School) -> None:
    with (
        claim.held(school.paths.root),
        pytest.raises(ConfigError, match="another process works in this run"),
    ):
        school.train()


def test_a_run_that_is_given_up_keeps_what_was_finished_and_goes_on(school: School) -> None:
    school.learns("""
    def step(self, ctx):
        called(f"step {ctx.progress.step}")
        if ctx.progress.step == 2 and not os.path.exists(BASE + "/again"):
            open(BASE + "/again", "w").close()
            os.kill(os.getppid(), 2)
            import time
            time.sleep(600)
        return StepResult(summary="done")
""")
    with pytest.raises(Interrupted):
        school.train()
    assert [line["step"] for line in school.lines] == [1]
    assert school.train()["steps"] == 2
    assert [call for call in school.calls if call.startswith("step")] == ["step 1", "step 2", "step 2"]
    assert len([call for call in school.calls if call.startswith("attempt")]) == 4, "no attempt is made twice"


def test_only_what_cannot_change_a_result_may_change() -> None:
    assert set(training.MAY_CHANGE) == {
        "budget",
        "resume_mode",
        "output_dir",
        "tree_dir",
        "run_name",
        "call_timeout_min",
        "save_freq",
    }


def test_the_lock_holds_no_key(school: School, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_API_KEY", "sk-0123456789-of-a-model")
    plan = school.plan("evolver.params.key=sk-0123456789-of-a-model")
    assert "sk-0123456789" not in json.dumps(plan.lock)
