"""`hermit check --attack` as somebody types it: the example holds in every mode, a weak judge is told what closes it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hermit.run.attack import cheats

from .conftest import EXAMPLE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.bwrap

SCORED = "from hermit import RunOutput\ndef run(task, adapter):\n    open('answer', 'w').write('42')\n    return RunOutput('42')\n"
WEAK = """
import json, os
def score(task, output):
    try:
        with open(os.path.join(os.environ["HERMIT_WORK"], "reward.json")) as file:
            return json.load(file)["reward"]
    except OSError:
        return 0.0
"""


def attack(machine: Any, config: Path, *more: str) -> tuple[int, dict[str, Any]]:
    said = machine.run("-m", "hermit", "check", "--attack", "--config", str(config), "--json", *more)
    assert said.out, said.err
    document: dict[str, Any] = json.loads(said.out)["attack"]
    return said.code, document


@pytest.mark.parametrize("mode", ["host", "shared", "separate"])
def test_no_cheat_pays_on_the_example(example: Any, mode: str) -> None:
    settings = (f"judge.mode={mode}", example.split([0, 1]), f"trainer.output_dir={example.output}")
    code, found = attack(example.machine, EXAMPLE / "run.yaml", "--tasks", "2", *settings)
    assert (code, found["paid"], found["unknown"], found["untried"]) == (0, [], [], {})
    assert found["learned"] == "the agent left solution.py"
    assert [one["cheat"] for one in found["tried"]] == [cheat.name for cheat in cheats.ALL] * 2
    assert {one["score"] for one in found["tried"]} == {0.0}
    assert list(example.machine.scratch.iterdir()) == []
    assert not example.output.exists()


def test_a_weak_judge_is_found_with_what_closes_it_and_nothing_is_left(task_set: Callable[..., Any]) -> None:
    lines = "agent: {name: 'agent.py:run'}\njudge: {path: judge.py, mode: shared}\n"
    made = task_set(SCORED, WEAK, lines=lines)
    before = sorted(str(path) for path in made.root.rglob("*"))
    said = made.machine.run("-m", "hermit", "check", "--attack", "--config", str(made.config))
    assert said.code == 7
    assert "these paid: verdict-files." in said.out
    assert cheats.OWN_VERDICT in said.out
    assert sorted(str(path) for path in made.root.rglob("*")) == before
    assert list(made.machine.scratch.iterdir()) == []


def test_the_setting_that_is_named_closes_it(task_set: Callable[..., Any]) -> None:
    """The collected answer alone leaves the planted verdict behind."""
    lines = "agent: {name: 'agent.py:run'}\njudge: {path: judge.py, mode: separate, collect: [answer]}\n"
    made = task_set(SCORED, WEAK, lines=lines)
    code, found = attack(made.machine, made.config, "--cheat", "verdict-files")
    assert (code, found["paid"]) == (0, [])


DOWNLOADING = """
import urllib.request
def score(task, output):
    with urllib.request.urlopen("http://192.0.2.1/tool", timeout=20) as file:
        return float(bool(file.read()))
"""


@pytest.mark.parametrize("mode", ["shared", "separate"])
def test_a_judge_that_cannot_get_its_tools_is_a_failure_of_the_judge_and_never_of_the_agent(
    task_set: Callable[..., Any], mode: str
) -> None:
    lines = f"agent: {{name: 'agent.py:run'}}\njudge: {{path: judge.py, mode: {mode}, collect: [answer]}}\n"
    made = task_set(SCORED, DOWNLOADING, lines=lines)
    said = made.eval("--json")
    (row,) = made.rows
    assert (row["status"], row["phase"], row["cause"], row["judge"]) == ("judge_error", "judge", "exception", None)
    assert "unreachable" in row["error"]
    assert said.summary["statuses"]["judge_error"] == 1


EDITING = """
import os
def score(task, output):
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tests")
    wrote = []
    for path, flags in ((os.path.join(here, "a"), os.O_WRONLY), (os.path.join(here, "b"), os.O_WRONLY | os.O_CREAT)):
        try:
            os.close(os.open(path, flags))
            wrote.append(path)
        except OSError:
            pass
    work = os.environ["HERMIT_WORK"]
    return {"score": float(open(os.path.join(here, "a")).read() == "the tests"), "wrote": wrote,
            "planted": sorted(name for name in os.listdir(work) if "test" in name)}
"""


@pytest.mark.parametrize("mode", ["shared", "separate"])
@pytest.mark.parametrize(
    "planted", ["os.makedirs('tests'); os.chmod('tests', 0o555)", "os.symlink('/nonexistent', 'tests')"]
)
def test_tests_come_with_the_judge_read_only_whatever_lies_under_their_name(
    task_set: Callable[..., Any], mode: str, planted: str
) -> None:
    agent = (
        f"import os\nfrom hermit import RunOutput\ndef run(task, adapter):\n    {planted}\n    return RunOutput(1)\n"
    )
    lines = f"agent: {{name: 'agent.py:run'}}\njudge: {{path: judge.py, tests: [tests], mode: {mode}, collect: [.]}}\n"
    made = task_set(agent, EDITING, lines=lines)
    (made.root / "tests").mkdir()
    (made.root / "tests" / "a").write_text("the tests")
    made.eval()
    (row,) = made.rows
    assert (row["status"], row["judge"]["score"], row["judge"]["extra"]["wrote"]) == ("ok", 1.0, []), row
    assert (made.root / "tests" / "a").read_text() == "the tests"
    assert not (made.root / "tests" / "b").exists()
