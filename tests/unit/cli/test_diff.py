"""`hermit diff`: what is better or worse in a second run, and what was another in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

TASKS = '{"id": "a", "n": 1}\n{"id": "b", "n": 0}\n'


@pytest.fixture
def runs(hermit: Callable[..., Any], config: Path) -> tuple[str, str]:
    """Two runs; the agent of the second solves the task that the first did not, and fails at the other."""
    hermit("eval", "--config", str(config))
    (config.parent / "agent.py").write_text(
        "from hermit import RunOutput\n"
        "def run(task, adapter):\n"
        "    if task['n']: raise RuntimeError('\\x1b[2J')\n"
        "    return RunOutput(1)\n"
    )
    hermit("eval", "--config", str(config), "trainer.run_name=two")
    return str(config.parent / "runs" / "one"), str(config.parent / "runs" / "two")


def test_the_tasks_that_differ_are_shown_with_what_ran_and_what_the_differences_say(
    hermit: Callable[..., Any], runs: tuple[str, str]
) -> None:
    said = hermit("diff", *runs)
    assert (said.code, said.err) == (0, "")
    lines = [line.split() for line in said.out.splitlines()]
    assert ["a", "lost", "1", "0", "solved", "->", "agent", "error"] in lines
    assert ["b", "won", "0", "1", "not", "solved", "->", "solved"] in lines
    assert any(line[:1] == ["contents.agent.name"] for line in lines)
    assert "difference   +0.0000 (95% interval -12.7062 to +12.7062)" in said.out
    assert "tasks now    1 won, 1 lost, 0 the same (sign test: p = 1)" in said.out
    assert "statuses     1 tasks came to another status" in said.out
    assert "note         2 attempts of one/none ran without a sandbox" in said.out


def test_json_is_one_document(hermit: Callable[..., Any], runs: tuple[str, str]) -> None:
    document = hermit("diff", *runs, "--json").document
    assert (document["before"], document["after"]) == ("one/none", "two/none")
    assert (document["won"], document["lost"], document["same"], document["difference"]) == (1, 1, 0, 0.0)
    assert [(pair["id"], pair["word"], pair["status_changed"]) for pair in document["pairs"]] == [
        ("a", "lost", True),
        ("b", "won", False),
    ]


def test_runs_that_cannot_be_compared_are_exit_2_and_one_message(
    hermit: Callable[..., Any], runs: tuple[str, str], config: Path
) -> None:
    (config.parent / "tasks.jsonl").write_text(TASKS.replace("0", "2"))
    hermit("eval", "--config", str(config), "trainer.run_name=three")
    said = hermit("diff", runs[0], runs[0].replace("one", "three"))
    assert (said.code, said.out) == (2, "")
    assert "cannot be compared" in said.err
    assert "score both on one file of tasks" in said.err


@pytest.fixture
def trained(runs: tuple[str, str]) -> tuple[str, str]:
    """Two training runs of a step each, whose evaluations of one name are those of the two runs."""
    for number, run in enumerate(runs):
        learner = {"status": "done", "summary": "", "usage": {}, "tools": {}, "wall_s": 1}
        line = {"step": 1, "epoch": 1, "adapter": "a", "commit": "b", "outcome": "kept", "learner": learner}
        line |= {"mean_score": 0.25 + number / 2, "wall_s": 2}
        (Path(run) / "steps.jsonl").write_text(f"{json.dumps(line)}\n")
    return runs


def test_two_training_runs_are_shown_step_by_step_and_on_the_test_split(
    hermit: Callable[..., Any], trained: tuple[str, str]
) -> None:
    said = hermit("diff", *trained)
    assert (said.code, said.err) == (0, "")
    lines = [line.split() for line in said.out.splitlines()]
    assert ["step", "1", "0.2500", "0.7500", "+0.5000"] in lines
    assert [
        *["none", "0.5000", "0.5000", "+0.0000", "-12.7062", "to", "+12.7062", "1", "1", "0", "p", "=", "1"]
    ] in lines
    assert f"hermit diff {trained[0]}/eval/none {trained[1]}/eval/none" in said.out
    assert "note         one has not ended" in said.out
    assert "run `hermit eval --adapter final`" in said.out
    assert hermit("diff", *trained, "--json").document["steps"][0]["difference"] == 0.5


def test_a_training_run_is_not_compared_with_an_evaluation(
    hermit: Callable[..., Any], trained: tuple[str, str]
) -> None:
    said = hermit("diff", trained[0], f"{trained[1]}/eval/none")
    assert (said.code, said.out) == (2, "")
    assert "name two training runs, or two evaluations" in said.err
    assert hermit("diff", f"{trained[0]}/eval/none", f"{trained[1]}/eval/none").code == 0
