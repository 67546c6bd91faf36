"""What a learner can read, write, reach and find from inside its sandbox: every path of ``/w``, and every secret of the run."""

from __future__ import annotations

import os
import socket
import threading
from typing import TYPE_CHECKING, Any

import pytest

from hermit.evolver import StepResult

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.run.conftest import Studio

pytestmark = pytest.mark.bwrap

WRITABLE = {"adapter", "state", "scratch", "output", "home"}
READABLE = {"material", "task-info", "history", "method", "root", "agent-logs", "validation", "environment/books"}

LOOKER = """
import glob, importlib.util, os, socket, stat, sys
from hermit.evolver import Evolver, StepResult

def tried(work):
    try:
        return work()
    except OSError as error:
        return error.strerror

def attempts(path):
    def write():
        with open(os.path.join(path, "planted"), "w") as file:
            file.write("x")
        return "wrote"
    def change():
        with open(os.path.join(path, "given"), "a") as file:
            file.write("x")
        return "changed"
    return {
        "read": tried(lambda: open(os.path.join(path, "given")).read()),
        "write": tried(write),
        "change": tried(change),
        "mkdir": tried(lambda: os.mkdir(os.path.join(path, "made")) or "made"),
        "chmod": tried(lambda: os.chmod(path, 0o777) or "opened"),
        "replace": tried(lambda: os.rename(path, path + "-moved") or "moved"),
        "remove": tried(lambda: os.unlink(os.path.join(path, "given")) or "removed"),
    }

def importable(name):
    return importlib.util.find_spec(name) is not None

class Learner(Evolver):
    def step(self, ctx):
        hay = []
        for root in ctx.params["search"]:
            for top, below, files in os.walk(root):
                for name in files:
                    path = os.path.join(top, name)
                    try:
                        if stat.S_ISREG(os.lstat(path).st_mode) and os.path.getsize(path) < 1 << 20:
                            with open(path, "rb") as file:
                                data = file.read()
                            hay += [[needle, path] for needle in ctx.params["needles"] if needle.encode() in data]
                    except OSError:
                        continue
        reached = {}
        for port in ctx.params["ports"]:
            with socket.socket() as sock:
                sock.settimeout(20)
                reached[str(port)] = sock.connect_ex(("127.0.0.1", port)) == 0
        return StepResult(extra={
            "w": sorted(os.listdir("/w")),
            "root": sorted(os.listdir("/")),
            "tried": {name: attempts("/w/" + name) for name in ctx.params["parts"]},
            "beside": {path: tried(lambda: open(path, "w").close() or "wrote") for path in ("/w/x", "/x", "/w/environment/x")},
            "there": [path for path in ctx.params["absent"] if os.path.lexists(path)],
            "hay": hay,
            "variables": dict(os.environ),
            "importable": {name: importable(name) for name in ctx.params["modules"]},
            "reached": reached,
            "interfaces": [name for _, name in socket.if_nameindex()],
            "processes": [name for name in os.listdir("/proc") if name.isdigit()],
        })
"""
MODULES = (
    "hermit.evolver",
    "hermit.domain.sandbox",
    "hermit.sandbox",
    "hermit.run",
    "hermit.config",
    "hermit.proc",
    "json",
)


def looked(
    studio: Studio, place: Any, *overrides: str, said: str = "", code: str = LOOKER, **params: Any
) -> dict[str, Any]:
    """What a learner that looks everywhere has seen."""
    studio.write(code, said=said or "class: learner.py:Learner\nneeds: {validation_data: true, environment: true}\n")
    books = studio.run.root / "books"
    books.mkdir(exist_ok=True)
    (books / "given").write_text("books")
    (studio.run.root / "val.txt").write_text("t/3\n")
    asked = {"parts": [], "absent": [], "needles": [], "search": [], "ports": [], "modules": MODULES, **params}
    text = "evolver.params=" + str(asked).replace("(", "[").replace(")", "]")
    learner = studio.learner(text, "data.val=val.txt", "evolver_access.environment=[books]", *overrides, place=place)
    for name in (WRITABLE | READABLE) - {"environment/books"}:
        (learner.desk.part(name) / "given").write_text(name)
    result = studio.step(learner).result
    assert isinstance(result, StepResult), result
    return result.extra


def test_every_path_of_the_workspace_can_be_read_and_only_those_of_the_learner_written(
    studio: Studio, place: Any
) -> None:
    seen = looked(studio, place, parts=sorted(WRITABLE | READABLE))
    assert seen["w"] == sorted({name.split("/")[0] for name in WRITABLE | READABLE})
    for name, tried in seen["tried"].items():
        assert tried.pop("read") == name.rpartition("/")[2], name
        assert tried.pop("replace") in {"Device or resource busy", "Read-only file system"}, name
        done = {"write": "wrote", "change": "changed", "mkdir": "made", "chmod": "opened", "remove": "removed"}
        refused = dict.fromkeys(done, "Read-only file system")
        assert tried == (done if name in WRITABLE else refused), name
    assert set(seen["beside"].values()) == {"Read-only file system"}
    kept = {
        name for name in READABLE - {"environment/books"} if (studio.desk_root / name / "given").read_text() == name
    }
    assert kept == READABLE - {"environment/books"}
    assert (studio.run.root / "books" / "given").read_text() == "books"


def test_a_learner_that_needs_neither_sees_neither_validation_nor_environment(studio: Studio, place: Any) -> None:
    seen = looked(studio, place, "evolver_access.environment=[]", said="class: learner.py:Learner\n")
    assert seen["w"] == sorted((WRITABLE | READABLE) - {"validation", "environment/books"})


def test_no_secret_of_the_run_and_nothing_of_the_other_roles_is_found_inside(
    studio: Studio, place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = studio.run.root
    planted = {
        root / "data" / "tasks.jsonl": "needle-data",
        root / "judge.py": "needle-judge",
        root / "tests" / "test_it.py": "needle-tests",
        root / "runs" / "other" / "results.jsonl": "needle-other-run",
        root / "trees" / "base": "needle-tree",
        root / "run.yaml": "needle-config",
        root / "agent.py": "needle-agent",
        root / "task-data" / "x": "needle-task-data",
        studio.run.scratch / "attempt" / "work": "needle-work",
    }
    for path, needle in planted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.write(f"\n# {needle}\n")
    monkeypatch.setenv("OTHER_API_KEY", "needle-variable-0123456789")
    monkeypatch.setenv("MWM_MODE", "fast")
    seen = looked(
        studio,
        place,
        "judge.tests=[tests]",
        "trainer.tree_dir=trees",
        "environment.read=[task-data]",
        "environment.env=[OTHER_API_KEY]",
        "sandbox.evolver.env=['MWM_*']",
        absent=[str(path) for path in [*planted, root, root / "method", studio.run.scratch]],
        needles=[*planted.values(), "needle-variable"],
        search=[
            "/w/adapter",
            "/w/root",
            "/w/material",
            "/w/task-info",
            "/w/environment",
            "/w/validation",
            "/w/history",
            "/w/state",
            "/tmp",
            "/proc",
            "/run",
            "/var",
            "/home",
            "/etc",
            str(root.parent),
            "/root",
        ],
    )
    assert seen["hay"] == []
    assert seen["there"] == []
    assert seen["variables"]["MWM_MODE"] == "fast"
    assert "OTHER_API_KEY" not in seen["variables"]
    assert not [value for value in seen["variables"].values() if str(root) in value or "needle" in value]
    assert seen["interfaces"] == ["lo"]
    assert len(seen["processes"]) <= 2
    record = next(record for record in studio.records if record.role == "evolver")
    assert {bind.target for bind in record.binds if bind.target.startswith("/w")} == {
        f"/w/{name}" for name in WRITABLE | READABLE
    }
    probes = [check for check in record.checks if "secret" in check.name]
    assert probes
    assert all(check.passed for check in record.checks)


def test_the_search_for_secrets_would_find_one(studio: Studio, place: Any) -> None:
    seen = looked(studio, place, needles=["validation"], search=["/w"], absent=["/w/validation/given"])
    assert ["validation", "/w/validation/given"] in seen["hay"]
    assert seen["there"] == ["/w/validation/given"]


def test_the_interface_is_there_and_the_package_is_not(studio: Studio, place: Any) -> None:
    seen = looked(studio, place)
    assert seen["importable"] == {
        **dict.fromkeys(MODULES, False),
        **dict.fromkeys(("hermit.evolver", "hermit.domain.sandbox", "json"), True),
    }
    assert not seen["variables"].get("PYTHONPATH")


def test_the_package_is_there_for_a_method_that_needs_it(studio: Studio, place: Any) -> None:
    needs = LOOKER.replace("class Learner(Evolver):", "class Learner(Evolver):\n    sandbox_framework = True\n")
    assert all(looked(studio, place, code=needs)["importable"].values())


@pytest.fixture
def listening() -> Any:
    """Two services of the host, one of them a model's."""
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        threads = [threading.Thread(target=_accept, args=(sock,), daemon=True) for sock in (one, other)]
        for thread in threads:
            thread.start()
        yield one.getsockname()[1], other.getsockname()[1]
        for sock in (one, other):
            sock.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join()


def _accept(sock: socket.socket) -> None:
    while True:
        try:
            connection, _ = sock.accept()
        except OSError:
            return
        connection.close()


def test_a_learner_reaches_its_models_and_its_tools_and_nothing_else_of_this_machine(
    studio: Studio, place: Any, listening: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, other = listening
    monkeypatch.setenv("VLLM_BASE_URL", f"http://127.0.0.1:{model}/v1")
    monkeypatch.setenv("VLLM_API_KEY", "key-of-the-model-0123456789")
    seen = looked(
        studio, place, "sandbox.evolver.allowed_hosts=[docs.example.org]", model="vllm/m", ports=[model, other, 7321]
    )
    assert seen["reached"] == {str(model): True, str(other): False, "7321": True}
    assert seen["variables"]["VLLM_API_KEY"] == "key-of-the-model-0123456789"
    assert seen["variables"]["VLLM_BASE_URL"] == f"http://127.0.0.1:{model}/v1"
    record = next(record for record in studio.records if record.role == "evolver")
    assert record.reaches[-1] == "docs.example.org"
    assert os.path.basename(record.reaches[0].rpartition(" ")[2]) == "tools.sock" or str(model) in record.reaches[0]


def test_nothing_of_a_learner_outlives_its_call(studio: Studio, place: Any, tmp_path: Path) -> None:
    studio.write(
        "import os, subprocess\nfrom hermit.evolver import Evolver, StepResult\n"
        "class Learner(Evolver):\n    def step(self, ctx):\n"
        "        subprocess.Popen(['setsid', 'sh', '-c', 'while :; do echo x >> /w/state/alive; sleep 0.05; done'])\n"
        "        return StepResult()\n"
    )
    learner = studio.learner(place=place)
    called = studio.step(learner)
    assert called.empty
    alive = learner.desk.part("state") / "alive"
    before = alive.read_bytes() if alive.exists() else b""
    threading.Event().wait(0.3)
    assert (alive.read_bytes() if alive.exists() else b"") == before


NESTED = """
import json, os, sys
from hermit import sandbox as sandboxes
from hermit.domain.command import Command
from hermit.evolver import Evolver, StepResult, views

LOOK = '''
import json, os, urllib.request
def write(path):
    try:
        open(path + "/planted", "w").close()
        return True
    except OSError:
        return False
print(json.dumps([sorted(os.listdir("/w")), write("/w"), write("/adapter"), write("/material"), os.path.lexists("/w/state"), sorted(os.listdir("/material")),
    [tool["name"] for tool in json.load(urllib.request.urlopen(os.environ["HERMIT_TOOL_URL"] + "/"))["returned"]]]))
'''

class Learner(Evolver):
    sandbox_framework = True
    def step(self, ctx):
        place = sandboxes.preflight(ctx.sandbox.enforce)
        said = {}
        for role in ("one", "two"):
            own = ctx.workspace.state / role
            own.mkdir()
            (own / ("of-" + role)).touch()
            view = views.rrsi(own, adapter=ctx.workspace.adapter, material=ctx.workspace.learning_material)
            command = Command(argv=("python", "-c", LOOK))
            outcome = place.run(view.of(ctx.sandbox), command, keep=lambda _: None)
            said[role] = json.loads(outcome.stdout.kept or b"null") or outcome.stderr.kept.decode()
        return StepResult(extra=said)
"""


def test_a_method_gives_each_of_its_roles_a_view_inside_its_own_sandbox(studio: Studio, place: Any) -> None:
    studio.write(NESTED)
    learner = studio.learner(place=place)
    (learner.desk.part("material") / "given").touch()
    called = studio.step(learner)
    for role in ("one", "two"):
        assert called.result.extra[role] == [[f"of-{role}"], True, False, False, False, ["given"], ["check_spec"]], (
            called
        )
