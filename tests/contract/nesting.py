"""A sandbox inside a sandbox, performed with Hermit's own API and front door; prints what happened as JSON.

It runs as a program of its own, from standard input, so that the same text runs on this machine, as another user of it
and inside the image; and again inside the outer sandbox, and inside the one in that. ``SOURCE`` is this text. What is
expected stands in the tests, not here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from hermit import sandbox as sandboxes
from hermit.agent.result import Failure, handed_back
from hermit.bwrap import python
from hermit.domain.bind import Bind
from hermit.domain.command import Command
from hermit.domain.hide import VARIABLE
from hermit.domain.limits import Limits
from hermit.domain.network import Network
from hermit.domain.sandbox import Sandbox
from hermit.errors import HermitError

CLOCK_S = 60.0  # a bound on a test gone wrong, never what a behaviour is measured by
LOAD = f"SOURCE = {SOURCE!r}\nexec(SOURCE)"  # noqa: F821 - whoever runs this has set it
STRICT = Sandbox(role="tool", limits=Limits(wall_s=CLOCK_S, memory_mb=512))
NESTING = replace(STRICT, framework=True)
# An agent as a task has one: its worker calls it in the task sandbox, and it starts a sandbox for a tool of its own.
AGENT = """
from hermit import RunOutput
from hermit import sandbox as sandboxes
from hermit.domain.command import Command
from hermit.domain.sandbox import Sandbox
def run(task, adapter):
    outcome = sandboxes.preflight().run(Sandbox(), Command(argv=("echo", "from the tool")), keep=lambda _: None)
    return RunOutput(output=outcome.stdout.kept.decode())
"""
TELL = """
import json, sys
try:
    import hermit.sandbox
except ImportError:
    print(json.dumps([sys.version, False]))
else:
    print(json.dumps([sys.version, True]))
"""
FORKS = """
import os, sys, time
for started in range(150):
    try:
        if os.fork() == 0:
            time.sleep(20)
            os._exit(0)
    except OSError:
        time.sleep(2)  # a watchdog looks from time to time
        sys.exit(f"refused after {started}")
time.sleep(2)
print("all of them")
"""
FILL = """
import os, time
for _ in range(4):
    if os.fork() == 0:
        held = b"x" * (80 << 20)
        time.sleep(5)
        os._exit(0)
raise SystemExit(any(os.wait()[1] for _ in range(4)))
"""


class Inside:
    """The inside of the outer sandbox: a place, what is shown there, and the records of what was started."""

    def __init__(self, shown: str, work: str, hidden: str) -> None:
        self.place = sandboxes.preflight()
        self.shown, self.work, self.hidden = shown, work, hidden
        self.records: list = []

    def run(self, *argv: str, sandbox: Sandbox = STRICT):
        return self.place.run(sandbox, Command(argv=argv), keep=self.records.append, variables={})

    def bounded(self, **limits: float) -> Sandbox:
        return replace(STRICT, limits=Limits(**{"wall_s": CLOCK_S, "memory_mb": 512, **limits}))

    def refusal(self, sandbox: Sandbox) -> list[str]:
        try:
            return ["started", str(self.run("true", sandbox=sandbox).code)]
        except HermitError as error:
            return [type(error).__name__, getattr(error, "cause", ""), str(error)]

    def front_door(self, *command: str, stdin: str = "", env: dict | None = None, **document) -> list:
        path = Path(self.work) / "spec.json"
        path.write_text(json.dumps(document), encoding="utf-8")
        words = [sys.executable, "-m", "hermit.sandbox", str(path), "--", *command]
        said = subprocess.run(
            words, input=stdin, capture_output=True, text=True, check=False, env={**os.environ, **(env or {})}
        )
        return [said.returncode, said.stdout, said.stderr]


def text(stream) -> str:
    return stream.kept.decode("utf-8", "backslashreplace")


def strict(inside):
    said = inside.run("sh", "-c", "id -u; env | cut -d= -f1 | sort | tr '\\n' ' '; exit 7")
    record = inside.records[-1]
    return {
        "code": said.code,
        "said": text(said.stdout).split("\n"),
        "checks": {check.name: check.passed for check in record.checks},
        "warnings": record.warnings,
        "held by": {name: by for name, _, by in record.limits},
        "empty": record.empty,
        "confined": record.confined,
    }


def front_door(inside):
    return {
        "through": inside.front_door("sh", "-c", "cat; exit 7", stdin="in"),
        "a path": inside.front_door("cat", f"{inside.shown}/data.txt", read=[inside.shown])[:2],
        "not shown outside": inside.front_door("true", read=[inside.hidden]),
        "read-only outside": inside.front_door("true", write=[inside.shown]),
    }


def hidden_by_a_variable(inside):
    words = ("cat", f"{inside.shown}/answers.py")
    plain = inside.front_door(*words, read=[inside.shown])
    covered = inside.front_door(*words, read=[inside.shown], env={VARIABLE: "answers"})
    broken = inside.front_door(*words, read=[inside.shown], env={VARIABLE: "../answers"})
    return [plain[:2], covered[:2], broken[0], VARIABLE in broken[2]]


def refusals(inside):
    return {
        "not shown outside": inside.refusal(replace(STRICT, read=(inside.hidden,))),
        "read-only outside": inside.refusal(replace(STRICT, write=(inside.shown,))),
        "writable outside": inside.refusal(replace(STRICT, write=(inside.work,))),
    }


def interpreter(inside):
    """Whether a program inside finds the interpreter, with the packages that the outer sandbox has."""
    found = [json.loads(text(inside.run("python", "-c", TELL, sandbox=each).stdout)) for each in (STRICT, NESTING)]
    current = python.current()
    return {
        "same version": [version == sys.version for version, _ in found],
        "hermit": [importable for _, importable in found],
        "sites exist": all(map(os.path.isdir, current.sites)),
        "package": os.path.isfile(f"{current.package}/sandbox.py"),
    }


def leftovers(inside):
    began = time.monotonic()
    said = inside.run("sh", "-c", "setsid sleep 30 & setsid sh -c 'trap \"\" TERM; sleep 30' & echo left")
    return [said.code, text(said.stdout), time.monotonic() - began < 15, inside.records[-1].empty]


def timeout(inside):
    program = "trap 'echo goodbye; exit 3' TERM; echo up; while :; do sleep 0.05; done"
    said = inside.run("sh", "-c", program, sandbox=inside.bounded(wall_s=1.0))
    return [said.timed_out, text(said.stdout), said.code]


def processes(inside):
    said = inside.run("python", "-c", FORKS, sandbox=inside.bounded(pids=40))
    return {"all of them": "all of them" in text(said.stdout), "limit": said.limit, "code": said.code}


def memory(inside):
    said = inside.run("python", "-c", FILL, sandbox=inside.bounded(memory_mb=200))
    return [said.limit, said.code == 0]


def narrowed(inside):
    """What an inner sandbox, or bubblewrap without any of Hermit, gets of what the outer one hides, shuts and bounds."""
    scorer = f"{inside.shown}/scorer.py"
    renamed = replace(STRICT, binds=(Bind(inside.shown, "/x"), Bind(scorer, "/y")))
    bare = ("bwrap", "--bind", "/", "/", "--unshare-user", "--unshare-pid", "--dev", "/dev")
    interfaces = "import socket; print([name for _, name in socket.if_nameindex()])"
    return {
        "hidden": [
            text(inside.run("cat", scorer, sandbox=replace(STRICT, read=(inside.shown,))).stdout),
            text(inside.run("cat", "/x/scorer.py", "/y", sandbox=renamed).stdout),
            subprocess.run([*bare, "cat", scorer], capture_output=True, text=True, check=False).stdout,
        ],
        "written": subprocess.run(
            [*bare, "touch", f"{inside.shown}/planted"], capture_output=True, check=False
        ).returncode
        == 0,
        "network": text(inside.run("python", "-c", interfaces, sandbox=replace(STRICT, network=Network.OPEN)).stdout),
        "processes": "all of them" in text(inside.run("python", "-c", FORKS, sandbox=inside.bounded(pids=1000)).stdout),
    }


def third_level(inside):
    said = inside.run("python", "-c", LOAD, "deepest", sandbox=NESTING)
    return json.loads(text(said.stdout)) if said.code == 0 else text(said.stderr)


def deepest() -> list[str]:
    """What a sandbox in a sandbox says to a third."""
    try:
        records: list = []
        said = sandboxes.preflight().run(STRICT, Command(argv=("id", "-u")), keep=records.append)
        return ["started", text(said.stdout), str(all(check.passed for check in records[0].checks))]
    except HermitError as error:
        return [type(error).__name__, error.what, error.cure]


BEHAVIOURS = (
    *(strict, front_door, hidden_by_a_variable, refusals, interpreter),
    *(leftovers, timeout, processes, memory, narrowed, third_level),
)


def fill() -> int:
    """Fills more than the outer sandbox may hold, in an inner one that may hold more."""
    wide = replace(STRICT, limits=Limits(wall_s=CLOCK_S, memory_mb=4096))
    said = sandboxes.preflight().run(wide, Command(argv=("python", "-c", FILL)), keep=lambda _: None)
    return said.shell_code


def inside(shown: str, work: str, hidden: str) -> dict:
    """Every behaviour, once."""
    there = Inside(shown, work, hidden)
    return {behaviour.__name__: behaviour(there) for behaviour in BEHAVIOURS}


def outside() -> dict:
    """Starts the outer sandbox, as a task has one, and performs the behaviours in it."""
    place = sandboxes.preflight()
    with tempfile.TemporaryDirectory() as root:
        shown, work, hidden = (f"{root}/{name}" for name in ("shown", "work", "hidden"))
        for path in (shown, work, hidden):
            Path(path).mkdir()
        Path(shown, "data.txt").write_text("data", encoding="utf-8")
        Path(shown, "scorer.py").write_text("EXPECTED = 42\n", encoding="utf-8")
        Path(shown, "answers.py").write_text("ANSWER = 42\n", encoding="utf-8")
        Path(shown, "agent.py").write_text(AGENT, encoding="utf-8")
        task = Sandbox(
            role="task",
            framework=True,
            read=(shown,),
            write=(work,),
            cwd=work,
            hide=("scorer",),
            limits=Limits(wall_s=CLOCK_S * 2, pids=120),
        )
        argv = ("python", "-c", LOAD, "inside", shown, work, hidden)
        said = place.run(task, Command(argv=argv), keep=lambda _: None)
        if said.code != 0:
            sys.exit(f"{said.shell_code} {said.limit} {text(said.stderr)}")
        found = json.loads(text(said.stdout))
        bounded = replace(task, limits=Limits(wall_s=CLOCK_S, memory_mb=200))
        filled = place.run(bounded, Command(argv=("python", "-c", LOAD, "fill")), keep=lambda _: None)
        found["filled"] = [filled.limit, filled.code == 0]
        return {**found, "agent": called(place, task, f"{shown}/agent.py"), "as root": os.geteuid() == 0}


def called(place, task: Sandbox, agent: str):
    """What an agent hands back that its worker has called in the task sandbox."""
    job = {"callable": f"{agent}:run", "task": {"id": "t1"}, "adapter": None, "params": {}, "base": "/"}
    command = Command(worker="hermit.agent.worker:run_agent", job=json.dumps(job).encode(), result_bytes=1 << 16)
    found = handed_back(command, place.run(task, command, keep=lambda _: None))
    return str(found) if isinstance(found, Failure) else found["output"]


print(json.dumps({"outside": outside, "inside": inside, "deepest": deepest, "fill": fill}[sys.argv[1]](*sys.argv[2:])))
