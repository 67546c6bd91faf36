"""A request goes where a rule allows, and its decision leaves one line."""

from __future__ import annotations

import collections
import contextlib
import http.client
import json
import socket
import ssl
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermit.net.hosts import canonical
from hermit.net.request import LARGEST_HEAD
from hermit.net.upstream import Upstream

from .conftest import PATIENT, Origin, client_hello, listening, port_of, read_all

DATA = Path(__file__).parent.parent.parent / "data"

GET = "GET http://api.example.com:PORT/x?token=hunter2 HTTP/1.1\r\nHost: api.example.com:PORT\r\n\r\n"


def test_plain_http_to_an_allowed_host_is_passed_on(front):
    front.open("api.example.com:PORT")
    answer = front.say(GET)
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b"\r\n\r\nok")
    assert b"Connection: close" in answer
    assert front.came()[0].startswith(
        b"GET /x?token=hunter2 HTTP/1.1\r\nHost: api.example.com:%d\r\n" % front.origin.port
    )
    decision = front.last
    assert (decision.verb, decision.host, decision.port) == ("GET", "api.example.com", front.origin.port)
    assert (decision.allowed, decision.address) == (True, "127.0.0.1")
    assert decision.rule == front.fill("api.example.com:PORT")
    assert (decision.bytes_up, decision.bytes_down) == (0, len(front.origin.answer))


def test_a_standard_client_gets_bodies_through_both_ways(front):
    front.open("api.example.com:PORT")
    front.origin.answer = b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    client = http.client.HTTPConnection("127.0.0.1", front.port, timeout=20)
    pieces = iter([b"x" * 100_000, b"y"])
    client.request(
        "POST", front.fill("http://api.example.com:PORT/"), body=pieces, headers={"Proxy-Authorization": "Basic eA=="}
    )
    answer = client.getresponse()
    assert (answer.status, answer.read()) == (201, b"abcde")
    client.close()
    came = front.came()[0]
    assert came.count(b"x") >= 100_000
    assert came.endswith(b"0\r\n\r\n")
    assert b"roxy" not in came


def test_http_1_0_without_a_host_header_is_passed_on(front):
    front.open("api.example.com:PORT")
    assert front.say("GET http://api.example.com:PORT/ HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 200")


def test_an_answer_without_a_length_ends_where_the_server_ends_it(front):
    def serve(sock):
        sock.recv(4096)
        sock.sendall(b"HTTP/1.0 200 OK\r\n\r\n" + b"z" * 300_000)

    with _one_shot(serve) as port:
        front.open(f"api.example.com:{port}")
        client = http.client.HTTPConnection("127.0.0.1", front.port, timeout=20)
        client.request("GET", f"http://api.example.com:{port}/")
        assert client.getresponse().read() == b"z" * 300_000
        client.close()


def test_an_answer_that_breaks_off_does_not_look_complete(front):
    def serve(sock):
        sock.recv(4096)
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")

    with _one_shot(serve) as port:
        front.open(f"api.example.com:{port}")
        with front.connect() as sock:
            sock.sendall(f"GET http://api.example.com:{port}/ HTTP/1.0\r\n\r\n".encode())
            with pytest.raises(ConnectionResetError):
                collections.deque(iter(lambda: sock.recv(4096), b""))
        assert front.last.reason == "the answer broke off"


def test_a_server_that_answers_no_http_gives_502(front):
    front.open("api.example.com:PORT")
    front.origin.answer = b"SSH-2.0-server\r\n\r\n"
    assert front.say(GET).startswith(b"HTTP/1.1 502 ")


def test_a_second_request_on_the_connection_is_never_passed_on(front):
    front.open("api.example.com:PORT")
    front.say(front.fill(GET) + "GET http://other.example/ HTTP/1.1\r\nHost: other.example\r\n\r\n")
    (came,) = front.came()
    assert b"other" not in came


def test_a_tunnel_to_an_allowed_host_passes_tls_bytes_untouched(front):
    front.open("*.example.com:PORT")
    front.origin.answer = b"from the server"
    hello = client_hello("API.example.com")
    assert front.tunnel("api.example.com:PORT", hello + b"more") == b"from the server"
    decision = front.last
    assert front.came() == [hello + b"more"]
    assert (decision.verb, decision.allowed, decision.reason) == ("CONNECT", True, "")
    assert (decision.bytes_up, decision.bytes_down) == (len(hello) + 4, len(b"from the server"))


def test_a_client_that_does_not_wait_for_the_answer_is_served_too(front):
    front.open("api.example.com:PORT")
    front.origin.answer = b"from the server"
    hello = client_hello("api.example.com")
    assert front.say(
        front.fill("CONNECT api.example.com:PORT HTTP/1.1\r\n").encode() + b"Host: api.example.com\r\n\r\n" + hello
    ).endswith(b"established\r\n\r\nfrom the server")


def test_a_tunnel_to_an_address_that_is_listed_needs_no_server_name(front):
    front.open("127.0.0.1:PORT", networks=())
    front.origin.answer = b"from the server"
    assert front.tunnel("127.0.0.1:PORT", client_hello(None)) == b"from the server"
    assert front.looked_up == []


def test_a_refusal_names_the_rule_and_the_key_in_one_sentence(front):
    front.open("api.example.com", key="sandbox.evolver.allowed_hosts")
    answer = front.say("CONNECT other.example:443 HTTP/1.1\r\nHost: other.example:443\r\n\r\n").decode()
    head, _, body = answer.partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 403 Refused by sandbox.evolver.allowed_hosts\r\n")
    sentence = "other.example is not on the list; the hosts that this sandbox may reach are those of sandbox.evolver.allowed_hosts"
    assert body == f"Hermit did not pass CONNECT other.example:443 on: {sentence}.\n"
    assert f"X-Hermit-Rule: host; {body[:-2]}\r\n" in head
    assert (front.last.allowed, front.last.rule) == (False, "host")


def test_a_standard_client_shows_the_key_when_its_tunnel_is_refused(front):
    front.open("api.example.com")
    client = http.client.HTTPSConnection("127.0.0.1", front.port, timeout=20)
    client.set_tunnel("other.example", 443)
    with pytest.raises(OSError, match=r"403 Refused by environment\.allowed_hosts"):
        client.request("GET", "/")


def test_a_name_without_an_address_gives_502_and_says_so(front):
    front.open("gone.example.com")
    assert b"gone.example.com has no address" in front.say(
        "GET http://gone.example.com/ HTTP/1.1\r\nHost: gone.example.com\r\n\r\n"
    )
    assert front.last.allowed


def test_an_address_that_does_not_answer_is_passed_over_for_the_next(front):
    front.open("api.example.com:PORT")
    front.addresses["api.example.com"] = ["127.0.0.9", "127.0.0.1"]
    assert front.say(GET).startswith(b"HTTP/1.1 200")
    front.addresses["api.example.com"] = ["127.0.0.9"]
    assert b"nobody answers at 127.0.0.9" in front.say(GET)


def test_a_connection_that_says_nothing_leaves_no_line(front):
    front.open("api.example.com", patience=replace(PATIENT, head_s=0.2))
    assert front.say(b"") == b""
    with front.connect() as sock:
        assert read_all(sock) == b""
    front.bridge.close()
    assert front.decisions == []


def test_a_head_that_comes_too_slowly_is_given_up(front):
    front.open("api.example.com", patience=replace(PATIENT, head_s=0.2))
    with front.connect() as sock:
        sock.sendall(b"GET http://api")
        assert read_all(sock).startswith(b"HTTP/1.1 408 ")


def test_a_head_that_is_too_large_is_given_up(front):
    front.open("api.example.com")
    assert front.say(b"GET http://api.example.com/ HTTP/1.1\r\nX: " + b"x" * LARGEST_HEAD).startswith(b"HTTP/1.1 431 ")


def test_headers_and_queries_never_reach_the_log(front):
    front.open("api.example.com:PORT")
    front.say(front.fill(GET).replace("\r\n\r\n", "\r\nAuthorization: hunter2\r\n\r\n"))
    front.say("GET http://hunter2:hunter2@api.example.com/ HTTP/1.1\r\nHost: hunter2\r\n\r\n")
    front.bridge.close()
    lines = [decision.as_json() for decision in front.decisions]
    assert len(lines) == 2
    assert "hunter2" not in "".join(lines)
    assert json.loads(lines[0])["host"] == "api.example.com"
    assert "\n" not in lines[0]


def test_a_log_that_fails_is_counted_and_the_proxy_goes_on(front):
    def fail(_):
        raise OSError("disk full")

    front.open("api.example.com:PORT", log=fail)
    for _ in range(2):
        assert front.say(GET).startswith(b"HTTP/1.1 200")
    (service,) = front.bridge._services
    front.bridge.close()
    assert (service.counts.failed, service.counts.last_error) == (2, "OSError: disk full")


def test_a_tunnel_that_is_open_when_the_service_closes_leaves_its_line(front):
    front.open("api.example.com:PORT")
    hello = client_hello("api.example.com")
    with front.connect() as sock:
        sock.sendall(
            front.fill("CONNECT api.example.com:PORT HTTP/1.1\r\nHost: api.example.com\r\n\r\n").encode() + hello
        )
        while front.origin.answer not in sock.recv(4096):
            pass
        assert front.last.bytes_up == len(hello)


# ---------------------------------------------------------------------------------------------- the host's own proxy


@contextlib.contextmanager
def _one_shot(serve):
    """A server for one connection."""
    with listening() as listener:

        def accept():
            with contextlib.suppress(OSError), listener.accept()[0] as sock:
                serve(sock)

        thread = threading.Thread(target=accept)
        thread.start()
        yield port_of(listener)
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def _in_turn(heard, *answers):
    """Hears once before each answer."""

    def serve(sock):
        for answer in answers:
            heard.append(sock.recv(4096))
            sock.sendall(answer)

    return serve


def _upstream(port: int, *no_proxy: str) -> Upstream:
    return Upstream(host=canonical("127.0.0.1"), port=port, user="me", password="pw", no_proxy=no_proxy)  # noqa: S106


def test_a_tunnel_goes_through_the_hosts_proxy_and_its_name_is_not_looked_up(front):
    heard = []
    serve = _in_turn(heard, b"HTTP/1.1 200 OK\r\nProxy-Agent: x\r\n\r\n", b"from far")
    with _one_shot(serve) as port:
        front.open("far.example", upstream=_upstream(port))
        hello = client_hello("far.example")
        assert front.tunnel("far.example:443", hello) == b"from far"
    assert heard[0].startswith(
        b"CONNECT far.example:443 HTTP/1.1\r\nHost: far.example:443\r\nProxy-Authorization: Basic bWU6cHc=\r\n"
    )
    assert heard[1] == hello
    assert front.looked_up == []
    assert (front.last.address, front.last.reason, front.last.bytes_down) == ("", "through the host's proxy", 8)


def test_plain_http_goes_through_the_hosts_proxy_as_a_whole_url(front):
    heard = []
    with _one_shot(_in_turn(heard, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")) as port:
        front.open("far.example", upstream=_upstream(port))
        answer = front.say(
            "GET http://far.example/x HTTP/1.1\r\nHost: far.example\r\nProxy-Authorization: Basic eA==\r\n\r\n"
        )
        assert answer.endswith(b"ok")
    assert heard[0].startswith(b"GET http://far.example/x HTTP/1.1\r\nHost: far.example\r\n")
    assert heard[0].count(b"Proxy-Authorization") == 1
    assert b"Basic bWU6cHc=" in heard[0]


def _over_tls(serve):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(DATA / "private-proxy.pem")

    def secured(sock):
        with context.wrap_socket(sock, server_side=True) as channel:
            serve(channel)

    return _one_shot(secured)


def test_a_proxy_that_speaks_tls_is_trusted_by_the_hosts_private_authority(front, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(DATA / "private-authority.pem"))
    heard = []
    with _over_tls(_in_turn(heard, b"HTTP/1.1 200 OK\r\n\r\n", b"from far")) as port:
        front.open("far.example", upstream=replace(_upstream(port), tls=True))
        hello = client_hello("far.example")
        assert front.tunnel("far.example:443", hello) == b"from far"
    assert heard[0].startswith(b"CONNECT far.example:443 HTTP/1.1\r\n")
    assert heard[1] == hello
    assert (front.last.reason, front.last.bytes_down) == ("through the host's proxy", 8)


def test_a_url_goes_whole_through_a_proxy_that_speaks_tls(front, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(DATA / "private-authority.pem"))
    with _over_tls(_in_turn([], b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")) as port:
        front.open("far.example", upstream=replace(_upstream(port), tls=True))
        assert front.say("GET http://far.example/x HTTP/1.1\r\nHost: far.example\r\n\r\n").endswith(b"ok")


@pytest.mark.parametrize("authority", ["none of these", "private-authority.pem"])
def test_a_proxy_whose_certificate_nobody_here_trusts_gets_no_word(front, monkeypatch, authority):
    trusted = authority == "private-authority.pem"
    monkeypatch.setenv("SSL_CERT_FILE", str(DATA / authority))
    heard = []
    with _over_tls(lambda sock: heard.append(sock.recv(4096))) as port:
        front.open("far.example", upstream=replace(_upstream(port), tls=True, host=canonical("localhost")))
        answer = front.say("CONNECT far.example:443 HTTP/1.1\r\nHost: far.example\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 502 ")
    assert (b"mismatch" if trusted else b"verify failed") in answer
    assert not any(heard)


def test_a_host_of_no_proxy_is_reached_directly(front):
    front.open("api.example.com:PORT", upstream=_upstream(1, "example.com"))
    assert front.say(GET).startswith(b"HTTP/1.1 200")
    assert front.looked_up == ["api.example.com"]


def test_a_refusal_of_the_hosts_proxy_is_said(front):
    with _one_shot(
        lambda sock: (sock.recv(4096), sock.sendall(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n"))
    ) as port:
        front.open("far.example", upstream=_upstream(port))
        answer = front.say("CONNECT far.example:443 HTTP/1.1\r\nHost: far.example\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 502 ")
    assert b"the host's proxy answered 407" in answer


def test_a_private_address_is_refused_behind_the_hosts_proxy_too(front):
    front.open("*.example.com", "169.254.169.254", networks=(), upstream=_upstream(1))
    # Declared by its own pattern it is allowed, and fails only because nobody plays the host's proxy here.
    assert front.say("GET http://169.254.169.254/ HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n").startswith(
        b"HTTP/1.1 502 "
    )
    assert front.say("GET http://10.0.0.1/ HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n").startswith(b"HTTP/1.1 403 ")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.one_of(
        st.binary(max_size=120),
        st.builds(
            lambda method, target, rest: f"{method} {target} HTTP/1.1\r\n".encode() + rest + b"\r\n\r\n",
            st.sampled_from(["GET", "CONNECT", "POST"]),
            st.text(st.sampled_from("htp:/@[]%.\\?#a1280-"), max_size=20),
            st.binary(max_size=30),
        ),
    )
)
def test_arbitrary_bytes_never_break_the_proxy_and_never_lead_to_a_look_up_or_a_dial(front, data):
    if not front.port:
        front.open("api.example.com:PORT")
    answer = front.say(data)
    assert not data or answer.startswith(b"HTTP/1.1 4")
    (service,) = front.bridge._services
    assert service.counts.failed == 0
    assert front.looked_up == []
    assert front.origin.connections == 0


def test_an_origin_of_these_tests_sees_what_is_dialled():
    server = Origin()
    with socket.create_connection(("127.0.0.1", server.port)) as sock:
        sock.sendall(b"x")
        assert sock.recv(100) == server.answer
    assert server.came() == [b"x"]
