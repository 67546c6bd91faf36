"""Much of everything: thousands of paths, long prompts and variables, deep directories. What cannot start says why."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from typing import TYPE_CHECKING, Any

import pytest

from hermit import sandbox as sandboxes
from hermit.agent.result import handed_back
from hermit.bwrap import cover
from hermit.domain.bind import Bind
from hermit.domain.command import Command
from hermit.domain.limits import Limits
from hermit.domain.network import Forward
from hermit.domain.sandbox import Sandbox
from hermit.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hermit.sandbox import Place

pytestmark = pytest.mark.bwrap

LARGE = 200_000
CLOCK = Limits(wall_s=60)
# What the kernel passes to a program in one piece, the NUL at its end left out.
LONGEST = 128 * 1024 - 1
AGENT = """
import os
from hermit import RunOutput
def run(task, adapter, params):
    with open("answer", "w") as file:
        file.write(task["prompt"])
    return RunOutput(output=[len(task["prompt"]), len(os.environ.get("LARGE", "")), os.getcwd()])
"""
JUDGE = """
import os
def score(task, output):
    return float(os.path.getsize(os.environ["HERMIT_WORK"] + "/answer") == len(task["prompt"]))
"""
CALL = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=20) as service:
    print(service.recv(100).decode())
"""


@pytest.fixture(params=["bubblewrap", "unconfined"])
def backend(request: pytest.FixtureRequest, place: Place) -> Place:
    """Both kinds of place."""
    return place if request.param == "bubblewrap" else sandboxes.unconfined("the test says so")


def start(place: Place, sandbox: Sandbox, *words: str, stdin: bytes = b"") -> str:
    """What a program says that succeeds in a sandbox."""
    command = Command(argv=words, stdin=stdin)
    outcome = place.run(sandbox, command, keep=lambda _: None)
    assert outcome.code == 0, outcome.stderr.kept.decode()
    return outcome.stdout.kept.decode()


def files(directory: Path, *names: str) -> Path:
    directory.mkdir(parents=True)
    for name in names:
        (directory / name).write_text(f"NAME = {name!r}\n")
    return directory


# Paths and hidden files


def test_two_thousand_paths_and_nine_hundred_hidden_files_among_others_start(place: Place, tmp_path: Path) -> None:
    names = [f"scorer_{number}" for number in range(900)]
    package = files(tmp_path / "package", "free.py", *(f"{name}.py" for name in names))
    shown = files(tmp_path / "shown", *map(str, range(2000)))
    binds = tuple(Bind(f"{shown}/{number}", f"/given/{number}") for number in range(2000))
    sandbox = Sandbox(read=(str(package),), binds=binds, hide=tuple(names), limits=CLOCK)
    said = start(place, sandbox, "sh", "-c", "cat /given/* | wc -l; cat $0/*", str(package))
    assert said == "2000\nNAME = 'free.py'\n"


def test_three_thousand_hidden_files_that_fill_their_directories_start(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = files(tmp_path / "tree", "free.py")
    names = [f"part_{number % 3}.scorer_{number}" for number in range(3000)]
    for part in range(3):
        files(tree / f"part_{part}", *(f"scorer_{number}.py" for number in range(part, 3000, 3)))
    sandbox = Sandbox(read=(str(tree),), hide=tuple(names), limits=CLOCK)
    assert start(place, sandbox, "find", str(tree), "-type", "f") == f"{tree}/free.py\n"
    monkeypatch.setattr(cover, "merged", lambda covers, *_: covers)
    with pytest.raises(SandboxError, match="declare fewer paths"):
        start(place, sandbox, "true")


def test_more_paths_than_bubblewrap_takes_are_refused_at_once_with_a_cure(place: Place, tmp_path: Path) -> None:
    shown = files(tmp_path / "shown", *map(str, range(3000)))
    sandbox = Sandbox(read=tuple(f"{shown}/{number}" for number in range(3000)), limits=CLOCK)
    with pytest.raises(SandboxError, match="which takes 9000; declare fewer paths") as refused:
        start(place, sandbox, "true")
    assert refused.value.cause == "declaration"
    assert start(place, Sandbox(read=(str(shown),), limits=CLOCK), "sh", "-c", f"ls {shown} | wc -l") == "3000\n"


# Prompts and variables


def test_a_worker_gets_a_large_prompt_and_a_large_variable(backend: Place, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "agent.py").write_text(AGENT)
    work = str(tmp_path / "work")
    sandbox = Sandbox(
        read=(str(tmp_path / "agent.py"),), write=(work,), cwd=work, env=(("LARGE", "v-" * (LARGE // 2)),),
        framework=True, limits=CLOCK,
    )  # fmt: skip
    task = {"id": "a", "prompt": "p-" * (LARGE // 2)}
    job = {"callable": f"{tmp_path}/agent.py:run", "task": task, "adapter": None, "params": {}, "base": str(tmp_path)}
    command = Command(worker="hermit.agent.worker:run_agent", job=json.dumps(job).encode())
    found = handed_back(command, backend.run(sandbox, command, keep=lambda _: None))
    assert isinstance(found, dict), found
    assert found["output"] == [LARGE, LARGE, work]


def test_a_program_gets_a_large_prompt_on_standard_input(backend: Place) -> None:
    assert start(backend, Sandbox(limits=CLOCK), "wc", "-c", stdin=b"p" * LARGE).split() == [str(LARGE)]


def test_a_program_gets_the_longest_argument_and_variable_that_the_kernel_passes(backend: Place) -> None:
    sandbox = Sandbox(env=(("LARGE", "v" * (LONGEST - len("LARGE="))),), limits=CLOCK)
    source = "import os, sys; print(len(sys.argv[1]), len(os.environ['LARGE']))"
    assert start(backend, sandbox, "python", "-c", source, "p" * LONGEST) == f"{LONGEST} {LONGEST - 6}\n"


@pytest.mark.parametrize(
    ("words", "env", "said"),
    [
        (("echo", "p" * LARGE), (), f"argument 1 of the command has {LARGE} bytes, and the kernel passes {LONGEST}"),
        (("echo", "p" * (LONGEST + 1)), (), f"argument 1 of the command has {LONGEST + 1} bytes"),
        (("true",), (("LARGE", "v" * LARGE),), f"the variable LARGE has {LARGE + 6} bytes"),
        (("true",), (("LARGE", "v" * (LONGEST - 5)),), f"the variable LARGE has {LONGEST + 1} bytes"),
        (("echo", *["p" * 100_000] * 70), (), "the arguments and variables have 7"),
    ],
)
def test_what_the_kernel_would_not_pass_is_refused_before_the_start(
    backend: Place, words: tuple[str, ...], env: tuple[tuple[str, str], ...], said: str
) -> None:
    with pytest.raises(SandboxError, match=said) as refused:
        start(backend, Sandbox(env=env, limits=CLOCK), *words)
    assert refused.value.cause == "declaration"
    assert "a file that is shown, or on standard input" in refused.value.cure


# Deep directories


def deep(tmp_path: Path, length: int) -> Path:
    """A directory whose path has at least so many characters."""
    path = tmp_path
    while len(str(path)) < length:
        path /= "deeper-than-most"
    path.mkdir(parents=True)
    return path


@pytest.mark.parametrize("mode", ["shared", "separate"])
def test_a_run_directory_with_a_long_path_holds_attempts(
    task_set: Callable[..., Any], tmp_path: Path, mode: str
) -> None:
    root = deep(tmp_path, 160)
    lines = f"""
agent: {{name: agent.py:run}}
judge: {{path: judge.py, mode: {mode}, collect: [answer]}}
environment: {{network: allowlist, allowed_hosts: [api.example.com]}}
"""
    made = task_set(AGENT, JUDGE, tasks=[{"id": "a", "prompt": "p" * LARGE}], lines=lines)
    made.config.write_text(made.config.read_text().replace("run_name: one", f"run_name: one, output_dir: {root}/runs"))
    said = made.eval()
    assert said.code == 0, said.err
    rows = (root / "runs" / "one" / "eval" / "none" / "results.jsonl").read_text().splitlines()
    assert [(row["status"], (row["judge"] or {}).get("score")) for row in map(json.loads, rows)] == [("ok", 1.0)], rows


def test_a_service_whose_socket_has_a_long_path_is_reached(place: Place, tmp_path: Path) -> None:
    directory = deep(tmp_path, 160)
    with socket.socket(socket.AF_UNIX) as server:
        with contextlib.chdir(directory):  # the address of a socket has room for 107 bytes
            server.bind("model.sock")
        server.listen()
        answering = threading.Thread(target=answer, args=(server,))
        answering.start()
        sandbox = Sandbox(forwards=(Forward(8080, f"{directory}/model.sock"),), limits=CLOCK)
        try:
            assert start(place, sandbox, "python", "-c", CALL, "8080") == "reached\n"
        finally:
            server.shutdown(socket.SHUT_RDWR)
            answering.join()


def answer(server: socket.socket) -> None:
    """Says one word to whoever comes, until the server is shut."""
    while True:
        try:
            come, _ = server.accept()
        except OSError:
            return
        with come:
            come.sendall(b"reached")
