"""What cannot be read, and what cannot be written."""

from __future__ import annotations

import os
from contextlib import suppress

import pytest

from hermit.bwrap import argv
from hermit.domain import sandbox as values
from hermit.domain.bind import Bind
from hermit.domain.sandbox import Sandbox
from hermit.errors import SandboxError

pytestmark = pytest.mark.bwrap

READ = """
def attack(path):
    with open(path) as file:
        return file.read() == "the answer"
"""
READ_THROUGH_PROC = """
import os
def attack(path):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for name in (f"/proc/{pid}/root{path}", f"/proc/{pid}/cwd/../hidden/answers.jsonl"):
            try:
                if open(name).read() == "the answer":
                    return True
            except OSError:
                pass
    return False
"""
WRITE = """
import os
def attack(*paths):
    for path in paths:
        try:
            with open(os.path.join(path, "planted"), "w") as file:
                file.write("planted")
            return True
        except OSError:
            pass
    return False
"""
WRITE_AFTER_REMOUNT = """
import ctypes
def attack(path):
    libc = ctypes.CDLL(None)
    remount_bind = 32 | 4096
    libc.mount(None, path.encode(), None, ctypes.c_ulong(remount_bind), None)
    libc.umount2(path.encode(), 2)
    with open(path + "/planted", "w") as file:
        file.write("planted")
    return True
"""
MOUNT = """
import ctypes, os
def attack():
    os.makedirs("/tmp/target")
    libc = ctypes.CDLL(None)
    return libc.mount(b"none", b"/tmp/target", b"tmpfs", ctypes.c_ulong(0), None) == 0
"""
# bubblewrap makes a second user namespace for its /dev: a capability in that one has no power over the mounts.
AS_ROOT = (("--unshare-user",), ("--uid", "1000"), ("--gid", "1000"), ("--cap-drop", "ALL"))


@pytest.fixture
def showing_the_secret(field, hole):
    directory = str(field.secret.parent)
    return hole(add=("--ro-bind", directory, directory), check="secrets absent")


def test_a_secret_cannot_be_read_by_its_path(field, proven, showing_the_secret):
    proven(READ, field.secret, hole=showing_the_secret)


def test_a_secret_cannot_be_read_through_the_parent_of_the_work_directory(field, proven, showing_the_secret):
    proven(READ, f"{field.work}/../hidden/answers.jsonl", hole=showing_the_secret)


def test_a_secret_cannot_be_read_through_a_link_left_in_the_work_directory(field, proven, showing_the_secret):
    (field.work / "link").symlink_to(field.secret)
    proven(READ, field.work / "link", hole=showing_the_secret)


def test_a_secret_cannot_be_read_through_the_root_of_a_process_of_the_host(field, proven, hole):
    drop = (*AS_ROOT, ("--unshare-pid",), ("--as-pid-1",))
    proven(READ_THROUGH_PROC, field.secret, hole=hole(drop=drop, check="own processes", root=True))


def test_nothing_can_be_written_at_the_root_or_to_the_system(proven, hole):
    places = ("/", "/usr", "/usr/bin", "/etc", "/dev", "/proc", "/lib", "/var", "/opt")
    proven(WRITE, *places, hole=hole(drop=(("--remount-ro", "/"),), check="read-only but for grants"))


def test_nothing_can_be_written_to_the_interpreter_and_its_environment(field, proven, hole):
    # The hole makes the work directory of somebody else appear, writable, in the place of the interpreter's own.
    python = field.place.backend.python
    places = (python.prefix, python.base_prefix, *python.sites)
    stand_in = field.secret.parent
    added = ("--bind", str(stand_in), f"{python.base_prefix}/lib/python3.11/test")
    attacked = (*places, f"{python.base_prefix}/lib/python3.11/test")
    proven(WRITE, *attacked, hole=hole(add=added, check="read-only but for grants"))


def test_a_path_granted_for_reading_cannot_be_written(field, proven, hole):
    shown = str(field.shown)
    swap = ((("--ro-bind", shown, shown), ("--bind", shown, shown)),)
    proven(WRITE, shown, hole=hole(swap=swap, check="read-only but for grants"))
    assert (field.shown / "planted").read_text() == "planted"  # the hole led to the host's own file


def test_a_path_granted_for_reading_cannot_be_made_writable_by_mounting(field, proven, hole):
    proven(WRITE_AFTER_REMOUNT, field.shown, hole=hole(drop=AS_ROOT, check="no capability", root=True))


def test_nothing_can_be_mounted(proven, hole):
    proven(MOUNT, hole=hole(drop=AS_ROOT, check="no capability", root=True))


def test_a_mount_below_a_directory_that_the_command_can_write_is_refused_by_the_value(field):
    with pytest.raises(ValueError, match="writable inside"):
        field.sandbox(binds=(Bind(str(field.shown), f"{field.work}/logs/x"),))


def test_a_link_in_a_writable_directory_does_not_lead_a_mount_out_of_the_sandbox(field, monkeypatch):
    outside = field.secret.parent
    (field.work / "logs").symlink_to(f"/oldroot{outside}")  # what the host's root is called while mounts are made
    declared = {"binds": (Bind(str(field.shown), f"{field.work}/logs/x"),)}
    with pytest.raises(ValueError, match="writable inside"):
        field.sandbox(**declared)
    assert not (outside / "x").exists()
    # The planted failure: without the two refusals an old bubblewrap makes the mount's target on the host.
    monkeypatch.setattr(values, "_check_mounts", lambda _: None)
    monkeypatch.setattr(argv, "_refuse_conflicts", lambda _: None)
    with suppress(SandboxError):  # the relay misses its grant: the harm is done by then
        field.run(field.sandbox(**declared), "true")
    version = tuple(int(part) for part in field.place.backend.version.split("."))
    assert (outside / "x").exists() == (version < (0, 12))


def test_a_path_of_the_sandboxs_own_below_a_writable_directory_is_refused(field):
    python = field.place.backend.python
    above = Sandbox(write=(python.prefix.rpartition("/")[0],))
    with pytest.raises(SandboxError, match="cannot be shown writable"):
        field.run(above, "true")


def test_a_path_below_a_directory_that_can_be_passed_and_not_listed_is_shown_and_one_that_cannot_is_refused(field):
    passage = field.shown.parent / "passage"
    (passage / "inner").mkdir(parents=True)
    (passage / "inner" / "data.txt").write_text("data")
    granted = field.sandbox(read=(f"{passage}/inner",))
    try:
        passage.chmod(0o111)
        outcome = field.run(granted, "cat", f"{passage}/inner/data.txt")
        assert (outcome.code, outcome.stdout.kept) == (0, b"data"), outcome.stderr.kept
        passage.chmod(0)
        if os.geteuid() != 0:  # root passes everywhere
            with pytest.raises(SandboxError, match="passage/inner"):
                field.run(granted, "true")
    finally:
        passage.chmod(0o755)


@pytest.mark.parametrize("writable", [False, True])
def test_a_grant_of_the_hosts_own_proc_is_refused_at_the_start(field, writable):
    granted = {"write": ("/proc",)} if writable else {"read": ("/proc",)}
    with pytest.raises(SandboxError):
        field.run(Sandbox(**granted), "true")
