"""An agent that cheats: it writes the verdict itself, plants code, looks for the answers and leaves survivors.

Every attack is planted where it would pay without the protection, and the tests say that it was planted.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.bwrap

MODES = {
    "host": "judge: {path: judge.py, tests: [tests], mode: host}\n",
    "shared": "judge: {path: judge.py, tests: [tests], mode: shared}\n",
    "separate": "judge: {path: judge.py, tests: [tests], mode: separate, collect: [.]}\n",
}
AGENT = "agent: {name: 'agent.py:run', timeout_min: 1}\n"

# The judge imports from the standard library, starts a program and a Python, and believes nothing but its own file.
JUDGE = """
import os, subprocess, sys
def score(task, output):
    import colorsys, json, unittest
    work = os.environ["HERMIT_WORK"]
    planted = [m.__name__ for m in (colorsys, json, unittest) if m.__file__.startswith(work)]
    planted += [name for name in ("sitecustomize", "usercustomize", "conftest", "planted") if name in sys.modules]
    program = subprocess.run(["true"], env={"PATH": os.environ["PATH"]}, capture_output=True)
    inner = subprocess.run([sys.executable, "-c", "import sys; print('sitecustomize' in sys.modules and 'PLANTED' in"
                            " vars(sys.modules['sitecustomize']))"], capture_output=True, text=True)
    expected = open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "tests", task["id"])).read()
    answer = os.path.join(work, "answer")
    given = open(answer).read() if os.path.isfile(answer) and not os.path.islink(answer) else None
    seen = sorted(os.listdir(work))
    return {"score": float(given == expected), "planted": planted, "inner": inner.stdout.strip(),
            "true": [program.returncode, program.stdout.decode()], "cwd": os.getcwd(), "seen": seen,
            "path": [entry for entry in sys.path if entry.startswith(work)], "startup": os.environ.get("PYTHONSTARTUP")}
"""

PLANT = """
import json, os, subprocess, sys
from hermit import RunOutput

VERDICT = '{"value": {"score": 1.0, "feedback": "", "extra": {}}}'
FILES = {
    "answer": "wrong",
    "reward.json": '{"reward": 1}', "reward.txt": "1", "result.json": VERDICT, "score.txt": "1", "verdict": VERDICT,
    "sitecustomize.py": "PLANTED = 1", "usercustomize.py": "PLANTED = 1", "conftest.py": "PLANTED = 1",
    "planted.py": "", "start.py": "raise SystemExit(0)",
    "json.py": "PLANTED = 1", "colorsys.py": "PLANTED = 1", "unittest.py": "PLANTED = 1", "subprocess.py": "PLANTED = 1",
    "judge.py": "def score(task, output): return 1",
    "pytest.ini": "[pytest]", "tox.ini": "[pytest]", "evil.pth": "import planted",
    "evil-1.0.dist-info/METADATA": "Name: evil\\nVersion: 1.0\\n",
    "evil-1.0.dist-info/entry_points.txt": "[pytest11]\\nevil = planted\\n",
    "true": "#!/bin/sh\\necho planted; exit 3\\n",
}
PROGRAMS = ["/usr/local/bin/true", "/usr/bin/true", "/bin/true", os.path.join(os.path.dirname(sys.executable), "true")]

def attempt(path, text="planted"):
    try:
        with open(path, "w") as file:
            file.write(text)
        return True
    except OSError:
        return False

def run(task, adapter):
    for name, text in FILES.items():
        os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
        attempt(name, text)
    os.chmod("true", 0o755)
    import colorsys, site
    works = subprocess.run([sys.executable, "-c", "import colorsys; print(colorsys.PLANTED)"], capture_output=True, text=True)
    places = [*site.getsitepackages(), os.path.dirname(colorsys.__file__), os.path.dirname(sys.modules["hermit"].__file__)]
    wrote = [path for path in PROGRAMS if attempt(path)]
    wrote += [path for path in (os.path.join(place, "sitecustomize.py") for place in places) if attempt(path, "PLANTED = 1")]
    wrote += [path for path in [__file__, sys.executable] if os.access(path, os.W_OK)]
    os.environ.update(PYTHONSTARTUP=os.path.abspath("start.py"), PYTHONPATH=os.getcwd(), PATH=os.getcwd())
    os.makedirs(os.path.expanduser("~/.local/lib/python3.11/site-packages"), exist_ok=True)
    attempt(os.path.expanduser("~/.local/lib/python3.11/site-packages/usercustomize.py"), "PLANTED = 1")
    for name in ("reward.json", "result.json", "verdict", "hermit-result"):
        attempt("/tmp/" + name, VERDICT)
    print(VERDICT, flush=True)
    return RunOutput({"works": works.stdout.strip(), "wrote": wrote, "planted": sorted(os.listdir("."))})
"""

LOOK = """
import os
from hermit import RunOutput
def run(task, adapter, params):
    def holds(place):
        try:
            return sorted(os.listdir(place))
        except OSError:
            return []
    return RunOutput({
        "there": [path for path in params["paths"] if os.path.lexists(path)],
        "beside": holds(params["root"]),
        "elsewhere": [entry for entry in holds("/") if entry in ("root", "home", "srv", "mnt", "opt")],
        "variables": sorted(os.environ),
    })
"""

SURVIVE = """
import os, time
from hermit import RunOutput
def run(task, adapter):
    open("answer", "w").write("wrong")
    agent = os.getpid()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            import signal
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)
            open("alive", "w").write("yes")
            while os.path.exists(f"/proc/{agent}/cmdline") and open(f"/proc/{agent}/stat").read().split()[2] != "Z":
                time.sleep(0.01)
            time.sleep(0.3)
            for _ in range(2000):
                open("answer", "w").write("expected-a")
                time.sleep(0.01)
        os._exit(0)
    while not os.path.exists("alive"):
        time.sleep(0.01)
    return RunOutput("left one behind")
"""


def expected(made: Any) -> None:
    """Writes what the judge expects, for the judge alone."""
    (made.root / "tests").mkdir()
    for row in ("a", "b"):
        (made.root / "tests" / row).write_text(f"expected-{row}")


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_an_honest_answer_pays_in_every_mode(task_set: Callable[..., Any], mode: str) -> None:
    agent = "from hermit import RunOutput\ndef run(task, adapter): open('answer', 'w').write('expected-a'); return RunOutput(1)\n"
    made = task_set(agent, JUDGE, lines=AGENT + MODES[mode])
    expected(made)
    assert made.eval().code == 0
    (row,) = made.rows
    assert (row["status"], row["judge"]["score"], row["judged"], row["confined"]) == ("ok", 1.0, mode, True)


def test_no_verdict_or_code_that_an_agent_plants_pays(task_set: Callable[..., Any], mode: str) -> None:
    made = task_set(PLANT, JUDGE, lines=AGENT + MODES[mode])
    expected(made)
    assert made.eval().code == 0
    (row,) = made.rows
    assert (row["status"], row["judge"]["score"]) == ("ok", 0.0), row
    assert row["output"]["works"] == "1", "the planted module would be imported by a Python that starts beside it"
    assert "sitecustomize.py" in row["output"]["planted"]
    assert row["output"]["wrote"] == []
    extra = row["judge"]["extra"]
    assert extra["seen"] == row["output"]["planted"], "the judge looked at the planted work"
    assert (extra["planted"], extra["path"], extra["startup"], extra["inner"]) == ([], [], None, "False")
    assert extra["true"] == [0, ""]


def test_a_judge_starts_outside_the_work_directory(task_set: Callable[..., Any]) -> None:
    made = task_set(PLANT, JUDGE, lines=AGENT + MODES["shared"])
    expected(made)
    made.eval()
    assert made.rows[0]["judge"]["extra"]["cwd"] == "/tmp"


def test_no_survivor_rewrites_the_answer_after_the_end(task_set: Callable[..., Any], mode: str) -> None:
    patient = JUDGE.replace("    work = ", "    import time; time.sleep(1.0)\n    work = ", 1)
    made = task_set(SURVIVE, patient, lines=AGENT + MODES[mode])
    expected(made)
    assert made.eval().code == 0
    (row,) = made.rows
    assert (row["status"], row["judge"]["score"]) == ("ok", 0.0)
    assert "alive" in row["judge"]["extra"]["seen"], "there was a survivor"


def test_a_process_that_does_survive_would_pay(tmp_path: Path) -> None:
    """The planted failure of the test above: with nobody to end it, the same survivor rewrites the answer."""
    import subprocess
    import sys
    import time

    (tmp_path / "agent.py").write_text(SURVIVE.replace("range(2000)", "range(3)") + "\nrun(None, None)\n")
    subprocess.run([sys.executable, str(tmp_path / "agent.py")], cwd=tmp_path, check=True, timeout=60)
    deadline = time.monotonic() + 30
    while (tmp_path / "answer").read_text() != "expected-a" and time.monotonic() < deadline:
        time.sleep(0.05)
    assert (tmp_path / "answer").read_text() == "expected-a"


@pytest.mark.parametrize("confined", [True, False])
def test_nothing_that_scores_an_attempt_can_be_seen_by_it(task_set: Callable[..., Any], confined: bool) -> None:
    made = task_set(LOOK, JUDGE, lines=AGENT + MODES["separate"])
    expected(made)
    root = made.root
    names = (
        "data",
        "data/tasks.jsonl",
        "data/test.txt",
        "judge.py",
        "tests",
        "tests/a",
        "run.yaml",
        "runs",
        "runs/one",
    )
    paths = [str(root / name) for name in names]
    said = made.eval(
        f"agent.params={json.dumps({'paths': paths, 'root': str(root)})}", f"sandbox.enabled={str(confined).lower()}"
    )
    assert said.code == 0
    saw = made.rows[0]["output"]
    if not confined:
        assert saw["there"] == paths, "without a sandbox everything can be seen: the agent looks at the right places"
        return
    assert (saw["there"], saw["beside"]) == ([], [".logs", "agent.py"])
    assert set(saw["elsewhere"]) <= {"root", "opt"}, "only what leads to the interpreter"
    deadline = {"HA_DEADLINE", "HA_DEADLINE_MONOTONIC"}
    assert set(saw["variables"]) - deadline <= {
        "HERMIT_LOGS",
        "HERMIT_WORK",
        "HOME",
        "LANG",
        "PATH",
        "TMPDIR",
        "USER",
        "LC_CTYPE",
    }


def test_a_verdict_written_to_every_descriptor_is_the_agents_own_failure(
    task_set: Callable[..., Any], mode: str
) -> None:
    agent = """
import os
def run(task, adapter):
    open("answer", "w").write("wrong")
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, b'{"value": {"score": 1.0}}')
        except OSError:
            pass
    os._exit(0)
"""
    made = task_set(agent, JUDGE, lines=AGENT + MODES[mode])
    expected(made)
    assert made.eval().code == 0
    assert (made.rows[0]["status"], made.rows[0]["cause"], made.rows[0]["judge"]) == ("agent_error", "result", None)


@pytest.mark.parametrize("link", ["absolute", "relative", "chained"])
def test_a_link_to_the_judges_own_files_is_not_collected(task_set: Callable[..., Any], link: str) -> None:
    agent = """
import os
from hermit import RunOutput
def run(task, adapter, params):
    secret = params["secret"]
    if params["link"] == "absolute":
        os.symlink(secret, "answer")
    elif params["link"] == "relative":
        os.symlink(os.path.relpath(secret, os.getcwd()), "answer")
    else:
        os.makedirs("d/e")
        os.symlink("../..", "d/e/up")
        os.symlink("d/e/up/" + os.path.relpath(secret, os.getcwd()), "answer")
    return RunOutput(os.readlink("answer"))
"""
    trusting = JUDGE.replace(" and not os.path.islink(answer)", "")
    made = task_set(agent, trusting, lines=AGENT + MODES["separate"])
    expected(made)
    params = json.dumps({"secret": str(made.root / "tests" / "a"), "link": link})
    assert made.eval(f"agent.params={params}").code == 0
    (row,) = made.rows
    assert (row["status"], row["judge"]["score"]) == ("ok", 0.0)
    assert "answer" not in row["judge"]["extra"]["seen"]


def test_a_collected_path_that_is_not_there_is_the_failure_of_the_attempt_and_is_never_judged(
    task_set: Callable[..., Any],
) -> None:
    agent = "from hermit import RunOutput\ndef run(task, adapter): open('other', 'w').write('x'); return RunOutput(1)\n"
    lines = "judge: {path: judge.py, tests: [tests], mode: separate, collect: [answer, deep/log, other]}\n"
    generous = "def score(task, output): return 1\n"
    made = task_set(agent, generous, lines=AGENT + lines)
    expected(made)
    said = made.eval("--json")
    assert said.code == 0
    (row,) = made.rows
    assert (row["status"], row["phase"], row["cause"], row["judge"]) == ("agent_error", "collect", "missing", None)
    assert row["missing"] == ["answer", "deep/log"]
    assert row["error"] == "nothing came of answer, deep/log, which judge.collect names"
    assert said.summary["mean_score"] == 0.0


def test_what_one_attempt_wrote_is_not_there_for_the_next(task_set: Callable[..., Any]) -> None:
    agent = """
import os
from hermit import RunOutput
def run(task, adapter):
    found = os.listdir(".") + [name for name in os.listdir("/tmp") if name == "left"]
    open("left", "w").write("x")
    open("/tmp/left", "w").write("x")
    return RunOutput(found)
"""
    tasks = [{"id": name} for name in "abc"]
    made = task_set(
        agent, "def score(task, output): return 1\n", tasks=tasks, lines=AGENT + "judge: {path: judge.py}\n"
    )
    assert made.eval("agent.concurrency=1").code == 0
    assert [row["output"] for row in made.rows] == [[], [], []]


def test_a_judge_that_fails_is_its_own_failure_and_scores_zero(task_set: Callable[..., Any], mode: str) -> None:
    judge = """
import os, time
def score(task, output):
    way = task["id"]
    if way == "raise": raise RuntimeError("why")
    if way == "nan": return float("nan")
    if way == "none": return None
    if way == "exit": os._exit(0)
    if way == "kill": os.kill(os.getpid(), 9)
    if way == "hang": time.sleep(600)
    return 1
"""
    causes = {
        "raise": "exception",
        "nan": "result",
        "none": "result",
        "exit": "exit",
        "kill": "signal",
        "hang": "timeout",
    }
    agent = "from hermit import RunOutput\ndef run(task, adapter): return RunOutput(1)\n"
    tasks = [{"id": name} for name in (*causes, "right")]
    made = task_set(agent, judge, tasks=tasks, lines=AGENT + MODES[mode])
    (made.root / "tests").mkdir()
    said = made.eval("--json", "judge.timeout_min=0.02")
    assert said.code == 0
    found = {row["id"]: (row["status"], row["phase"], row["cause"]) for row in made.rows}
    assert found == {**{way: ("judge_error", "judge", cause) for way, cause in causes.items()}, "right": ("ok", "", "")}
    assert said.summary["mean_score"] == pytest.approx(1 / 7)
