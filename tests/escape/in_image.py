"""The whole list of attacks, made once more inside the image: in one closed container, by the tests themselves.

The container is the one of a run. Into it come, read-only, this tree's ``hermit`` in the place of the image's own, the
tests, and what runs them; and one directory that the tests write to, for a container's ``/tmp`` starts no program.
"""

from __future__ import annotations

import ast
import importlib.metadata
import os
import secrets
import subprocess
import tomllib
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hermit.domain.bind import Bind
from hermit.oci import argv
from hermit.oci import container as containers

if TYPE_CHECKING:
    from hermit.oci.engine import Engine

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
OWN = "test_in_the_image.py"
PLACE = "/attacks"
AT_MOST_S = 240
# What runs the tests; none of it has a part in C.
CARRIED = ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "py.py", "xdist", "execnet")
# In the container a missing tool is a failure too, and what is carried in never comes before what the image has.
PROGRAM = f"""
import os, sys
os.environ["HERMIT_TEST_NEEDS"] = "bwrap"
sys.path.append("{PLACE}/lib")
import pytest
sys.exit(pytest.main(sys.argv[1:]))
"""
# What an attack needs and the container of a run does not have.
# Its name may have the one way in brackets that is not tried there.
NO_ROOT = "its user is 1000, and the kernel lets only root do what the attack is about"
NO_NETWORK = "it has no network, so there is no way out that could be left open"
NO_CALL = "its own filter of system calls denies what the attack needs, also where our protection is off"
NOT_IN_THE_IMAGE = {
    "test_forgery.py::test_a_command_cannot_speak_for_the_relay_by[taking_its_socket]": NO_CALL,
    "test_forgery.py::test_a_command_cannot_speak_for_the_relay_by[tracing_it]": NO_CALL,
    "test_checks_planted.py::test_a_way_out_is_noticed": NO_NETWORK,
    "test_terminal_and_listing.py::test_the_attack_on_the_terminal_works_for_a_process_outside": NO_ROOT,
    "test_nesting.py::test_a_read_only_path_cannot_be_mounted_writable_by_the_root_of_a_namespace": NO_CALL,
    "test_nesting.py::test_what_the_outer_sandbox_hides_stays_hidden_inside[by the kernel]": NO_CALL,
    "test_nesting.py::test_a_longer_list_of_hosts_inside_reaches_no_further_than_the_outer_one": NO_NETWORK,
    "test_nesting_in_roots.py::test_a_process_of_the_outer_sandbox_is_seen_and_cannot_be_reached": NO_ROOT,
    "test_nesting_in_roots.py::test_a_lent_proc_that_can_be_written_is_noticed": NO_ROOT,
    "test_nesting_in_roots.py::test_an_inner_sandbox_among_the_processes_of_the_outer_one_is_noticed": NO_ROOT,
}


def titles() -> list[str]:
    """Every attack by its file and its title, which is the guarantee; one that is tried in several ways counts once."""
    found = []
    for path in sorted(HERE.glob("test_*.py")):
        if path.name != OWN:
            tree = ast.parse(path.read_text(encoding="utf-8"))
            tests = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
            found += [f"{path.name}::{name}" for name in tests if name.startswith("test_")]
    return found


def made_inside() -> list[str]:
    """The attacks that are made in the image."""
    return [title for title in titles() if title not in NOT_IN_THE_IMAGE]


@dataclass(frozen=True)
class Verdicts:
    """What came of the attacks in the image.

    Args:
        said: Of each title how its tests ended: ``held``, or the words of each one that did not.
        code: The exit code of the tests' run.
        words: The last words of the run.
    """

    said: dict[str, list[str]]
    code: int
    words: str


def container(engine: Engine, scratch: Path, *, name: str, package: Path, only: str) -> list[str]:
    """The command that makes the attacks in a container of this name, and leaves what came of them in ``scratch``."""
    uid, gid = containers.user_inside(os.geteuid(), os.getegid())
    python = tomllib.loads((ROOT / "images" / "pins.toml").read_text())["python"]["version"]
    libraries = f"/opt/hermit/lib/python{python}"
    mounts = [
        Bind(str(package), f"{libraries}/site-packages/hermit"),
        # A link in the package leads there.
        Bind(str(ROOT / "images" / "seccomp.json"), f"{libraries}/site-packages/images/seccomp.json"),
        Bind(str(ROOT / "tests"), f"{PLACE}/tests"),
        Bind(str(ROOT / "pyproject.toml"), f"{PLACE}/pyproject.toml"),
        Bind(str(scratch), f"{PLACE}/scratch", writable=True),
        *(Bind(str(path), f"{PLACE}/lib/{path.name}") for path in carried()),
    ]
    # Most of them wait most of the time, and the tests out here wait for them.
    plugins = ("-p", "no:cacheprovider", "-p", "xdist.plugin", "-n", "2")
    places = (f"--basetemp={PLACE}/scratch/t", f"--junitxml={PLACE}/scratch/said.xml")
    left_out = [f"--deselect=tests/escape/{title}" for title in NOT_IN_THE_IMAGE]
    made = argv.Container(
        image="hermit",
        command=(
            "-c",
            PROGRAM,
            "-q",
            *plugins,
            *places,
            *left_out,
            f"--ignore=tests/escape/{OWN}",
            f"tests/escape/{only}",
        ),
        mounts=tuple(mounts),
        uid=uid,
        gid=gid,
        cwd=PLACE,
        pids=2000,
        memory_mb=3072,
        name=name,
        **containers.suited(engine),
    )
    words = argv.run_arguments(made, program=engine.program)
    at = words.index(made.image)
    return [*words[:at], "--entrypoint", "python", *words[at:]]


def carried() -> list[Path]:
    """Where what is carried in lies on this machine."""
    site = Path(str(importlib.metadata.distribution("pytest").locate_file("")))
    return [site / name for name in CARRIED if (site / name).exists()]


def attack(engine: Engine, scratch: Path, *, package: Path = ROOT / "hermit", only: str = "") -> Verdicts:
    """Makes every attack in one container, or only those of one file or title, on this copy of Hermit."""
    scratch.mkdir()
    scratch.chmod(0o777)  # the user inside may be another one
    name = f"hermit-attacks-{secrets.token_hex(6)}"
    words = container(engine, scratch, name=name, package=package, only=only)
    try:
        ran = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=AT_MOST_S, check=False)
    finally:  # a client that is killed leaves its container
        subprocess.run([engine.program, "rm", "--force", name], capture_output=True, timeout=AT_MOST_S, check=False)
    report = scratch / "said.xml"
    said = read(report.read_text(encoding="utf-8")) if report.exists() else {}
    return Verdicts(said, ran.returncode, (ran.stdout + ran.stderr)[-3000:])


def read(report: str) -> dict[str, list[str]]:
    """How the tests of each title ended, from a report of theirs; a test that was skipped has not held."""
    found: dict[str, list[str]] = {}
    for case in ET.fromstring(report).iter("testcase"):  # noqa: S314 - our own tests wrote it
        title = f"{case.get('classname', '').rpartition('.')[2]}.py::{case.get('name', '').partition('[')[0]}"
        ends = [f"{end.tag}: {end.get('message', '')}\n{end.text or ''}"[:2000] for end in case if end.tag in ENDS]
        found.setdefault(title, []).extend(ends or ["held"])
    return found


ENDS = ("failure", "error", "skipped")
