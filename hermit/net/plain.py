"""One plain HTTP request and its answer, between a client and a server that both speak through us.

Each message is read and written anew by h11, so both sides agree on where it ends: what follows the request is a new
request, which nobody has allowed, and never reaches the server.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import h11

from hermit.net.request import LARGEST_HEAD, end_to_end

if TYPE_CHECKING:
    from hermit.net.pump import Side
    from hermit.net.request import ProxyRequest

CLOSE = (b"Connection", b"close")


class Broken(Exception):
    """The server gave no answer that can be passed on, and the client has not been told anything yet."""


class Exchange:
    """One request on its way to a server, and the answer on its way back.

    Args:
        client: Who asks.
        server: Who answers.
        incoming: What has read the head of the request from the client.
    """

    def __init__(self, client: Side, server: Side, *, incoming: h11.Connection) -> None:
        self._client = client
        self._server = server
        self._incoming = incoming
        self._outgoing = h11.Connection(h11.CLIENT, max_incomplete_event_size=LARGEST_HEAD)

    async def run(self, request: ProxyRequest, *, target: str, extra: tuple[tuple[bytes, bytes], ...] = ()) -> None:
        """Passes the request on and the answer back.

        Args:
            request: The request.
            target: How the server is told what is asked for.
            extra: Headers of our own.

        Raises:
            Broken: There is no answer.
            ConnectionResetError: The answer broke off, or the client has gone.
        """
        headers = [(name, value) for name, value in request.headers if name != b"host"]
        head = h11.Request(
            method=request.method,
            target=target,
            headers=[(b"Host", request.authority.encode("ascii")), *headers, *extra, CLOSE],
        )
        # A client that has gone needs no answer, and a server can take long to give one.
        self._client.lost.add_done_callback(lambda _: self._server.reset())
        upload = asyncio.create_task(self._upload(head))
        try:
            await self._answer()
        except (h11.ProtocolError, ConnectionResetError):
            if self._incoming.our_state is h11.SEND_RESPONSE and not self._client.gone:
                raise Broken("the server broke off or gave no HTTP answer") from None
            raise ConnectionResetError("the answer broke off") from None
        finally:
            upload.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await upload

    async def _upload(self, head: h11.Request) -> None:
        """The request, up to its end. Where that fails, the answer tells, or its absence."""
        try:
            await self._send(head)
            while True:
                event = self._incoming.next_event()
                if event is h11.NEED_DATA:
                    self._incoming.receive_data(await self._client.read())
                elif isinstance(event, h11.Data):
                    await self._send(h11.Data(data=bytes(event.data)))
                else:  # trailers belong to the connection they came on
                    await self._send(h11.EndOfMessage())
                    return
        except h11.ProtocolError:
            self._server.reset()
        except ConnectionResetError:
            return

    async def _send(self, event: h11.Event) -> None:
        if piece := self._outgoing.send(event):
            await self._server.write(piece)

    async def _answer(self) -> None:
        while True:
            event = self._outgoing.next_event()
            if event is h11.NEED_DATA:
                self._outgoing.receive_data(await self._server.read())
            elif isinstance(event, h11.InformationalResponse):
                if self._incoming.their_http_version != b"1.0":
                    await self._reply(_own(event))
            elif isinstance(event, h11.Response):
                await self._reply(_own(event))
            elif isinstance(event, h11.Data):
                await self._reply(h11.Data(data=bytes(event.data)))
            elif isinstance(event, h11.EndOfMessage):
                await self._reply(h11.EndOfMessage())
                return
            else:
                raise ConnectionResetError("the server closed without an answer")

    async def _reply(self, event: h11.Event) -> None:
        if piece := self._incoming.send(event):
            await self._client.write(piece)


def _own(event: h11.InformationalResponse | h11.Response) -> h11.Event:
    """The head of an answer, as it is passed on."""
    headers = list(end_to_end(event.headers))
    if isinstance(event, h11.Response):
        return h11.Response(status_code=event.status_code, reason=event.reason, headers=[*headers, CLOSE])
    return h11.InformationalResponse(status_code=event.status_code, reason=event.reason, headers=headers)
