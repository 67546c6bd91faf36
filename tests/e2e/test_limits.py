"""An agent that uses up what its sandbox may have is a row that names the bound, and harms nobody else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.bwrap

AGENT = """
import os, time
from hermit import RunOutput

def fill():
    held = bytearray(90 << 20)
    held[::4096] = b"x" * len(held[::4096])
    time.sleep(30)

def run(task, adapter):
    if task["id"] == "memory":
        for _ in range(3):
            if os.fork() == 0:
                fill()
        fill()
    if task["id"] == "cpu":
        while True:
            pass
    return RunOutput(output="done")
"""
LINES = """
agent: {name: agent.py:run, timeout_min: 1, concurrency: 3}
judge: {path: judge.py}
environment: {resources: {memory_mb: 200, cpu_s: 1}}
"""


def test_the_bound_that_ended_an_agent_is_the_cause_of_its_row(task_set: Callable[..., Any]) -> None:
    tasks = [{"id": "memory"}, {"id": "cpu"}, {"id": "neighbour"}]
    made = task_set(AGENT, "def score(task, output):\n    return 1\n", tasks=tasks, lines=LINES)
    said = made.eval()
    assert said.code == 0, said.err
    found = {row["id"]: (row["status"], row["phase"], row["cause"]) for row in made.rows}
    assert found == {
        "cpu": ("agent_error", "agent", "cpu"),
        "memory": ("agent_error", "agent", "memory"),
        "neighbour": ("ok", "", ""),
    }
    records = [json.loads(path.read_text()) for path in made.records.glob("*-task-memory-*.json")]
    assert "(memory: " in records[0]["ended"]
    assert records[0]["empty"] is True
