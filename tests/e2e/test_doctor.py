"""`hermit check` names each cause that is made real here, alone, and each option that a container was started without."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hermit.bwrap.preflight import NO_PROCESS
from hermit.oci import argv

ROOT = Path(__file__).resolve().parents[2]
CHECK = f"exec {shlex.quote(sys.executable)} -m hermit check --json"
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make these causes real")
# Of the user of these tests more may be found: root in a container.
OWN = {"user"}


def found_by(words: list[str]) -> tuple[int, dict[str, dict[str, Any]]]:
    """The exit code of a check, and its findings that are not fit."""
    ran = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert ran.stdout.startswith("{"), ran.stdout + ran.stderr
    document = json.loads(ran.stdout)
    assert document["fit"] is (ran.returncode == 0)
    assert ran.returncode == {"fit": 0, "best_effort": 6, "unfit": 3}[document["level"]]
    return ran.returncode, {each["id"]: each for each in document["findings"] if each["level"] != "fit"}


def owned(*, then: str) -> list[str]:
    """Runs a line of shell as the owner of namespaces of its own, whose limits it may set."""
    return ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "sh", "-c", f"{then}; {CHECK}"]


def mounted(*, then: str) -> list[str]:
    """Runs a line of shell where mounts are its own."""
    return ["unshare", "--mount", "sh", "-c", f"{then}; {CHECK}"]


REAL = [
    pytest.param(
        owned(then="echo 0 > /proc/sys/user/max_user_namespaces"),
        {"namespace_limits", "mount_and_pivot_root", "loopback"},
        "no new namespaces of the kind user",
        "sudo sysctl user[.]max_user_namespaces=10000",
        id="no user namespace is allowed",
    ),
    pytest.param(
        owned(then="echo 0 > /proc/sys/user/max_net_namespaces"),
        {"namespace_limits", "mount_and_pivot_root", "loopback"},
        "no new namespaces of the kind net",
        "sudo sysctl user[.]max_net_namespaces=10000",
        id="no network namespace is allowed",
    ),
    pytest.param(
        mounted(then="mount -t tmpfs none /proc/fs"),
        {"masked_proc", "mount_and_pivot_root"},
        "parts of /proc are covered (/proc/fs)",
        "below /proc|systempaths=unconfined",  # what a machine is told, or a container
        id="a part of /proc is covered",
    ),
    pytest.param(
        mounted(then=f"mount --rbind / /mnt; exec chroot /mnt sh -c {shlex.quote(f'cd {ROOT}; {CHECK}')}"),
        {"user_namespaces", "mount_and_pivot_root", "loopback"},
        "this is a chroot",
        "start it outside",
        id="a chroot",
    ),
    pytest.param(
        ["unshare", "--user", "sh", "-c", CHECK],
        {"mount_and_pivot_root", "loopback"},
        "has no meaning in this user namespace",
        "a user that the namespace maps",
        id="an id that is not mapped",
    ),
    pytest.param(
        ["setpriv", "--bounding-set=-setfcap", "sh", "-c", CHECK],
        {"mount_and_pivot_root"},
        "uid 0",
        "user",
        id="root without SETFCAP",
    ),
]


@AS_ROOT
@pytest.mark.bwrap
@pytest.mark.parametrize(("words", "ids", "what", "cure"), REAL)
def test_a_cause_that_is_real_is_named_by_its_probes_and_no_other(
    words: list[str], ids: set[str], what: str, cure: str
) -> None:
    code, found = found_by(words)
    assert code == 6
    blocked = {name for name, each in found.items() if each["level"] == "best_effort"}
    assert blocked - OWN == ids | {"sandbox"}
    assert what in found["sandbox"]["found"] or what in found["user"]["found"]
    assert any(re.search(cure, each["cure"]) for each in found.values())
    for each in found.values():
        assert each["cure"], each
        assert "setuid" not in each["found"] + each["cure"]


@AS_ROOT
@pytest.mark.bwrap
@pytest.mark.parametrize(
    ("words", "ids"),
    [
        (["prlimit", "--nofile=50", "sh", "-c", CHECK], {"file_descriptors"}),
        (mounted(then="mount -t tmpfs -o size=16m none /mnt; export TMPDIR=/mnt"), {"disk_space"}),
        (mounted(then="mount -t tmpfs -o nr_inodes=60 none /mnt; export TMPDIR=/mnt"), {"inodes"}),
    ],
)
def test_too_little_of_something_is_unfit(words: list[str], ids: set[str]) -> None:
    code, found = found_by(words)
    assert {name for name, each in found.items() if each["level"] == "unfit"} == ids
    assert code == 3


@AS_ROOT
@pytest.mark.bwrap
def test_planted_failure_without_a_cause_nothing_is_named() -> None:
    code, found = found_by(owned(then="true"))
    assert code == 0, found
    assert {each["level"] for each in found.values()} <= {"without"}


PROFILE = str(ROOT / "images" / "seccomp.json")
SPELLED = argv.options(argv.Container(image="hermit", seccomp=argv.FETCHED_PROFILE))
# In the place of an option what the engine does without it, where a plain omission would not show that everywhere.
INSTEAD = {"user": ["--user", "0:0"], "network": ["--network", "host"]}
CODES = {"seccomp": 6, "systempaths": 6, "user": 3}


def container(*, without: tuple[str, ...] = (), more: tuple[str, ...] = ()) -> list[str]:
    """A check in a container that is closed but for these options."""
    words = ["docker", "run", "--rm"]
    for name, spelled in SPELLED.items():
        option = shlex.split(spelled.replace(argv.FETCHED_PROFILE, PROFILE))
        words += INSTEAD.get(name, []) if name in without else option
    return [*words, *more, "hermit", "check", "--json"]


def blocked(found: dict[str, dict[str, Any]]) -> set[str]:
    return {name for name, each in found.items() if each["level"] in ("best_effort", "unfit")}


@pytest.mark.docker
@pytest.mark.image
@pytest.mark.serial
@pytest.mark.parametrize("name", SPELLED)
def test_a_container_without_one_option_is_told_that_one(name: str) -> None:
    code, found = found_by(container(without=(name,)))
    assert found["container_options"]["found"] == f"started without {SPELLED[name]}"
    assert found["container_options"]["cure"] == argv.cure("hermit", "check")
    assert code == CODES.get(name, 3 if name == "tmpfs" else 0)


@pytest.mark.docker
@pytest.mark.image
@pytest.mark.serial
def test_a_container_with_all_options_is_fit_and_lacks_none() -> None:
    code, found = found_by(container())
    assert (code, blocked(found), "container_options" in found) == (0, set(), False)


@pytest.mark.docker
@pytest.mark.image
@pytest.mark.serial
@pytest.mark.parametrize(
    ("without", "ids"),
    [
        (("seccomp",), {"seccomp", "mount_and_pivot_root", "loopback", "sandbox"}),
        (("systempaths",), {"masked_proc", "mount_and_pivot_root", "sandbox"}),
        (("seccomp", "systempaths"), {"seccomp", "masked_proc", "mount_and_pivot_root", "loopback", "sandbox"}),
    ],
)
def test_each_blocker_of_a_container_is_named_also_beside_another(without: tuple[str, ...], ids: set[str]) -> None:
    _, found = found_by(container(without=without))
    assert blocked(found) == ids
    assert found["container_options"]["found"] == f"started without {' '.join(SPELLED[name] for name in without)}"
    assert {found[name]["cure"] for name in ids} == {argv.cure("hermit", "check")}


@pytest.mark.docker
@pytest.mark.image
@pytest.mark.serial
@pytest.mark.parametrize(
    ("without", "more"),
    [
        # Two: its init and the check itself.
        ((), ("--pids-limit", "2")),
        # A user whom no other process has, and one process without an init beside it.
        (("init",), ("--ulimit", "nproc=1", "--user", "54321:54321")),
    ],
)
def test_a_container_that_may_start_no_process_is_told_of_the_limit(
    without: tuple[str, ...], more: tuple[str, ...]
) -> None:
    _, found = found_by(container(without=without, more=more))
    blockers = {"user_namespaces", "mount_and_pivot_root", "loopback", "bubblewrap", "sandbox"}
    assert blocked(found) - {"processes"} == blockers
    for name in blockers - {"bubblewrap"}:
        assert "no further process may be started" in found[name]["found"]
    assert {found[name]["cure"] for name in blockers} == {NO_PROCESS.cure}
