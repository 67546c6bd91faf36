"""The example's own modules, and a workspace of its learner."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

EXAMPLE = Path(__file__).resolve().parents[4] / "examples" / "first_training"


def load(path: Path) -> ModuleType:
    """The module in this file, under a name that no import finds."""
    spec = importlib.util.spec_from_file_location(f"first_training_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True)
class Desk:
    """A learner's workspace: an adapter of one page, and what was said of the last step's attempts."""

    root: Path

    @property
    def page(self) -> Path:
        return self.root / "adapter" / "ADAPTER.md"

    @property
    def context(self) -> Any:
        workspace = SimpleNamespace(adapter=self.root / "adapter", learning_material=self.root / "material")
        return SimpleNamespace(workspace=workspace)

    def say(self, *feedback: str) -> None:
        tasks = self.root / "material" / "current" / "tasks"
        tasks.mkdir(parents=True, exist_ok=True)
        for number, words in enumerate(feedback):
            (tasks / f"{number}.json").write_text(json.dumps({"attempts": [{"feedback": words}]}))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    made = Desk(tmp_path)
    made.page.parent.mkdir()
    made.page.write_text("Read the task.\n")
    return made


@pytest.fixture
def agent() -> ModuleType:
    return load(EXAMPLE / "agent.py")


@pytest.fixture
def judge() -> ModuleType:
    return load(EXAMPLE / "judge.py")


@pytest.fixture
def learner() -> ModuleType:
    return load(EXAMPLE / "learner" / "learner.py")
