"""The command line as a person uses it: arguments in, an exit code and two streams out."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from hermit.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@dataclass(frozen=True)
class Said:
    """What one command line came to."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Its standard output, which is one JSON document and nothing else."""
        return json.loads(self.out)


@pytest.fixture
def hermit(capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """Runs one command line in this process."""

    def run(*arguments: str) -> Said:
        capsys.readouterr()
        code = main.run([str(argument) for argument in arguments])
        written = capsys.readouterr()
        return Said(int(code), written.out, written.err)

    return run


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A whole run config whose attempts run without a sandbox, and whose second task scores 0."""
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    root = tmp_path / "set"
    root.mkdir()
    (root / "tasks.jsonl").write_text('{"id": "a", "n": 1}\n{"id": "b", "n": 0}\n')
    (root / "test.txt").write_text("a\nb\n")
    (root / "agent.py").write_text(
        "from hermit import RunOutput\ndef run(task, adapter): return RunOutput(task['n'])\n"
    )
    (root / "judge.py").write_text("def score(task, output): return output.output\n")
    (root / "run.yaml").write_text(
        "data: {tasks: tasks.jsonl, test: test.txt}\nagent: {name: 'agent.py:run'}\njudge: {path: judge.py}\n"
        "sandbox: {enabled: false}\ncontainer: {runtime: local}\ntrainer: {run_name: one}\n"
    )
    return root / "run.yaml"
