"""A training run as a whole, without a sandbox: its steps, what it leaves, and how it ends."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hermit import sandbox as sandboxes
from hermit.errors import ConfigError, HermitError, SandboxError
from hermit.run import train

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.run.conftest import School

ONE_STEP = "data.step_size=4"
STEPS = ("data.step_size=1", "trainer.epochs=1")
WHOLE = """
    def setup(self, ctx):
        called("setup")
        (ctx.workspace.state / "seen").write_text("setup")
    def bootstrap(self, ctx):
        called(f"bootstrap {ctx.progress.step} {ctx.progress.epoch}")
        add(ctx, "rule of the bootstrap")
        return StepResult(summary="prepared", rationale="to begin with")
    def step(self, ctx):
        seen = ctx.workspace.state / "seen"
        called(f"step {ctx.progress.step} {ctx.progress.is_epoch_end} {seen.read_text()} {ctx.session}")
        seen.write_text(seen.read_text() + f" {ctx.progress.step}")
        add(ctx, f"rule {ctx.progress.step}")
        (ctx.workspace.output / "note").write_text(f"after {ctx.progress.step}")
        return StepResult(summary=f"rule {ctx.progress.step}", session={"of": ctx.progress.step}, usage={"cost_usd": 1.0})
    def finalize(self, ctx):
        called(f"finalize {(ctx.workspace.state / 'seen').read_text()} {ctx.session}")
        add(ctx, "rule of the end")
        return FinalResult(summary="ended", usage={"cost_usd": 2.0, "tokens": 5})
"""


def status(word: str) -> str:
    return f"""
    def step(self, ctx):
        called(f"step {{ctx.progress.step}}")
        return StepResult(status={word!r}, summary="said so")
"""


def test_a_step_scores_the_adapter_it_began_with_and_the_next_one_what_it_left(school: School) -> None:
    said = school.train()
    first, second = school.lines
    assert (first["mean_score"], second["mean_score"]) == (0.0, 0.1)
    assert (said["first_score"], said["last_score"], said["steps"], said["stopped"]) == (0.0, 0.1, 2, "")
    root = school.git("rev-parse", "root")[0]
    assert (first["adapter"], second["adapter"], second["commit"]) == (root, first["commit"], said["commit"])
    assert school.git("show", f"{said['commit']}:ADAPTER.md")[-2:] == ["rule 1", "rule 2"]
    assert (first["tasks"], second["tasks"]) == (["a", "b"], ["c", "d"])


def test_every_call_is_made_once_in_order_and_finds_what_the_last_one_left(school: School) -> None:
    school.learns(WHOLE)
    said = school.train("evolver.resume=true")
    calls = [call for call in school.calls if not call.startswith("attempt")]
    assert calls == [
        "setup",
        "bootstrap 0 1",
        "step 1 False setup None",
        "step 2 True setup 1 {'of': 1}",
        "finalize setup 1 2 {'of': 2}",
    ]
    assert [line["step"] for line in school.lines] == [0, 1, 2]
    assert [line.get("mean_score") for line in school.lines] == [None, 0.1, 0.2]
    assert school.git("log", "--format=%s", "one") == [
        f"Step {number}: {words}" for number, words in ((3, "ended"), (2, "rule 2"), (1, "rule 1"), (0, "prepared"))
    ] + ["The template prompt-only 1"]
    assert said["final"]["outcome"] == "kept"
    assert (said["cost_usd"], said["tokens"]) == (2.0 + 2 * 1.0 + 2.0, 45)


def test_a_session_is_handed_on_where_the_config_says_so_alone(school: School) -> None:
    school.learns(WHOLE)
    school.train()
    assert [call for call in school.calls if call.endswith("None")] == [
        "step 1 False setup None",
        "step 2 True setup 1 None",
        "finalize setup 1 2 None",
    ]


def test_a_run_leaves_the_files_that_the_reference_names_and_no_others(school: School) -> None:
    school.learns(WHOLE)
    school.train()
    found = {str(path.relative_to(school.paths.root)) for path in school.paths.root.rglob("*") if not path.is_dir()}
    found = {name for name in found if not name.startswith("sandbox/")}
    step = {"learner/answer.json", "learner/output/note", "check_feedback.json", "change.diff"}
    rollouts = {"results.jsonl", "summary.json"}
    wanted = {"steps.jsonl", "summary.json", "lock.json", "step_0000/setup/learner/answer.json"}
    wanted |= {
        f"checkout/{name}" for name in (".git", "ADAPTER.md", "CARD.md", "EVOLVER.md", "README.md", "adapter.yaml")
    }
    wanted |= {f"step_0000/{name}" for name in step - {"learner/output/note"}}
    wanted |= {f"step_{number:04d}/{name}" for number in (1, 2) for name in step | rollouts}
    wanted |= {f"final/{name}" for name in step}
    wanted |= {f"final/learner/adapter/{name}" for name in ("ADAPTER.md", "EVOLVER.md", "README.md", "adapter.yaml")}
    wanted |= {"final/learner/state/seen"}
    wanted |= {f"learning_material/{name}" for name in ("README.md", "index.jsonl")}
    wanted |= {"learning_material/step_0000/check_feedback.json"}
    for number, tasks in ((1, "ab"), (2, "cd")):
        names = ("summary.json", "check_feedback.json", *(f"tasks/{task}.json" for task in tasks))
        wanted |= {f"learning_material/step_{number:04d}/{name}" for name in names}
    assert found == wanted


@pytest.mark.parametrize(
    ("save", "tags"),
    [
        ("{epochs: 1}", {"step_0002", "step_0004"}),
        ("{epochs: 2}", {"step_0004"}),
        ("{steps: 1, epochs: null}", {"step_0001", "step_0002", "step_0003", "step_0004"}),
        ("{steps: 3, epochs: null}", {"step_0003"}),
    ],
)
def test_checkpoints_are_tagged_as_often_as_the_config_says(school: School, save: str, tags: set[str]) -> None:
    school.train("trainer.epochs=2", f"trainer.save_freq={save}")
    named = {line.rpartition("/")[2] for line in school.git("tag", "--list", "one/*")}
    assert named == {*tags, "final"}
    by_step = {f"step_{line['step']:04d}": line for line in school.lines}
    for tag in tags:
        assert school.git("rev-parse", f"one/{tag}") == [by_step[tag]["commit"]]
        assert by_step[tag]["checkpoint"] == f"one/{tag}"


FAILURES = {
    "exception": 'raise ValueError("no idea")',
    "exit": "import sys; sys.exit(3)",
    "signal": "os.kill(os.getpid(), 9)",
    "result: what it handed back": "return {'status': 'done'}",
    "result": "return StepResult(status='perfect')",
    "failed": "return StepResult(status='failed', summary='gave up')",
}


@pytest.mark.parametrize("cause", FAILURES)
def test_a_call_that_fails_costs_its_step_and_nothing_of_it_is_taken(school: School, cause: str) -> None:
    school.learns(f"""
    def step(self, ctx):
        add(ctx, "rule that is not taken")
        if ctx.progress.step == 1:
            {FAILURES[cause]}
        return StepResult(summary="better")
""")
    said = school.train()
    failed, fine = school.lines
    assert (failed["outcome"], failed["changed"], failed["learner"]["status"]) == ("not taken", False, "failed")
    if cause in ("exception", "exit", "signal"):
        assert failed["learner"]["error"].startswith(f"{cause}: ")
    assert (fine["outcome"], fine["learner"]["status"]) == ("kept", "done")
    assert school.git("show", f"{said['commit']}:ADAPTER.md").count("rule that is not taken") == 1
    assert (said["learner_failed"], said["outcomes"]) == (1, {"not taken": 1, "kept": 1})
    history = json.loads((school.paths.root / "steps.jsonl").read_text().splitlines()[0])
    assert history["mean_score"] == 0.0


def test_a_call_that_takes_too_long_is_stopped(school: School) -> None:
    school.learns("\n    def step(self, ctx):\n        import time\n        time.sleep(3600)\n")
    school.train(ONE_STEP, "trainer.call_timeout_min=0.01")
    assert school.lines[0]["learner"]["error"].startswith("timeout: it was stopped after")


def test_the_next_call_is_told_how_the_last_one_failed(school: School) -> None:
    school.learns("""
    def step(self, ctx):
        if ctx.progress.step == 1:
            raise ValueError("no idea")
        called((ctx.workspace.history / "index.jsonl").read_text().strip())
        return StepResult()
""")
    school.train()
    (line,) = [json.loads(call) for call in school.calls if call.startswith("{")]
    assert (line["step"], line["status"], line["outcome"]) == (1, "failed", "not taken")
    assert line["error"] == "exception: ValueError: no idea"


def test_three_failures_in_a_row_end_the_run_and_two_do_not(school: School) -> None:
    fails = (
        "\n    def step(self, ctx):\n        called('step')\n        if ctx.progress.step != {fine}: raise ValueError\n"
    )
    school.learns(fails.format(fine=3) + "        return StepResult()\n")
    said = school.train(*STEPS)
    assert (said["steps"], said["stopped"]) == (4, "")
    school.learns(fails.format(fine=4) + "        return StepResult()\n")
    again = school.train(*STEPS, "trainer.run_name=two")
    assert (again["steps"], again["stopped"]) == (3, "the learner failed 3 times in a row")


@pytest.mark.parametrize(
    ("word", "early", "steps"),
    [("out_of_budget", False, 1), ("stop", True, 1), ("stop", False, 2), ("done", True, 2)],
)
def test_a_learner_ends_the_run_where_it_may(school: School, word: str, early: bool, steps: int) -> None:
    school.learns(status(word))
    said = school.train(f"trainer.allow_early_stop={str(early).lower()}")
    assert (said["steps"], bool(said["stopped"])) == (steps, steps == 1)
    assert said["complete"] is True
    assert school.git("rev-parse", "one/final") == [said["commit"]]


@pytest.mark.parametrize(
    ("budget", "steps"),
    [("{usd: 0.5}", 1), ("{usd: 1.5}", 3), ("{usd: 100}", 4), ("{tokens: 20}", 2), ("{hours: 0.000001}", 1)],
)
def test_no_step_begins_once_the_budget_is_used_up(school: School, budget: str, steps: int) -> None:
    said = school.train(*STEPS, f"trainer.budget={budget}")
    assert said["steps"] == steps
    assert ("trainer.budget" in said["stopped"]) == (steps < 4)


def test_what_the_learner_says_it_used_counts_for_the_budget(school: School) -> None:
    school.learns("\n    def step(self, ctx):\n        return StepResult(usage={'cost_usd': 5.0, 'tokens': 7})\n")
    said = school.train(*STEPS, "trainer.budget.usd=5")
    assert (said["steps"], said["cost_usd"], said["tokens"]) == (1, 5.5, 17)


def test_an_agent_that_does_not_say_what_it_costs_counts_nothing_and_is_counted(school: School) -> None:
    code = (school.root / "agent.py").read_text().replace("cost_usd=0.5, ", "")
    (school.root / "agent.py").write_text(code)
    said = school.train(ONE_STEP, "trainer.budget.usd=0.1")
    assert (said["cost_usd"], said["unknown_cost_calls"]) == (0.0, 4)


def test_a_task_is_attempted_once_however_often_an_evaluation_would(school: School) -> None:
    school.train(ONE_STEP, "eval.repeats=3")
    assert sorted(call for call in school.calls if call.startswith("attempt")) == [f"attempt {name}" for name in "abcd"]


def test_a_learner_that_only_prepares_itself_has_a_step_0_that_changes_nothing(school: School) -> None:
    school.learns(STEP_AFTER_SETUP)
    school.train(ONE_STEP)
    assert (school.lines[0]["step"], school.lines[0]["outcome"], school.lines[0]["changed"]) == (0, "nothing", False)
    assert school.lines[1]["changed"] is True


STEP_AFTER_SETUP = """
    def setup(self, ctx):
        add(ctx, "rule of nobody")
        (ctx.workspace.state / "known").write_text("rule")
    def step(self, ctx):
        add(ctx, (ctx.workspace.state / "known").read_text())
        return StepResult()
"""


def test_a_learner_that_cannot_be_set_up_ends_the_run_which_goes_on_once_it_can(school: School) -> None:
    code = """
    def setup(self, ctx):
        called("setup")
        if not os.path.exists(BASE + "/ready"): raise ValueError("not yet")
    def step(self, ctx):
        return StepResult()
"""
    school.learns(code)
    with pytest.raises(HermitError, match="cannot be set up: exception: ValueError: not yet"):
        school.train(ONE_STEP)
    assert not school.paths.steps.exists()
    (school.root / "ready").touch()
    assert school.train(ONE_STEP)["steps"] == 1
    assert school.calls.count("setup") == 2


def test_the_last_call_fails_and_the_run_ends_with_what_was_there_and_says_so(school: School) -> None:
    school.learns(WHOLE.replace('add(ctx, "rule of the end")', 'add(ctx, "rule"); raise ValueError("no end")'))
    said = school.train(ONE_STEP)
    assert (said["final"]["status"], said["final"]["outcome"]) == ("failed", "not taken")
    assert said["final"]["error"] == "exception: ValueError: no end"
    assert said["commit"] == school.lines[-1]["commit"]


def test_a_step_in_which_every_sandbox_broke_ends_the_run_and_is_made_once_they_do_not(school: School) -> None:
    class Broken:
        confined = False

        def run(self, sandbox: Any, command: Any, **more: Any) -> Any:
            if sandbox.role == "task":
                raise SandboxError("the engine went away", cause="engine")
            return sandboxes.unconfined("a test").backend.run(sandbox, command, **more)

    with pytest.raises(SandboxError, match="no attempt of step 1 has a score: the engine went away"):
        school.train(place=sandboxes.Place(Broken()))
    assert not school.paths.steps.exists()
    assert school.calls == []
    assert school.train()["steps"] == 2
    assert len([call for call in school.calls if call.startswith("attempt")]) == 4


def test_an_adapter_to_start_from_is_the_first_version(school: School, tmp_path: Path) -> None:
    start = started(school, tmp_path)
    said = school.train(ONE_STEP, f"start_from={start}")
    assert said["first_score"] == 0.1
    assert school.git("log", "--format=%s", "one")[1] == "The version that start_from names"


def started(school: School, tmp_path: Path, *, name: str = "start") -> Path:
    start = tmp_path / name
    start.mkdir()
    school.plan().template.files.write(str(start))
    with (start / "ADAPTER.md").open("a") as page:
        page.write("rule to start with\n")
    return start


def spoil_fixed(start: Path) -> None:
    (start / "README.md").write_text("other")


def spoil_more(start: Path) -> None:
    (start / "more.py").write_text("")


def spoil_link(start: Path) -> None:
    (start / "ADAPTER.md").unlink()
    (start / "ADAPTER.md").symlink_to("/etc/hostname")


@pytest.mark.parametrize("spoil", [spoil_fixed, spoil_more, spoil_link])
def test_an_adapter_to_start_from_that_breaks_the_rules_is_refused_and_can_be_corrected(
    school: School, tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    start = started(school, tmp_path)
    spoil(start)
    with pytest.raises(ConfigError, match="it breaks the template's rules"):
        school.train(ONE_STEP, f"start_from={start}")
    assert school.calls == []
    good = started(school, tmp_path, name="good")
    assert school.train(ONE_STEP, f"start_from={good}")["first_score"] == 0.1


def test_so_many_failures_are_three() -> None:
    assert train.MOST_FAILURES == 3
