"""Known ways around an allowlist. Each is tried as it is, and again with its protection switched off, where it must work."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest

from hermit.net import proxy as proxies
from hermit.net import request as requests
from hermit.net.hosts import CanonicalHost, HostPattern, Rule, Rules
from hermit.net.tls import Hello, HelloReader

from .conftest import PATIENT, client_hello

if TYPE_CHECKING:
    from collections.abc import Callable

# The origin plays every forbidden place: all made-up names lead to it once a name has been let through.
NAMES = ("api.example.com", "evil.example", "api.example.com.evil.example", "xapi.example.com", "127.1", "2130706433")
ANY_RULE = Rule(HostPattern.parse("any.example"))


@dataclass(frozen=True)
class Bypass:
    """One way around: what the client does, whether it got through, and how to switch off what stops it."""

    attack: Callable[[Any], object]
    off: tuple[tuple[object, str, object], ...]
    through: Callable[[Any], bool] = lambda front: any(front.came())


def get(target: str, host: str = "", *, version: str = "1.1") -> Callable[[Any], object]:
    """A plain request."""
    header = f"Host: {host}\r\n" if host else ""
    return lambda front: front.say(f"GET {target} HTTP/{version}\r\n{header}\r\n")


def tunnel(name: str, first: bytes) -> Callable[[Any], object]:
    """A tunnel with these first bytes."""
    return lambda front: front.tunnel(f"{name}:PORT", first)


def leads_to(*addresses: str) -> Callable[[Any], object]:
    """A plain request to the allowed name, which now leads to these addresses."""

    def attack(front):
        front.addresses["api.example.com"] = list(addresses)
        return get("http://api.example.com:PORT/", "api.example.com:PORT")(front)

    return attack


def exact_or_longer(self, host):
    return self.host.name in host.name


def first_words(self, host):
    return host.name.startswith(self.host.name)


NO_RULES = ((Rules, "allows", lambda *_, **__: ANY_RULE), (proxies, "special", lambda _: ""))
NO_ADDRESSES = ((proxies, "special", lambda _: ""),)
ANY_SPELLING = ((requests, "canonical", lambda host: CanonicalHost(host.lower().split("\0")[0])), *NO_RULES)
ANY_AUTHORITY = ((requests, "AUTHORITY", re.compile(r"(?:[^@]*@)?([^:@]*)(?::([0-9]+))?\Z")), *NO_RULES)
NO_HELLO = ((HelloReader, "feed", lambda *_: Hello("api.example.com", encrypted=False)),)

BYPASSES = {
    "a refused name is looked up": Bypass(
        get("http://data.evil.example/", "data.evil.example"), NO_RULES, lambda front: bool(front.looked_up)
    ),
    "plain http to a host off the list": Bypass(get("http://evil.example:PORT/", "evil.example:PORT"), NO_RULES),
    "http 1.0 without a host header": Bypass(get("http://evil.example:PORT/", version="1.0"), NO_RULES),
    "a host header of an allowed name on another target": Bypass(
        get("http://evil.example:PORT/", "api.example.com:PORT"),
        (*NO_RULES, (requests, "_check_host", lambda *_, **__: None)),
    ),
    "a host header of another name on an allowed target": Bypass(
        get("http://api.example.com:PORT/", "evil.example:PORT"),
        ((requests, "_check_host", lambda *_, **__: None), *NO_ADDRESSES),
    ),
    "an allowed name as the front of another": Bypass(
        get("http://api.example.com.evil.example:PORT/", "api.example.com.evil.example:PORT"),
        ((HostPattern, "matches", first_words), *NO_ADDRESSES),
    ),
    "an allowed name as the end of another label": Bypass(
        get("http://xapi.example.com:PORT/", "xapi.example.com:PORT"),
        ((HostPattern, "matches", exact_or_longer), *NO_ADDRESSES),
    ),
    "an allowed name as the user": Bypass(
        get("http://api.example.com@evil.example:PORT/", "evil.example:PORT"), ANY_AUTHORITY
    ),
    "loopback as 127.1": Bypass(get("http://127.1:PORT/", "127.1:PORT"), ANY_SPELLING),
    "loopback as one number": Bypass(get("http://2130706433:PORT/", "2130706433:PORT"), ANY_SPELLING),
    "an allowed name that leads to loopback": Bypass(leads_to("127.0.0.1"), NO_ADDRESSES),
    "an allowed name that leads to loopback as IPv6": Bypass(leads_to("::ffff:127.0.0.1"), NO_ADDRESSES),
    "an allowed name that leads to loopback beside a private address": Bypass(
        leads_to("10.0.0.1", "127.0.0.1"), ((proxies, "special", lambda address: str(address)[:2] == "10"),)
    ),
    "a tunnel whose TLS asks for another server": Bypass(
        tunnel("api.example.com", client_hello("evil.example")), NO_HELLO
    ),
    "a tunnel whose TLS asks for no server": Bypass(tunnel("api.example.com", client_hello(None)), NO_HELLO),
    "a tunnel that carries no TLS": Bypass(
        tunnel("api.example.com", b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"), NO_HELLO
    ),
}


def opened(front, title: str):
    """The proxy that a bypass is tried on: one name allowed, and loopback only where a tunnel has to get that far."""
    front.addresses.update({name: ["127.0.0.1"] for name in NAMES})
    loopback = {} if title.startswith("a tunnel") else {"networks": ()}
    return front.open("api.example.com:PORT", **loopback)


@pytest.mark.parametrize("title", BYPASSES)
def test_a_known_way_around_the_list_is_closed(front, title):
    bypass = BYPASSES[title]
    bypass.attack(opened(front, title))
    front.bridge.close()
    assert not bypass.through(front)
    assert [decision.allowed for decision in front.decisions] == [False]


@pytest.mark.parametrize("title", BYPASSES)
def test_with_its_protection_switched_off_the_way_around_is_open(front, title, monkeypatch):
    bypass = BYPASSES[title]
    for where, name, nothing in bypass.off:
        monkeypatch.setattr(where, name, nothing)
    bypass.attack(opened(front, title))
    front.bridge.close()
    assert bypass.through(front)


@pytest.mark.parametrize(
    "host",
    [
        "bad\0.api.example.com",
        "api.example.com\r\nX: y",
        "api%2eexample.com",
        "api.example.com\tx",
        "\xe4pi.example.com",
        "api.example.com%00.evil.example",
    ],
)
def test_a_name_with_a_character_that_two_readers_take_differently_is_refused(front, host):
    opened(front, "")
    answer = front.say(f"GET http://{host}:PORT/ HTTP/1.1\r\nHost: api.example.com:PORT\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert front.last.rule == "request"
    assert (front.looked_up, front.came()) == ([], [])


@pytest.mark.parametrize("host", ["API.EXAMPLE.COM", "api.example.com.", "Api.Example.Com."])
def test_a_name_in_another_spelling_is_looked_up_and_logged_in_the_one_form(front, host):
    front.open("api.example.com:PORT")
    assert front.say(f"GET http://{host}:PORT/ HTTP/1.1\r\nHost: {host}:PORT\r\n\r\n").startswith(b"HTTP/1.1 200")
    assert (front.looked_up, front.last.host) == (["api.example.com"], "api.example.com")


def test_a_name_that_changes_its_address_is_dialled_where_it_was_judged(front):
    front.open("api.example.com:PORT")
    answers = iter([["127.0.0.1"], ["127.0.0.9"]])
    front.resolve = lambda name: next(answers)
    front.open("api.example.com:PORT")
    assert front.say("GET http://api.example.com:PORT/ HTTP/1.1\r\nHost: api.example.com:PORT\r\n\r\n").startswith(
        b"HTTP/1.1 200"
    )
    assert front.last.address == "127.0.0.1"
    assert next(answers) == ["127.0.0.9"], "there was no second look-up"


@pytest.mark.parametrize(
    "address", ["169.254.169.254", "10.0.0.1", "fd00:ec2::254", "64:ff9b::a9fe:a9fe", "100.64.0.1", "0.0.0.0"]
)
def test_an_allowed_name_that_leads_to_a_special_address_is_refused_with_the_address(front, address):
    front.addresses["api.example.com"] = [address]
    front.open("api.example.com", networks=())
    answer = front.say("GET http://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert address.encode() in answer
    assert front.last.rule == "address"


def test_a_tunnel_to_another_port_of_an_allowed_host_is_refused(front):
    front.open("api.example.com")
    for port in ("22", "80", "PORT"):
        answer = front.say(f"CONNECT api.example.com:{port} HTTP/1.1\r\nHost: api.example.com\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 403 ")
    assert {decision.rule for decision in front.decisions} | {front.last.rule} == {"port"}
    assert (front.looked_up, front.came()) == ([], [])


def test_a_client_that_never_says_hello_is_let_go(front):
    front.open("api.example.com:PORT", patience=replace(PATIENT, hello_s=0.2))
    with front.connect() as sock:
        sock.sendall(front.fill("CONNECT api.example.com:PORT HTTP/1.1\r\nHost: api.example.com\r\n\r\n").encode())
        assert sock.recv(4096).startswith(b"HTTP/1.1 200")
        sock.sendall(client_hello("api.example.com")[:50])
        while sock.recv(4096):
            pass
    assert (front.last.allowed, front.last.rule) == (False, "tls")
    assert front.came() == [b""]


def test_two_lengths_of_one_body_are_refused(front):
    front.open("api.example.com:PORT")
    head = "POST http://api.example.com:PORT/ HTTP/1.1\r\nHost: api.example.com:PORT\r\n"
    answer = front.say(head + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET http://x/")
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert front.came() == []
