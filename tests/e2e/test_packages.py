"""A package that lies on PYTHONPATH, not in a site directory: shown alone, and only where the config names it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.bwrap

AGENT = """
import os, subprocess, sys
from hermit import RunOutput

def run(task, adapter, params):
    try:
        from bench.solver import NAME
    except ImportError:
        NAME = "not there"
    child = subprocess.run([sys.executable, "-c", "import bench.solver; print(bench.solver.NAME)"], capture_output=True, text=True)
    return RunOutput(output={"here": NAME, "child": child.stdout.strip(), "data": os.path.exists(params["data"])})
"""
LINES = "agent: {name: agent.py:run, timeout_min: 1}\njudge: {path: judge.py}\n"


@pytest.fixture
def made(task_set: Callable[..., Any]) -> Any:
    whole = task_set(AGENT, "def score(task, output):\n    return 1\n", lines=LINES)
    package = whole.root / "checkout" / "bench"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "solver.py").write_text("NAME = 'solver'\n")
    (package.parent / "answers.jsonl").write_text("{}\n")
    return whole


def output(made: Any, *more: str) -> dict[str, Any]:
    params = f"agent.params={{data: {made.root}/checkout/answers.jsonl}}"
    said = made.eval(params, "--fresh", *more, env={"PYTHONPATH": str(made.root / "checkout")})
    assert said.code == 0, said.err
    found: dict[str, Any] = made.rows[0]["output"]
    return found


def test_a_named_package_is_shown_alone_to_the_worker_and_to_its_programs(made: Any) -> None:
    assert output(made, "environment.packages=[bench]") == {"here": "solver", "child": "solver", "data": False}


def test_a_package_that_is_not_named_is_not_there(made: Any) -> None:
    assert output(made) == {"here": "not there", "child": "", "data": False}


def test_a_package_that_holds_a_secret_is_refused(made: Any) -> None:
    (made.root / "checkout" / "bench" / "judge.py").write_text("def score(task, output):\n    return 1\n")
    said = made.eval(
        "environment.packages=[bench]", "judge.path=checkout/bench/judge.py",
        env={"PYTHONPATH": str(made.root / "checkout")},
    )  # fmt: skip
    assert said.code == 2
    assert "environment.packages" in said.err
    assert not (made.root / "runs").exists()
