"""The head of a request to the proxy, read in one way or not at all."""

from __future__ import annotations

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermit.net.request import MOST_HEADERS, BadRequest, ProxyRequest, end_to_end, parse


def read(head: str | bytes) -> ProxyRequest:
    raw = head.encode("latin-1") if isinstance(head, str) else head
    return parse(raw, h11.Connection(h11.SERVER))


def get(target: str, host: str, *headers: str) -> ProxyRequest:
    lines = [f"GET {target} HTTP/1.1", f"Host: {host}", *headers, "", ""]
    return read("\r\n".join(lines))


def test_a_connect_is_read():
    request = read(
        "CONNECT API.example.com.:443 HTTP/1.1\r\nHost: api.example.com\r\nProxy-Authorization: Basic eA==\r\n\r\n"
    )
    assert (request.host.name, request.port, request.tunnel, request.path) == ("api.example.com", 443, True, "")


def test_a_connect_to_an_ipv6_address_is_read():
    request = read("CONNECT [2606:4700::1]:443 HTTP/1.0\r\n\r\n")
    assert (request.host.name, request.authority) == ("2606:4700::1", "[2606:4700::1]:443")


@pytest.mark.parametrize(
    ("target", "path", "port"),
    [
        ("http://a.example/x?y=z", "/x?y=z", 80),
        ("HTTP://A.example:8080", "/", 8080),
        ("http://a.example?q", "/?q", 80),
        ("http://a.example/@b:80/%00", "/@b:80/%00", 80),
    ],
)
def test_a_whole_url_is_read(target, path, port):
    request = get(target, "a.example" if port == 80 else f"a.example:{port}")
    assert (request.method, request.host.name, request.path, request.port) == ("GET", "a.example", path, port)


def test_http_1_0_needs_no_host_header():
    assert read("GET http://a.example/ HTTP/1.0\r\n\r\n").host.name == "a.example"


@pytest.mark.parametrize(
    "target",
    [
        "/",
        "*",
        "a.example",
        "https://a.example/",
        "ftp://a.example/",
        "http:/a.example/",
        "http://",
        "http:///x",
        "http://a.example/#x",
        "http://u@a.example/",
        "http://u:p@a.example/",
        "http://b.example\\@a.example/",
        "http://a.example:/",
        "http://a.example:80:80/",
        "http://a.example:99999/",
        "http://a.example:0080/",
        "http://a%2eexample/",
        "http://a.example%00.b.example/",
        "http://::1/",
        "http://[::1/",
        "http://[::1]x/",
        "http://2130706433/",
        "http://127.1/",
    ],
)
def test_a_target_that_is_no_clear_url_is_refused(target):
    with pytest.raises(BadRequest):
        get(target, "a.example")


@pytest.mark.parametrize(
    "target",
    ["a.example", "a.example:", ":443", "u@a.example:443", "http://a.example:443", "::1:443", "a.example:443/"],
)
def test_a_connect_to_anything_but_host_and_port_is_refused(target):
    with pytest.raises(BadRequest):
        read(f"CONNECT {target} HTTP/1.1\r\nHost: a.example\r\n\r\n")


@pytest.mark.parametrize(
    "host", ["b.example", "a.example:8080", "", "a.example.b", "u@a.example", "a.example, b.example", "127.1"]
)
def test_a_host_header_that_says_something_else_than_the_target_is_refused(host):
    with pytest.raises(BadRequest, match="Host header"):
        get("http://a.example/", host)
    with pytest.raises(BadRequest, match="Host header"):
        read(f"CONNECT a.example:443 HTTP/1.1\r\nHost: {host}\r\n\r\n")


@pytest.mark.parametrize(
    "head",
    [
        "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET http://a.example/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n",
        "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: -3\r\n\r\n",
        "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding : chunked\r\n\r\n",
        "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nX: y\r\n z\r\n\r\n",
        "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n Host: b.example\r\n\r\n",
        "GET http://a.example/ HTTP/1.1\r\nHost: a.example\nX: y\r\n\r\n",
        "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nX: y\rz\r\n\r\n",
        "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nX: y\0z\r\n\r\n",
        "GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nHost: a.example\r\n\r\n",
        "GET http://a.example/ HTTP/1.1\r\n\r\n",
        "GET http://a.example/ HTTP/2.0\r\nHost: a.example\r\n\r\n",
        "GET http://a.example/ HTTP/0.9\r\nHost: a.example\r\n\r\n",
        "GET  http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
        "GET http://a.example/\r\n\r\n",
        "GET http://b\xe4.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
        "\r\nGET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
        "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example\r\nContent-Length: 3\r\n\r\n",
        "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n",
        "\x16\x03\x01\r\n\r\n",
    ],
)
def test_a_head_that_two_readers_could_take_differently_is_refused(head):
    with pytest.raises(BadRequest):
        read(head)


def test_headers_beyond_a_number_are_refused():
    assert get("http://a.example/", "a.example", *["X: y"] * (MOST_HEADERS - 1))
    with pytest.raises(BadRequest, match="more than"):
        get("http://a.example/", "a.example", *["X: y"] * MOST_HEADERS)


def test_a_refusal_never_quotes_what_was_asked():
    for target in ("http://u:hunter2@a.example/", "/hunter2", "http://hunter2%/", "ftp://hunter2/"):
        with pytest.raises(BadRequest) as caught:
            get(target, "a.example", "Authorization: hunter2")
        assert "hunter2" not in str(caught.value)


def test_headers_of_one_connection_are_not_passed_on_and_framing_always_is():
    headers = [
        (b"host", b"a.example"),
        (b"connection", b"close, X-Hop ,content-length"),
        (b"x-hop", b"1"),
        (b"content-length", b"3"),
        (b"proxy-authorization", b"secret"),
        (b"proxy-anything", b"1"),
        (b"te", b"trailers"),
        (b"upgrade", b"h2c"),
        (b"keep-alive", b"1"),
        (b"accept", b"*/*"),
    ]
    assert [name for name, _ in end_to_end(headers)] == [b"host", b"content-length", b"accept"]


@given(st.binary(max_size=200))
def test_any_bytes_are_a_request_or_a_bad_one(data):
    try:
        read(data + b"\r\n\r\n")
    except BadRequest:
        return


@given(
    st.sampled_from(["GET", "CONNECT", "POST"]),
    st.text(st.sampled_from("htp:/@[]%.\\?#ab1240x-"), max_size=24),
    st.sampled_from(["HTTP/1.0", "HTTP/1.1"]),
)
def test_a_request_that_is_read_names_the_host_that_stands_in_its_target(method, rest, version):
    target = rest if method == "CONNECT" else f"http://{rest}"
    try:
        request = read(f"{method} {target} {version}\r\nHost: a.b\r\n\r\n")
    except BadRequest:
        return
    assert str(request.host) in target.lower() or request.host.address is not None
    assert "@" not in target.partition("//")[2].partition("/")[0]
