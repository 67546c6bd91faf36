"""The trajectory that an agent hands back is kept beside the results, without keys, and never an older one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

AGENT = """
import os
from hermit import RunOutput
def run(task, adapter, base):
    if (base / "silent").exists(): return RunOutput(task["n"])
    if task["n"] == 1: raise RuntimeError("no")
    return RunOutput(task["n"], messages=[{"role": "user", "content": "sk-" + "a1b2" * 5}, "\\ud800", [1, {"x": None}]])
"""
VALUE = "sk-" + "a1b2" * 5


def kept(run: Any) -> dict[str, list[Any]]:
    files: list[Path] = sorted((run.evaluation / "logs").glob("*/messages.jsonl"))
    return {file.parent.name: [json.loads(line) for line in file.read_bytes().splitlines()] for file in files}


def test_a_trajectory_is_kept_with_a_line_for_each_message_and_none_for_a_call_that_failed(run: Any) -> None:
    (run.root / "agent.py").write_text(AGENT)
    run.evaluate()
    said = [{"role": "user", "content": VALUE}, "\ud800", [1, {"x": None}]]
    assert kept(run) == {"t%2F0-0": said, "t%2F2-0": said}


def test_no_key_is_in_a_trajectory(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTED_API_KEY", VALUE)
    (run.root / "agent.py").write_text(AGENT)
    run.evaluate()
    assert [messages[0]["content"] for messages in kept(run).values()] == ["<PLANTED_API_KEY>"] * 2


def test_a_trajectory_of_an_earlier_try_does_not_stay(run: Any) -> None:
    (run.root / "agent.py").write_text(AGENT)
    run.evaluate()
    (run.root / "silent").touch()
    run.evaluation.joinpath("results.jsonl").unlink()
    run.evaluate()
    assert kept(run) == {}
