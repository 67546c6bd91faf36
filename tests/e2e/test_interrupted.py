"""A run that is given up, killed or let down leaves nothing running and loses nothing that was finished."""

from __future__ import annotations

import itertools
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from hermit.run import capacity

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.bwrap

# Every third start after the first, which finds out whether this is a bubblewrap at all, fails.
STUB = """#!/bin/sh
case "$1" in --version) exec {real} --version ;; esac
count=$(($(/bin/cat {count} 2>/dev/null || echo 0) + 1))
echo $count > {count}
if [ $((count % 3)) -eq 0 ]; then echo "bwrap: made to fail" >&2; exit 1; fi
exec {real} "$@"
"""


# Each look at the clock finds it set a day on, or back, from some moment on.
CLOCK = """
import datetime, itertools, time
looks, real = itertools.count(), time.time
def now():
    return real() + ({step_s} if next(looks) > 3 else 0)
time.time = now
class Set(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return datetime.datetime.fromtimestamp(now(), tz)
datetime.datetime = Set
"""
SPANS = """
import time
from hermit import RunOutput
def run(task, adapter):
    began = time.monotonic()
    time.sleep(0.3)
    with open({spans!r}, "a") as spans:
        spans.write(f"{{began}} {{time.monotonic()}}\\n")
    return RunOutput(1)
"""


@pytest.fixture
def ends(task_set: Callable[..., Any], tmp_path: Path) -> Any:
    """A run of two attempts, of which a sandbox breaks the second: it ends with 4."""
    made = task_set(
        "from hermit import RunOutput\ndef run(task, adapter): return RunOutput(1)\n",
        "def score(task, output): return 1\n",
        tasks=[{"id": name} for name in "ab"],
        lines="agent: {name: 'agent.py:run', concurrency: 1}\njudge: {path: judge.py}\n",
    )
    (tmp_path / "bin").mkdir()
    stub = tmp_path / "bin" / "bwrap"
    stub.write_text(STUB.format(real=shutil.which("bwrap"), count=tmp_path / "count"))
    stub.chmod(0o755)
    made.machine.more["PATH"] = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    return made


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_run_given_up_keeps_its_results_leaves_nothing_and_goes_on_later(waiting: Any, number: int) -> None:
    process, below = waiting.begin()
    os.kill(process.pid, number)
    _, words = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"every finished attempt is kept" in words
    assert b"Traceback" not in words
    assert waiting.gone(below)
    assert [row["id"] for row in waiting.tasks.rows] == ["a"]
    assert list(waiting.tasks.machine.scratch.iterdir()) == []
    summary = json.loads((waiting.tasks.results.parent / "summary.json").read_text())
    assert (summary["attempts"], summary["complete"]) == (1, False)
    waiting.release()
    said = waiting.tasks.eval("--json")
    assert said.code == 0
    assert (said.summary["attempts"], said.summary["mean_score"], said.summary["errors"]) == (3, 1.0, 0)
    assert "1 of 3 attempts were made before; going on" in said.err


def test_ctrl_c_in_the_terminal_reaches_every_process_and_is_the_same(waiting: Any) -> None:
    process, below = waiting.begin()
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert waiting.gone(below)
    assert [row["status"] for row in waiting.tasks.rows] == ["ok"]


def test_a_second_ctrl_c_ends_at_once_what_the_first_cannot(waiting: Any) -> None:
    process, below = waiting.begin(hang=True)
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        os.kill(process.pid, signal.SIGINT)
        time.sleep(1)
    _, words = process.communicate(timeout=60)
    assert process.returncode == 130
    assert words.count(b"ended at once") == 1
    assert b"-> run the same command to go on" in words
    assert waiting.gone(below)
    assert [row["id"] for row in waiting.tasks.rows] == ["a"]
    waiting.release()
    said = waiting.tasks.eval("--json")
    assert (said.code, said.summary["attempts"], said.summary["complete"]) == (0, 3, True)
    assert list(waiting.tasks.machine.scratch.glob("hermit-run-*")) == []


def test_signals_that_one_press_sends_twice_end_a_run_in_order(waiting: Any) -> None:
    process, below = waiting.begin()
    for number in (signal.SIGINT, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(process.pid, number)
    _, words = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"every finished attempt is kept" in words
    assert b"at once" not in words
    assert waiting.gone(below)
    assert list(waiting.tasks.machine.scratch.iterdir()) == []


def test_a_run_that_was_started_to_outlive_its_terminal_does(waiting: Any) -> None:
    process, _ = waiting.begin(before=("nohup",))
    os.kill(process.pid, signal.SIGHUP)
    time.sleep(1)
    assert process.poll() is None
    os.kill(process.pid, signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 130


def test_a_closed_terminal_gives_the_run_up_and_nothing_is_lost(waiting: Any) -> None:
    pid, terminal, below = waiting.begin_on_terminal()
    os.close(terminal)  # whoever has it for its terminal is sent a HUP, and can say nothing any more
    status = os.waitpid(pid, 0)[1]
    assert os.waitstatus_to_exitcode(status) == 130
    assert waiting.gone(below)
    assert [row["id"] for row in waiting.tasks.rows] == ["a"]
    summary = json.loads((waiting.tasks.results.parent / "summary.json").read_text())
    assert (summary["attempts"], summary["complete"]) == (1, False)
    assert list(waiting.tasks.machine.scratch.iterdir()) == []


@pytest.mark.parametrize("closed", ["2>&-", ">&-", "<&-", "<&- >&- 2>&-"])
def test_a_run_whose_caller_closed_a_stream_is_made_all_the_same(ends: Any, closed: str) -> None:
    command = shlex.join([sys.executable, *ends.words("--json")])
    done = subprocess.run(
        ["sh", "-c", f"{command} {closed}"], env=ends.machine.variables, capture_output=True, check=False
    )
    assert done.returncode == 4, done
    assert [row["status"] for row in ends.rows] == ["ok", "sandbox_error"]
    assert b"Traceback" not in done.stderr
    if closed in ("2>&-", "<&-"):
        assert json.loads(done.stdout)["attempts"] == 2


@pytest.mark.parametrize("stream", ["stdout", "stderr", "both"])
def test_a_run_whose_reader_has_left_is_made_all_the_same_and_ends_with_its_own_code(ends: Any, stream: str) -> None:
    read, write = os.pipe()
    os.close(read)
    process = subprocess.Popen(
        [sys.executable, *ends.words("--json")],
        env=ends.machine.variables,
        stdout=write if stream in ("stdout", "both") else subprocess.PIPE,
        stderr=write if stream in ("stderr", "both") else subprocess.PIPE,
    )
    os.close(write)
    out, words = process.communicate(timeout=120)
    assert process.returncode == 4
    assert [row["status"] for row in ends.rows] == ["ok", "sandbox_error"]
    assert b"Traceback" not in (words or b"")
    if stream == "stderr":
        assert json.loads(out)["attempts"] == 2


def test_a_summary_that_cannot_be_written_is_an_error_that_says_the_results_are_kept(ends: Any) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, *ends.words("--json")], env=ends.machine.variables, stdout=full, stderr=-1, check=False
        )
    assert done.returncode == 1
    assert b"the output: this could not be written: No space left on device" in done.stderr
    assert b"the results are kept" in done.stderr
    assert b"Traceback" not in done.stderr
    assert len(ends.rows) == 2


@pytest.mark.parametrize("step_s", [86_400.0, -86_400.0])
def test_a_clock_that_is_set_while_a_run_goes_on_changes_no_duration_and_costs_no_attempt(
    task_set: Callable[..., Any], tmp_path: Path, step_s: float
) -> None:
    made = task_set(
        "from hermit import RunOutput\ndef run(task, adapter): return RunOutput(1)\n",
        "def score(task, output): return 1\n",
        tasks=[{"id": name} for name in "abc"],
        lines="agent: {name: 'agent.py:run', concurrency: 1, timeout_min: 5}\njudge: {path: judge.py, mode: shared}\n",
    )
    (tmp_path / "clock").mkdir()
    (tmp_path / "clock" / "sitecustomize.py").write_text(CLOCK.format(step_s=step_s))
    said = made.eval("--json", env={"PYTHONPATH": str(tmp_path / "clock")})
    assert (said.code, said.summary["statuses"]["ok"]) == (0, 3), said.err
    assert 0 < said.summary["wall_s"] < 3600
    assert all(0 < row["wall_s"] < 3600 for row in made.rows)
    names = [name for row in made.rows for name in row["records"]]
    assert len(set(names)) == 6
    assert {record.name for record in made.records.iterdir()} == set(names)
    assert len({name[:8] for name in names}) > 1  # the clock was set: the names of the records say so


def test_attempts_whose_memory_does_not_fit_together_run_one_after_the_other_and_the_console_says_so_once(
    task_set: Callable[..., Any], tmp_path: Path
) -> None:
    most_mb = capacity.available_mb()
    (tmp_path / "shared").mkdir()
    made = task_set(
        SPANS.format(spans=str(tmp_path / "shared" / "spans")),
        "def score(task, output): return 1\n",
        tasks=[{"id": name} for name in "abcd"],
        lines=f"agent: {{name: 'agent.py:run', concurrency: 4}}\njudge: {{path: judge.py}}\n"
        f"environment: {{write: ['{tmp_path / 'shared'}'], resources: {{memory_mb: {most_mb * 2}}}}}\n",
    )
    said = made.eval("--json")
    assert (said.code, said.summary["statuses"]["ok"]) == (0, 4), said.err
    assert said.err.count("attempts wait for memory") == 1
    spans = sorted(tuple(map(float, line.split())) for line in (tmp_path / "shared" / "spans").read_text().splitlines())
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))


def test_no_sandbox_outlives_a_killed_run_and_the_next_one_completes_it(waiting: Any) -> None:
    process, below = waiting.begin()
    assert len(below) >= 8
    process.kill()
    process.communicate(timeout=60)
    assert waiting.gone(below)
    waiting.release()
    said = waiting.tasks.eval("--json")
    assert said.code == 0
    assert (said.summary["attempts"], said.summary["errors"], said.summary["complete"]) == (3, 0, True)
    assert [row["id"] for row in waiting.tasks.rows] == ["a", "b", "c"]


def test_a_second_run_in_the_same_directory_is_refused_while_the_first_works(waiting: Any) -> None:
    waiting.begin()
    said = waiting.tasks.eval()
    assert said.code == 2
    assert "another process works in this run" in said.err
    said = waiting.tasks.eval("--fresh")
    assert said.code == 2
    assert [row["id"] for row in waiting.tasks.rows] == ["a"]


def test_an_attempt_that_a_sandbox_broke_has_no_score_and_is_made_again(
    task_set: Callable[..., Any], tmp_path: Path
) -> None:
    made = task_set(
        "from hermit import RunOutput\ndef run(task, adapter):\n    open('answer', 'w').write('x')\n    return RunOutput(1)\n",
        "def score(task, output): return 1\n",
        tasks=[{"id": name} for name in "abcd"],
        lines="agent: {name: 'agent.py:run', concurrency: 1}\n"
        "judge: {path: judge.py, mode: separate, collect: [answer]}\n",
    )
    (tmp_path / "bin").mkdir()
    stub = tmp_path / "bin" / "bwrap"
    stub.write_text(STUB.format(real=shutil.which("bwrap"), count=tmp_path / "count"))
    stub.chmod(0o755)
    said = made.eval("--json", env={"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"})
    assert said.code == 4
    assert said.summary["statuses"] == {"ok": 2, "agent_error": 0, "timeout": 0, "judge_error": 0, "sandbox_error": 2}
    assert (said.summary["mean_score"], said.summary["errors"]) == (1.0, 2)
    broken = {row["id"]: row for row in made.rows if row["status"] == "sandbox_error"}
    assert {task_id: row["phase"] for task_id, row in broken.items()} == {"a": "judge", "c": "start"}
    assert said.summary["failed_by"] == {"agent": 0, "judge": 0, "infrastructure": 2}
    assert said.summary["confinement"]["every"]
    assert all("made to fail" in row["error"] and row["judge"] is None for row in broken.values())
    said = made.eval("--json")
    assert said.code == 0
    assert (said.summary["attempts"], said.summary["mean_score"], said.summary["errors"]) == (4, 1.0, 0)
    assert "2 of 4 attempts were made before" in said.err
    assert [row["id"] for row in made.rows] == ["a", "b", "c", "d"]
