"""A run that is given up, killed or let down leaves nothing running and loses nothing that was finished."""

from __future__ import annotations

import json
import os
import shutil
import signal
from typing import TYPE_CHECKING, Any

import pytest

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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
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
