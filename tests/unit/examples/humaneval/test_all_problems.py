"""All 164 problems, with the real data; the fixture ``real_data`` may DOWNLOAD it by pip where it is not prepared."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .conftest import EXAMPLE, in_a_fork, load

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType


def scores(
    judge: ModuleType, data: Path, *, solution: Path, answer: Callable[[dict[str, str]], str]
) -> dict[str, float]:
    """The score of each problem, with what ``answer`` makes of its task as the solution."""
    found = {}
    for line in (data / "tasks.jsonl").read_text().splitlines():
        task = json.loads(line)
        solution.write_text(answer(task))
        found[task["id"]] = judge.score(task, None).score
    return found


@pytest.fixture
def judge(real_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setenv("HERMIT_WORK", str(tmp_path))
    module: ModuleType = load(Path(shutil.copy(EXAMPLE / "judge.py", tmp_path / "judge.py")))
    monkeypatch.setattr(module, "TESTS", str(real_data / "tests"))
    return module


def test_every_canonical_program_scores_one(judge: ModuleType, real_data: Path, tmp_path: Path) -> None:
    def canonical(task: dict[str, str]) -> str:
        return (real_data / "reference" / f"{task['id'].replace('/', '_')}.py").read_text()

    found = in_a_fork(lambda: scores(judge, real_data, solution=tmp_path / "solution.py", answer=canonical))
    assert found == {f"HumanEval/{number}": 1.0 for number in range(164)}


def test_every_stub_scores_zero(judge: ModuleType, real_data: Path, tmp_path: Path) -> None:
    found = in_a_fork(
        lambda: scores(judge, real_data, solution=tmp_path / "solution.py", answer=lambda task: task["prompt"])
    )
    assert found == {f"HumanEval/{number}": 0.0 for number in range(164)}
