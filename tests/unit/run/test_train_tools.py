"""What a learner may ask for during its call: rollouts and checks, logged, counted, and paid for by the budget."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.unit.run.conftest import School

ASKS = """
    def step(self, ctx):
        tools = ctx.tools
        (ctx.workspace.scratch / "other").mkdir(exist_ok=True)
        for name in os.listdir(ctx.workspace.adapter):
            (ctx.workspace.scratch / "other" / name).write_text((ctx.workspace.adapter / name).read_text())
        with open(ctx.workspace.scratch / "other" / "ADAPTER.md", "a") as page:
            page.write("rule of a try\\n" * 3)
        tried = tools["run_agent"]({"tasks": ["a", "b", "a"], "adapter": "scratch/other"})
        called("scores " + " ".join(str(each["score"]) for each in tried["attempts"]))
        try:
            tools["run_agent"]({"tasks": ["a", "g"]})
        except Exception as error:
            called(f"refused {error}")
        (ctx.workspace.adapter / "more").write_text("")
        called(f"passed {tools['check_spec']()['passed']}")
        return StepResult()
"""


def test_rollouts_are_made_with_the_adapter_that_was_named_metered_and_counted_for_the_budget(school: School) -> None:
    school.learns(ASKS)
    (school.root / "agent.py").write_text(
        (school.root / "agent.py").read_text().replace("cost_usd=0.5", "cost_usd=0.5 if task['id'] != 'b' else None")
    )
    said = school.train("data.step_size=2", "trainer.budget.tokens=40")
    assert [call for call in school.calls if not call.startswith("attempt")] == [
        "scores 0.3 0.3",
        "refused argument: 'g' is no task of the training split",
        "passed False",
    ]
    (line,) = school.lines
    meter = line["learner"]["tools"]["run_agent"]
    assert (meter["calls"], meter["failed"]) == (2, 1)
    assert (meter["cost_usd"], meter["unknown_cost"], meter["tokens"]) == (0.5, 1, 20)
    assert (said["cost_usd"], said["tokens"], said["unknown_cost_calls"]) == (1.0, 40, 2)
    assert said["stopped"] == "trainer.budget.tokens is used up: 40 of 40"
    rows = [json.loads(row) for row in school.text("step_0001/tools.jsonl").splitlines()]
    assert [(row["tool"], row["status"]) for row in rows] == [
        ("run_agent", "ok"),
        ("run_agent", "argument"),
        ("check_spec", "ok"),
    ]
    assert len(school.text("step_0001/run_agent/1/results.jsonl").splitlines()) == 2


def test_rollouts_of_each_step_are_counted_from_one(school: School) -> None:
    school.learns("""
    def step(self, ctx):
        ctx.tools["run_agent"]({"tasks": ["a"]})
        return StepResult()
""")
    school.train()
    found = sorted(str(path.relative_to(school.paths.root)) for path in school.paths.root.glob("step_*/run_agent/*"))
    assert found == ["step_0001/run_agent/1", "step_0002/run_agent/1"]


LOOKS = """
    def step(self, ctx):
        rows = (ctx.access.validation / "tasks.jsonl").read_text().splitlines()
        called(f"validation {len(rows)} {'b' in rows[0]}")
        called("notes " + ctx.access.environment["notes.txt"].read_text())
        called(f"doubled {ctx.tools['doubled']({'n': 4})}")
        return StepResult()
"""


def test_a_learner_gets_the_validation_split_the_environment_and_the_tasks_tools_that_the_config_gives_it(
    school: School,
) -> None:
    (school.root / "data" / "val.txt").write_text("e\nf\n")
    (school.root / "notes.txt").write_text("of the task")
    (school.root / "tools.py").write_text("def doubled(argument): return argument['n'] * 2\n")
    school.learns(LOOKS, said="class: learner.py:Learner\nneeds: [validation_data, environment]\n")
    given = (
        "data.val=data/val.txt",
        "data.step_size=4",
        "evolver_access.environment=[notes.txt]",
        "evolver_access.tools=['tools.py:doubled']",
    )
    school.train(*given)
    said = [call for call in school.calls if not call.startswith("attempt")]
    assert said == ["validation 2 False", "notes of the task", "doubled 8"]
    assert school.lines[0]["learner"]["tools"]["doubled"]["calls"] == 1
