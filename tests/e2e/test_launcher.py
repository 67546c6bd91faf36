"""A whole run in the image: what its two containers can be made to tell, and what is left of it however it ends."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from hermit.oci import container as containers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [pytest.mark.docker, pytest.mark.image]

WITHIN_S = 60.0
PLANTED = {part: f"planted-{part}-7c51e0" for part in ("data", "split", "tests", "judge", "record", "key", "config")}
# An agent waits at the second task, a judge at the first; the third is not begun.
AGENT = """
import os, time
from pathlib import Path
from hermit import RunOutput
def run(task, adapter, base):
    Path("answer").write_text(task["id"])
    Path("acting-" + task["id"]).touch()
    while task["id"] == "b" and not os.path.exists(base / "mode" / "go"):
        time.sleep(0.05)
    return RunOutput(task["id"])
"""
JUDGE = f"""
# {PLANTED["judge"]}
import os, time
def score(task, output):
    here, work = os.path.dirname(os.path.abspath(__file__)), os.environ["HERMIT_WORK"]
    open(os.path.join(work, "judging-" + task["id"]), "w").close()
    while task["id"] == "a" and not os.path.exists(os.path.join(here, "mode", "go")):
        time.sleep(0.05)
    expected = open(os.path.join(here, "tests", "expected")).read()
    answer = open(os.path.join(work, "answer")).read()
    return float(expected.startswith("planted") and answer == task["id"])
"""
LINES = """
agent: {name: 'agent.py:run', concurrency: 2, timeout_min: 3}
judge: {path: judge.py, tests: [tests], mode: separate, collect: [answer]}
environment: {read: [mode], env: ['MWM_*'], resources: {memory_mb: 512}}
"""
# Everything a container can see or is told, whoever may read it there: names, contents, sockets, and the memory,
# variables and arguments of its processes. What nothing is mounted below is the image's own, and read by its names.
WALK = """
import json, os, stat, sys
tokens = json.loads(sys.argv[1])
found, sockets, names = set(), [], []
mounts = [line.split()[4] for line in open("/proc/self/mountinfo")]
own = [top for top in ("/usr", "/opt/hermit/lib") if not any(mount.startswith(top) for mount in mounts)]

def read(path):
    try:
        with open(path, "rb") as file:
            data = file.read(256 << 20)
    except OSError:
        return
    found.update(part for part, token in tokens.items() if token.encode() in data)

for top, directories, files in os.walk("/"):
    if top in ("/proc", "/sys"):
        directories.clear()
        continue
    for name in files + directories:
        path = os.path.join(top, name)
        names.append(path)
        try:
            mode = os.lstat(path).st_mode
        except OSError:
            continue
        if stat.S_ISSOCK(mode):
            sockets.append(path)
        if stat.S_ISREG(mode) and not any(path.startswith(each + "/") for each in own):
            read(path)
processes = [entry for entry in os.listdir("/proc") if entry.isdigit() and int(entry) != os.getpid()]
for pid in processes:
    for part in ("environ", "cmdline"):
        read(f"/proc/{pid}/{part}")
    try:
        numbers = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        continue
    for number in numbers:
        try:
            memory = os.readlink(f"/proc/{pid}/fd/{number}").startswith("/memfd:")
        except OSError:
            continue
        if memory:
            read(f"/proc/{pid}/fd/{number}")
json.dump({"found": sorted(found), "sockets": sockets, "names": names, "processes": len(processes)}, sys.stdout)
"""


@dataclass
class Running:
    """A run in the image whose attempts wait, and its containers."""

    tasks: Any
    engine: Any
    process: subprocess.Popen[bytes]

    def ask(self, *words: str) -> str:
        return subprocess.run([self.engine.program, *words], capture_output=True, text=True, check=False).stdout

    @property
    def containers(self) -> dict[str, str]:
        """The names of the run's containers, by whose sandboxes they hold."""
        mine = f"label={containers.OWNER_LABEL}={self.process.pid}"
        names = self.ask("ps", "--all", "--filter", mine, "--format", "{{.Names}}").split()
        shown = {name: self.ask("container", "inspect", "--format", "{{json .Mounts}}", name) for name in names}
        return {"judge" if "judge.py" in shown[name] else "task": name for name in names}

    def waits(self) -> bool:
        """Whether the agent of the second task and the judge of the first are at work."""
        scratch = self.tasks.machine.scratch
        return all(any(scratch.glob(pattern)) for pattern in ("*/task/*/work/acting-b", "*/judge/*/*/judging-a"))

    def release(self) -> None:
        (self.tasks.root / "mode" / "go").touch()

    def until(self, condition: Callable[[], bool], *, what: str) -> None:
        deadline = time.monotonic() + WITHIN_S
        while not condition():
            if time.monotonic() > deadline or (self.process.poll() is not None and what != "the end"):
                pytest.fail(f"never came: {what}", pytrace=False)
            time.sleep(0.1)


@pytest.fixture
def begin(task_set: Callable[..., Any], engine: Any) -> Iterator[Callable[[], Running]]:
    rows = [{"id": "a"}, {"id": "b"}, {"id": "c", "answer": PLANTED["data"]}]
    made = task_set(AGENT, JUDGE, tasks=rows, lines=LINES)
    for name in ("mode", "tests"):
        (made.root / name).mkdir()
    (made.root / "tests" / "expected").write_text(PLANTED["tests"])
    with made.config.open("a") as file:
        file.write(f"# {PLANTED['config']}\n")
    made.machine.more.update({"OTHER_KEY": PLANTED["key"], "MWM_URL": "passes"})
    started: list[Running] = []

    def start() -> Running:
        running = Running(made, engine, made.machine.start(*words(made)))
        started.append(running)
        running.until(running.waits, what="an agent and a judge at work")
        return running

    yield start
    for running in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.process.pid, 9)
        running.process.communicate()
        for name in running.containers.values():
            running.ask("rm", "--force", name)


def words(made: Any) -> list[str]:
    local = made.words("--json")
    return [*local[: local.index("--runtime")], "--runtime", "image", "--json"]


def test_nothing_of_a_run_can_be_found_in_its_containers_but_what_their_sandboxes_may_see(begin: Any) -> None:
    running = begin()
    (running.tasks.records / "planted.json").write_text(PLANTED["record"])
    (running.tasks.results.parent / "planted.jsonl").write_text(PLANTED["record"])
    seen = {
        role: json.loads(running.ask("exec", name, "/opt/hermit/bin/python", "-c", WALK, json.dumps(PLANTED)))
        for role, name in running.containers.items()
    }
    told = {name: running.ask("container", "inspect", name) for name in running.containers.values()}
    running.release()
    out, err = running.process.communicate(timeout=WITHIN_S)
    assert running.process.returncode == 0, err.decode()
    assert json.loads(out)["mean_score"] == 1.0
    assert seen["task"]["found"] == []
    assert seen["judge"]["found"] == ["judge", "tests"]
    for found in seen.values():
        assert found["sockets"] == []
        assert found["processes"] >= 5  # init, the launcher, bubblewrap twice, and a worker
        assert any(name.endswith(("/agent.py", "/judge.py")) for name in found["names"])
        for name in ("tasks.jsonl", "test.txt", "run.yaml", "results.jsonl", "planted.json", "docker.sock"):
            assert [path for path in found["names"] if path.endswith(f"/{name}")] == []
    for document in told.values():
        assert not [part for part, token in PLANTED.items() if token in document]


def test_a_container_that_is_killed_costs_no_attempt(begin: Any) -> None:
    running = begin()
    lost = running.containers
    for name in lost.values():
        running.ask("kill", name)
    running.release()
    out, err = running.process.communicate(timeout=WITHIN_S)
    assert running.process.returncode == 0, err.decode()
    summary = json.loads(out)
    assert (summary["mean_score"], summary["errors"], summary["attempts"]) == (1.0, 0, 3)
    ended = {
        row["id"]: [json.loads((running.tasks.records / name).read_text())["ended"] for name in row["records"]]
        for row in running.tasks.rows
    }
    for task in ("a", "b"):
        assert any("the container was killed" in words for words in ended[task])
        assert ended[task][-2:] == ["exit 0", "exit 0"]
    assert ended["c"] == ["exit 0", "exit 0"]
    assert running.containers == {}


def test_a_killed_run_leaves_no_container_and_the_next_one_completes_it(begin: Any) -> None:
    running = begin()
    os.kill(running.process.pid, 9)
    running.process.communicate()
    running.until(lambda: running.containers == {}, what="the end")
    running.release()
    said = running.tasks.machine.run(*words(running.tasks))
    assert said.code == 0, said.err
    assert (said.summary["mean_score"], said.summary["complete"]) == (1.0, True)


def test_a_run_that_is_given_up_ends_its_containers_and_keeps_its_files_its_callers(begin: Any) -> None:
    running = begin()
    os.kill(running.process.pid, 2)
    _, err = running.process.communicate(timeout=WITHIN_S)
    assert (running.process.returncode, b"Traceback" in err) == (130, False)
    assert running.containers == {}
    assert list(running.tasks.machine.scratch.iterdir()) == []
    for path in (running.tasks.root, *running.tasks.root.rglob("*")):
        assert path.lstat().st_uid == os.geteuid()


def test_a_judge_in_place_sees_the_agents_work_in_its_own_container(task_set: Any) -> None:
    judge = """
import os
def score(task, output):
    work = os.environ["HERMIT_WORK"]
    with open(os.path.join(work, "judged"), "w") as file:
        file.write("x")
    return float(open(os.path.join(work, "answer")).read() == "a")
"""
    agent = (
        "from pathlib import Path\nfrom hermit import RunOutput\n"
        "def run(task, adapter):\n    Path('answer').write_text('a')\n"
        "    return RunOutput(Path(adapter, 'ADAPTER.md').read_text())\n"
    )
    made = task_set(agent, judge, lines="agent: {name: 'agent.py:run'}\njudge: {path: judge.py, mode: shared}\n")
    (made.root / "adapter").mkdir()
    (made.root / "adapter" / "ADAPTER.md").write_text("frozen")
    run = [word if word != "none" else str(made.root / "adapter") for word in words(made)]
    said = made.machine.run(*run)
    assert said.code == 0, said.err
    assert said.summary["mean_score"] == 1.0
