"""Every backend performs the same behaviours once; the tests read what happened."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hermit.oci import argv

HERE = Path(__file__).parent
# Both files as one text: `programs` becomes a module, and the behaviours are what runs.
LOADER = """
import sys, types
programs = sys.modules["programs"] = types.ModuleType("programs")
exec({programs!r}, vars(programs))
exec({behaviours!r})
"""
BACKENDS = (
    pytest.param("bubblewrap", marks=pytest.mark.bwrap),
    "unconfined",
    pytest.param("image", marks=(pytest.mark.docker, pytest.mark.image)),
)
AT_MOST_S = 100


@pytest.fixture(scope="session", params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    """``bubblewrap`` on this machine, ``unconfined`` on this machine, or bubblewrap inside the ``image``."""
    return request.param


@pytest.fixture(scope="session")
def facts(backend: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What happened on this backend, by behaviour; the workers of a parallel run share one performance."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    command = in_image(request) if backend == "image" else [sys.executable, "-", backend]
    if run is None:
        return perform(command)
    shared = tmp_path_factory.getbasetemp().parent / f"contract-{backend}-{run}.json"
    with shared.open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        known = file.read()
        if not known:
            known = json.dumps(perform(command))
            file.write(known)
    return json.loads(known)


def in_image(request: pytest.FixtureRequest) -> list[str]:
    """The closed container of a run, with the interpreter in place of the image's entry point."""
    engine = request.getfixturevalue("engine")
    container = argv.Container(image="hermit", command=("-", "bubblewrap"), interactive=True, pids=2000, memory_mb=3072)
    words = argv.run_arguments(container, program=engine.program)
    at = words.index(container.image)
    return [*words[:at], "--entrypoint", "python", *words[at:]]


def perform(command: list[str]) -> dict[str, Any]:
    """Runs the program of behaviours to its end."""
    texts = {name: (HERE / f"{name}.py").read_text(encoding="utf-8") for name in ("programs", "behaviours")}
    text = LOADER.format(**texts).encode()
    ran = subprocess.run(command, input=text, capture_output=True, timeout=AT_MOST_S, check=False, cwd="/")
    assert ran.returncode == 0, ran.stderr.decode(errors="replace")
    return json.loads(ran.stdout)
