"""Every backend performs the same behaviours once; the tests read what happened."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import hermit
from hermit.oci import argv

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HERE = Path(__file__).parent
# All files as one text: the first three become modules, and the behaviours are what runs.
LOADER = """
import sys, types
for name, text in (("programs", {programs!r}), ("places", {places!r}), ("door", {door!r})):
    sys.modules[name] = types.ModuleType(name)
    exec(text, vars(sys.modules[name]))
exec({behaviours!r})
"""
BACKENDS = (
    pytest.param("bubblewrap", marks=pytest.mark.bwrap),
    "unconfined",
    pytest.param("image", marks=(pytest.mark.docker, pytest.mark.image)),
    pytest.param("launcher", marks=(pytest.mark.docker, pytest.mark.image)),
)
# An ordinary user is somebody else only where root runs the tests.
STANDS = (
    pytest.param("here", marks=pytest.mark.bwrap),
    *([pytest.param("ordinary", marks=pytest.mark.bwrap)] if os.geteuid() == 0 else []),
    pytest.param("image", marks=(pytest.mark.docker, pytest.mark.image)),
)
ORDINARY = 1000
AT_MOST_S = 100


@pytest.fixture(scope="session", params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    """``bubblewrap`` or ``unconfined`` on this machine; either end inside the ``image``, or this one's ``launcher``."""
    return request.param


@pytest.fixture(scope="session")
def facts(backend: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What happened on this backend, by behaviour."""
    texts = {
        name: (HERE / f"{name}.py").read_text(encoding="utf-8") for name in ("programs", "places", "door", "behaviours")
    }
    command = in_image(request, "bubblewrap") if backend == "image" else [sys.executable, "-", backend]
    shared = tmp_path_factory.getbasetemp().parent / f"contract-{backend}"
    return once(shared, lambda: perform(command, LOADER.format(**texts)))


@pytest.fixture(scope="session", params=STANDS)
def stand(request: pytest.FixtureRequest) -> str:
    """Who starts a sandbox that holds another, and where: whoever tests, an ``ordinary`` user, or the ``image``'s."""
    return request.param


@pytest.fixture(scope="session")
def nested(stand: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What happened in a sandbox inside a sandbox, by behaviour."""
    text = (HERE / "nesting.py").read_text(encoding="utf-8")
    with contextlib.ExitStack() as ends:
        command, options = [sys.executable, "-", "outside"], {}
        if stand == "image":
            command = in_image(request, "outside")
        elif stand == "ordinary":
            options = ends.enter_context(ordinary())
            command[0] = interpreter_for(options)
        shared = tmp_path_factory.getbasetemp().parent / f"nesting-{stand}"
        return once(shared, lambda: perform(command, f"SOURCE = {text!r}\nexec(SOURCE)", options))


def once(shared: Path, perform: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What a performance came to; the workers of a parallel run share one."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    if run is None:
        return perform()
    with shared.with_name(f"{shared.name}-{run}.json").open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        known = file.read()
        if not known:
            known = json.dumps(perform())
            file.write(known)
    return json.loads(known)


def in_image(request: pytest.FixtureRequest, *words: str) -> list[str]:
    """The closed container of a run, with the interpreter in place of the image's entry point."""
    engine = request.getfixturevalue("engine")
    container = argv.Container(image="hermit", command=("-", *words), interactive=True, pids=2000, memory_mb=3072)
    spelled = argv.run_arguments(container, program=engine.program)
    at = spelled.index(container.image)
    return [*spelled[:at], "--entrypoint", "python", *spelled[at:]]


@contextlib.contextmanager
def ordinary() -> Iterator[dict[str, Any]]:
    """How a process of a user with no privilege is started, who can read a copy of the package and nothing of root's."""
    with tempfile.TemporaryDirectory() as root:
        shutil.copytree(Path(hermit.__file__).parent, f"{root}/hermit", ignore=shutil.ignore_patterns("__pycache__"))
        Path(root).chmod(0o755)
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHONPATH": root}
        yield {"user": ORDINARY, "group": ORDINARY, "extra_groups": [], "env": env}


def interpreter_for(options: dict[str, Any]) -> str:
    """An interpreter that such a user can start: this one, or the system's."""
    fit = "import sys, hermit.sandbox; sys.exit(sys.version_info < (3, 11))"
    for program in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        with contextlib.suppress(OSError):
            if (
                subprocess.run([program, "-c", fit], capture_output=True, check=False, cwd="/", **options).returncode
                == 0
            ):
                return program
    pytest.fail("no interpreter here can be started by an ordinary user")


def perform(command: list[str], text: str, options: dict[str, Any] | None = None) -> dict[str, Any]:
    """Runs a program of behaviours to its end."""
    ran = subprocess.run(
        command,
        input=text.encode(),
        capture_output=True,
        timeout=AT_MOST_S,
        check=False,
        cwd="/",
        **(options or {}),
    )
    assert ran.returncode == 0, ran.stderr.decode(errors="replace")
    return json.loads(ran.stdout)
