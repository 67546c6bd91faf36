"""Whole runs by the command, as somebody types it, over small task sets made for the test or over the example."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "humaneval"
PATIENCE_S = 240


@dataclass(frozen=True)
class Said:
    """What one command line came to."""

    code: int
    out: str
    err: str

    @property
    def summary(self) -> dict[str, Any]:
        """Its standard output, where it was asked for JSON."""
        document: dict[str, Any] = json.loads(self.out)
        return document


@dataclass(frozen=True)
class Machine:
    """Commands of this machine, with a scratch of the test's own."""

    scratch: Path
    more: dict[str, str] = field(default_factory=dict)

    @property
    def variables(self) -> dict[str, str]:
        return {**os.environ, "TMPDIR": str(self.scratch), **self.more}

    def run(self, *words: str, stdin: bytes = b"", env: dict[str, str] | None = None) -> Said:
        """Runs ``python`` with these words to its end."""
        done = subprocess.run(
            [sys.executable, *words],
            input=stdin,
            capture_output=True,
            env={**self.variables, **(env or {})},
            cwd=self.scratch,
            timeout=PATIENCE_S,
            check=False,
        )
        return Said(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))

    def start(self, *words: str, before: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        """Starts ``python`` with these words, in a session of its own, by another program where one comes before."""
        return subprocess.Popen(
            [*before, sys.executable, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.variables,
            cwd=self.scratch,
            start_new_session=True,
        )


@dataclass(frozen=True)
class Set:
    """A small task set: its files, its config, and the command that scores it."""

    root: Path
    machine: Machine

    @property
    def config(self) -> Path:
        return self.root / "run.yaml"

    @property
    def results(self) -> Path:
        return self.root / "runs" / "one" / "eval" / "none" / "results.jsonl"

    @property
    def records(self) -> Path:
        return self.root / "runs" / "one" / "sandbox"

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows so far, in the order of their ids."""
        found = [json.loads(line) for line in self.results.read_text().splitlines()]
        return sorted(found, key=lambda row: str(row["id"]))

    def words(self, *more: str) -> list[str]:
        return ["-m", "hermit", "eval", "--config", str(self.config), "--adapter", "none", "--runtime", "local", *more]

    def eval(self, *more: str, env: dict[str, str] | None = None) -> Said:
        """Scores it."""
        return self.machine.run(*self.words(*more), env=env)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    (tmp_path / "scratch").mkdir()
    return Machine(tmp_path / "scratch")


@pytest.fixture
def task_set(tmp_path: Path, machine: Machine) -> Callable[..., Set]:
    """Makes a task set of this agent and this judge; the rest of the config is given as YAML lines."""

    def make(agent: str, judge: str, *, tasks: Sequence[dict[str, Any]] = ({"id": "a"},), lines: str = "") -> Set:
        root = tmp_path / "set"
        (root / "data").mkdir(parents=True)
        (root / "data" / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))
        (root / "data" / "test.txt").write_text("".join(f"{task['id']}\n" for task in tasks))
        (root / "agent.py").write_text(agent)
        (root / "judge.py").write_text(judge)
        (root / "run.yaml").write_text(
            "data: {tasks: data/tasks.jsonl, test: data/test.txt}\ntrainer: {run_name: one}\n" + lines
        )
        return Set(root, machine)

    return make


@dataclass(frozen=True)
class Example:
    """The task set that comes with the package, with results in a directory of the test's own."""

    machine: Machine
    output: Path

    def words(self, *more: str) -> list[str]:
        own = (f"trainer.output_dir={self.output}", "trainer.run_name=one")
        return [
            "-m",
            "hermit",
            "eval",
            "--config",
            str(EXAMPLE / "run.yaml"),
            "--adapter",
            "none",
            "--json",
            *more,
            *own,
        ]

    def eval(self, *more: str) -> Said:
        return self.machine.run(*self.words("--runtime", "local", *more))

    @property
    def results(self) -> Path:
        return self.output / "one" / "eval" / "none" / "results.jsonl"

    @property
    def rows(self) -> dict[str, dict[str, Any]]:
        return {row["id"]: row for row in map(json.loads, self.results.read_text().splitlines())}

    def split(self, numbers: Sequence[int]) -> str:
        """The setting that takes these problems alone."""
        file = self.machine.scratch.parent / "split.txt"
        file.write_text("".join(f"HumanEval/{number}\n" for number in numbers))
        return f"data.test={file}"


@pytest.fixture
def example(machine: Machine, tmp_path: Path) -> Example:
    if not (EXAMPLE / "data" / "tasks.jsonl").exists():
        pytest.fail("examples/humaneval/data is not there: `make setup` makes it", pytrace=False)
    return Example(machine, tmp_path / "runs")


def descendants(pid: int) -> set[int]:
    """The processes below a process."""
    parents: dict[int, int] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = Path("/proc", entry, "stat").read_text()
            except OSError:
                continue
            parents[int(entry)] = int(stat.rpartition(")")[2].split()[1])
    found: set[int] = set()
    while more := {child for child, parent in parents.items() if parent in {pid, *found}} - found:
        found |= more
    return found


def alive(pids: set[int]) -> set[int]:
    """Those that have not ended."""
    left = set()
    for pid in pids:
        try:
            state = Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state != "Z":
            left.add(pid)
    return left


def until(condition: Callable[[], bool], *, what: str) -> None:
    """Waits for it; a test whose wait is in vain says for what."""
    deadline = time.monotonic() + 60
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"never came: {what}", pytrace=False)
        time.sleep(0.05)


@dataclass(frozen=True)
class Waiting:
    """Tasks of which one ends at once and the others wait until a file is there."""

    tasks: Set
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def begin(self, *, before: Sequence[str] = (), hang: bool = False) -> tuple[subprocess.Popen[bytes], set[int]]:
        """A run that has one row and whose other attempts wait: its process, and those below it.

        Args:
            before: A program that starts it.
            hang: Whether its end in order never comes.
        """
        if hang:
            (self.tasks.root / "hanging").mkdir()
            (self.tasks.root / "hanging" / "sitecustomize.py").write_text(HANGING)
            self.tasks.machine.more["PYTHONPATH"] = str(self.tasks.root / "hanging")
        process = self.tasks.machine.start(*self.tasks.words(), before=before)
        self.tasks.machine.more.pop("PYTHONPATH", None)
        self.started.append(process)
        return process, self.waits(process.pid)

    def begin_on_terminal(self) -> tuple[int, int, set[int]]:
        """The same on a terminal of its own: its process, the other end of the terminal, and those below it."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.tasks.machine.scratch)
            os.execve(sys.executable, [sys.executable, *self.tasks.words()], self.tasks.machine.variables)  # noqa: S606
        return pid, terminal, self.waits(pid)

    def waits(self, pid: int) -> set[int]:
        """What is below a run, once it has one row and its other attempts wait."""
        until(lambda: self.tasks.results.exists() and len(self.tasks.rows) == 1, what="the first row")
        # bubblewrap, the relay, the worker and the program it waits for
        until(lambda: len(descendants(pid)) >= 8, what="two attempts that wait")
        return descendants(pid)

    def gone(self, pids: set[int]) -> bool:
        """Whether all of these have ended, within the time a kernel needs to end them."""
        deadline = time.monotonic() + 20
        while left := alive(pids):
            if time.monotonic() > deadline:
                break
            time.sleep(0.05)
        return not left

    def release(self) -> None:
        """From now on no attempt waits."""
        (self.tasks.root / "mode" / "go").touch()


HANGING = """
import time
from concurrent.futures import ThreadPoolExecutor
ThreadPoolExecutor.shutdown = lambda *_, **__: time.sleep(3600)
"""
WAITING = """
import os, subprocess
from hermit import RunOutput
def run(task, adapter, base):
    if task["wait"] and not os.path.exists(base / "mode" / "go"):
        subprocess.run(["sleep", "600"])
    return RunOutput(task["id"])
"""


@pytest.fixture
def waiting(task_set: Callable[..., Set]) -> Iterator[Waiting]:
    tasks = [{"id": name, "wait": name != "a"} for name in "abc"]
    lines = "agent: {name: 'agent.py:run', concurrency: 2}\njudge: {path: judge.py}\nenvironment: {read: [mode]}\n"
    made = task_set(WAITING, "def score(task, output): return 1\n", tasks=tasks, lines=lines)
    (made.root / "mode").mkdir()
    run = Waiting(made)
    yield run
    for process in run.started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
