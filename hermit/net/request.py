"""The head of one request to a proxy: strictly read, so that nobody behind us can read it otherwise. Pure.

h11 parses; what h11 takes and others may take differently is refused before or after it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import h11

from hermit.net.hosts import HTTP, CanonicalHost, canonical, port_number

if TYPE_CHECKING:
    from collections.abc import Iterable

LARGEST_HEAD = 32 * 1024
MOST_HEADERS = 100
END = b"\r\n\r\n"
NO_HEADERS = 3  # the request line, the blank line, and what follows that
VERSIONS = (b"1.0", b"1.1")

ABSOLUTE = re.compile(r"http://([^/?#]*)(/[^#]*|\?[^#]*)?\Z", re.IGNORECASE)
# An IPv6 address stands in brackets, so that it can neither swallow its port nor lose a part to it.
AUTHORITY = re.compile(r"(\[[^\[\]@]*\]|[^:\[\]@]*)(?::([0-9]+))?\Z")
# What belongs to one connection and is never passed on; what a Connection header names comes on top.
HOP_BY_HOP = frozenset({b"connection", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"upgrade"})
# What a Connection header must not take away: it says where a request ends, and whom it is for.
FRAMING = frozenset({b"content-length", b"host", b"transfer-encoding"})


class BadRequest(Exception):
    """A request that no proxy should take, with the status of the answer.

    The message never quotes the request: a target can hold a password, a query or a key.
    """

    def __init__(self, reason: str, *, status: int = 400) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(frozen=True)
class ProxyRequest:
    """One request, for a tunnel or for plain HTTP.

    Args:
        method: The method; ``CONNECT`` for a tunnel.
        host: Whom it is for.
        port: At which port.
        path: What is asked of that host; empty for a tunnel.
        headers: The headers that may be passed on.
    """

    method: str
    host: CanonicalHost
    port: int
    path: str = ""
    headers: tuple[tuple[bytes, bytes], ...] = ()

    @property
    def tunnel(self) -> bool:
        """Whether it asks for a tunnel."""
        return self.method == "CONNECT"

    @property
    def authority(self) -> str:
        """Host and port as a Host header has them."""
        return str(self.host) if self.port == HTTP and not self.tunnel else self.host.with_port(self.port)


def parse(head: bytes, connection: h11.Connection) -> ProxyRequest:
    """The request of a head that ends with its blank line; the connection, new until now, has taken it in.

    Raises:
        BadRequest: Two readers could take it differently, or it is for no proxy.
    """
    _check_lines(head)
    connection.receive_data(head)
    try:
        request = connection.next_event()
    except h11.RemoteProtocolError:
        raise BadRequest("it is no HTTP request") from None
    if not isinstance(request, h11.Request):
        raise BadRequest("it is no HTTP request")
    _check_framing(request)
    if request.method == b"CONNECT":
        host, port = _authority(request.target.decode("ascii"), default=None)
        _check_host(request, host, port=port)
        return ProxyRequest("CONNECT", host, port)
    found = ABSOLUTE.match(request.target.decode("ascii"))
    if found is None:
        raise BadRequest("its target is neither that of CONNECT nor a whole http:// URL; https takes CONNECT")
    host, port = _authority(found[1], default=HTTP)
    _check_host(request, host, port=port)
    path = found[2] or "/"
    path = path if path.startswith("/") else f"/{path}"
    return ProxyRequest(request.method.decode("ascii"), host, port, path, end_to_end(request.headers))


def _check_lines(head: bytes) -> None:
    lines = head.split(b"\r\n")
    if head.count(b"\n") != len(lines) - 1:
        raise BadRequest("a line of its head ends without a carriage return")
    if any(line[:1] in (b" ", b"\t") for line in lines):
        raise BadRequest("a header goes on over two lines")
    if len(lines) - NO_HEADERS > MOST_HEADERS:
        raise BadRequest(f"it has more than {MOST_HEADERS} headers", status=431)


def _check_framing(request: h11.Request) -> None:
    names = [name for name, _ in request.headers]
    if request.http_version not in VERSIONS:
        raise BadRequest("it is neither HTTP/1.0 nor HTTP/1.1")
    if b"transfer-encoding" in names and (b"content-length" in names or request.http_version == b"1.0"):
        raise BadRequest("it says in two ways where it ends")
    if request.method == b"CONNECT" and FRAMING.intersection(names) - {b"host"}:
        raise BadRequest("a CONNECT has no body")


def _authority(text: str, *, default: int | None) -> tuple[CanonicalHost, int]:
    """Host and port of ``host:port``; a port may be left out where there is a default."""
    found = AUTHORITY.match(text)
    if found is None or (found[2] is None and default is None):
        raise BadRequest("the host of its target is not written as host:port, without a user")
    try:
        port = default if found[2] is None else port_number(found[2])
        host = canonical(found[1])
    except ValueError as error:
        raise BadRequest(f"the host of its target is written in no clear form: {error}") from None
    return host, port or HTTP


def _check_host(request: h11.Request, host: CanonicalHost, *, port: int) -> None:
    """The Host header, where there is one, says what the target says."""
    for name, value in request.headers:
        if name != b"host":
            continue
        # Programs leave the port of a CONNECT out of this header as often as not.
        default = port if request.method == b"CONNECT" else HTTP
        try:
            named = _authority(value.decode("ascii"), default=default)
        except (BadRequest, UnicodeDecodeError):
            raise BadRequest("its Host header is written in no clear form") from None
        if named != (host, port):
            raise BadRequest("its Host header names another host than its target")


def end_to_end(headers: Iterable[tuple[bytes, bytes]]) -> tuple[tuple[bytes, bytes], ...]:
    """The headers of a message that are meant for whoever is behind the proxy."""
    headers = list(headers)
    named = b",".join(value.lower() for name, value in headers if name == b"connection").split(b",")
    dropped = (HOP_BY_HOP | {name.strip() for name in named}) - FRAMING
    return tuple((name, value) for name, value in headers if name not in dropped and not name.startswith(b"proxy-"))
