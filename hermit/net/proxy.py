"""The allowlist proxy: a request goes where a rule allows, and nowhere else.

The order is the protection. The head is read strictly (``request``), the one canonical form of the host is matched
(``hosts``), only then is the name looked up, each of its addresses is judged (``addresses``), and the very address that
was judged is dialled. In a tunnel the first message must be a TLS ClientHello for the host that was allowed (``tls``).
Plain HTTP is read and written anew (``plain``). A connection serves one request.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address
from socket import AF_INET, AF_INET6
from typing import TYPE_CHECKING

import h11

from hermit.net import request as requests
from hermit.net.addresses import look_up, special
from hermit.net.decision import Decision
from hermit.net.hosts import Refusal, canonical
from hermit.net.plain import Broken, Exchange
from hermit.net.request import BadRequest, ProxyRequest
from hermit.net.tls import HelloReader

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermit.net.hosts import Address, Rule, Rules
    from hermit.net.pump import Dial, Side
    from hermit.net.upstream import Upstream

ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
UNRECOGNIZED_NAME = bytes((21, 3, 1, 0, 2, 2, 112))  # a TLS alert that clients put into words
MOST_ADDRESSES = 8
FAREWELL_BYTES = 1024 * 1024
PHRASES = {400: "Bad Request", 408: "Request Timeout", 431: "Request Header Fields Too Large", 502: "Bad Gateway"}


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How many seconds each step may take."""

    head_s: float = 10
    look_up_s: float = 20
    dial_s: float = 10
    hello_s: float = 5
    farewell_s: float = 1


@dataclass(frozen=True, kw_only=True)
class Proxy:
    """What the proxy of one sandbox allows.

    Args:
        rules: The allowlist.
        log: Takes each decision when it is over; called in the bridge's thread, so it must not wait for anything.
        resolve: The addresses of a name; it may block, and raises ``OSError`` where there are none.
        upstream: The proxy that the host goes out through.
        key: The key of the config that names the allowed hosts.
        patience: How long each step may take.
    """

    rules: Rules
    log: Callable[[Decision], None]
    resolve: Callable[[str], Sequence[str]] = look_up
    upstream: Upstream | None = None
    key: str = "environment.allowed_hosts"
    patience: Patience = field(default_factory=Patience)


class _Refused(Exception):
    """The request goes nowhere."""

    def __init__(self, rule: str, reason: str) -> None:
        super().__init__(reason)
        self.rule = rule


class _Unreachable(Exception):
    """The request was allowed, and its host does not answer."""


class Conversation:
    """One connection of a client to the proxy.

    Args:
        client: The client's side.
        proxy: What is allowed.
        dial: Opens connections from this host.
    """

    def __init__(self, client: Side, proxy: Proxy, *, dial: Dial) -> None:
        self._client = client
        self._proxy = proxy
        self._dial = dial
        self._began = time.time()
        self._incoming = h11.Connection(h11.SERVER, max_incomplete_event_size=requests.LARGEST_HEAD)
        self._request: ProxyRequest | None = None
        self._server: Side | None = None
        self._head_bytes = 0
        self._before = 0  # what came from the other side before it was the server's
        self._allowed = False
        self._rule = ""
        self._address = ""
        self._reason = ""

    async def run(self) -> None:
        """Serves the one request of the connection and logs what became of it."""
        try:
            await self._serve()
        except BadRequest as error:
            self._refuse("request", str(error))
            await self._answer(error.status)
        except _Refused as error:
            self._refuse(error.rule, str(error))
            await self._answer(403)
        except (_Unreachable, Broken) as error:
            self._reason = str(error)
            await self._answer(502)
        except ConnectionResetError as error:
            self._reason = self._reason or str(error)
            self._client.reset()
        finally:
            if self._client.received:  # a probe that says nothing asks for nothing
                self._proxy.log(self._decision())

    async def _serve(self) -> None:
        head, rest = await self._head()
        if not head:
            await self._farewell()
            return
        self._request = request = requests.parse(head, self._incoming)
        rule = self._proxy.rules.allows(request.host, request.port, tunnel=request.tunnel)
        if isinstance(rule, Refusal):
            raise _Refused(rule.rule, rule.reason)
        self._rule, self._allowed = str(rule.pattern), True
        upstream = self._proxy.upstream
        if upstream is not None and not upstream.leads_to(request.host, request.port):
            upstream = None
        if upstream is None:
            self._server = await self._open(await self._addresses(request, rule), request.port)
        else:
            self._server = await self._open_upstream(upstream)
        if request.tunnel:
            await self._tunnel(request, rest)
        else:
            if rest:  # to h11, nothing would mean the end of the stream
                self._incoming.receive_data(rest)
            whole = f"http://{request.authority}{request.path}"
            await Exchange(self._client, self._server, incoming=self._incoming).run(
                request,
                target=request.path if upstream is None else whole,
                extra=() if upstream is None else upstream.authorization,
            )
            await self._farewell()

    async def _head(self) -> tuple[bytes, bytes]:
        """The head of the request, and what came with it; two times nothing where the client says nothing."""
        try:
            async with asyncio.timeout(self._proxy.patience.head_s):
                head, rest = await read_head(self._client)
        except TimeoutError:
            if not self._client.received:
                return b"", b""
            raise BadRequest("its head did not come in time", status=408) from None
        self._head_bytes = len(head)
        return head, rest

    async def _addresses(self, request: ProxyRequest, rule: Rule) -> list[Address]:
        """The addresses that may be dialled for an allowed host."""
        if request.host.address is not None:  # only a pattern that is this very address has let it come so far
            return [request.host.address]
        found = await self._look_up(request.host.name)
        fit = [address for address in found if rule.permits(address) or not special(address)]
        if not fit:
            kinds = ", ".join(f"{address} is {special(address)}" for address in found[:MOST_ADDRESSES])
            raise _Refused("address", f"{request.host} has no public address: {kinds}")
        return fit[:MOST_ADDRESSES]

    async def _look_up(self, name: str) -> list[Address]:
        try:
            async with asyncio.timeout(self._proxy.patience.look_up_s):
                texts = await asyncio.get_running_loop().run_in_executor(None, self._proxy.resolve, name)
        except OSError:  # TimeoutError is one
            texts = ()
        found: list[Address] = []
        for text in texts:
            with contextlib.suppress(ValueError):
                address = ip_address(text)
                mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
                found.append(mapped or address)
        if not found:
            raise _Unreachable(f"{name} has no address")
        return found

    async def _open(self, addresses: list[Address], port: int) -> Side:
        """A connection to the first of these addresses that answers."""
        for address in addresses:
            self._address = str(address)
            family = AF_INET6 if isinstance(address, IPv6Address) else AF_INET
            with contextlib.suppress(OSError):
                async with asyncio.timeout(self._proxy.patience.dial_s):
                    return await self._dial(family, (self._address, port))
        raise _Unreachable(f"nobody answers at {', '.join(map(str, addresses))}, port {port}")

    async def _open_upstream(self, upstream: Upstream) -> Side:
        """A connection to the host's proxy, which leads to the host of the request where it asks for a tunnel."""
        request, literal = self._request, upstream.host.address
        assert request is not None  # noqa: S101
        addresses = [literal] if literal is not None else await self._look_up_upstream(upstream)
        server = await self._open(addresses, upstream.port)
        self._address, self._reason = "", "through the host's proxy"
        if upstream.tls:
            await self._secure(server, upstream)
        if not request.tunnel:
            return server
        asked = h11.Connection(h11.CLIENT, max_incomplete_event_size=requests.LARGEST_HEAD)
        headers = [(b"Host", request.authority.encode("ascii")), *upstream.authorization]
        try:
            async with asyncio.timeout(self._proxy.patience.dial_s):
                await server.write(
                    asked.send(h11.Request(method="CONNECT", target=request.authority, headers=headers)) or b""
                )
                head, rest = await read_head(server)
            asked.receive_data(head)
            answer = asked.next_event()
        except (TimeoutError, ConnectionResetError, BadRequest, h11.ProtocolError):
            answer, rest = None, b""
        if not isinstance(answer, h11.Response) or answer.status_code // 100 != 2 or rest:  # noqa: PLR2004
            status = answer.status_code if isinstance(answer, h11.Response) else "nothing that is HTTP"
            raise _Unreachable(f"the host's proxy answered {status}")
        self._before = server.received
        return server

    async def _secure(self, server: Side, upstream: Upstream) -> None:
        try:
            async with asyncio.timeout(self._proxy.patience.dial_s):
                await server.secure(upstream.trust, name=upstream.host.name)
        except OSError as error:  # a certificate that nobody here trusts is one, and so is TimeoutError
            server.reset()
            raise _Unreachable(f"the host's proxy does not speak TLS as it should: {error or 'too late'}") from None

    async def _look_up_upstream(self, upstream: Upstream) -> list[Address]:
        """The addresses of the host's proxy; it is the host's own setting, so they are not judged."""
        loop = asyncio.get_running_loop()
        try:
            return [ip_address(text) for text in await loop.run_in_executor(None, look_up, upstream.host.name)]
        except OSError:
            raise _Unreachable("the host's proxy has no address") from None

    async def _tunnel(self, request: ProxyRequest, first: bytes) -> None:
        """Passes bytes both ways once the client has shown that it asks for the host that was allowed."""
        server = self._server
        assert server is not None  # noqa: S101
        await self._client.write(ESTABLISHED)
        try:
            async with asyncio.timeout(self._proxy.patience.hello_s):
                hello = await self._hello(request, first)
        except (ValueError, TimeoutError) as error:
            self._refuse("tls", str(error) or "no TLS ClientHello came in time")
            server.reset()
            self._client.put(UNRECOGNIZED_NAME)
            await self._farewell()
            return
        await server.write(hello)
        self._client.link(server)
        await asyncio.wait((self._client.lost, server.lost))

    async def _hello(self, request: ProxyRequest, first: bytes) -> bytes:
        """The bytes up to a ClientHello that names the host of the request.

        Raises:
            ValueError: They are something else.
        """
        reader, came, piece = HelloReader(), bytearray(), first
        while True:
            came += piece
            if piece and (hello := reader.feed(piece)) is not None:
                break
            if not (piece := await self._client.read()):
                raise ValueError("the client left before its TLS ClientHello was whole")
        if hello.encrypted:
            self._reason = "it carries an Encrypted ClientHello, so the server may be told another name"
        if hello.server_name is None and request.host.address is not None:
            return bytes(came)
        if hello.server_name is None:
            raise ValueError("its TLS ClientHello names no server")
        if canonical(hello.server_name) != request.host:
            raise ValueError("its TLS ClientHello names another server than its CONNECT")
        return bytes(came)

    def _refuse(self, rule: str, reason: str) -> None:
        self._rule, self._reason, self._allowed = rule, reason, False

    async def _answer(self, status: int) -> None:
        """Tells the client what we have decided, in one sentence."""
        request, key = self._request, self._proxy.key
        what = "it" if request is None else f"{request.method} {request.host.with_port(request.port)}"
        sentence = f"Hermit did not pass {what} on: {self._reason}"
        if self._rule in ("host", "port", "address"):
            sentence += f"; the hosts that this sandbox may reach are those of {key}"
        phrase = PHRASES.get(status, f"Refused by {key}")
        body = b"" if request is not None and request.method == "HEAD" else f"{sentence}.\n".encode("ascii", "replace")
        head = f"HTTP/1.1 {status} {phrase}\r\nX-Hermit-Rule: {self._rule or 'none'}; {sentence}\r\n"
        head += f"Content-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        self._client.put(head.encode("ascii", "replace") + body)
        await self._farewell()

    async def _farewell(self) -> None:
        """Lets the client read what it was sent: closing on unread bytes would throw that away."""
        self._client.finish()
        read = 0
        with contextlib.suppress(TimeoutError, ConnectionResetError):
            async with asyncio.timeout(self._proxy.patience.farewell_s):
                while read < FAREWELL_BYTES and (piece := await self._client.read()):
                    read += len(piece)
        self._client.transport.close()
        await asyncio.wait((self._client.lost,))

    def _decision(self) -> Decision:
        request, server = self._request, self._server
        return Decision(
            time=self._began,
            verb="" if request is None else request.method,
            host="" if request is None else request.host.name,
            port=0 if request is None else request.port,
            allowed=self._allowed,
            rule=self._rule,
            address=self._address,
            bytes_up=max(0, self._client.received - self._head_bytes),
            bytes_down=0 if server is None else server.received - self._before,
            reason=self._reason,
        )


async def read_head(side: Side) -> tuple[bytes, bytes]:
    """The head of a message up to its blank line, and what came with it; two times nothing where nothing comes.

    Raises:
        BadRequest: It ends too early, or does not end within the largest head there may be.
    """
    came = bytearray()
    while True:
        seen = max(0, len(came) - len(requests.END) + 1)
        piece = await side.read()
        came += piece
        end = came.find(requests.END, seen)
        if 0 <= end <= requests.LARGEST_HEAD:
            end += len(requests.END)
            return bytes(came[:end]), bytes(came[end:])
        if end >= 0 or len(came) > requests.LARGEST_HEAD:
            raise BadRequest("its head is too large", status=431)
        if not piece:
            if came:
                raise BadRequest("it ends before its head does")
            return b"", b""
