"""What the relay finds of a network, on a kernel that the test makes up."""

from __future__ import annotations

import errno
import os
import sys

import pytest


@pytest.fixture
def network(inside):
    return inside("network")


@pytest.mark.parametrize(
    ("names", "expected"),
    [(["lo"], True), (["lo", "eth0"], False), (["eth0"], False), ([], False), (["lo", "lo"], False)],
)
def test_no_interface_but_loopback_may_exist(network, monkeypatch, names, expected):
    monkeypatch.setattr(network._socket, "if_nameindex", lambda: list(enumerate(names)))
    assert network.interfaces()[0] is expected


class Kernel:
    """A kernel's answers to `connect`, by kind of socket; it counts what was tried."""

    def __init__(self, reply=None, **answers):
        self.answers = answers
        self.reply = reply
        self.tried = []
        self.closed = 0

    def socket(self, _, kind):
        made = "tcp" if kind == 1 else "udp"
        answer = self.answers[made]
        if answer == "no protocol":
            raise OSError(errno.EAFNOSUPPORT, "no such protocol")
        return Socket(self, made, answer)


class Socket:
    def __init__(self, kernel, kind, answer):
        self.kernel, self.kind, self.answer = kernel, kind, answer

    def setblocking(self, _):
        pass

    settimeout = setblocking

    def connect(self, address):
        self.kernel.tried.append((self.kind, address))
        if isinstance(self.answer, OSError):
            raise self.answer

    def send(self, data):
        self.kernel.tried.append((self.kind, data))

    def recv(self, _):
        if self.kernel.reply is not None:
            raise self.kernel.reply
        return b"!"

    def close(self):
        self.kernel.closed += 1


NO_ROUTE = OSError(errno.ENETUNREACH, "Network is unreachable")
BEGUN = BlockingIOError(errno.EINPROGRESS, "in progress")
TOO_MANY = OSError(errno.EMFILE, "Too many open files")
REFUSED = ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")


@pytest.mark.parametrize(
    ("answers", "route", "connection"),
    [
        ({"udp": NO_ROUTE, "tcp": NO_ROUTE}, True, True),
        ({"udp": "no protocol", "tcp": "no protocol"}, True, True),
        ({"udp": None, "tcp": NO_ROUTE}, False, False),
        ({"udp": NO_ROUTE, "tcp": None}, True, False),
        ({"udp": NO_ROUTE, "tcp": BEGUN}, True, False),
        ({"udp": TOO_MANY, "tcp": NO_ROUTE}, False, False),
        ({"udp": NO_ROUTE, "tcp": REFUSED}, True, False),
    ],
)
def test_any_way_out_is_found(network, monkeypatch, answers, route, connection):
    kernel = Kernel(**answers)
    monkeypatch.setattr(network._socket, "socket", kernel.socket)
    for _, family, address in network.OUTSIDE:
        assert network.route(family, address)[0] is route
        assert network.connection(family, address)[0] is connection
    assert kernel.closed == len(kernel.tried)


def test_where_there_is_a_route_no_connection_is_begun(network, monkeypatch):
    kernel = Kernel(udp=None, tcp=None)
    monkeypatch.setattr(network._socket, "socket", kernel.socket)
    for _, family, address in network.OUTSIDE:
        network.connection(family, address)
    assert {kind for kind, _ in kernel.tried} == {"udp"}


def test_only_addresses_where_nobody_answers_are_tried(network):
    assert {address for _, _, address in network.OUTSIDE} == {"192.0.2.1", "2001:db8::1"}
    assert all(address.startswith("127.") for address in network.RESOLVERS)


@pytest.fixture
def alone(network, monkeypatch):
    """A network namespace of loopback alone."""
    monkeypatch.setattr(network._socket, "if_nameindex", lambda: [(1, "lo")])
    monkeypatch.setattr(network, "route", lambda *_: (True, "no way"))


@pytest.mark.parametrize(
    ("reply", "expected"),
    [(REFUSED, True), (None, False), (TimeoutError("timed out"), False), (OSError(errno.EIO, "broken"), False)],
)
def test_a_resolver_is_dead_only_where_a_question_is_refused(network, alone, monkeypatch, reply, expected):
    kernel = Kernel(udp=None, reply=reply)
    monkeypatch.setattr(network._socket, "socket", kernel.socket)
    assert network.resolvers("net:[1]")[0] is expected
    assert {address for _, address in kernel.tried if address != b"?"} == {("127.0.0.53", 53), ("127.0.0.11", 53)}


def test_where_loopback_is_down_no_resolver_can_be_asked(network, alone, monkeypatch):
    monkeypatch.setattr(network._socket, "socket", Kernel(udp=NO_ROUTE).socket)
    assert network.resolvers("net:[1]")[0] is True


def test_a_resolver_outside_that_has_a_route_is_found(network, alone, monkeypatch):
    monkeypatch.setattr(network._socket, "socket", Kernel(udp=None, reply=REFUSED).socket)
    monkeypatch.setattr(network, "route", lambda *_: (False, "there is a route"))
    assert network.resolvers("net:[1]") == (False, "there is a route")


@pytest.mark.parametrize("names", [["lo", "eth0"], ["lo"]])
def test_no_byte_is_sent_in_a_network_that_is_not_the_sandboxs_own(network, monkeypatch, names):
    kernel = Kernel(udp=None, tcp=None)
    monkeypatch.setattr(network._socket, "socket", kernel.socket)
    monkeypatch.setattr(network._socket, "if_nameindex", lambda: list(enumerate(names)))
    outer = os.readlink("/proc/self/ns/net") if names == ["lo"] else "net:[1]"
    assert network.resolvers(outer)[0] is False
    assert kernel.tried == []


UNIX = b"ffff8: 00000002 00000000 00010000 0001 01 62%d"


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([], True),
        ([UNIX % 1], True),
        ([UNIX % 1, UNIX % 2 + b" @/tmp/.X11-unix/X0"], False),
        ([UNIX % 3 + b" /run/docker.sock"], False),
    ],
)
def test_a_unix_socket_with_a_name_is_found(network, monkeypatch, rows, expected):
    monkeypatch.setattr(network, "lines", {"/proc/net/unix": rows}.__getitem__)
    assert network.socket_names()[0] is expected


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        ({}, 0),
        ({"snmp": [b"Ip: Forwarding OutNoRoutes", b"Ip: 2 7", b"Tcp: OutNoRoutes", b"Tcp: 9"]}, 7),
        ({"snmp": [b"Ip: Forwarding", b"Ip: 2"], "snmp6": [b"Ip6InNoRoutes\t5", b"Ip6OutNoRoutes  \t3"]}, 3),
        ({"snmp": [b"Ip: OutNoRoutes", b"Ip: 1"], "snmp6": [b"Ip6OutNoRoutes \t1"]}, 2),
    ],
)
def test_what_found_no_route_is_counted_for_both_families(network, monkeypatch, tables, expected):
    monkeypatch.setattr(network, "rows_of", lambda path: tables.get(path.removeprefix("/proc/net/"), []))
    assert network.unrouted() == expected


@pytest.fixture
def server():
    """A port of this machine's loopback where somebody listens."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


def test_a_declared_port_that_takes_no_connection_is_found_and_named(network, server):
    port = server.getsockname()[1]
    assert network.answering([port]) == (True, str(port))
    server.close()
    assert network.answering([port]) == (False, f"{port}: Connection refused")


@pytest.mark.parametrize("asked", [True, False], ids=["the_kernel", "its_tables"])
def test_a_port_that_nobody_declared_is_found_and_named(network, server, monkeypatch, asked):
    def refuse(_):
        raise OSError(errno.ENOENT, "no such question")

    if not asked:
        monkeypatch.setattr(network, "dumped", refuse)
    port = server.getsockname()[1]
    others = {*network.listening(network._socket.AF_INET, "tcp"), *network.listening(network._socket.AF_INET6, "tcp6")}
    assert network.listeners([*others])[0] is True
    passed, detail = network.listeners([*(others - {port})])
    assert (passed, detail) == (False, str(port))


def message(kind, payload=b""):
    """One of the kernel's messages, padded as the kernel pads it."""
    length = 16 + len(payload)
    header = length.to_bytes(4, sys.byteorder) + kind.to_bytes(2, sys.byteorder) + bytes(10)
    return header + payload + bytes(-length % 4)


def signed(value):
    return value.to_bytes(4, sys.byteorder, signed=True)


PORT_80, PORT_443 = (message(20, bytes(4) + port.to_bytes(2, "big") + bytes(65)) for port in (80, 443))


def test_every_port_of_an_answer_is_read(network):
    found = []
    assert network.messages_in(PORT_80 + PORT_443, found) is True
    assert network.messages_in(PORT_80 + message(3, signed(0)), found) is False
    assert found == [80, 443, 80]


@pytest.mark.parametrize(
    "answer",
    [b"", message(2, signed(-2)), message(3, signed(-2)), PORT_80 + message(2, signed(-2)), b"\0" * 16],
    ids=["nothing", "a_refusal", "a_refusal_at_the_end", "a_refusal_later", "no_message"],
)
def test_an_answer_that_is_none_is_not_taken_for_no_port(network, answer):
    with pytest.raises(OSError, match="does not tell"):
        network.messages_in(answer, [])
