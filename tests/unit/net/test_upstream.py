"""The proxy of the host, as its variables name it."""

from __future__ import annotations

import pytest

from hermit.net.hosts import canonical
from hermit.net.upstream import Upstream, upstream_from_environ


def proxy(*no_proxy: str) -> Upstream:
    return Upstream(host=canonical("proxy.corp"), port=3128, no_proxy=no_proxy)


def test_no_variable_names_no_proxy():
    assert upstream_from_environ({}) is None
    assert upstream_from_environ({"http_proxy": "", "NO_PROXY": "*"}) is None


def test_the_first_of_the_usual_variables_counts():
    environ = {
        "HTTP_PROXY": "http://c:1",
        "HTTPS_PROXY": "http://b:2",
        "https_proxy": "http://a:3",
        "ALL_PROXY": "http://d:4",
    }
    found = upstream_from_environ(environ)
    assert (found.host.name, found.port) == ("a", 3)


def test_a_user_and_a_password_are_taken_out_of_the_url_and_never_shown():
    found = upstream_from_environ({"http_proxy": "http://me:p%40ss@proxy.corp:3128/", "no_proxy": "a.corp, .b.corp,"})
    assert (found.user, found.password, found.no_proxy) == ("me", "p@ss", ("a.corp", ".b.corp"))
    assert found.authorization == ((b"Proxy-Authorization", b"Basic bWU6cEBzcw=="),)
    assert "p@ss" not in repr(found)


def test_a_proxy_without_scheme_and_port_is_http_on_80():
    found = upstream_from_environ({"all_proxy": "proxy.corp"})
    assert (found.host.name, found.port, found.authorization) == ("proxy.corp", 80, ())


@pytest.mark.parametrize(("value", "port"), [("https://proxy.corp", 443), ("https://proxy.corp:3129", 3129)])
def test_a_proxy_may_speak_tls(value, port):
    found = upstream_from_environ({"https_proxy": value})
    assert (found.host.name, found.port, found.tls) == ("proxy.corp", port, True)


@pytest.mark.parametrize(
    "value",
    ["socks5://me:hunter2@proxy:1080", "ftp://me:hunter2@proxy", "http://me:hunter2@", "http://me:hunter2@p:x"],
)
def test_what_is_no_http_proxy_is_refused_without_showing_the_password(value):
    with pytest.raises(ValueError, match="http_proxy") as caught:
        upstream_from_environ({"http_proxy": value})
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("entry", "host", "port", "through"),
    [
        ("*", "a.example", 443, False),
        ("corp", "a.corp", 443, False),
        (".corp", "a.corp", 443, False),
        ("*.corp", "a.corp", 443, False),
        ("a.corp", "a.corp", 443, False),
        ("A.CORP", "a.corp", 443, False),
        ("a.corp", "xa.corp", 443, True),
        ("corp", "corp.example", 443, True),
        ("a.corp:443", "a.corp", 443, False),
        ("a.corp:80", "a.corp", 443, True),
        ("10.0.0.0/8", "10.1.2.3", 443, False),
        ("10.0.0.0/8", "11.1.2.3", 443, True),
        ("10.0.0.0/8", "a.corp", 443, True),
        ("10.1.2.3", "10.1.2.3", 443, False),
        ("fd00::/8", "[fd00::1]", 443, False),
        ("fd00::1", "[fd00::1]", 443, False),
        ("[fd00::1]:443", "[fd00::1]", 443, False),
        ("1.2.3.999/8", "10.1.2.3", 443, True),
        ("a b", "a.corp", 443, True),
    ],
)
def test_a_host_of_no_proxy_is_reached_directly(entry, host, port, through):
    assert proxy("other.example", entry).leads_to(canonical(host), port) == through
