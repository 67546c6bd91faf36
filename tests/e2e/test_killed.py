"""A run that is killed at any write, or whose power goes there, goes on and comes to what it would have come to."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

DRIVER = Path(__file__).with_name("killing.py")
# The first task takes longest, so that rows come in another order than that of the split.
AGENT = """
import os, time
from hermit import RunOutput
def run(task, adapter, params):
    with open({calls!r}, "a") as calls:
        calls.write(task["id"] + "\\n")
    time.sleep(task["takes"])
    print("attempted", task["id"])
    return RunOutput("other" if params.get("other") else task["id"], cost_usd=0.25)
"""
JUDGE = "def score(task, output): return float(output.output == task['id'])\n"
TASKS = [{"id": "a", "takes": 0.1}, {"id": "b", "takes": 0}]
LINES = "agent: {name: 'agent.py:run', concurrency: 2}\njudge: {path: judge.py}\nsandbox: {enabled: false}\n"
# What changes a file or a directory; the room that results hold beyond their end changes neither.
CHANGES = (
    "write,pwrite64,writev,pwritev,pwritev2,sendfile,copy_file_range,splice,ftruncate,truncate,fsync,fdatasync,"
    "rename,renameat,renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat,rmdir,mkdir,mkdirat,mknod,mknodat,"
    "chmod,fchmod,fchmodat,open,openat,openat2,creat"
)


@pytest.fixture
def root(task_set: Callable[..., Any], tmp_path: Path) -> Path:
    task_set(AGENT.format(calls=str(tmp_path / "calls")), JUDGE, tasks=TASKS, lines=LINES)
    return tmp_path


@pytest.fixture
def driven(root: Path, machine: Any) -> Callable[..., dict[str, Any]]:
    """What the driver says at its end."""

    def drive(mode: str, *before: str) -> dict[str, Any]:
        words = [*before, sys.executable, str(DRIVER), mode, str(root)]
        done = subprocess.run(
            words, capture_output=True, text=True, env=machine.variables, cwd=root, timeout=1200, check=False
        )
        assert done.returncode == 0, done.stderr[-4000:]
        said: dict[str, Any] = json.loads(done.stdout)
        return said

    return drive


def test_a_run_killed_at_any_write_goes_on_and_no_result_that_was_kept_is_paid_for_again(
    driven: Callable[..., dict[str, Any]],
) -> None:
    said = driven("kill")
    assert said["wrong"] == []
    assert said["changes"] > 40
    assert said["power_cuts"] > 10


def test_a_run_that_starts_over_and_is_killed_at_any_write_takes_no_row_of_another_run_for_its_own(
    driven: Callable[..., dict[str, Any]],
) -> None:
    said = driven("fresh")
    assert said["wrong"] == []
    assert said["changes"] > 10
    assert 0 < said["refused"] < said["changes"]


def test_no_write_of_a_run_goes_past_the_counter(driven: Callable[..., dict[str, Any]], root: Path) -> None:
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed")
    trace = root / "trace"
    said = driven("count", strace, "-f", "-y", "-qq", "-s", "0", "-o", str(trace), "-e", f"trace={CHANGES}")
    assert said["status"] == 0
    below = re.escape(str(root / "set" / "runs") + "/")
    seen = [line for line in trace.read_text(errors="replace").splitlines() if changes(line, below)]
    assert len(seen) == said["changes"], "\n".join(seen)


def changes(line: str, below: str) -> bool:
    """Whether a line of the trace is a change below this directory."""
    call = re.match(r"\d+ +(\w+)\((.*)$", line)
    if call is None:
        return False
    name, given = call.groups()
    if name.startswith("open"):
        return bool(re.search(rf'"{below}', given)) and ("O_CREAT" in given or "O_TRUNC" in given)
    first = given.split(",")[0] if not name.startswith("sendfile") else given
    return bool(re.search(rf'<{below}|"{below}|<{below[:-1]}>', first))
