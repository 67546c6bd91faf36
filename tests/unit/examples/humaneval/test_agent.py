from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hermit import RunOutput

from .conftest import in_a_fork

if TYPE_CHECKING:
    from types import ModuleType

PROGRAM = "def f():\n    return 1\n"


def number_of(agent: ModuleType, way: str) -> str:
    """The first problem that falls to this way."""
    return next(f"HumanEval/{n}" for n in range(164) if agent.way_of(f"HumanEval/{n}") == way)


def task(task_id: str) -> dict[str, str]:
    return {"id": task_id, "prompt": "def f():\n", "entry_point": "f"}


@pytest.fixture(autouse=True)
def _work(agent: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A work directory as the current one, and canonical programs for all problems."""
    reference = tmp_path / "reference"
    reference.mkdir()
    for number in range(164):
        (reference / f"HumanEval_{number}.py").write_text(PROGRAM)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setattr(agent, "REFERENCE", reference)


def fork_of(agent: ModuleType, way: str) -> int:
    """A process in which ``broken`` runs on a problem of this way; it ends with 99 where ``broken`` returns."""
    pid = os.fork()
    if pid == 0:
        try:
            agent.broken(task(number_of(agent, way)), None)
            os._exit(99)
        except SystemExit as error:
            os._exit(int(str(error.code)))
        finally:
            os._exit(98)
    return pid


def test_the_reference_agent_answers_with_the_canonical_program(agent: ModuleType) -> None:
    assert agent.reference(task("HumanEval/7"), None) == RunOutput(output=PROGRAM)
    assert Path("solution.py").read_text() == PROGRAM


def test_the_reference_agent_says_what_to_do_where_the_programs_are_not_shown(
    agent: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent, "REFERENCE", tmp_path / "elsewhere")
    with pytest.raises(FileNotFoundError, match=r"environment\.read"):
        agent.reference(task("HumanEval/7"), None)


def test_the_empty_agent_answers_with_the_prompt_alone(agent: ModuleType) -> None:
    assert agent.empty(task("HumanEval/7"), None).output == "def f():\n"
    assert Path("solution.py").read_text() == "def f():\n"


def test_each_way_to_fail_has_four_problems_and_the_others_are_right(agent: ModuleType) -> None:
    count = Counter(agent.way_of(f"HumanEval/{number}") for number in range(164))
    assert count.pop("right") == 164 - 4 * len(agent.WAYS)
    assert count == dict.fromkeys([name for name, _ in agent.WAYS], 4)


def test_a_problem_that_falls_to_no_way_is_answered_right(agent: ModuleType) -> None:
    assert agent.broken(task(number_of(agent, "right")), None).output == PROGRAM


def test_the_way_exception_raises(agent: ModuleType) -> None:
    with pytest.raises(RuntimeError):
        agent.broken(task(number_of(agent, "exception")), None)


@pytest.mark.parametrize(
    ("way", "code"), [("sys-exit", 3), ("os-exit", 5), ("sigkill", -signal.SIGKILL), ("sigsegv", -signal.SIGSEGV)]
)
def test_the_ways_that_end_the_process_end_it_so(agent: ModuleType, way: str, code: int) -> None:
    _, status = os.waitpid(fork_of(agent, way), 0)
    assert os.waitstatus_to_exitcode(status) == code
    assert list(Path.cwd().iterdir()) == []


def test_the_way_hang_outlives_sigterm(agent: ModuleType) -> None:
    pid = fork_of(agent, "hang")
    try:
        while not _ignores(pid, signal.SIGTERM):
            time.sleep(0.01)
        os.kill(pid, signal.SIGTERM)
    finally:
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL


def test_the_way_wrong_type_returns_a_list(agent: ModuleType) -> None:
    assert type(agent.broken(task(number_of(agent, "wrong-type")), None)) is list


def test_the_way_not_json_returns_what_json_cannot_hold(agent: ModuleType) -> None:
    output = agent.broken(task(number_of(agent, "not-json")), None)
    with pytest.raises(TypeError):
        json.dumps(output.extra)


def test_the_way_flood_writes_fifty_megabytes_and_answers_right(agent: ModuleType) -> None:
    read, write = os.pipe()

    def flood() -> Any:
        os.close(read)
        os.dup2(write, 1)
        answer = agent.broken(task(number_of(agent, "flood")), None)
        os.close(1)
        os.close(write)
        return answer.output

    pid = os.fork()
    if pid == 0:
        try:
            flood()
        finally:
            os._exit(0)
    os.close(write)
    total = 0
    while part := os.read(read, 1 << 20):
        total += len(part)
    os.close(read)
    os.waitpid(pid, 0)
    assert total == 50_000_000
    assert Path("solution.py").read_text() == PROGRAM


def test_the_way_bad_utf8_leaves_a_file_that_is_no_text(agent: ModuleType) -> None:
    assert agent.broken(task(number_of(agent, "bad-utf8")), None).output is None
    with pytest.raises(UnicodeDecodeError):
        Path("solution.py").read_text(encoding="utf-8")


def test_the_way_too_large_returns_a_hundred_megabytes(agent: ModuleType) -> None:
    assert len(agent.broken(task(number_of(agent, "too-large")), None).output) == 100_000_000


def test_the_way_grandchild_leaves_a_process_in_its_own_session_and_answers_right(agent: ModuleType) -> None:
    def leave() -> dict[str, Any]:
        answer = agent.broken(task(number_of(agent, "grandchild")), None)
        left = answer.extra["left_running"]
        session = os.getsid(left)
        os.kill(left, signal.SIGKILL)
        return {"output": answer.output, "own_session": session == left}

    assert in_a_fork(leave) == {"output": PROGRAM, "own_session": True}


def _ignores(pid: int, number: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    mask = next(line.split()[1] for line in status.splitlines() if line.startswith("SigIgn:"))
    return bool(int(mask, 16) >> (number - 1) & 1)
