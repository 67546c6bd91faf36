"""What a sandbox inside a sandbox cannot have: whatever the outer one does not show, allow or grant."""

from __future__ import annotations

import contextlib
import os
import socket
import threading

import pytest

from hermit.bwrap import argv
from hermit.domain.limits import Limits
from hermit.errors import SandboxError

pytestmark = pytest.mark.bwrap

# What runs in the outer sandbox: Hermit's own API, and beside it the kernel and bubblewrap without any of Hermit.
INNER = """
import subprocess
from hermit import sandbox as sandboxes
from hermit.bwrap import prepare
from hermit.domain.bind import Bind
from hermit.domain.command import Command
from hermit.domain.limits import Limits
from hermit.domain.network import Forward, Network
from hermit.domain.sandbox import Sandbox
from hermit.errors import SandboxError
def inner(*argv, refused_as="", **fields):
    given = {"limits": Limits(wall_s=20), **fields}
    try:
        outcome = sandboxes.preflight().run(Sandbox(**given), Command(argv=argv), keep=lambda _: None)
    except SandboxError as refused:
        assert refused.cause == refused_as, refused
        return ""
    return outcome.stdout.kept.decode()
def raw(*words):
    options = ("--unshare-user", "--unshare-pid", "--dev", "/dev", "--tmpfs", "/tmp")
    return subprocess.run(("bwrap", "--bind", "/", "/", *options, *words), capture_output=True, text=True).stdout
"""
KERNEL = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
NEWNS, NEWCGROUP, NEWUSER, NEWPID = 0x20000, 0x2000000, 0x10000000, 0x20000000
REMOUNT, BIND, DETACH = 32, 4096, 2
def call(answer):
    if answer != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
def mount(source, target, kind=None, flags=0, data=None):
    texts = [text if text is None else text.encode() for text in (source, target, kind, data)]
    call(libc.mount(*texts[:3], ctypes.c_ulong(flags), texts[3]))
def become_root_of_a_namespace(flags):
    ids = {"uid_map": f"0 {os.getuid()} 1", "gid_map": f"0 {os.getgid()} 1"}
    call(libc.unshare(NEWUSER | flags))
    for name, text in {"setgroups": "deny", **ids}.items():
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
def tries(*steps):
    for step in steps:
        try:
            step()
        except OSError:
            pass
"""
SHOW = (
    INNER
    + """
def attack(path):
    said = [
        inner("cat", path, refused_as="missing source", read=(path,)),
        inner("cat", "/x", refused_as="missing source", binds=(Bind(path, "/x"),)),
        raw("cat", path),
    ]
    return "the answer" in said
"""
)
UNHIDE = (
    INNER
    + """
import os
def attack(path):
    directory = os.path.dirname(path)
    said = [
        inner("cat", path, read=(directory,)),
        inner("cat", "/x/answers.py", binds=(Bind(directory, "/x"),)),
        inner("cat", "/x", binds=(Bind(path, "/x"),)),
        raw("cat", path),
        raw("--bind", directory, "/tmp/x", "cat", "/tmp/x/answers.py"),
    ]
    return "the answer" in said
"""
)
UNCOVER = (
    KERNEL
    + """
def attack(path):
    become_root_of_a_namespace(NEWNS)
    directory, name = os.path.split(path)
    os.mkdir("/tmp/shallow")
    tries(
        lambda: call(libc.umount2(path.encode(), 0)),
        lambda: call(libc.umount2(path.encode(), DETACH)),
        lambda: call(libc.umount2(directory.encode(), DETACH)),
        lambda: mount(directory, "/tmp/shallow", flags=BIND),
    )
    for found in (path, f"/tmp/shallow/{name}"):
        if os.path.exists(found):
            with open(found) as file:
                if file.read() == "the answer":
                    return True
    return False
"""
)
REMOUNT = (
    KERNEL
    + """
def attack(directory):
    become_root_of_a_namespace(NEWNS)
    tries(
        lambda: mount(None, directory, flags=REMOUNT | BIND),
        lambda: mount(None, directory, flags=REMOUNT),
    )
    with open(directory + "/planted", "w"):
        os.unlink(directory + "/planted")
    return True
"""
)
WRITE = (
    INNER
    + """
def attack(directory, refusing):
    words = ("sh", "-c", f"touch {directory}/planted && rm {directory}/planted && echo written")
    if refusing == "no":
        prepare.refuse_read_only = lambda sandbox: None
    return "written" in inner(*words, refused_as="read-only source", write=(directory,)) + raw(*words)
"""
)
CONNECT = (
    INNER
    + """
def attack(port):
    source = "import socket, sys; print(socket.create_connection(('127.0.0.1', int(sys.argv[1])), 5).recv(64))"
    reaches = ({"network": Network.OPEN}, {"forwards": (Forward(int(port)),)})
    return "the host's own" in "".join(inner("python", "-c", source, port, **reach) for reach in reaches)
"""
)
FETCH = (
    INNER
    + """
def attack(host):
    source = "import sys, urllib.request; print(urllib.request.urlopen('http://' + sys.argv[1], timeout=5).read())"
    return "the host's own" in inner("python", "-c", source, host, allowed_hosts=(host,))
"""
)
# At most 150 processes, each of which ends with its parent.
MULTIPLY = (
    INNER
    + """
PROGRAM = '''
import os
reader, writer = os.pipe()
started = 0
try:
    for _ in range(150):
        if os.fork() == 0:
            os.close(writer)
            os.read(reader, 1)
            os._exit(0)
        started += 1
except OSError:
    pass
os.close(writer)
print(started)
'''
def attack(most):
    return int(inner("python", "-c", PROGRAM, limits=Limits(wall_s=20, pids=400)) or "0") > int(most)
"""
)
FILL = (
    INNER
    + """
PROGRAM = '''
import os, time
for _ in range(4):
    if os.fork() == 0:
        held = b"x" * (120 << 20)
        time.sleep(3)
        os._exit(0)
print("all held" if not any(os.wait()[1] for _ in range(4)) else "not all")
'''
print(inner("python", "-c", PROGRAM, limits=Limits(wall_s=20, memory_mb=4096)))
"""
)


@pytest.fixture
def task(field):
    """The outer sandbox of these attacks: a task's, in which Hermit can be used."""

    def made(**changes):
        return field.sandbox(**{"role": "task", "framework": True, **changes})

    return made


def test_a_path_the_outer_sandbox_does_not_show_cannot_be_had_inside(field, task, proven, hole):
    secret = str(field.secret)
    shown = hole(add=("--ro-bind", secret, secret), check="secrets absent")
    proven(SHOW, secret, hole=shown, sandbox=task())


@pytest.fixture
def answers(field):
    """A module that a task shows and hides."""
    path = field.shown / "answers.py"
    path.write_text("the answer")
    return path


@pytest.mark.parametrize(
    "source", [pytest.param(UNHIDE, id="by another sandbox"), pytest.param(UNCOVER, id="by the kernel")]
)
def test_what_the_outer_sandbox_hides_stays_hidden_inside(field, task, answers, monkeypatch, source):
    hiding = task(hide=("answers",))
    assert field.attack(source, answers, sandbox=hiding) is False
    monkeypatch.setattr(argv, "covered", lambda plan, covers: plan)
    assert field.attack(source, answers, sandbox=hiding) is True


def test_a_read_only_path_cannot_be_mounted_writable_by_the_root_of_a_namespace(field, task, proven, hole):
    shown = str(field.shown)
    swap = ((("--ro-bind", shown, shown), ("--bind", shown, shown)),)
    proven(REMOUNT, shown, hole=hole(swap=swap, check="grants for reading read-only"), sandbox=task())


@pytest.mark.parametrize("refusing", ["yes", "no"])
def test_a_path_that_is_read_only_outside_is_never_writable_inside(field, task, proven, hole, refusing):
    shown = str(field.shown)
    swap = ((("--ro-bind", shown, shown), ("--bind", shown, shown)),)
    proven(WRITE, shown, refusing, hole=hole(swap=swap, check="grants for reading read-only"), sandbox=task())
    assert [path.name for path in field.shown.iterdir()] == ["data.txt"]


@contextlib.contextmanager
def greeting(address="127.0.0.1"):
    """A server at an address of this machine that greets whoever connects, as a web server would."""
    with socket.create_server((address, 0)) as server:

        def greet():
            with contextlib.suppress(OSError):
                while True:
                    with server.accept()[0] as link:
                        link.sendall(b"HTTP/1.0 200 OK\r\n\r\nthe host's own")
                        link.shutdown(socket.SHUT_WR)
                        while link.recv(1 << 16):  # closed with something unread, it would take back what it said
                            pass

        thread = threading.Thread(target=greet)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def test_neither_an_open_network_nor_a_forward_inside_leads_out_of_an_isolated_one(task, proven, hole):
    with greeting() as port:
        proven(CONNECT, port, hole=hole(drop=(("--unshare-net",),), check="own namespaces: net"), sandbox=task())


@pytest.fixture
def own_address():
    """An address of this machine that is no loopback; to ask for it sends no packet."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no address that a list of hosts could hold")
        return probe.getsockname()[0]


def test_a_longer_list_of_hosts_inside_reaches_no_further_than_the_outer_one(field, task, own_address):
    with greeting(own_address) as port:
        host = f"{own_address}:{port}"
        assert field.attack(FETCH, host, sandbox=task(allowed_hosts=("192.0.2.9:80",))) is False
        assert field.attack(FETCH, host, sandbox=task(allowed_hosts=(host,))) is True


def test_a_higher_bound_on_processes_inside_does_not_lift_the_outer_one(field, task):
    assert field.attack(MULTIPLY, 60, sandbox=task(limits=Limits(wall_s=30, pids=60))) is False
    assert field.attack(MULTIPLY, 60, sandbox=task(limits=Limits(wall_s=30, pids=400))) is True


def test_a_higher_bound_on_memory_inside_does_not_lift_the_outer_one(field, task):
    words = ("python", "-c", FILL)
    bounded = field.run(task(limits=Limits(wall_s=30, memory_mb=300)), *words)
    assert (b"all held" in bounded.stdout.kept, bounded.limit) == (False, "memory")
    wide = field.run(task(limits=Limits(wall_s=30, memory_mb=4096)), *words)
    assert (b"all held" in wide.stdout.kept, wide.limit) == (True, "")


FRESH_PROC = (
    KERNEL
    + """
def attack(setting):
    become_root_of_a_namespace(NEWNS | NEWPID)
    if (child := os.fork()) == 0:
        try:
            os.mkdir("/tmp/proc")
            mount("proc", "/tmp/proc", "proc")
            os.close(os.open("/tmp/proc" + setting, os.O_WRONLY))
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
)


def test_the_kernels_settings_cannot_be_had_by_a_fresh_proc(task, proven, hole):
    # Opened, and never written to. A whole /proc anywhere inside is what lets root mount a fresh one.
    whole = hole(add=("--bind", "/proc", "/run/whole"), check="read-only but for grants: /run/whole", root=True)
    proven(FRESH_PROC, "/sys/kernel/core_pattern", hole=whole, sandbox=task())


MOUNT_CONTROL_GROUPS = (
    KERNEL
    + """
def attack():
    become_root_of_a_namespace(NEWNS | NEWCGROUP)
    opened = []
    for kind, data, name in (("cgroup", "pids", "pids.max"), ("cgroup2", None, "cgroup.procs")):
        try:
            os.mkdir("/tmp/" + kind)
            mount("none", "/tmp/" + kind, kind, data=data)
            os.close(os.open(f"/tmp/{kind}/{name}", os.O_WRONLY))
            opened.append(kind)
        except OSError:
            continue
    return bool(opened)
"""
)


def test_no_bound_can_be_lifted_by_way_of_the_control_groups(field, task, hole, opened, monkeypatch):
    # Opened, and never written to: root could lift its own bounds by it, and stop what else the machine runs.
    assert field.attack(MOUNT_CONTROL_GROUPS, sandbox=task()) is False
    if os.geteuid() != 0:
        return
    monkeypatch.setattr(argv.Filter, "options", lambda *_: ())
    with pytest.raises(SandboxError, match="no control group namespace"):
        field.attack(MOUNT_CONTROL_GROUPS, sandbox=task())
    opened(hole(), blind=True)
    assert field.attack(MOUNT_CONTROL_GROUPS, sandbox=task()) is True
