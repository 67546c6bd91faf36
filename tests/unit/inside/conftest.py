"""The relay's modules are no package: they are loaded as the relay loads them, and forgotten again."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

import hermit

INSIDE = Path(hermit.__file__).parent / "inside"


@pytest.fixture
def inside(monkeypatch):
    """Loads a module of the relay by its name."""
    monkeypatch.syspath_prepend(str(INSIDE))
    own = {path.stem for path in INSIDE.glob("*.py")}

    def load(name):
        for module in own & set(sys.modules):
            monkeypatch.delitem(sys.modules, module)
        return importlib.import_module(name)

    yield load
    for module in own & set(sys.modules):
        del sys.modules[module]
