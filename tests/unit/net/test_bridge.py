"""Services come and go, and one connection disturbs no other."""

from __future__ import annotations

import array
import contextlib
import errno
import os
import select
import shutil
import socket
import subprocess
import sys
import threading

import pytest

from hermit.net.bridge import Bridge, Tcp, Unix
from hermit.net.pump import Side

from .conftest import Server, echo, listening, port_of, read_all, until


def test_a_target_that_does_not_answer_ends_the_connection_and_is_counted(serve):
    with listening() as gone:
        port = port_of(gone)
    come, service = serve(Tcp("127.0.0.1", port))
    with come() as sock:
        assert read_all(sock) == b""
    until(lambda: service.counts.open == 0)
    assert (service.counts.accepted, service.counts.refused, service.counts.failed) == (1, 1, 0)


def test_a_missing_unix_socket_is_a_target_that_does_not_answer(serve, tmp_path):
    come, service = serve(Unix(str(tmp_path / "none")))
    with come() as sock:
        assert read_all(sock) == b""
    until(lambda: service.counts.refused == 1)


@pytest.mark.parametrize("length", [100, 107, 108, 160, 400])
def test_a_unix_socket_is_reached_however_long_its_path(serve, tmp_path, length):
    directory = tmp_path
    while len(str(directory)) < length - 60:
        directory /= "d" * 40
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / ("s" * (length - len(str(directory)) - 1))
    assert len(str(path)) == length
    with socket.socket(socket.AF_UNIX) as listener:
        with contextlib.chdir(directory):  # an address has room for 107 bytes
            listener.bind(path.name)
        listener.listen()
        with Server(echo, listener) as _:
            come, service = serve(Unix(str(path)))
            before = len(os.listdir("/proc/self/fd"))
            with come() as sock:
                sock.sendall(b"x")
                assert sock.recv(1) == b"x"
            until(lambda: service.counts.open == 0)
            until(lambda: len(os.listdir("/proc/self/fd")) <= before)


def test_an_error_of_one_connection_leaves_the_others_alone(serve, monkeypatch):
    link, failing = Side.link, [True]

    def fail_once(self, other):
        if failing:
            failing.pop()
            raise RuntimeError("planted")
        link(self, other)

    with Server(echo) as server:
        come, service = serve(server.target)
        with come() as first:
            first.sendall(b"x")
            assert first.recv(1) == b"x"
            monkeypatch.setattr(Side, "link", fail_once)
            # It is broken off as soon as it is made: on a busy machine before the client has seen that it is.
            with contextlib.suppress(ConnectionResetError), come() as second:
                assert read_all(second) == b""
            first.sendall(b"y")
            assert first.recv(1) == b"y"
    assert (service.counts.failed, service.counts.last_error) == (1, "RuntimeError: planted")


def not_answered(sock) -> bool:
    """Whether nothing comes for a moment."""
    readable, _, _ = select.select([sock], [], [], 0.2)
    return not readable


def test_connections_beyond_the_most_wait_until_one_ends(serve):
    with Server(echo) as server:
        come, service = serve(server.target, most=2)
        first, second, third = come(), come(), come()
        for sock in (first, second):
            sock.sendall(b"x")
            assert sock.recv(1) == b"x"
        third.sendall(b"x")
        assert not_answered(third)
        assert service.counts.open == 2
        first.close()
        assert third.recv(1) == b"x"
        second.close()
        third.close()
        until(lambda: service.counts.open == 0)


def test_the_most_of_a_bridge_holds_over_all_its_services():
    with Server(echo) as server, Bridge(most=1) as bridge:
        here, there = listening(), listening()
        addresses = here.getsockname(), there.getsockname()
        services = bridge.serve(here, server.target), bridge.serve(there, server.target)
        first = socket.create_connection(addresses[0])
        first.sendall(b"x")
        assert first.recv(1) == b"x"
        second = socket.create_connection(addresses[1])
        second.sendall(b"x")
        assert not_answered(second)
        assert sum(service.counts.open for service in services) == 1
        first.close()
        assert second.recv(1) == b"x"
        second.close()


def test_closing_a_service_breaks_its_connections_off_and_leaves_others_alone(serve):
    with Server(echo) as server:
        come, service = serve(server.target)
        other, _ = serve(server.target)
        with come() as sock, other() as kept:
            for one in (sock, kept):
                one.sendall(b"x")
                assert one.recv(1) == b"x"
            service.close()
            assert service.counts.open == 0
            assert read_all(sock) == b""
            with pytest.raises(ConnectionRefusedError):
                come()
            kept.sendall(b"y")
            assert kept.recv(1) == b"y"
            service.close()


def test_after_a_bridge_no_thread_and_no_descriptor_is_left():
    before, threads = set(os.listdir("/proc/self/fd")), threading.active_count()
    with Server(echo) as server:
        with Bridge() as bridge:
            listener = listening()
            address = listener.getsockname()
            service = bridge.serve(listener, server.target)
            with socket.create_connection(address) as sock:
                sock.sendall(b"x")
                assert sock.recv(1) == b"x"
        service.close()
        bridge.close()
        with pytest.raises(RuntimeError, match="closed"), listening() as late:
            bridge.serve(late, server.target)
    assert set(os.listdir("/proc/self/fd")) == before
    assert threading.active_count() == threads


class ShortOnce(socket.socket):
    """A listener whose first accept finds the process out of descriptors."""

    failed = False

    def accept(self):
        if not self.failed:
            self.failed = True
            raise OSError(errno.EMFILE, "Too many open files")
        return super().accept()


def test_when_descriptors_run_out_a_service_waits_and_goes_on(bridge):
    with Server(echo) as server:
        listener = ShortOnce(fileno=listening().detach())
        address = listener.getsockname()
        service = bridge.serve(listener, server.target)
        with socket.create_connection(address, timeout=20) as sock:
            sock.sendall(b"x")
            assert sock.recv(1) == b"x"
        assert service.counts.last_error == "accept: Too many open files"
        bridge.close()


# A program that listens on its own loopback, hands the listener out and asks through it; what comes back is its output.
INSIDE = """
import array, socket, sys
listener = socket.create_server(("127.0.0.1", 8000))
out = socket.socket(fileno=int(sys.argv[1]))
rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [listener.fileno()]))]
out.sendmsg([b"x"], rights)
listener.close()
out.recv(1)
sock = socket.create_connection(("127.0.0.1", 8000))
sock.sendall(b"from inside")
sock.shutdown(socket.SHUT_WR)
print(sock.recv(100).decode())
"""


@pytest.mark.bwrap
def test_a_listener_of_another_network_namespace_is_served_from_here(bridge):
    ours, theirs = socket.socketpair()
    argv = [shutil.which("bwrap"), "--unshare-user", "--unshare-net", "--die-with-parent", "--ro-bind", "/", "/"]
    with Server(lambda sock: sock.sendall(b"to " + read_all(sock))) as server, ours:
        with theirs:
            child = subprocess.Popen(
                [*argv, sys.executable, "-I", "-S", "-c", INSIDE, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdout=subprocess.PIPE,
            )
        with child:
            _, rights, _, _ = ours.recvmsg(1, socket.CMSG_SPACE(4))
            (descriptor,) = array.array("i", rights[0][2])
            listener = socket.socket(fileno=descriptor)
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", 8000))
            service = bridge.serve(listener, server.target)
            ours.sendall(b"x")
            assert child.stdout.read() == b"to from inside\n"
        assert child.returncode == 0
        assert service.counts.accepted == 1
