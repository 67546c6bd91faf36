"""What happens to a run in the image when its engine, a container, its memory, its disk or its image goes away in the middle.

Each is brought about for real, with an engine of the test's own.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.engines import OwnEngine, give_image, own_engine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [
    pytest.mark.docker,
    pytest.mark.image,
    pytest.mark.serial,
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("dockerd") is None, reason="only root starts an engine"),
]

WITHIN_S = 120.0
# The first task ends at once; the two others wait at the same time, and then do what is asked of them.
AGENT = """
import os, time
from pathlib import Path
from hermit import RunOutput
def run(task, adapter, base):
    mode = base / "mode"
    Path("answer").write_text(task["id"])
    if task["id"] != "a":
        Path("acting-" + task["id"]).touch()
        while not os.path.exists(mode / "go"):
            time.sleep(0.05)
        if os.path.exists(mode / "grow"):
            held = bytearray(b"x") * (300 << 20)
    return RunOutput(task["id"])
"""
JUDGE = """
import os
def score(task, output):
    with open(os.path.join(os.environ["HERMIT_WORK"], "answer")) as file:
        return float(file.read() == task["id"])
"""
LINES = """
agent: {name: 'agent.py:run', concurrency: 2, timeout_min: 3}
judge: {path: judge.py, mode: separate, collect: [answer]}
environment: {read: [mode], resources: {memory_mb: 1024}}
"""


@pytest.fixture(scope="module")
def own() -> Iterator[OwnEngine]:
    with own_engine() as engine:
        yield engine


@dataclass
class Running:
    """A run in the test's own engine, of which one attempt has ended and two wait."""

    tasks: Any
    engine: OwnEngine
    process: subprocess.Popen[bytes]

    @property
    def containers(self) -> list[str]:
        return self.engine.ask("ps", "--quiet", "--no-trunc").stdout.split()

    def mode(self, *names: str) -> None:
        for name in names:
            (self.tasks.root / "mode" / name).touch()

    def until(self, condition: Callable[[], bool], *, what: str) -> None:
        deadline = time.monotonic() + WITHIN_S
        while not condition():
            assert time.monotonic() < deadline, f"never came: {what}"
            time.sleep(0.05)

    def acting(self, name: str = "acting-*") -> int:
        return len(list(self.tasks.machine.scratch.glob(f"*/task/*/work/{name}")))

    def ended(self) -> tuple[int, dict[str, Any]]:
        """The exit code, and the summary."""
        out, err = self.process.communicate(timeout=WITHIN_S)
        assert out, err.decode()
        return self.process.returncode, json.loads(out)

    @property
    def rows(self) -> dict[str, dict[str, Any]]:
        return {row["id"]: row for row in self.tasks.rows}

    def records(self, task: str) -> list[str]:
        """How each start of a task ended."""
        return [json.loads((self.tasks.records / name).read_text())["ended"] for name in self.rows[task]["records"]]

    def again(self) -> dict[str, Any]:
        """The same command, after it is over."""
        self.mode("go")
        said = self.tasks.machine.run(*words(self.tasks))
        assert said.code == 0, said.err
        return said.summary


def words(made: Any) -> list[str]:
    local = made.words("--json")
    return [*local[: local.index("--runtime")], "--runtime", "image", "--json"]


@pytest.fixture
def begin(task_set: Callable[..., Any], own: OwnEngine) -> Iterator[Callable[[], Running]]:
    made = task_set(AGENT, JUDGE, tasks=[{"id": name} for name in "abc"], lines=LINES)
    (made.root / "mode").mkdir()
    made.machine.more.update(own.variables)
    started = []

    def start() -> Running:
        running = Running(made, own, made.machine.start(*words(made)))
        started.append(running)

        def waits() -> bool:
            assert running.process.poll() is None, running.process.communicate()
            return made.results.exists() and len(made.rows) == 1 and running.acting() == 2

        running.until(waits, what="one row, and two attempts that wait")
        return running

    yield start
    for running in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.process.pid, signal.SIGKILL)
        running.process.communicate()
    gone(own, "the containers of the run")


def gone(engine: OwnEngine, what: str) -> None:
    """Waits until the engine has no container."""
    deadline = time.monotonic() + WITHIN_S
    while engine.ask("ps", "--all", "--quiet").stdout:
        assert time.monotonic() < deadline, f"never gone: {what}"
        time.sleep(0.1)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
def test_an_engine_that_is_restarted_in_the_middle_costs_no_attempt(begin: Callable[[], Running], number: int) -> None:
    running = begin()
    before = running.rows
    running.engine.end(number)
    running.engine.start()
    running.mode("go")
    code, summary = running.ended()
    assert (code, summary["mean_score"], summary["errors"], summary["attempts"]) == (0, 1.0, 0, 3)
    assert running.rows["a"] == before["a"]
    for task in "bc":
        lost, *rest = running.records(task)
        assert lost.startswith("SandboxError: hermit: the container engine went away under the container (")
        assert rest == ["exit 0", "exit 0"]
    assert not running.containers


def broken(running: Running, *, cause: str) -> str:
    """What both attempts that were under way are told to have failed of; the one before them is kept."""
    code, summary = running.ended()
    assert (code, summary["attempts"], summary["errors"], summary["mean_score"]) == (4, 3, 2, 1.0)
    rows = running.rows
    assert rows["a"]["status"] == "ok"
    assert [(rows[task]["status"], rows[task]["cause"]) for task in "bc"] == [("sandbox_error", cause)] * 2
    assert not running.containers
    return str(rows["b"]["error"])


def completed(running: Running) -> None:
    """The same command makes what was lost, and nothing else, anew."""
    kept = running.rows["a"]
    summary = running.again()
    assert (summary["complete"], summary["errors"], summary["mean_score"], summary["attempts"]) == (True, 0, 1.0, 3)
    assert running.rows["a"] == kept


def test_a_container_whose_memory_is_full_breaks_the_attempts_in_it_once(begin: Callable[[], Running]) -> None:
    running = begin()
    for name in running.containers:
        said = running.engine.ask("update", "--memory", "250m", "--memory-swap", "250m", name)
        assert said.returncode == 0, said.stderr
    running.mode("grow", "go")
    assert "memory of the whole container was full" in broken(running, cause="container memory")
    (running.tasks.root / "mode" / "grow").unlink()
    completed(running)


def test_a_full_disk_breaks_the_attempts_that_work_on_it_and_costs_no_result(
    machine: Any, begin: Callable[[], Running]
) -> None:
    words = ["mount", "-t", "tmpfs", "-o", "size=24m", "none", str(machine.scratch)]
    subprocess.run(words, check=True)
    try:
        running = begin()
        filler = machine.scratch / "filler"
        with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(b"x" * 4096)
        running.mode("go")
        code, _ = running.ended()
        # The first one to break makes room by its end, which may be enough for the other.
        ended = {(row["status"], row["cause"]) for row in running.rows.values()}
        assert (code, ended) == (4, {("ok", ""), ("sandbox_error", "disk full")})
        assert any("No space left on device" in str(row["error"]) for row in running.rows.values())
        filler.unlink()
        completed(running)
    finally:
        subprocess.run(["umount", "--lazy", str(machine.scratch)], check=True)


def test_an_image_that_is_deleted_while_its_containers_are_lost_is_named_and_no_other_is_taken(
    begin: Callable[[], Running],
) -> None:
    running = begin()
    os.kill(running.process.pid, signal.SIGSTOP)  # it would start a fresh container at once
    for name in running.containers:
        running.engine.ask("kill", name)
    gone(running.engine, "the containers of the run")
    for name in ("hermit", "hermit-judge"):
        assert running.engine.ask("rmi", "--force", name).returncode == 0
    os.kill(running.process.pid, signal.SIGCONT)
    try:
        error = broken(running, cause="container start")
        assert "no fresh container takes the place of the lost one: the image hermit does not exist here" in error
    finally:
        give_image(running.engine, running.engine.home / "hermit.tar")
    completed(running)


def test_an_image_that_loses_its_name_in_the_middle_is_used_to_the_end(begin: Callable[[], Running]) -> None:
    running = begin()
    for name in ("hermit", "hermit-judge"):
        running.engine.ask("tag", name, f"kept-{name}")
        assert running.engine.ask("rmi", name).returncode == 0
    try:
        running.engine.ask("kill", running.containers[0])
        running.mode("go")
        code, summary = running.ended()
        assert (code, summary["mean_score"], summary["errors"]) == (0, 1.0, 0)
    finally:
        for name in ("hermit", "hermit-judge"):
            running.engine.ask("tag", f"kept-{name}", name)
            running.engine.ask("rmi", f"kept-{name}")


@pytest.mark.parametrize("after_s", [0.3, 0.6, 0.9, 1.2, 1.5])
def test_a_run_that_is_killed_while_its_containers_come_up_leaves_none(
    own: OwnEngine, task_set: Any, after_s: float
) -> None:
    made = task_set(AGENT, JUDGE, lines=LINES)
    (made.root / "mode").mkdir()
    made.machine.more.update(own.variables)
    process = made.machine.start(*words(made))
    time.sleep(after_s)
    process.kill()  # it alone: what it started has to find out by itself
    process.communicate()
    gone(own, "the containers of a killed run")
