"""What goes into an attempt and what comes out of it: logs, shared state, the host pipeline, the judge's own settings."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.bwrap

AGENT = "agent: {name: 'agent.py:run', concurrency: 1, timeout_min: 1}\n"
JUDGE = "def score(task, output): return 1\n"
LOGS = """
import os
from hermit import RunOutput
def run(task, adapter):
    logs = os.environ["HERMIT_LOGS"]
    found = os.listdir(logs)
    os.mkdir(os.path.join(logs, "turns"))
    open(os.path.join(logs, "turns", "one.txt"), "w").write(task["id"])
    os.symlink("/etc/passwd", os.path.join(logs, "out"))
    return RunOutput({"found": found, "logs": logs})
"""


@pytest.mark.parametrize("confined", [True, False])
def test_the_logs_of_a_call_are_a_fresh_directory_and_kept_as_a_copy(
    task_set: Callable[..., Any], confined: bool
) -> None:
    made = task_set(LOGS, JUDGE, tasks=[{"id": "a"}, {"id": "b"}], lines=AGENT + "judge: {path: judge.py}\n")
    assert made.eval(f"sandbox.enabled={str(confined).lower()}").code == 0
    for row in made.rows:
        assert row["status"] == "ok", row["error"]
        assert row["output"]["found"] == []
        if confined:
            assert row["output"]["logs"] == str(made.root / ".logs")
        kept = made.results.parent / "logs" / f"{row['id']}-0" / "agent-logs"
        assert (kept / "turns" / "one.txt").read_text() == row["id"]
        assert not os.path.lexists(kept / "out"), "a link that leaves the logs is not kept"
    assert not (made.root / ".logs").exists(), "nothing is made on the host"


def test_the_logs_of_a_call_that_failed_are_kept_too(task_set: Callable[..., Any]) -> None:
    agent = LOGS.replace("return RunOutput", "raise RuntimeError('why')\n    return RunOutput")
    made = task_set(agent, JUDGE, lines=AGENT + "judge: {path: judge.py}\n")
    assert made.eval().code == 0
    assert made.rows[0]["status"] == "agent_error"
    assert (made.results.parent / "logs" / "a-0" / "agent-logs" / "turns" / "one.txt").exists()


TOLD = """
import os, subprocess, sys, time
import hermit
def run(task, adapter):
    told = float(os.environ["HA_DEADLINE"]) - time.time()
    search = {**os.environ, "PYTHONPATH": os.path.dirname(hermit.__path__[0])}
    child = [sys.executable, "-c", "import hermit; print(hermit.time_left())"]
    there = subprocess.run(child, env=search, capture_output=True, check=True)
    return hermit.RunOutput([told, hermit.time_left(), float(there.stdout)])
"""


@pytest.mark.parametrize("confined", [True, False])
def test_an_agent_and_its_programs_know_how_long_they_have(task_set: Callable[..., Any], *, confined: bool) -> None:
    made = task_set(TOLD, JUDGE, lines=AGENT + "judge: {path: judge.py}\n")
    assert made.eval(f"sandbox.enabled={str(confined).lower()}").code == 0
    assert made.rows[0]["status"] == "ok", made.rows[0]["error"]
    for left in made.rows[0]["output"]:
        assert 0 < left < 60


SHARED = """
import os
from hermit import RunOutput
def run(task, adapter, params):
    state = params["state"]
    found = sorted(os.listdir(state))
    for name in os.listdir(state):
        if name == "gone":
            os.unlink(os.path.join(state, name))
    open(os.path.join(state, task["id"]), "w").write("x")
    with open(os.path.join(state, "log"), "a") as file:
        file.write(task["id"])
    os.makedirs(os.path.join(state, "deep"), exist_ok=True)
    return RunOutput(found)
"""


def test_what_a_call_left_in_shared_state_is_there_for_the_next_and_recorded(task_set: Callable[..., Any]) -> None:
    lines = AGENT + "judge: {path: judge.py}\nenvironment: {write: [state]}\n"
    made = task_set(SHARED, JUDGE, tasks=[{"id": "a"}, {"id": "b"}], lines=lines)
    state = made.root / "state"
    state.mkdir()
    (state / "gone").touch()
    assert made.eval(f"agent.params.state={state}").code == 0
    first, second = made.rows
    assert (first["output"], second["output"]) == (["gone"], ["a", "deep", "log"])
    left = first["left"]
    assert (left["compared"], left["created"], left["changed"], left["removed"]) == (True, 3, 0, 1)
    assert left["names"] == {
        "created": [f"{state}/{name}" for name in ("a", "deep", "log")],
        "removed": [f"{state}/gone"],
    }
    assert (second["left"]["created"], second["left"]["changed"], second["left"]["removed"]) == (1, 1, 0)
    assert second["left"]["names"]["changed"] == [f"{state}/log"]


def test_a_run_that_shares_nothing_records_nothing_of_it(task_set: Callable[..., Any]) -> None:
    made = task_set(LOGS, JUDGE, lines=AGENT + "judge: {path: judge.py}\n")
    assert made.eval().code == 0
    assert made.rows[0]["left"] is None


HERE = """
import os
from hermit import RunOutput
def run(task, adapter, params):
    open("answer", "w").write("given")
    os.symlink("/etc/passwd", "way")
    return RunOutput(os.path.exists(params["secret"]))
"""
SEES = """
import os
def score(task, output):
    return {"score": 1, "seen": sorted(os.listdir(os.environ["HERMIT_WORK"])), "secret": os.path.exists(task["secret"])}
"""


@pytest.mark.parametrize("mode", ["host", "shared", "separate"])
@pytest.mark.parametrize(
    ("setting", "reason"),
    [("environment.runner=host", "environment.runner is host"), ("sandbox.enabled=false", "sandbox.enabled is false")],
)
def test_a_pipeline_on_the_host_is_recorded_with_its_reason_and_judged_there(
    task_set: Callable[..., Any], setting: str, reason: str, mode: str
) -> None:
    made = task_set(HERE, SEES, lines=AGENT + f"judge: {{path: judge.py, mode: {mode}, collect: [answer]}}\n")
    secret = str(made.root / "data" / "tasks.jsonl")
    (made.root / "data" / "tasks.jsonl").write_text(json.dumps({"id": "a", "secret": secret}) + "\n")
    said = made.eval("--json", setting, f"agent.params.secret={secret}")
    assert said.code == 0, said.err
    (row,) = made.rows
    assert (row["status"], row["confined"], row["judged"], row["on_host"]) == ("ok", False, "host", reason)
    assert row["output"] is True, "the agent ran on the host"
    why = "" if mode == "host" else f"judge.mode {mode} needs the sandbox of the agent, and {reason}"
    assert row["judge_on_host"] == why
    assert said.summary["on_host"] == {reason: 1}
    assert said.summary["judge_on_host"] == ({why: 1} if why else {})
    assert said.summary["unconfined"] == 1
    seen = ["answer"] if mode == "separate" else ["answer", "way"]
    assert row["judge"]["extra"]["seen"] == seen, "what was to be collected is all that a separate judge gets here too"
    assert row["alone"] is True
    records = [json.loads((made.records / name).read_text()) for name in row["records"]]
    assert [(record["role"], record["confined"]) for record in records] == [("task", False), ("judge", False)]
    assert records[0]["reason"] == reason


def test_a_confined_pipeline_says_nothing_of_the_host(task_set: Callable[..., Any]) -> None:
    made = task_set(HERE, JUDGE, lines=AGENT + "judge: {path: judge.py, mode: shared}\n")
    said = made.eval("--json", "agent.params.secret=/etc/shadow")
    (row,) = made.rows
    assert (row["on_host"], row["judge_on_host"], row["alone"], row["confined"]) == ("", "", True, True)
    assert (said.summary["on_host"], said.summary["judge_on_host"]) == ({}, {})


KILLS = """
import os, signal, time
from hermit import RunOutput
def run(task, adapter):
    if os.fork() == 0:
        os.setsid()
        for descriptor in range(3, 256):
            try:
                os.close(descriptor)
            except OSError:
                pass
        os.dup2(os.open(os.devnull, os.O_RDWR), 1)
        os.dup2(1, 2)
        open("alive", "w").write(str(os.getpid()))
        time.sleep(60)
        os._exit(0)
    while not os.path.exists("alive") or not open("alive").read():
        time.sleep(0.01)
    open(task["pid"], "w").write(open("alive").read())
    os.kill(os.getppid(), signal.SIGKILL)
    return RunOutput("the relay is gone")
"""


def test_no_judge_starts_where_it_is_not_shown_that_every_process_of_the_agent_has_ended(
    task_set: Callable[..., Any], tmp_path: Any
) -> None:
    """On the host an agent can kill its own relay, which is what would have ended its other processes."""
    pid = tmp_path / "pid"
    judged = tmp_path / "judged"
    judge = f"def score(task, output):\n    open({str(judged)!r}, 'w')\n    return 1\n"
    lines = AGENT + "judge: {path: judge.py}\nsandbox: {enabled: false}\n"
    made = task_set(KILLS, judge, tasks=[{"id": "a", "pid": str(pid)}], lines=lines)
    try:
        said = made.eval("--json")
        (row,) = made.rows
        assert (said.code, row["status"], row["alone"]) == (4, "sandbox_error", False), row
        assert row["cause"] == "survivors", row
        assert row["judge"] is None
        assert not judged.exists()
    finally:
        if pid.exists():
            os.kill(int(pid.read_text()), 9)


NET = """
import socket
def score(task, output):
    names = [name for _, name in socket.if_nameindex()]
    return {"score": 1, "interfaces": names}
"""


def test_a_judge_has_no_network_unless_it_asks_for_one_of_its_own(task_set: Callable[..., Any]) -> None:
    lines = AGENT + "judge: {path: judge.py, mode: shared}\nenvironment: {network: public}\n"
    agent = "import socket\nfrom hermit import RunOutput\n"
    agent += "def run(task, adapter): return RunOutput([name for _, name in socket.if_nameindex()])\n"
    made = task_set(agent, NET, lines=lines)
    assert made.eval("--json").code == 0
    (row,) = made.rows
    assert row["judge"]["extra"]["interfaces"] == ["lo"]
    assert made.eval("--json", "--fresh", "judge.network=public").code == 0
    assert made.rows[0]["judge"]["extra"]["interfaces"] == made.rows[0]["output"], "what the machine has"
    records = [json.loads((made.records / name).read_text()) for name in made.rows[0]["records"]]
    assert [record["network"] for record in records] == ["open", "open"]


def test_a_judge_has_bounds_of_its_own_and_else_those_of_the_agent(task_set: Callable[..., Any]) -> None:
    lines = AGENT + "judge: {path: judge.py, mode: shared, resources: {memory_mb: 2048, pids: 33}, timeout_min: 2}\n"
    lines += "environment: {resources: {memory_mb: 512, file_mb: 8}}\n"
    made = task_set(HERE, JUDGE, lines=lines)
    assert made.eval("agent.params.secret=/x").code == 0
    bounds = []
    for name in made.rows[0]["records"]:
        record = json.loads((made.records / name).read_text())
        bounds.append({bound["name"]: bound["value"] for bound in record["limits"]})
    acting, judging = bounds
    assert (acting["memory_mb"], acting["file_mb"], acting["wall_s"]) == (512, 8, 60.0)
    assert (judging["memory_mb"], judging["file_mb"], judging["pids"], judging["wall_s"]) == (2048, 8, 33, 120.0)


def test_a_separate_judge_sees_nothing_that_agents_write_to(task_set: Callable[..., Any]) -> None:
    judge = "import os\ndef score(task, output): return {'score': 1, 'there': os.path.lexists(task['state'])}\n"
    lines = AGENT + "judge: {path: judge.py, mode: separate, collect: [answer]}\nenvironment: {write: [state]}\n"
    made = task_set(HERE, judge, lines=lines)
    (made.root / "state").mkdir()
    task = {"id": "a", "state": str(made.root / "state")}
    (made.root / "data" / "tasks.jsonl").write_text(json.dumps(task) + "\n")
    assert made.eval("agent.params.secret=/x").code == 0
    assert made.rows[0]["judge"]["extra"]["there"] is False
    assert made.eval("--fresh", "agent.params.secret=/x", "judge.mode=shared").code == 0
    assert made.rows[0]["judge"]["extra"]["there"] is True, (
        "in shared mode it is there: the test looks at the right place"
    )


@pytest.mark.parametrize("size", [256 * 1024, 256 * 1024 + 1])
def test_feedback_has_a_bound(task_set: Callable[..., Any], size: int) -> None:
    judge = f"def score(task, output): return {{'score': 1, 'feedback': 'x' * {size}}}\n"
    made = task_set(HERE, judge, lines=AGENT + "judge: {path: judge.py}\n")
    assert made.eval("agent.params.secret=/x").code == 0
    status = "ok" if size <= 256 * 1024 else "judge_error"
    assert made.rows[0]["status"] == status
