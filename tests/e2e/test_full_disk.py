"""Where a file system is full or cannot be written, nothing that was made is lost and one clear message says what to do.

Each test has small file systems of its own, in a mount namespace that ends with it.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.bwrap

NAMESPACE = ("unshare", "--mount", "--propagation", "private")
AS_ROOT = () if os.geteuid() == 0 else ("--user", "--map-root-user")
# Leaves a line at its beginning and one at its end, so that it shows what was made.
AGENT = """
import os, pathlib, time
from hermit import RunOutput
def run(task, adapter):
    with open({calls!r}, "a") as calls:
        calls.write("began " + task["id"] + "\\n")
    if task.get("fills"):
        pathlib.Path("big").write_bytes(b"x" * (16 << 20))
    time.sleep(task.get("takes", 0))
    with open({calls!r}, "a") as calls:
        calls.write("ended " + task["id"] + "\\n")
    return RunOutput("x" * task.get("size", 1))
"""
JUDGE = "def score(task, output): return 1\n"


@dataclass(frozen=True)
class Small:
    """A task set whose runs and whose scratch lie on file systems of a size."""

    tasks: Any
    calls: Path
    out: Path

    def run(self, *steps: str, env: dict[str, str] | None = None) -> list[tuple[int, str]]:
        """Does these steps of a shell in a namespace of its own; `eval` is the command, and says its code and its words.

        After each of them the runs are copied out.
        """
        command = shlex.join([sys.executable, *self.tasks.words()])
        lines = ["set -u", "number=0", f"runs={shlex.quote(str(self.tasks.root / 'runs'))}", 'mkdir -p "$runs"']
        for step in steps:
            if step != "eval":
                lines.append(step)
                continue
            lines += [f"code=0; {command} > /dev/null 2> {self.out}/err$number || code=$?"]
            lines += [f"echo $code > {self.out}/code$number"]
            lines += [f'cp -r "$runs" {self.out}/runs$number', "number=$((number + 1))"]
        self.out.mkdir(exist_ok=True)
        done = subprocess.run(
            [*NAMESPACE, *AS_ROOT, "sh", "-ec", "\n".join(lines)],
            capture_output=True,
            text=True,
            env={**self.tasks.machine.variables, **(env or {})},
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        count = steps.count("eval")
        return [
            (int((self.out / f"code{number}").read_text()), (self.out / f"err{number}").read_text())
            for number in range(count)
        ]

    def rows(self, number: int) -> list[dict[str, Any]]:
        text = (self.out / f"runs{number}" / "one" / "eval" / "none" / "results.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]

    def made(self, what: str = "ended") -> list[str]:
        if not self.calls.exists():
            return []
        lines = [line.split() for line in self.calls.read_text().splitlines()]
        return [task for word, task in lines if word == what]


@pytest.fixture
def small(task_set: Callable[..., Any], tmp_path: Path) -> Callable[..., Small]:
    def make(tasks: list[dict[str, Any]], more: str = "") -> Small:
        (tmp_path / "shared").mkdir()
        calls = tmp_path / "shared" / "calls"
        lines = (
            "agent: {name: 'agent.py:run', concurrency: 1}\njudge: {path: judge.py}\n"
            f"environment: {{write: ['{tmp_path / 'shared'}']}}\n{more}"
        )
        return Small(task_set(AGENT.format(calls=str(calls)), JUDGE, tasks=tasks, lines=lines), calls, tmp_path / "out")

    return make


def test_a_disk_that_fills_up_with_results_keeps_every_result_and_the_next_run_makes_the_rest(
    small: Callable[..., Small],
) -> None:
    tasks = [{"id": f"t{number:02}", "size": 300_000, "takes": 1} for number in range(16)]
    run = small(tasks)
    (first, words), (second, _) = run.run(
        'mount -t tmpfs -o size=9m none "$runs"',
        "eval",
        f'cp {run.calls} {run.out}/first; mount -o remount,size=64m "$runs"',
        "eval",
    )
    assert first == 1
    assert "No space left on device" in words
    assert "-> make room for it, and run the same command again" in words
    assert "Traceback" not in words
    kept = [row["id"] for row in run.rows(0)]
    assert 3 < len(kept) < 16
    # Whoever had ended has its row, also the last: its room was there before the disk was full.
    assert (run.out / "first").read_text().count("ended") == len(kept)
    assert {row["status"] for row in run.rows(0)} == {"ok"}
    summary = json.loads((run.out / "runs0" / "one" / "eval" / "none" / "summary.json").read_text())
    assert (summary["attempts"], summary["complete"]) == (len(kept), False)
    assert second == 0
    assert [row["id"] for row in run.rows(1)] == [task["id"] for task in tasks]
    made = run.made()
    assert [task for task in kept if made.count(task) != 1] == []
    assert len(made) - len(set(made)) <= 1  # the one that was under way


def test_a_disk_that_others_fill_up_stops_the_run_before_more_is_paid_for(small: Callable[..., Small]) -> None:
    run = small([{"id": f"t{number:02}", "takes": 1} for number in range(8)])
    wait = f"until grep -qs 'began t02' {run.calls}; do sleep 0.05; done"
    [(code, words), (again, _)] = run.run(
        'mount -t tmpfs -o size=16m none "$runs"',
        f'({wait}; head -c 32m /dev/zero > "$runs/filler" 2> /dev/null; true) & sleep 0',
        "eval",
        'wait; rm "$runs/filler"; mount -o remount,size=64m "$runs"',
        "eval",
    )
    assert code == 1
    assert words.count("No space left on device") == 1
    assert "/sandbox/" in words
    assert "Traceback" not in words
    assert [row["id"] for row in run.rows(0)] == ["t00", "t01"]
    assert again == 0
    assert [row["id"] for row in run.rows(1)] == [f"t{number:02}" for number in range(8)]
    made = run.made("began")
    assert {task: made.count(task) for task in ("t00", "t01")} == {"t00": 1, "t01": 1}
    assert len(made) <= 8 + 2  # the one whose record had no room, and the one that had begun by then


def test_where_there_is_no_room_for_results_no_attempt_begins(small: Callable[..., Small]) -> None:
    run = small([{"id": "a"}])
    [(code, words)] = run.run('mount -t tmpfs -o size=4m none "$runs"', "eval")
    assert code == 1
    assert "results.jsonl: it could not be written: No space left on device" in words
    assert run.made("began") == []


def test_an_agent_that_fills_the_scratch_fails_alone(small: Callable[..., Small], tmp_path: Path) -> None:
    run = small([{"id": "a"}, {"id": "b", "fills": True}, {"id": "c"}])
    (tmp_path / "tiny").mkdir()
    [(code, words)] = run.run(
        f"mount -t tmpfs -o size=8m none {tmp_path / 'tiny'}", "eval", env={"TMPDIR": str(tmp_path / "tiny")}
    )
    assert code == 0, words
    assert [(row["id"], row["status"]) for row in run.rows(0)] == [("a", "ok"), ("b", "agent_error"), ("c", "ok")]
    assert "No space left on device" in run.rows(0)[1]["error"]


def test_a_scratch_without_room_for_an_attempt_is_no_failure_of_the_agent(
    small: Callable[..., Small], tmp_path: Path
) -> None:
    run = small([{"id": "a"}, {"id": "b"}])
    (tmp_path / "tiny").mkdir()
    # Room for the directories of the run, and for one of an attempt's.
    [(code, words), (again, _)] = run.run(
        f"mount -t tmpfs -o size=1m,nr_inodes=6 none {tmp_path / 'tiny'}",
        "eval",
        f"mount -o remount,nr_inodes=1000 {tmp_path / 'tiny'}",
        "eval",
        env={"TMPDIR": str(tmp_path / "tiny")},
    )
    assert code == 4, words
    assert {(row["status"], row["cause"]) for row in run.rows(0)} == {("sandbox_error", "disk full")}
    assert again == 0
    assert {row["status"] for row in run.rows(1)} == {"ok"}


@pytest.mark.parametrize("held", ["", "results"])
def test_a_run_directory_that_cannot_be_written_is_refused_before_anything_is_paid_for(
    small: Callable[..., Small], held: str
) -> None:
    run = small([{"id": "a"}])
    steps = ["eval"] if held else []
    said = run.run(*steps, 'mount --bind "$runs" "$runs"; mount -o remount,bind,ro "$runs"', "eval")
    code, words = said[-1]
    assert code == 2
    assert "-> make it writable" in words
    assert str(run.tasks.root / "runs" / "one") in words
    assert "Traceback" not in words
    assert len(run.made("began")) == len(steps)
