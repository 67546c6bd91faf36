"""Each check of a start notices its own planted failure, and lets an attack through where it does not look."""

from __future__ import annotations

import ctypes
import os
import socket
import sys
import threading
from dataclasses import replace

import pytest

from hermit import proc
from hermit.bwrap import prepare
from hermit.bwrap.prepare import Prepared
from hermit.domain.bind import contains
from hermit.domain.command import Command
from hermit.domain.limits import Limits
from hermit.domain.network import Forward
from hermit.domain.sandbox import Sandbox
from hermit.errors import SandboxError

pytestmark = pytest.mark.bwrap

SETTINGS = ("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sys/vm/overcommit_memory")
# bubblewrap makes a second user namespace for its /dev: a capability in that one has no power over the first.
AS_ROOT = (("--unshare-user",), ("--uid", "1000"), ("--gid", "1000"), ("--cap-drop", "ALL"))
ALL_CAPABILITIES = ((("--cap-drop", "ALL"), ("--cap-add", "ALL")),)
NO_PROCESS_NAMESPACE = (("--unshare-pid",), ("--as-pid-1",))
NO_NETWORK_NAMESPACE = (("--unshare-net",),)

SHARE = """
import os
def attack(name, outer):
    return os.readlink("/proc/self/ns/" + name) == outer
"""
HOLD = """
def attack(name):
    with open("/proc/self/status") as file:
        return any(int(line.split()[1], 16) for line in file if line.startswith(name))
"""
BE_IN_THE_GROUP_OF_ROOT = """
import os
def attack():
    return 0 in (os.getgid(), os.getegid())
"""
HAVE_ANOTHER_PARENT = """
import os
def attack():
    return os.getppid() != 1
"""
NAME_THE_HOST = """
import os, socket
def attack():
    socket.sethostname(os.uname().nodename)
    return True
"""
FIND_SHARED_MEMORY = """
def attack(identity):
    with open("/proc/sysvipc/shm") as file:
        return any(line.split()[1] == identity for line in file)
"""
WRITE = """
import os
def attack(path):
    with open(path + "/planted", "w") as file:
        file.write("planted")
    os.unlink(path + "/planted")
    return True
"""
READ = """
def attack(path):
    with open(path) as file:
        return file.read() == "the answer"
"""
OPEN = """
import os
def attack(path, flags):
    os.close(os.open(path, int(flags)))
    return True
"""
EXIST = """
import os
def attack(path):
    os.lstat(path)
    return True
"""
SEE_NUMBERS_OF_THE_HOST = """
import os
def attack():
    return os.readlink("/proc/self") != str(os.getpid())
"""
FIND_A_WAY = """
import socket
def attack():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
    return True
"""
CONNECT = """
import socket
def attack(port):
    with socket.create_connection(("127.0.0.1", int(port)), timeout=5):
        return True
"""
SEE_A_NAME = """
def attack(name):
    with open("/proc/net/unix") as file:
        return name in file.read()
"""


@pytest.fixture
def asked(monkeypatch):
    """Gives every start one more order."""

    def ask(**changes):
        order = Prepared.orders

        def orders(prepared, **named):
            given = order(prepared, **named)
            return replace(given, checks={**given.checks, **changes})

        monkeypatch.setattr(Prepared, "orders", orders)

    return ask


@pytest.fixture
def checked(field):
    """What the checks of a start saw, by name."""

    def start(sandbox=None):
        records = []
        field.place.run(sandbox or field.sandbox(), Command(argv=("true",)), keep=records.append)
        return {check.name: check for check in records[0].checks}

    return start


def refused(field, check, **more):
    """A start that a check refuses."""
    with pytest.raises(SandboxError) as failure:
        field.run(more.pop("sandbox", None) or field.sandbox(), "true", **more)
    assert failure.value.cause == "check"
    assert check in str(failure.value)
    return str(failure.value)


def link(name):
    return os.readlink(f"/proc/self/ns/{name}")


def test_a_closed_sandbox_passes_at_least_twenty_checks_and_each_says_what_it_saw(checked):
    made = checked()
    assert len(made) >= 20
    assert all(check.passed and check.detail for check in made.values())


@pytest.mark.parametrize("name", ["ipc", "uts", "cgroup", "pid", "net"])
def test_a_namespace_that_is_shared_with_the_host_is_noticed_by_its_own_check(proven, hole, name):
    drop = NO_PROCESS_NAMESPACE if name == "pid" else ((f"--unshare-{name}",),)
    proven(SHARE, name, link(name), hole=hole(drop=drop, check=f"own namespaces: {name}"))


def test_the_user_namespace_of_the_host_is_noticed(proven, hole):
    proven(SHARE, "user", link("user"), hole=hole(drop=AS_ROOT, check="own namespaces: user", root=True))


def test_a_bubblewrap_that_confines_nothing_is_noticed_by_the_check_of_every_namespace(field, tmp_path):
    program = tmp_path / "bwrap"
    program.write_text('#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nshift; exec "$@"\n')
    program.chmod(0o755)
    backend = replace(field.place.backend, program=str(program))
    said = refused(replace(field, place=replace(field.place, backend=backend)), "own namespaces")
    for name in ("user", "pid", "ipc", "uts", "cgroup", "mnt", "net"):  # no option leaves the one of mounts out
        assert f"own namespaces: {name}: shared with the host" in said


@pytest.mark.parametrize("name", ["CapPrm", "CapEff", "CapBnd", "CapInh", "CapAmb"])
def test_a_capability_is_noticed_in_its_own_set(proven, hole, name):
    proven(HOLD, name, hole=hole(swap=ALL_CAPABILITIES, check=f"no capability: {name}"))


def test_the_group_of_root_is_noticed(proven, hole):
    swap = ((("--gid", "1000"), ("--gid", "0")),)
    proven(BE_IN_THE_GROUP_OF_ROOT, hole=hole(swap=swap, check="unprivileged group"))


def test_a_relay_that_is_not_init_is_noticed(proven, hole):
    proven(HAVE_ANOTHER_PARENT, hole=hole(drop=NO_PROCESS_NAMESPACE, check="own init"))


def test_the_proc_of_the_host_is_noticed(proven, hole):
    over = ("--bind", "/proc", "/proc")
    proven(SEE_NUMBERS_OF_THE_HOST, hole=hole(add=over, check="own /proc"))


def test_a_host_name_that_can_be_changed_is_noticed(proven, hole):
    proven(NAME_THE_HOST, hole=hole(drop=AS_ROOT, check="host name fixed", root=True))


@pytest.fixture
def segment():
    """A piece of this machine's System V shared memory."""
    libc = ctypes.CDLL(None, use_errno=True)
    identity = libc.shmget(0, 4096, 0o1000 | 0o600)
    assert identity >= 0
    yield identity
    assert libc.shmctl(identity, 0, None) == 0


def test_the_hosts_system_v_memory_is_noticed(proven, hole, segment):
    proven(FIND_SHARED_MEMORY, segment, hole=hole(drop=(("--unshare-ipc",),), check="no System V objects: shm"))


def test_a_root_that_can_be_written_is_noticed(proven, hole):
    proven(WRITE, "", hole=hole(drop=(("--remount-ro", "/"),), check="root sealed"))


def test_a_writable_grant_for_reading_is_noticed_and_nothing_is_left_in_it(field, proven, hole):
    shown = str(field.shown)
    swap = ((("--ro-bind", shown, shown), ("--bind", shown, shown)),)
    proven(WRITE, shown, hole=hole(swap=swap, check="grants for reading read-only"))
    assert [path.name for path in field.shown.iterdir()] == ["data.txt"]


# A directory over the interpreter's own place would stop the start before any check: then the other one is tried alone.
SCRATCH = [path for path in ("/tmp", "/dev/shm") if not contains(path, sys.prefix)]


@pytest.mark.parametrize("path", SCRATCH)
def test_a_directory_of_the_host_in_the_place_of_scratch_is_noticed(field, proven, hole, path):
    # The test's own directories may lie below the host's /tmp: the sandbox grants nothing that would be hidden.
    over = ("--ro-bind", str(field.secret.parent), path)
    nothing = field.sandbox(read=(), write=(), cwd="/tmp")
    proven(READ, f"{path}/answers.jsonl", hole=hole(add=over, check=f"scratch fresh: {path}"), sandbox=nothing)


def test_a_device_beyond_the_harmless_ones_is_noticed(proven, hole):
    added = ("--dev-bind", "/dev/zero", "/dev/kmsg", "--remount-ro", "/dev")
    swap = ((("--remount-ro", "/dev"), added),)
    proven(OPEN, "/dev/kmsg", os.O_RDONLY, hole=hole(swap=swap, check="known devices only: /dev/kmsg"))


def test_a_device_under_a_harmless_name_is_noticed(field, opened, hole):
    swap = ((("--remount-ro", "/dev"), ("--dev-bind", "/dev/zero", "/dev/null", "--remount-ro", "/dev")),)
    opened(hole(swap=swap), blind=False)
    refused(field, "known devices only: /dev/null")


@pytest.mark.parametrize("path", SETTINGS)
def test_a_setting_of_the_kernel_that_opens_for_writing_is_noticed(proven, hole, asked, path):
    asked(settings=[path])
    over = ("--bind", "/proc/sys", "/proc/sys")
    proven(OPEN, path, os.O_WRONLY, hole=hole(add=over, check=f"kernel settings closed: {path}", root=True))


def test_a_descriptor_that_nobody_declared_is_noticed(field, monkeypatch):
    spawn = proc.spawn
    with field.secret.open() as secret:
        numbers = [secret.fileno()]

        def leaking(argv, *, pass_fds, **more):
            return spawn(argv, pass_fds=[*pass_fds, *numbers], **more)

        monkeypatch.setattr(proc, "spawn", leaking)
        refused(field, f"declared descriptors only: {numbers[0]}")
        numbers.clear()
        assert field.run(field.sandbox(), "true").code == 0


@pytest.fixture
def named_socket(tmp_path):
    """A socket of the host with a path of its own."""
    path = tmp_path / "hidden" / "docker.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        yield path


def test_a_socket_file_of_the_host_is_noticed(field, proven, hole, asked, named_socket):
    asked(sockets=[str(named_socket)])
    over = ("--ro-bind", str(named_socket), str(named_socket))
    proven(EXIST, named_socket, hole=hole(add=over, check=f"no socket of the host: {named_socket}"))


def test_a_name_of_the_hosts_sockets_is_noticed(proven, hole):
    name = f"hermit-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"\0{name}")
        server.listen()
        proven(SEE_A_NAME, name, hole=hole(drop=NO_NETWORK_NAMESPACE, check="no socket name of the host"))


def way_out():
    """Whether this machine has a route; to ask sends no packet."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return False
    return True


@pytest.mark.skipif(not way_out(), reason="this machine has no way out that could be left open")
@pytest.mark.parametrize("check", ["no route outside: IPv4", "no connection outside: IPv4: not tried"])
def test_a_way_out_is_noticed(proven, hole, check):
    proven(FIND_A_WAY, hole=hole(drop=NO_NETWORK_NAMESPACE, check=check))


def test_a_network_that_is_not_the_sandboxs_own_is_never_asked_for_names(field, opened, hole):
    opened(hole(drop=NO_NETWORK_NAMESPACE), blind=False)
    refused(field, "no resolver: not tried")


def test_a_port_that_nobody_declared_is_noticed(proven, hole):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        greeting = threading.Thread(target=accept_all, args=(server,))
        greeting.start()
        try:
            proven(CONNECT, port, hole=hole(drop=NO_NETWORK_NAMESPACE, check="no other port open"))
        finally:
            server.shutdown(socket.SHUT_RDWR)
            greeting.join()


def accept_all(server):
    while True:
        try:
            server.accept()[0].close()
        except OSError:
            return


def test_a_declared_port_that_does_not_answer_is_noticed(field, asked):
    asked(ports=[8099])
    refused(field, "declared ports answer: 8099: Connection refused")


def test_a_forwarded_port_answers_and_is_the_only_one(field, checked):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        made = checked(field.sandbox(forwards=(Forward(port),)))
    assert made["declared ports answer"].detail == str(port)
    assert (made["no other port open"].passed, made["no other port open"].detail) == (True, "1 open")


def test_a_port_that_is_served_without_being_declared_is_noticed(field, asked):
    asked(ports=[])
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        refused(field, f"no other port open: {port}", sandbox=field.sandbox(forwards=(Forward(port),)))


def test_every_start_tries_the_kernels_settings_and_the_hosts_sockets(place):
    records = []
    place.run(Sandbox(limits=Limits(wall_s=30)), Command(argv=("true",)), keep=records.append, variables={})
    found = {check.name: check.detail for check in records[0].checks}
    assert found["kernel settings closed"].startswith(f"{len(prepare.SETTINGS)} ")
    assert found["no socket of the host"].startswith(f"{len(prepare.SOCKETS)} ")
    assert len(prepare.SETTINGS) >= 10
    assert len(found) >= 40
