"""The relay's modules are no package: they are loaded as the relay loads them, and forgotten again."""

from __future__ import annotations

import importlib
import os
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


@pytest.fixture
def child():
    """Runs a function in a child and returns what it wrote there."""

    def run(function):
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.write(writer, repr(function()).encode())
            except BaseException as error:  # noqa: BLE001 - the parent shows it
                os.write(writer, f"{type(error).__name__}: {error}".encode())
            finally:
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as file:
            said = file.read()
        os.waitpid(pid, 0)
        return said

    return run
