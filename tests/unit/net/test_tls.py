"""Whom a TLS client asks for, however its first message is cut up."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermit.net.tls import LARGEST_HELLO, MOST_RECORDS, Hello, HelloReader

from .conftest import client_hello


def records(message: bytes, size: int) -> bytes:
    """A handshake message cut into records of this size."""
    pieces = [message[at : at + size] for at in range(0, len(message), size)]
    return b"".join(b"\x16\x03\x01" + struct.pack(">H", len(piece)) + piece for piece in pieces)


def extension(kind: int, data: bytes) -> bytes:
    return struct.pack(">HH", kind, len(data)) + data


def sni(*names: bytes, kind: int = 0, tail: bytes = b"") -> bytes:
    entries = b"".join(bytes([kind]) + struct.pack(">H", len(name)) + name for name in names)
    return extension(0, struct.pack(">H", len(entries)) + entries + tail)


def hello(*extensions: bytes, tail: bytes = b"") -> bytes:
    """A ClientHello with these extensions."""
    whole = b"".join(extensions)
    body = (
        b"\x03\x03"
        + bytes(32)
        + b"\x00"
        + b"\x00\x02\x13\x01"
        + b"\x01\x00"
        + struct.pack(">H", len(whole))
        + whole
        + tail
    )
    return b"\x01" + len(body).to_bytes(3, "big") + body


def read(raw: bytes) -> Hello | None:
    return HelloReader().feed(raw)


def test_the_name_that_a_real_client_asks_for_is_read():
    assert read(client_hello("api.example.com")) == Hello("api.example.com", encrypted=False)


def test_a_real_client_that_names_no_server_is_read():
    assert read(client_hello(None)) == Hello(None, encrypted=False)


@given(st.integers(1, 400), st.integers(1, 400))
def test_a_hello_in_many_records_and_many_pieces_reads_as_one(size, piece):
    raw = records(hello(sni(b"api.example.com"), extension(16, bytes(700))), max(size, 4))
    reader = HelloReader()
    found = [reader.feed(raw[at : at + piece]) for at in range(0, len(raw), piece)]
    assert found[-1] == Hello("api.example.com", encrypted=False)
    assert found[:-1] == [None] * (len(found) - 1)


def test_an_encrypted_hello_is_seen_as_such_and_its_outer_name_counts():
    assert read(records(hello(sni(b"front.example"), extension(0xFE0D, b"x")), 9000)) == Hello(
        "front.example", encrypted=True
    )


def test_a_hello_without_any_extension_names_no_server():
    body = b"\x03\x01" + bytes(32) + b"\x00" + b"\x00\x02\x00\x2f" + b"\x01\x00"
    assert read(records(b"\x01" + len(body).to_bytes(3, "big") + body, 9000)) == Hello(None, encrypted=False)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"GET / HTTP/1.1\r\n", "not TLS"),
        (b"\x15\x03\x01\x00\x02\x02\x28", "not TLS"),
        (b"\x16\x02\x00\x00\x05", "not TLS"),
        (b"\x16\x03\x01\x00\x00", "not TLS"),
        (b"\x16\x03\x01\xff\xff", "not TLS"),
        (b"\x80\x2e\x01\x03\x01", "not TLS"),
        (records(b"\x02\x00\x00\x00", 4), "no ClientHello"),
        (records(hello(sni(b"a.example"))[:20], 20) + b"\x17\x03\x03\x00\x01x", "not TLS"),
        (records(b"\x01" + (LARGEST_HELLO + 1).to_bytes(3, "big"), 4), "too large"),
        (records(hello(extension(16, bytes(4 * MOST_RECORDS))), 1), "too many records"),
        (records(hello(sni(b"a.example")) + b"\x0e\x00\x00\x00", 9000), "something follows"),
        (records(hello(sni(b"a.example"), tail=b"x"), 9000), "malformed"),
        (records(hello(extension(16, b"x")[:-1]), 9000), "malformed"),
        (records(hello(sni(b"a.example"), sni(b"b.example")), 9000), "twice"),
        (records(hello(sni(b"a.example", b"b.example")), 9000), "exactly one"),
        (records(hello(sni(b"a.example", kind=1)), 9000), "exactly one"),
        (records(hello(sni(b"a.example", tail=b"x")), 9000), "exactly one"),
        (records(hello(sni(b"")), 9000), "exactly one"),
        (records(hello(sni()), 9000), "malformed"),
        (records(hello(sni("bücher.example".encode())), 9000), "not ASCII"),
    ],
)
def test_what_is_no_clear_hello_is_refused(raw, reason):
    with pytest.raises(ValueError, match=reason):
        read(raw)


@given(st.lists(st.binary(max_size=60), max_size=20))
def test_any_bytes_are_a_hello_or_not_yet_one_or_refused(pieces):
    reader = HelloReader()
    try:
        for piece in pieces:
            reader.feed(piece)
    except ValueError:
        return


@given(st.integers(0, 60), st.integers(0, 255))
def test_a_hello_with_one_byte_changed_is_read_or_refused(at, value):
    raw = bytearray(records(hello(sni(b"api.example.com")), 9000))
    raw[at % len(raw)] = value
    try:
        read(bytes(raw))
    except ValueError:
        return
