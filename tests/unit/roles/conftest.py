"""A run config that is whole, in a directory of its own, and what it leaves open to change."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import pytest

from hermit.config.load import load

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hermit.config.schema import RunConfig

HOME = MappingProxyType({"HOME": "/home/somebody"})
TEXT = """
data: {tasks: data/tasks.jsonl, train: data/train.txt, test: data/test.txt}
agent: {name: "agent.py:run", timeout_min: 0.5, params: {model: m}}
judge: {path: judge.py, tests: [tests], timeout_min: 2}
"""


@pytest.fixture
def config(tmp_path: Path) -> Callable[..., RunConfig]:
    """A loaded config with these overrides; its paths lie in the test's directory and need not exist."""

    def load_with(*overrides: str) -> RunConfig:
        path = tmp_path / "run.yaml"
        path.write_text(TEXT)
        return load(path, overrides, environ=HOME)

    return load_with
