"""The first message of a TLS client, as far as it says whom it wants to talk to.

Only the outer name is seen: with Encrypted ClientHello the true one is inside, for the server alone.
"""

from __future__ import annotations

from dataclasses import dataclass

HANDSHAKE = 22
CLIENT_HELLO = 1
SERVER_NAME = 0
HOST_NAME = 0
ENCRYPTED_CLIENT_HELLO = 0xFE0D

MAJOR_VERSION = 3
RECORD_HEAD = 5  # kind, two bytes of version, two of length
MESSAGE_HEAD = 4  # kind, three bytes of length

LARGEST_RECORD = 1 << 14
LARGEST_HELLO = 1 << 14  # one with post-quantum keys has 2 KiB
MOST_RECORDS = 256


@dataclass(frozen=True)
class Hello:
    """What a ClientHello shows.

    Args:
        server_name: The server name indication as it was sent, ``None`` without one.
        encrypted: Whether it carries an Encrypted ClientHello, so that the true name may be another.
    """

    server_name: str | None
    encrypted: bool


class HelloReader:
    """Reads a ClientHello that comes in pieces; work and memory stay in proportion to what has come."""

    def __init__(self) -> None:
        self._raw = bytearray()
        self._message = bytearray()
        self._records = 0

    def feed(self, data: bytes) -> Hello | None:
        """What the ClientHello shows, once it is whole; ``None`` before that.

        Raises:
            ValueError: It is no ClientHello, or larger than any honest one.
        """
        self._raw += data
        while (payload := self._record()) is not None:
            self._message += payload
            if (body := _whole(self._message)) is not None:
                return _parse(body)
        return None

    def _record(self) -> bytes | None:
        """The payload of the next whole record."""
        if self._raw and self._raw[0] != HANDSHAKE:
            raise ValueError("it is not TLS")
        if len(self._raw) < RECORD_HEAD:
            return None
        size = int.from_bytes(self._raw[3:5], "big")
        if self._raw[1] != MAJOR_VERSION or not 0 < size <= LARGEST_RECORD:
            raise ValueError("it is not TLS")
        if len(self._raw) < RECORD_HEAD + size:
            return None
        self._records += 1
        if self._records > MOST_RECORDS:
            raise ValueError("its ClientHello is cut into too many records")
        payload = bytes(self._raw[RECORD_HEAD : RECORD_HEAD + size])
        del self._raw[: RECORD_HEAD + size]
        return payload


def _whole(message: bytearray) -> bytes | None:
    """The body of a ClientHello that is whole."""
    if message[0] != CLIENT_HELLO:
        raise ValueError("its first message is no ClientHello")
    if len(message) < MESSAGE_HEAD:
        return None
    size = int.from_bytes(message[1:4], "big")
    if size > LARGEST_HELLO:
        raise ValueError("its ClientHello is too large")
    body = bytes(message[MESSAGE_HEAD:])
    if len(body) > size:
        raise ValueError("something follows its ClientHello in the same record")
    return body if len(body) == size else None


class _Cursor:
    """Fields taken one after the other; one that is cut short is refused."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def take(self, size: int) -> bytes:
        if size > self.left:
            raise ValueError("its ClientHello is malformed")
        self._at += size
        return self._data[self._at - size : self._at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def vector(self, size: int) -> bytes:
        """A field that its own length precedes, in ``size`` bytes."""
        return self.take(self.number(size))


def _parse(body: bytes) -> Hello:
    cursor = _Cursor(body)
    cursor.take(2 + 32)  # version and random
    cursor.vector(1)  # session
    cursor.vector(2)  # cipher suites
    cursor.vector(1)  # compression methods
    extensions = _Cursor(cursor.vector(2) if cursor.left else b"")
    if cursor.left:
        raise ValueError("its ClientHello is malformed")
    seen: dict[int, bytes] = {}
    while extensions.left:
        kind = extensions.number(2)
        if kind in seen:  # of two names, we might read the one and the server the other
            raise ValueError("its ClientHello has an extension twice")
        seen[kind] = extensions.vector(2)
    name = _server_name(seen[SERVER_NAME]) if SERVER_NAME in seen else None
    return Hello(name, ENCRYPTED_CLIENT_HELLO in seen)


def _server_name(extension: bytes) -> str:
    outer = _Cursor(extension)
    names = _Cursor(outer.vector(2))
    kind, name = names.number(1), names.vector(2)
    if outer.left or names.left or kind != HOST_NAME or not name:
        raise ValueError("its ClientHello does not name exactly one server")
    try:
        return name.decode("ascii")
    except UnicodeDecodeError:
        raise ValueError("its ClientHello names a server that is not ASCII") from None
