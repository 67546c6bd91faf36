"""`hermit check` over a whole task set: its baselines, in sandboxes, and what its agents are shown."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.bwrap

CONFIG = Path(__file__).parents[2] / "examples" / "humaneval" / "run.yaml"
AGENT = """
import os
from hermit import RunOutput
def run(task, adapter, params):
    return RunOutput(sorted(path for path in params["paths"] if os.path.exists(path)))
"""
JUDGE = """
import os
def score(task, output):
    with open(os.path.join(os.environ["HERMIT_WORK"], "answer")) as file:
        return {"score": float(file.read() == task["id"]), "feedback": "read"}
"""
LINES = """
agent: {name: "agent.py:run"}
judge: {path: judge.py, mode: separate, collect: [answer]}
check: {reference: solutions, empty: "hermit.agent.solution:nothing"}
"""


def checked(machine: Any, config: Any, *more: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """The exit code, and the findings by their ids."""
    said = machine.run("-m", "hermit", "check", "--config", str(config), "--json", *more)
    return said.code, {finding["id"]: finding for finding in json.loads(said.out)["findings"]}


def test_the_example_has_a_reference_that_passes_and_an_empty_agent_that_fails(machine: Any) -> None:
    code, found = checked(machine, CONFIG)
    assert code == 0
    assert found["reference_passes"]["found"] == "3 of 3 tasks pass, as they must"
    assert found["empty_fails"]["found"] == "3 of 3 tasks fail, as they must"
    assert "later_commits" not in found


def test_planted_failure_a_reference_that_is_none_and_an_empty_agent_that_is_right_are_found(machine: Any) -> None:
    swapped = ("check.reference=agent.py:empty", "check.empty=agent.py:reference", "check.tasks=1")
    code, found = checked(machine, CONFIG, *swapped)
    assert code == 3
    assert found["reference_passes"]["found"].startswith("score 0, and 1 passes; the judge says: ")
    assert found["reference_passes"]["name"] == "reference, task HumanEval/0"
    assert "the judge pays for nothing" in found["empty_fails"]["found"]


def test_solutions_are_shown_to_the_reference_and_to_no_agent(task_set: Callable[..., Any], machine: Any) -> None:
    made = task_set(AGENT, JUDGE, lines=LINES)
    (made.root / "solutions" / "a").mkdir(parents=True)
    (made.root / "solutions" / "a" / "answer").write_text("a")
    code, found = checked(machine, made.config, "agent.params.paths=[]")
    assert (found["reference_passes"]["level"], found["empty_fails"]["level"]) == ("fit", "fit")
    assert (code, found["first_task"]["level"]) == (3, "unfit"), "the agent itself leaves no answer here"
    paths = json.dumps([str(made.root / "solutions"), str(made.root / "solutions" / "a" / "answer")])
    mode = ("judge.mode=host", "judge.collect=[]", f"agent.params.paths={paths}")
    assert made.eval(*mode, "sandbox.enabled=false").code == 0
    assert len(made.rows[0]["output"]) == 2, "the agent looks at the right places"
    assert made.eval(*mode, "--fresh").code == 0
    assert made.rows[0]["output"] == []
    said = made.eval("agent.params.paths=[]", "environment.read=[solutions]")
    assert said.code == 2
    assert "check.reference" in said.err


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_history_that_agents_are_shown_past_head_is_pointed_out(task_set: Callable[..., Any], machine: Any) -> None:
    made = task_set(AGENT, JUDGE, lines=LINES)
    (made.root / "solutions").mkdir()
    project = made.root / "project"
    who = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    for words in (("init", "--quiet", str(project)), *(("commit", "--allow-empty", "--quiet", "-m", c) for c in "ab")):
        where = () if words[0] == "init" else ("-C", str(project))
        subprocess.run(["git", *where, *who, *words], check=True, capture_output=True)
    declared = "environment.read=[project]"
    code, found = checked(machine, made.config, "--no-probe", declared)
    assert (code, "later_commits" in found) == (0, False)
    subprocess.run(["git", "-C", str(project), "reset", "--quiet", "--hard", "HEAD~1"], check=True)
    code, found = checked(machine, made.config, "--no-probe", declared)
    assert code == 0
    assert found["later_commits"]["level"] == "without"
    assert (
        "the solution may be there (past HEAD: ORIG_HEAD, the reflog; not in HEAD: 1 commit)"
        in (found["later_commits"]["found"])
    )
