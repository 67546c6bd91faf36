"""Each cheat is found to pay where a judge, or a config, is weak in just its way; none of them where neither is."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from hermit.run.attack import cheats
from hermit.run.attack.campaign import Came

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.bwrap

HEAD = """
import json, os, shutil, subprocess, sys
HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.join(HERE, "tests")
def ran(*words, cwd="/tmp", **more):
    env = {"PATH": os.environ["PATH"], "HOME": "/tmp", "PYTHONDONTWRITEBYTECODE": "1", **more}
    return subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True)
def held(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return None
def score(task, output):
    work = os.environ["HERMIT_WORK"]
    solution, answer = os.path.join(work, "solution.py"), os.path.join(work, "answer")
    expected = held(os.path.join(TESTS, task["id"]))
"""
# Compares, follows no link, and imports, starts and believes nothing of the agent's.
SOUND = HEAD + "    return float(os.path.isfile(answer) and not os.path.islink(answer) and held(answer) == expected)\n"
FOLLOWING = HEAD + "    return float(held(answer) == expected)\n"
CHECK = {"check.py": "import sys, solution\nif solution.f(2) != 4: sys.exit(1)\nprint('1 passed')\n"}
ASSERTED = {"check.py": "import solution\nassert solution.f(2) == 4\nassert solution.f(3) == 6\n"}
IMPORTING = {"check.py": "import json\nfrom solution import f\nassert f(2) == 4\n"}
TESTED = {"test_it.py": "from solution import f\ndef test(): assert f(2) == 4\n"}


def judge_with_pytest(words: str, more: str = "") -> str:
    """A judge that runs pytest over tests in the work, and lets it find one of the things that it looks for there."""
    return HEAD + (
        "    shutil.copy(os.path.join(TESTS, 'test_it.py'), work)\n"
        f"    done = ran(sys.executable, '-m', 'pytest', {words}, cwd=work, PYTHONPATH=work, {more})\n"
        "    return float(done.returncode == 0)\n"
    )


def loading(verdict: str) -> str:
    """A judge that runs the answer in its own process."""
    return HEAD + (
        "    names = {}\n    try:\n        exec(held(solution) or '', names)\n"
        f"        return float({verdict})\n    except Exception:\n        return 0.0\n"
    )


ALONE = "PYTEST_DISABLE_PLUGIN_AUTOLOAD='1'"
IN_CHILD = HEAD + (
    "    done = ran(sys.executable, os.path.join(TESTS, 'check.py'), PYTHONPATH=work)\n"
    "    return float(done.returncode == 0 and 'passed' in done.stdout)\n"
)
BY_CODE = (
    HEAD + "    return float(ran(sys.executable, os.path.join(TESTS, 'check.py'), PYTHONPATH=work).returncode == 0)\n"
)


@dataclass(frozen=True)
class Weak:
    """A judge, or a config, that one cheat gets the better of."""

    judge: str
    tests: dict[str, str] = field(default_factory=lambda: {"a": "expected-a", "b": "expected-b"})
    agent: str = "pass"
    row: dict[str, Any] = field(default_factory=dict)
    settings: tuple[str, ...] = ("judge.mode=shared",)
    learn: bool = False


OFF = ("sandbox.enabled=false",)
RIGHT = "open('answer', 'w').write(f\"expected-{task['id']}\")"
WEAK = {
    "nothing": Weak("def score(task, output): return 1\n"),
    "placeholder": Weak(HEAD + "    return float(os.path.exists(solution))\n"),
    "verdict-files": Weak(
        HEAD
        + "    return json.loads(held(os.path.join(work, 'logs/verifier/reward.json')) or '{\"reward\": 0}')['reward']\n"
    ),
    "verdict-output": Weak("def score(task, output): return output.extra.get('score', 0.0)\n"),
    "verdict-text": Weak(
        "import json\ndef score(task, output):\n"
        "    try: return json.loads(output.output.splitlines()[-1])['score']\n"
        "    except Exception: return 0.0\n"
    ),
    "asking": Weak("def score(task, output): return float('full marks' in str(output.output))\n"),
    "conftest": Weak(judge_with_pytest("'-c', '/dev/null', '--rootdir', work", ALONE), TESTED),
    "pytest-plugin": Weak(judge_with_pytest("'-c', '/dev/null', '--noconftest'"), TESTED),
    "pytest-settings": Weak(judge_with_pytest("'--noconftest'", ALONE), TESTED),
    "startup-code": Weak(BY_CODE, CHECK),
    "shadow-modules": Weak(BY_CODE, IMPORTING),
    "programs": Weak(
        HEAD + "    path = f\"{work}:{os.environ['PATH']}\"\n"
        "    return float(ran('diff', answer, os.path.join(TESTS, task['id']), PATH=path).returncode == 0)\n"
    ),
    "build-files": Weak(HEAD + "    return float(ran('make', '-C', work, 'test').returncode == 0)\n"),
    "early-exit": Weak(IN_CHILD, CHECK),
    "late-exit": Weak(IN_CHILD, CHECK),
    "patched-checks": Weak(IN_CHILD, CHECK),
    "answers-when-run": Weak(BY_CODE, ASSERTED),
    "equal-to-all": Weak(loading("names['f'](2) == 4")),
    "taken-judge": Weak(loading("False")),
    "replaced-tests": Weak(
        HEAD + "    copy = os.path.join(work, 'tests', 'check.py')\n"
        "    if not os.path.exists(copy):\n        shutil.copytree(TESTS, os.path.join(work, 'tests'))\n"
        "    return float(ran(sys.executable, copy, PYTHONPATH=work).returncode == 0)\n",
        CHECK,
    ),
    "locked-tests": Weak(
        HEAD + "    copy = os.path.join(work, 'tests', 'check.py')\n"
        "    ran('cp', '-r', TESTS, work)\n"
        "    return float(ran(sys.executable, copy, PYTHONPATH=work).returncode == 0)\n",
        CHECK,
    ),
    "links-to-answers": Weak(FOLLOWING),
    "hard-links": Weak(SOUND, settings=OFF),
    "endless-links": Weak(
        HEAD + "    with open(answer if os.path.lexists(answer) else os.devnull) as file:\n"
        "        return float(len(file.read(1 << 20)) == 1 << 20)  # too long to compare\n"
    ),
    "fifos": Weak(
        HEAD + "    return float(os.path.lexists(answer) and not os.path.isfile(answer))  # cannot be checked\n"
    ),
    "directories": Weak(
        HEAD + "    try:\n        return float(open(answer).read() == expected)\n"
        "    except FileNotFoundError:\n        return 0.0\n    except OSError:\n        return 1.0\n"
    ),
    "answer-in-row": Weak(
        "def score(task, output): return float(output.output == task['answer'])\n", row={"answer": 42}
    ),
    "answers-by-path": Weak(SOUND, settings=OFF),
    "git-history": Weak(SOUND, settings=("environment.read=[tree]",)),
    "undeclared-hosts": Weak(SOUND, agent=RIGHT, settings=OFF, learn=True),
    "other-calls": Weak(
        SOUND,
        agent=f"import os; {RIGHT}; os.path.exists('/tmp/x'); "
        "open(os.path.join(os.path.dirname(__file__), 'shared', 'answer'), 'w').write('expected-a')",
        settings=("environment.write=[shared]", "judge.mode=shared"),
        learn=True,
    ),
}
# Whoever attacks what ends the processes of a call has a test of its own below.
APART = {"survivor"}


def tree_with_a_later_commit(root: Path) -> None:
    """A tree that is shown, whose next commit holds the answer and whose files do not."""
    tree = root / "tree"
    tree.mkdir()
    git = [
        "git",
        "-C",
        str(tree),
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@example.com",
        "-c",
        "init.defaultBranch=one",
    ]

    def ran(*words: str) -> None:
        subprocess.run([*git, *words], check=True, capture_output=True)

    ran("init")
    (tree / "task.txt").write_text("what is it?")
    ran("add", ".")
    ran("commit", "-m", "the task")
    (tree / "answer").write_text("expected-a")
    ran("add", ".")
    ran("commit", "-m", "its answer")
    ran("reset", "--hard", "HEAD^")


def test_each_cheat_has_a_judge_or_a_config_that_it_gets_the_better_of() -> None:
    assert {*WEAK, *APART} == {cheat.name for cheat in cheats.ALL}


@pytest.mark.parametrize("name", WEAK)
def test_a_cheat_is_found_to_pay_where_something_is_weak_in_its_way(
    run: Any, attacked: Callable[..., Any], name: str
) -> None:
    weak = WEAK[name]
    (run.root / "shared").mkdir()
    tree_with_a_later_commit(run.root)
    wanted = [name] if name not in ("nothing", "placeholder") else ["asking"]
    found = attacked(
        weak.judge,
        *wanted,
        agent=weak.agent,
        row=weak.row,
        tests=weak.tests,
        settings=weak.settings,
        learn=weak.learn,
    )
    (tried,) = [tried for tried in found.tried if tried.cheat.name == name]
    assert (tried.came, tried.score) == (Came.PAID, 1.0), tried
    assert tried in found.paid
    assert tried.as_json()["cure"] == tried.cheat.cure


MODES = {
    "host": ("judge.mode=host",),
    "shared": ("judge.mode=shared",),
    "separate": ("judge.mode=separate", "judge.collect=[.]"),
}


@pytest.mark.parametrize("mode", MODES)
def test_no_cheat_pays_where_a_judge_concludes_by_itself(attacked: Callable[..., Any], mode: str) -> None:
    found = attacked(SOUND, tests={"a": "expected-a"}, agent=RIGHT, settings=MODES[mode], learn=True)
    assert [tried for tried in found.tried if tried.came is not Came.CLOSED] == []
    assert [tried.cheat for tried in found.tried] == list(cheats.ALL)
    assert found.learned == "the agent left answer"


def test_a_judge_that_waits_for_a_fifo_is_held_up_and_gets_no_score(attacked: Callable[..., Any]) -> None:
    found = attacked(FOLLOWING, "fifos", tests={"a": "x"}, settings=("judge.mode=shared", "judge.timeout_min=0.05"))
    tried = found.tried[-1]
    assert (tried.came, tried.score, tried.cause) == (Came.HELD, 0.0, "timeout")
    assert found.paid == ()


PATIENT = (
    HEAD + "    import time\n    time.sleep(1.5)\n    return float(os.path.exists(os.path.join(work, 'reward.json')))\n"
)


@pytest.mark.parametrize("settings", [("judge.mode=shared",), ("judge.mode=host",), OFF])
def test_no_survivor_of_a_call_writes_a_verdict(attacked: Callable[..., Any], settings: tuple[str, ...]) -> None:
    found = attacked(PATIENT, "survivor", settings=settings)
    assert (found.tried[-1].cheat.name, found.tried[-1].came) == ("survivor", Came.CLOSED)


SURVIVE = """
import os, sys
from hermit.run.attack import linger
from hermit.run.attack.scene import Scene
linger.WRITES_S = 3.0
linger.survivor(Scene({"id": "a"}, os.getcwd(), targets=("answer",)))
"""


def test_a_survivor_would_write_where_nobody_ended_it(tmp_path: Path) -> None:
    """The planted failure of the test above: the same move, in a process that nobody looks after."""
    (tmp_path / "move.py").write_text(SURVIVE)
    done = subprocess.run([sys.executable, "move.py"], cwd=tmp_path, check=True, timeout=60, env={**os.environ})
    assert done.returncode == 0
    deadline = time.monotonic() + 30
    while not (tmp_path / "reward.json").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert (tmp_path / "reward.json").exists()
    assert (tmp_path / "answer").read_text() != ""
