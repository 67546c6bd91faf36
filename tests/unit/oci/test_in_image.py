"""The options and the profile, tried in containers of the image itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import hermit
from hermit.domain.bind import Bind
from hermit.environ import snapshot
from hermit.oci import container as containers
from hermit.oci import whole
from hermit.oci.argv import Container, run_arguments
from hermit.oci.engine import find, image_id, image_label
from hermit.proc import capture

pytestmark = [pytest.mark.docker, pytest.mark.image]

LEVEL = [
    "bwrap",
    *("--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup"),
    *("--uid", "1000", "--gid", "1000", "--die-with-parent"),
    *("--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"),
]
NUMBERS = {
    "x86_64": {
        "keyctl": 250,
        "add_key": 248,
        "bpf": 321,
        "perf_event_open": 298,
        "userfaultfd": 323,
        "setns": 308,
        "chroot": 161,
        "open_by_handle_at": 304,
        "mbind": 237,
        "kcmp": 312,
    },
    "aarch64": {
        "keyctl": 219,
        "add_key": 217,
        "bpf": 280,
        "perf_event_open": 241,
        "userfaultfd": 282,
        "setns": 268,
        "chroot": 51,
        "open_by_handle_at": 265,
        "mbind": 235,
        "kcmp": 272,
    },
}
# These have one number on every architecture.
SHARED = {"io_uring_setup": 425, "open_tree": 428, "fsopen": 430, "pidfd_getfd": 438, "mount_setattr": 442}

PROBE = """
import ctypes, errno, json, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    ctypes.set_errno(0)
    code = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(one) for one in arguments])
    return "ok" if code >= 0 else errno.errorcode[ctypes.get_errno()]
numbers = json.loads(sys.argv[1])
answers = {name: call(number, 1, 1, 0, 0, 0) for name, number in numbers[os.uname().machine].items()}
answers["clone3"] = call(435, 0, 0)
def unshare(flags):
    ctypes.set_errno(0)
    return "ok" if libc.unshare(flags) >= 0 else errno.errorcode[ctypes.get_errno()]
answers["namespaces"] = sorted({unshare(flag) for flag in (0x20000, 0x4000000, 0x8000000, 0x20000000, 0x40000000, 0x50000000)})
def socket(*kind):
    ctypes.set_errno(0)
    return "ok" if libc.socket(*kind) >= 0 else errno.errorcode[ctypes.get_errno()]
answers["sockets"] = [socket(*kind) for kind in ((1, 1, 0), (2, 1, 0), (10, 1, 0), (16, 3, 0))]
answers["other sockets"] = sorted({socket(*kind) for kind in ((16, 3, 12), (17, 3, 0), (38, 5, 0), (40, 1, 0))})
print(json.dumps(answers))
"""

WORK = """
import multiprocessing, subprocess, threading
def square(x): return x * x
if __name__ == "__main__":
    threads = [threading.Thread(target=square, args=(1,)) for _ in range(8)]
    [thread.start() for thread in threads], [thread.join() for thread in threads]
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            assert pool.map(square, range(4)) == [0, 1, 4, 9]
    import torch
    torch.set_num_threads(2)
    assert float(torch.ones(300, 300).matmul(torch.ones(300, 300))[0, 0]) == 300
    subprocess.run(
        "cd /tmp && git init -q r && cd r && echo x > f && git add f && git -c user.name=a -c user.email=a@b commit -qm m"
        " && git clone -q . ../c && git -C ../c gc -q", shell=True, check=True)
    print("worked")
"""
BLOCKERS = """
import json
from hermit.bwrap.preflight import blockers, diagnose, facts
place = facts()
print(json.dumps([[finding.cause, finding.cure] for finding in blockers(place, container_cure="THE CURE")]))
"""


def inside(*command, **changes):
    """Runs a program in a container with Hermit's options instead of the image's entrypoint."""
    container = Container(image="hermit", command=command[1:], memory_mb=2048, pids=256, **changes)
    argv = run_arguments(container)
    argv[2:2] = ["--entrypoint", command[0]]
    finished = capture(argv, timeout_s=120)
    assert finished.code == 0, finished.stderr.decode()
    return finished.stdout.decode()


def plainly(*command, options=()):
    """Runs a program in a container of a user who knows no options."""
    argv = ["docker", "run", "--rm", *options, "--entrypoint", command[0], "hermit", *command[1:]]
    finished = capture(argv, timeout_s=120)
    assert finished.code == 0, finished.stderr.decode()
    return finished.stdout.decode()


@pytest.mark.parametrize("levels", [0, 2])
def test_what_reaches_beyond_a_sandbox_is_blocked_at_every_level(levels):
    numbers = {machine: {**own, **SHARED} for machine, own in NUMBERS.items()}
    command = [*LEVEL * levels, "python", "-c", PROBE, json.dumps(numbers)]
    answers = json.loads(inside(*command))
    assert answers.pop("clone3") == "ENOSYS"
    assert answers.pop("sockets") == ["ok"] * 4
    assert answers.pop("other sockets") == ["EPERM"]
    assert answers.pop("namespaces") == ["EPERM"]
    assert set(answers) == {*NUMBERS["x86_64"], *SHARED}
    assert set(answers.values()) == {"EPERM"}


@pytest.mark.parametrize("levels", [0, 1, 3])
def test_python_torch_and_git_work_at_every_level(levels, tmp_path):
    program = tmp_path / "work.py"
    program.write_text(WORK)
    tmp_path.chmod(0o755)
    # The program lies below /tmp here, which each level replaces by its own.
    command = [*LEVEL * levels, "python", "/opt/work.py"]
    mounts = (Bind(str(program), "/opt/work.py"),)
    assert inside(*command, mounts=mounts) == "worked\n"


def test_a_container_with_the_options_has_no_blocker():
    assert json.loads(inside("python", "-c", BLOCKERS)) == []


def test_a_container_without_options_is_told_of_seccomp_and_masks_with_the_whole_command():
    found = dict(json.loads(plainly("python", "-c", BLOCKERS)))
    assert {"seccomp", "masked_proc"} <= set(found)
    assert found["seccomp"] == found["masked_proc"] == "THE CURE"


def test_a_profile_alone_leaves_the_masks_as_the_one_blocker():
    options = ["--security-opt", f"seccomp={Container(image='x').seccomp}"]
    found = dict(json.loads(plainly("python", "-c", BLOCKERS, options=options)))
    assert "masked_proc" in found
    assert "seccomp" not in found


def test_a_container_of_root_is_told_so():
    assert "root" in dict(json.loads(plainly("python", "-c", BLOCKERS, options=["--user", "0"])))


def test_the_image_names_its_version_and_exists_under_it():
    engine = find(snapshot())
    version = image_label(engine, "hermit", label="org.opencontainers.image.version")
    assert version
    assert image_id(engine, "hermit") == image_id(engine, f"hermit:{version}")


def test_a_whole_command_runs_in_the_image_and_leaves_no_container(tmp_path):
    assert whole.run(find(snapshot()), image="hermit", arguments=["--version"], read=[], write=str(tmp_path)) == 0
    assert strays(tmp_path) == ""


def test_a_path_with_a_comma_and_a_quote_reaches_the_image(tmp_path):
    odd = tmp_path / 'a,"b'
    odd.mkdir()
    (odd / "file").write_text("seen")
    tmp_path.chmod(0o755)
    assert inside("cat", f"{odd}/file", mounts=(Bind(str(odd), str(odd)),)) == "seen"


RUN = """
import sys
sys.path[:0] = [{root!r}]
from hermit.environ import snapshot
from hermit.oci.engine import find
from hermit.oci.whole import run
run(find(snapshot()), image="hermit", arguments=["--no-such-option"], read=[], write={write!r})
"""


def test_a_command_that_fails_leaves_no_container_and_no_foreign_owner(tmp_path):
    owner = tmp_path.stat().st_uid
    program = RUN.format(root=str(Path(hermit.__file__).parents[1]), write=str(tmp_path))
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    assert strays(tmp_path) == ""
    assert tmp_path.stat().st_uid == owner


def strays(directory):
    finished = capture(
        ["docker", "ps", "--all", "--quiet", "--filter", f"label={containers.RUN_LABEL}={directory}"], timeout_s=20
    )
    return finished.stdout.decode()
