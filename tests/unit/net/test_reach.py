"""What an isolated network reaches, worked out from the sandbox and its variables."""

from __future__ import annotations

import socket
import time

import pytest

from hermit.domain.network import Forward, Network
from hermit.domain.sandbox import Sandbox
from hermit.errors import SandboxError
from hermit.net import reach


def test_a_closed_sandbox_reaches_nothing_and_pays_for_no_bridge():
    found = reach.of(Sandbox(), {"PATH": "/usr/bin"})
    assert (found.ports, found.lines, found.variables) == ([], (), {})
    with reach.served(found, {}) as server:
        assert server is None


@pytest.mark.parametrize(
    ("value", "ports"),
    [
        ("http://127.0.0.1:8080/v1", [8080]),
        ("http://localhost:8080", [8080]),
        ("HTTP://LOCALHOST:8080/", [8080]),
        ("https://user:word@127.0.0.1:8443/x", [8443]),
        ("a=http://127.0.0.1:8081,b=ws://localhost:8082/socket", [8081, 8082]),
        ("http://127.0.0.1.example.com:8080", []),
        ("http://localhost.example.com:8080", []),
        ("http://192.0.2.1:8080", []),
        ("127.0.0.1:8080", []),
        ("http://127.0.0.1:99999", []),
    ],
)
def test_a_local_url_among_the_variables_opens_its_port_and_nothing_else_does(value, ports):
    assert reach.of(Sandbox(), {"BASE_URL": value}).ports == ports


def test_a_local_url_whose_port_cannot_be_had_inside_is_a_warning():
    found = reach.of(Sandbox(), {"BASE_URL": "http://localhost/v1", "OTHER": "http://127.0.0.1:80/"})
    assert found.ports == []
    assert [words.split()[4] for words in found.warnings] == ["BASE_URL", "OTHER"]


@pytest.mark.parametrize("piece", ["ab-", "a.", "a+", "http://", "http://a", "x"])
def test_a_long_value_is_read_once_whatever_is_in_it(piece):
    began = time.process_time()
    value = piece * (100_000 // len(piece)) + " http://127.0.0.1:8080"
    assert reach.of(Sandbox(), {"LARGE": value}).ports == [8080]
    assert time.process_time() - began < 5  # each word to the end of the value would be half a minute


def test_a_named_socket_comes_before_a_url_with_its_port():
    sandbox = Sandbox(forwards=(Forward(8080, "/run/model.sock"),))
    assert reach.of(sandbox, {"BASE": "http://127.0.0.1:8080"}).lines == ("8080 -> /run/model.sock",)


def test_the_proxys_port_is_one_that_nothing_else_has():
    sandbox = Sandbox(allowed_hosts=("api.example.com",), forwards=(Forward(3128), Forward(3129)))
    found = reach.of(sandbox, {})
    assert (found.proxy, found.ports) == (3130, [3128, 3129, 3130])
    assert found.variables["https_proxy"] == found.variables["HTTPS_PROXY"] == "http://127.0.0.1:3130"


def test_an_open_network_has_nothing_forwarded_into_it():
    assert reach.of(Sandbox(network=Network.OPEN), {"BASE": "http://127.0.0.1:8080"}).ports == []


def test_a_pattern_that_no_list_holds_stops_the_start():
    found = reach.of(Sandbox(allowed_hosts=("*.com",)), {})
    with pytest.raises(SandboxError) as refused, reach.served(found, {}):
        pass
    assert refused.value.cause == "declaration"


def test_more_sockets_than_were_asked_for_are_not_the_relays():
    found = reach.of(Sandbox(forwards=(Forward(8080),)), {})
    with reach.served(found, {}) as server, socket.socket() as one, socket.socket() as two:
        near, far = socket.socketpair()
        with near, far:
            one.bind(("127.0.0.1", 0))
            one.listen()
            socket.send_fds(far, [b"L"], [one.fileno(), two.fileno()])
            with pytest.raises(SandboxError, match="more sockets than it was asked for"):
                server.take(near)


def test_a_channel_that_has_closed_brings_no_more():
    found = reach.of(Sandbox(forwards=(Forward(8080),)), {})
    with reach.served(found, {}) as server:
        near, far = socket.socketpair()
        far.close()
        with near:
            assert not server.take(near)


def test_a_decision_whose_connection_is_open_when_the_sandbox_ends_is_told_too():
    found = reach.of(Sandbox(allowed_hosts=("api.example.com",)), {})
    near, far = socket.socketpair()
    with near, far, reach.served(found, {}) as server, socket.create_server(("127.0.0.1", 0)) as listener:
        socket.send_fds(far, [b"L"], [listener.fileno()])
        assert server.take(near)
        with socket.create_connection(listener.getsockname(), timeout=60) as client:
            client.sendall(b"GET http://other.example/ HTTP/1.1\r\nHost: other.example\r\n\r\n")
            assert client.recv(4096).startswith(b"HTTP/1.1 403 ")
            (decision,) = server.ended()  # the proxy is still waiting for the client to have read its answer
    assert "other.example" in decision
