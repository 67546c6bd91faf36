"""A container that is hardened without us: nothing runs there unless it is asked for, and whoever asked is told."""

from __future__ import annotations

import json
import subprocess
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hermit.domain.bind import Bind
from hermit.oci import argv

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.docker, pytest.mark.image]

ROOT = Path(__file__).resolve().parents[2]
# What people harden containers with who do not know of sandboxes inside.
HARDENED = ("--network", "none", "--user", "1000:1000", "--cap-drop", "ALL", "--security-opt", "no-new-privileges")
# The front door with a record, then the record.
DOOR = (
    'python -m hermit.sandbox --record /tmp/record.json "$1" -- sh -c "$2"; code=$?; cat /tmp/record.json; exit $code'
)
FILL = """exec python3 -c 'import time
held = []
while True: held.append(b"x" * (8 << 20)); time.sleep(0.02)'"""


def mounts() -> list[Bind]:
    """Hermit of this tree in the place of the image's own."""
    python = tomllib.loads((ROOT / "images" / "pins.toml").read_text())["python"]["version"]
    site = f"/opt/hermit/lib/python{python}/site-packages"
    seccomp = Bind(str(ROOT / "images" / "seccomp.json"), f"{site}/images/seccomp.json")
    return [Bind(str(ROOT / "hermit"), f"{site}/hermit"), seccomp]


@pytest.fixture
def hardened(engine: Any) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the front door in a container of another's making."""

    def run(spec: dict[str, Any], command: str) -> subprocess.CompletedProcess[str]:
        shown = [word for bind in mounts() for word in ("--volume", f"{bind.source}:{bind.target}:ro")]
        words = [engine.program, "run", "--rm", *HARDENED, *shown, "--entrypoint", "sh", "hermit"]
        return told([*words, "-c", DOOR, "sh", json.dumps(spec), command])

    return run


def told(words: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=120, check=False)


def test_a_hardened_container_without_our_options_is_refused_by_its_causes(hardened: Callable[..., Any]) -> None:
    ran = hardened({}, "echo ran")
    assert (ran.returncode, "ran" in ran.stdout) == (125, False)
    assert "seccomp" in ran.stderr


def test_best_effort_runs_there_unconfined_and_says_so_on_the_screen_and_in_the_record(
    hardened: Callable[..., Any],
) -> None:
    ran = hardened({"enforce": "best_effort"}, "echo ran")
    assert (ran.returncode, ran.stdout.startswith("ran\n")) == (0, True)
    assert "hermit.sandbox: nothing is confined: a seccomp filter blocks" in ran.stderr
    record = json.loads(ran.stdout.removeprefix("ran\n"))
    assert (record["confined"], record["backend"], record["checks"]) == (False, "unconfined", [])
    assert "seccomp" in record["reason"]
    assert {bound["name"]: bound["held_by"] for bound in record["limits"]}["pids"] == "nothing: unconfined"


def test_where_no_control_group_can_be_made_memory_is_bounded_all_the_same_and_the_record_says_by_what(
    engine: Any,
) -> None:
    spec = json.dumps({"limits": {"memory_mb": 200, "wall_s": 30}})
    container = argv.Container(image="hermit", command=("-c", DOOR, "sh", spec, FILL), mounts=tuple(mounts()))
    words = argv.run_arguments(container, program=engine.program)
    at = words.index("hermit")
    ran = told([*words[:at], "--entrypoint", "sh", *words[at:]])
    record = json.loads(ran.stdout)
    held = {bound["name"]: bound["held_by"] for bound in record["limits"]}
    assert held["memory_mb"] == "watchdog over the sandbox's processes"
    assert held["pids"] == "rlimit processes of the user inside"
    assert ran.returncode != 0
    assert "(memory: " in record["ended"]
