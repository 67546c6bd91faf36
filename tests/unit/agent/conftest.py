"""A worker, run as plain processes of this machine: what it hands back is the same as in a sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hermit import sandbox as sandboxes
from hermit.agent.result import handed_back
from hermit.domain import codec
from hermit.domain.command import Command
from hermit.domain.limits import Limits
from hermit.domain.sandbox import Sandbox

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def call(tmp_path: Path) -> Callable[..., Any]:
    """Runs this source's callable as an agent or a judge and gives what the host reads."""
    (tmp_path / "work").mkdir()

    def run(source: str, *, worker: str = "run_agent", name: str = "run", wall_s: float = 20.0, **job: Any) -> Any:
        file = tmp_path / "code.py"
        file.write_text(source)
        document = {"callable": f"{file}:{name}", "task": {"id": "t"}, **job}
        command = Command(worker=f"hermit.agent.worker:{worker}", job=codec.dump(document), result_bytes=200_000)
        sandbox = Sandbox(cwd=str(tmp_path / "work"), framework=True, limits=Limits(wall_s=wall_s))
        place = sandboxes.unconfined("a test of the worker")
        return handed_back(command, place.run(sandbox, command, keep=lambda _: None))

    return run


@pytest.fixture
def act(call: Callable[..., Any], tmp_path: Path) -> Callable[..., Any]:
    """What an agent of this source hands back."""

    def run(source: str, *, name: str = "run", adapter: str | None = None, wall_s: float = 20.0) -> Any:
        head = "from hermit import Agent, RunOutput\nimport os, signal, sys, time\n"
        return call(head + source, name=name, adapter=adapter, params={"p": 1}, base=str(tmp_path), wall_s=wall_s)

    return run


@pytest.fixture
def judge(call: Callable[..., Any]) -> Callable[..., Any]:
    """What a judge whose ``score`` returns this expression hands back."""

    def run(expression: str) -> Any:
        source = f"from hermit import JudgeResult\ndef score(task, output):\n    return {expression}\n"
        return call(source, worker="run_judge", name="score", output={"output": "42", "log": "l"})

    return run
