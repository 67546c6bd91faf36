"""The example, scored by its command on this machine: right is 1.0, empty is 0.0, and each way to fail has its name."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.bwrap

AGENT = Path(__file__).resolve().parents[2] / "examples" / "humaneval" / "agent.py"
FOUND = {
    "exception": ("agent_error", "agent", "exception"),
    "sys-exit": ("agent_error", "agent", "exit"),
    "os-exit": ("agent_error", "agent", "exit"),
    "sigkill": ("agent_error", "agent", "signal"),
    "sigsegv": ("agent_error", "agent", "signal"),
    "hang": ("timeout", "agent", "timeout"),
    "wrong-type": ("agent_error", "agent", "result"),
    "not-json": ("agent_error", "agent", "result"),
    "flood": ("ok", "", ""),
    "bad-utf8": ("ok", "", ""),
    "too-large": ("agent_error", "agent", "result"),
    "grandchild": ("ok", "", ""),
    "right": ("ok", "", ""),
}


def way_of(task_id: str) -> str:
    """How the broken agent treats a problem."""
    spec = importlib.util.spec_from_file_location("humaneval_agent_e2e", AGENT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return str(module.way_of(task_id))


def test_the_canonical_programs_solve_all_164_problems(example: Any) -> None:
    said = example.eval()
    assert said.code == 0, said.err
    summary = said.summary
    assert (summary["tasks"], summary["mean_score"], summary["errors"], summary["unconfined"]) == (164, 1.0, 0, 0)
    assert (summary["solved_once"], summary["complete"]) == (164, True)
    assert {row["judged"] for row in example.rows.values()} == {"separate"}


def test_a_stub_solves_none_and_is_no_error(example: Any) -> None:
    said = example.eval("agent.name=agent.py:empty", "environment.read=[]")
    assert said.code == 0, said.err
    assert (said.summary["tasks"], said.summary["mean_score"], said.summary["errors"]) == (164, 0.0, 0)


def test_an_agent_that_fails_in_every_way_ends_the_run_with_each_reason(example: Any) -> None:
    said = example.eval("agent.name=agent.py:broken", "agent.timeout_min=0.1", example.split(range(13)))
    assert said.code == 0, said.err
    rows = example.rows
    found = {way_of(task_id): (row["status"], row["phase"], row["cause"]) for task_id, row in rows.items()}
    assert found == FOUND
    for task_id, row in rows.items():
        if row["status"] == "ok":
            assert row["judge"]["score"] == (0.0 if way_of(task_id) == "bad-utf8" else 1.0), row
            assert row["error"] is None
        else:
            assert row["error"]
            assert row["judge"] is None
    assert said.summary["statuses"]["sandbox_error"] == 0
    assert said.summary["errors"] == 9
    assert list(example.machine.scratch.iterdir()) == []


def test_a_flood_of_output_is_counted_and_not_kept(example: Any) -> None:
    assert way_of("HumanEval/8") == "flood"
    example.eval("agent.name=agent.py:broken", "agent.timeout_min=0.5", example.split([8]))
    log = example.results.parent / "logs" / "HumanEval%2F8-0" / "agent.out"
    assert log.stat().st_size < 1_100_000
    assert log.read_bytes().endswith(b" more bytes were not kept]\n")


def test_the_same_command_goes_on_after_a_torn_line_and_fresh_starts_over(example: Any) -> None:
    split = example.split([0, 1, 2, 3, 4])
    assert example.eval(split).summary["attempts"] == 5
    lines = example.results.read_bytes().splitlines(keepends=True)
    example.results.write_bytes(b"".join(lines[:2]) + lines[2][: len(lines[2]) // 2])
    said = example.eval(split)
    assert (said.code, said.summary["attempts"], said.summary["mean_score"]) == (0, 5, 1.0)
    assert "2 of 5 attempts were made before; going on" in said.err
    assert example.results.read_bytes().splitlines(keepends=True)[:2] == lines[:2]
    assert sorted(example.rows) == [f"HumanEval/{number}" for number in range(5)]
    said = example.eval(split, "--fresh")
    assert "were made before" not in said.err
    assert said.summary["attempts"] == 5


def test_the_reference_agent_without_its_programs_fails_and_says_why(example: Any) -> None:
    said = example.eval("environment.read=[]", example.split([0]))
    assert said.code == 0
    (row,) = example.rows.values()
    assert (row["status"], row["cause"], "FileNotFoundError" in row["error"]) == ("agent_error", "exception", True)


def test_no_command_changes_a_file_of_the_example(example: Any) -> None:
    root = AGENT.parent

    def state() -> dict[str, int]:
        mine = [path for path in root.rglob("*") if "runs" not in path.parts and "__pycache__" not in path.parts]
        return {str(path): path.lstat().st_mtime_ns for path in mine}

    before = state()
    example.eval(example.split([0]))
    assert state() == before
