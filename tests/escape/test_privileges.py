"""What a command cannot become, and whom it cannot see or reach."""

from __future__ import annotations

import os
import signal
import socket
import threading

import pytest

from hermit.bwrap import prepare

pytestmark = pytest.mark.bwrap

BECOME_ROOT = """
import os
def attack():
    for step in (lambda: os.setgid(0), lambda: os.setuid(0)):
        try:
            step()
        except OSError:
            pass
    return os.geteuid() == 0
"""
HOLD_A_CAPABILITY = """
def attack():
    with open("/proc/self/status") as file:
        held = [line.split()[1] for line in file if line.startswith(("CapEff", "CapPrm", "CapBnd"))]
    return any(int(mask, 16) for mask in held)
"""
SEE = """
import os
def attack(pid):
    with open(f"/proc/{pid}/cmdline") as file:
        return "86.4" in file.read()
"""
KILL = """
import os
def attack(pid):
    with open(f"/proc/{pid}/cmdline") as file:
        if "86.4" not in file.read():  # some process that happens to have this number inside
            return False
    os.kill(int(pid), 9)
    return True
"""
CONNECT = """
import socket
def attack(port):
    with socket.create_connection(("127.0.0.1", int(port)), timeout=5) as link:
        return link.recv(16) == b"the host's own"
"""
CONNECT_ABSTRACT = """
import socket
def attack(name):
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(5)
        link.connect(chr(0) + name)
        return link.recv(16) == b"the host's own"
"""
# The question is where the data goes: what is asked for leaves, whether or not there is such a name.
ASK_A_RESOLVER = """
import socket
QUESTION = bytes.fromhex("1234 0100 0001 0000 0000 0000") + b"\\6secret\\4evil\\7example\\0" + bytes.fromhex("0001 0001")
def attack(port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        link.settimeout(2)
        link.sendto(QUESTION, ("127.0.0.1", int(port)))
        return link.recv(64) == b"the host's own"
"""
SEE_THE_NETWORK = """
import os, socket
def attack(namespace):
    return {"lo"} != {name for _, name in socket.if_nameindex()} or os.readlink("/proc/self/ns/net") == namespace
"""
READ_THE_ENVIRONMENT = """
import os
def attack(secret):
    seen = [value.encode() for value in os.environ.values()]
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                seen.append(file.read())
        except OSError:
            pass
    return any(secret.encode() in value for value in seen)
"""


def test_a_command_cannot_become_root(proven, hole):
    as_root = ((("--uid", "1000"), ("--uid", "0")), (("--gid", "1000"), ("--gid", "0")))
    proven(BECOME_ROOT, hole=hole(swap=as_root, check="unprivileged user"))


def test_a_command_holds_no_capability(proven, hole):
    all_of_them = ((("--cap-drop", "ALL"), ("--cap-add", "ALL")),)
    proven(HOLD_A_CAPABILITY, hole=hole(swap=all_of_them, check="no capability"))


def test_a_process_of_the_host_cannot_be_seen(proven, hole, victim):
    proven(SEE, victim.pid, hole=hole(drop=(("--unshare-pid",), ("--as-pid-1",)), check="own namespaces"))


def test_a_process_of_the_host_cannot_be_killed(field, proven, hole, victim):
    assert field.run(field.sandbox(), "kill", "-KILL", str(victim.pid)).code != 0
    assert victim.poll() is None
    proven(KILL, victim.pid, hole=hole(drop=(("--unshare-pid",), ("--as-pid-1",)), check="own processes"))
    assert victim.wait(timeout=10) == -signal.SIGKILL  # the hole reached the host's own process


@pytest.fixture
def answering(request):
    """A server on this machine's loopback, or in its abstract names; it greets whoever connects."""
    kinds = {"tcp": (socket.AF_INET, ("127.0.0.1", 0)), "abstract": (socket.AF_UNIX, f"\0hermit-test-{os.getpid()}")}
    family, address = kinds[request.param]
    with socket.socket(family) as server:
        server.bind(address)
        server.listen()
        yield server


def greeted(server, attack):
    """Runs an attack while the server greets up to three callers."""

    def greet():
        for _ in range(3):
            try:
                link, _ = server.accept()
            except OSError:
                return
            with link:
                link.sendall(b"the host's own")

    thread = threading.Thread(target=greet)
    thread.start()
    try:
        attack()
    finally:
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.parametrize("answering", ["tcp"], indirect=True)
def test_a_port_of_the_hosts_loopback_cannot_be_reached(proven, hole, answering):
    port = answering.getsockname()[1]
    no_net = hole(drop=(("--unshare-net",),), check="own namespaces")
    greeted(answering, lambda: proven(CONNECT, port, hole=no_net))


@pytest.fixture
def resolver():
    """Who answers names on this machine's loopback, and which questions came."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        asked = []

        def answer():
            while not asked or asked[-1] != b"end":
                question, whose = server.recvfrom(512)
                asked.append(question)
                server.sendto(b"the host's own", whose)

        thread = threading.Thread(target=answer)
        thread.start()
        yield server.getsockname()[1], asked
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"end", server.getsockname())
        thread.join()


def test_no_question_for_a_name_reaches_a_resolver_of_the_host(proven, hole, resolver):
    port, asked = resolver
    assert asked == []
    proven(ASK_A_RESOLVER, port, hole=hole(drop=(("--unshare-net",),), check="own namespaces"))
    assert len(asked) == 1  # of the planted failure alone
    assert b"secret" in asked[0]


@pytest.mark.parametrize("answering", ["abstract"], indirect=True)
def test_an_abstract_socket_of_the_host_cannot_be_reached(proven, hole, answering):
    name = answering.getsockname().decode().lstrip("\0")
    no_net = hole(drop=(("--unshare-net",),), check="own namespaces")
    greeted(answering, lambda: proven(CONNECT_ABSTRACT, name, hole=no_net))


def test_no_interface_of_the_host_can_be_seen(proven, hole):
    no_net = hole(drop=(("--unshare-net",),), check="loopback only" if len(socket.if_nameindex()) > 1 else "net")
    proven(SEE_THE_NETWORK, os.readlink("/proc/self/ns/net"), hole=no_net)


def test_a_variable_of_the_host_that_is_not_declared_does_not_exist_inside(field, monkeypatch):
    secret = "k" * 24
    environ = {"MODEL_API_KEY": secret, "PATH": "/usr/bin"}
    monkeypatch.setenv("MODEL_API_KEY", secret)
    assert not field.attack(READ_THE_ENVIRONMENT, secret, variables=environ)
    chosen = prepare.variables
    monkeypatch.setattr(prepare, "variables", lambda *given, **named: {**environ, **chosen(*given, **named)})
    assert field.attack(READ_THE_ENVIRONMENT, secret, variables=environ)
