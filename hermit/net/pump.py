"""Bytes from one socket to another, both ways, as they come.

A :class:`Side` is one of the two sockets. Until it is linked to another it holds what comes, for somebody to read; from
then on it hands everything on. Each direction holds at most ``PIECE`` bytes and what one more read brings: when the one
socket does not take what it is given, the other is not read. An end of the stream is passed on as an end, and a reset as a reset: a
stream that broke off must not look like one that is complete.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable

PIECE = 64 * 1024
# While few sockets are open, a read may bring more: a bulk transfer then costs less than half.
LARGE_PIECE = 512 * 1024
FEW = 32
RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER on, for no time at all


class Dial(Protocol):
    """Opens a connection from this host."""

    def __call__(self, family: int, address: tuple[str, int] | str) -> Awaitable[Side]:
        """The side of a new connection to this address.

        Raises:
            OSError: Nobody answers there.
        """


class Scratch:
    """Where the loop reads into; all sides of a bridge share it, because what was read is handed on at once."""

    def __init__(self) -> None:
        self.large = memoryview(bytearray(LARGE_PIECE))
        self.small = self.large[:PIECE]
        self.sides = 0


class Side(asyncio.BufferedProtocol):
    """One socket of a connection; all of it runs in the bridge's loop.

    ``received`` counts its bytes, ``ended`` says that it has no more, ``full`` that its socket takes none for now.

    Args:
        scratch: What its loop reads into.
    """

    def __init__(self, scratch: Scratch) -> None:
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.received = 0
        self.ended = False
        self._scratch = scratch
        self._transport: asyncio.Transport | None = None
        self._peer: Side | None = None
        self._held = bytearray()
        self.full = False
        self._changed: asyncio.Future[None] | None = None

    @property
    def transport(self) -> asyncio.Transport:
        """The transport of a side that is connected."""
        assert self._transport is not None, "the loop connects a side before it hands it out"  # noqa: S101
        return self._transport

    @property
    def gone(self) -> bool:
        """Whether nothing can be written any more."""
        return self.lost.done() or self.transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The loop has connected it."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101
        transport.set_write_buffer_limits(high=PIECE)
        self._transport = transport
        self._scratch.sides += 1

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        """Where the loop reads into."""
        return self._scratch.large if self._scratch.sides <= FEW else self._scratch.small

    def buffer_updated(self, nbytes: int) -> None:
        """The loop has read something."""
        self.received += nbytes
        # A copy, because a transport may keep what it cannot write at once, and the next read overwrites the scratch.
        piece = bytes(self._scratch.large[:nbytes])
        if self._peer is not None:
            self._peer.put(piece)
            return
        self._held += piece
        if len(self._held) >= PIECE:
            self.transport.pause_reading()
        self._wake()

    def eof_received(self) -> bool:
        """The other end has nothing more to say, and may still listen, but for one that speaks TLS."""
        self.ended = True
        if self._peer is not None:
            self._peer.finish()
            self._close_if_both_ended()
        self._wake()
        return self.transport.can_write_eof()

    def pause_writing(self) -> None:
        """The socket does not take any more for now."""
        self.full = True
        # After an end of the stream, pausing and resuming would make the loop read that end once more.
        if self._peer is not None and not self._peer.ended:
            self._peer.transport.pause_reading()

    def resume_writing(self) -> None:
        """The socket takes more again."""
        self.full = False
        if self._peer is not None and not self._peer.ended:
            self._peer.transport.resume_reading()
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """The socket is closed, by us or by a failure."""
        self._scratch.sides -= 1
        self.lost.set_result(None)
        if self._peer is not None and not (self.ended and self._peer.ended):
            self._peer.reset()
        self._wake()

    def put(self, piece: bytes) -> None:
        """Writes at once what the socket takes, and the rest later."""
        if piece and not self.gone:
            self.transport.write(piece)

    async def secure(self, context: ssl.SSLContext, *, name: str) -> None:
        """Speaks TLS from now on, to whoever shows a certificate for this name.

        Raises:
            OSError: It shows none that the context takes, or breaks off.
        """
        loop = asyncio.get_running_loop()
        secured = await loop.start_tls(self.transport, self, context, server_hostname=name)
        if secured is None:
            raise ConnectionResetError("the other end has gone")
        secured.set_write_buffer_limits(high=PIECE)
        self._transport = secured

    def finish(self) -> None:
        """Says that nothing more will be written, after all that was; over TLS nobody can say so and go on reading."""
        if not self.gone and self.transport.can_write_eof():
            with contextlib.suppress(OSError):  # the other end has gone; the loop will notice
                self.transport.write_eof()

    def reset(self) -> None:
        """Closes at once, so that the other end sees a failure and no end."""
        if not self.gone:
            sock: socket.socket = self.transport.get_extra_info("socket")
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        if not self.lost.done():
            self.transport.abort()

    async def read(self) -> bytes:
        """What has come since the last call, at least one byte; nothing at the end of the stream.

        Raises:
            ConnectionResetError: The stream broke off.
        """
        while not self._held and not self.ended and not self.gone:
            await self._change()
        if not self._held and not self.ended:
            raise ConnectionResetError("the stream broke off")
        if not self.ended and not self.gone:
            self.transport.resume_reading()
        return self.take()

    def take(self) -> bytes:
        """What is held, which is held no more."""
        piece = bytes(self._held)
        self._held.clear()
        return piece

    async def write(self, piece: bytes) -> None:
        """Writes, and waits until the socket has taken most of it.

        Raises:
            ConnectionResetError: The other end has gone.
        """
        self.put(piece)
        while self.full and not self.gone:
            await self._change()
        if self.gone:
            raise ConnectionResetError("the other end has gone")

    async def _change(self) -> None:
        # One task at a time waits to read and another to write, so both share the future.
        if self._changed is None:
            self._changed = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._changed)

    def _wake(self) -> None:
        if self._changed is not None:
            self._changed.set_result(None)
            self._changed = None

    def link(self, other: Side) -> None:
        """From now on, everything that comes to either is written to the other; what has come already goes first."""
        self._peer, other._peer = other, self
        for side, peer in ((self, other), (other, self)):
            peer.put(side.take())
        for side, peer in ((self, other), (other, self)):
            if side.lost.done():
                peer.reset()
            elif side.ended:
                peer.finish()
            elif not peer.full:
                side.transport.resume_reading()
        self._close_if_both_ended()

    def _close_if_both_ended(self) -> None:
        """Two ends make a whole connection; what is still on its way is written first."""
        if self._peer is not None and self.ended and self._peer.ended:
            self.transport.close()
            self._peer.transport.close()
