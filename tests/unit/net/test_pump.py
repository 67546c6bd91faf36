"""Bytes come through as they were sent, both ways, in bounded memory."""

from __future__ import annotations

import asyncio
import hashlib
import os
import resource
import socket
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermit.net.bridge import Bridge, Unix
from hermit.net.pump import FEW, LARGE_PIECE, PIECE, Scratch, Side

from .conftest import MIB, Server, echo, listening, read_all, until


def test_bytes_go_both_ways(serve):
    with Server(echo) as server:
        come, _ = serve(server.target)
        with come() as sock:
            sock.sendall(b"hello")
            assert sock.recv(5) == b"hello"


def test_a_unix_socket_of_the_host_is_reached(serve, tmp_path):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "s"))
    listener.listen()
    with Server(echo, listener):
        come, _ = serve(Unix(str(tmp_path / "s")))
        with come() as sock:
            sock.sendall(b"hello")
            sock.shutdown(socket.SHUT_WR)
            assert read_all(sock) == b"hello"


def test_the_client_may_stop_talking_and_still_listen(serve):
    def serve_late(sock):
        asked = read_all(sock)
        sock.sendall(b"you said " + asked)

    with Server(serve_late) as server:
        come, _ = serve(server.target)
        with come() as sock:
            sock.sendall(b"x" * MIB)
            sock.shutdown(socket.SHUT_WR)
            assert read_all(sock) == b"you said " + b"x" * MIB


def test_the_server_may_stop_talking_and_still_listen(serve):
    heard = []

    def serve_first(sock):
        sock.sendall(b"go on")
        sock.shutdown(socket.SHUT_WR)
        heard.append(read_all(sock))

    with Server(serve_first) as server:
        come, service = serve(server.target)
        with come() as sock:
            assert read_all(sock) == b"go on"
            sock.sendall(b"x" * MIB)
        until(lambda: heard)
        assert heard == [b"x" * MIB]
        until(lambda: service.counts.open == 0)


def test_a_reset_comes_through_as_a_reset_and_not_as_an_end(serve):
    def break_off(sock):
        sock.sendall(b"half of it")
        sock.recv(1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with Server(break_off) as server:
        come, _ = serve(server.target)
        with come() as sock:
            assert sock.recv(100) == b"half of it"
            sock.sendall(b"x")
            with pytest.raises(ConnectionResetError):
                sock.recv(100)


def test_sixty_four_connections_at_once_each_get_their_own_bytes(serve):
    with Server(echo) as server:
        come, service = serve(server.target)
        socks = [come() for _ in range(64)]

        def work(number):
            with socks[number] as sock:
                sent = os.urandom(200_000)
                sender = threading.Thread(target=lambda: (sock.sendall(sent), sock.shutdown(socket.SHUT_WR)))
                sender.start()
                came = read_all(sock)
                sender.join()
                return came == sent

        with ThreadPoolExecutor(64) as pool:
            assert all(pool.map(work, range(64)))
        assert service.counts.accepted == 64
        until(lambda: service.counts.open == 0)


def test_a_gigabyte_comes_through_whole(serve):
    piece, digests = os.urandom(MIB), []

    def digest(sock):
        total = hashlib.blake2b()
        while came := sock.recv(MIB):
            total.update(came)
        digests.append(total.hexdigest())

    expected = hashlib.blake2b()
    with Server(digest) as server:
        come, _ = serve(server.target)
        with come() as sock:
            for _ in range(1000):
                sock.sendall(piece)
                expected.update(piece)
        until(lambda: digests)
    assert digests == [expected.hexdigest()]


def test_memory_stays_bounded_when_nobody_reads(serve):
    never = threading.Event()
    with Server(lambda _: never.wait(20)) as server:
        come, _ = serve(server.target)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        socks = [come() for _ in range(16)]
        for sock in socks:
            sock.setblocking(False)
        pushed, idle = 0, 0
        while idle < 20:  # until nobody takes any more, for a while
            sent = sum(_push(sock) for sock in socks)
            pushed += sent
            idle = 0 if sent else idle + 1
            time.sleep(0 if sent else 0.01)
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        never.set()
        for sock in socks:
            sock.close()
    assert pushed > 16 * MIB, "the kernel's own buffers take that much"
    assert grown < 24


def _push(sock) -> int:
    try:
        return sock.send(bytes(MIB))
    except BlockingIOError:
        return 0


def test_a_side_that_is_not_linked_yet_stops_reading_at_its_bound(bridge):
    # What a proxy's client sends before anything is decided is held; the transport must be told to stop.
    paused = []

    class Transport:
        def pause_reading(self):
            paused.append(True)

    async def fill():
        side = Side(Scratch())
        side._transport = Transport()
        side.buffer_updated(PIECE // 2)
        assert not paused
        side.buffer_updated(PIECE // 2)

    bridge.call(fill())
    assert paused == [True]


def test_small_pieces_are_not_held_back_on_either_side(serve, monkeypatch):
    seen = []
    link = Side.link

    def look(self, other):
        for side in (self, other):
            sock = side.transport.get_extra_info("socket")
            seen.append(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        link(self, other)

    monkeypatch.setattr(Side, "link", look)
    with Server(echo) as server:
        come, _ = serve(server.target)
        with come() as sock:
            sock.sendall(b"x")
            assert sock.recv(1) == b"x"
    assert seen == [1, 1]


def test_server_sent_events_come_one_by_one(serve):
    step = threading.Semaphore(0)

    def events(sock):
        sock.recv(100)
        for number in range(5):
            sock.sendall(b"data: %d\n\n" % number)
            assert step.acquire(timeout=20)

    with Server(events) as server:
        come, _ = serve(server.target)
        with come() as sock:
            sock.sendall(b"GET /events HTTP/1.1\r\n\r\n")
            for number in range(5):
                assert sock.recv(100) == b"data: %d\n\n" % number
                step.release()


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 70_000), max_size=12), st.lists(st.integers(1, 70_000), max_size=12))
def test_whatever_is_said_in_either_direction_arrives_in_order_and_whole(up, down):
    sent_up = [os.urandom(size) for size in up]
    sent_down = [os.urandom(size) for size in down]
    heard = []

    def talk(sock):
        listener = threading.Thread(target=lambda: heard.append(read_all(sock)))
        listener.start()
        for piece in sent_down:
            sock.sendall(piece)
        sock.shutdown(socket.SHUT_WR)
        listener.join()

    with Server(talk) as server, Bridge() as bridge:
        listener = listening()
        address = listener.getsockname()
        bridge.serve(listener, server.target)
        with socket.create_connection(address, timeout=20) as sock:
            sender = threading.Thread(target=lambda: (*map(sock.sendall, sent_up), sock.shutdown(socket.SHUT_WR)))
            sender.start()
            assert read_all(sock) == b"".join(sent_down)
            sender.join()
        until(lambda: heard)
    assert heard == [b"".join(sent_up)]


def test_a_websocket_is_upgraded_and_its_frames_go_both_ways(serve):
    frames = [b"\x81\x02hi", b"\x82\x7e\xff\xff" + bytes(65535), b"\x88\x00"]

    def upgrade(sock):
        assert sock.recv(4096).startswith(b"GET /chat")
        sock.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n")
        echo(sock)

    with Server(upgrade) as server:
        come, _ = serve(server.target)
        with come() as sock:
            sock.sendall(b"GET /chat HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
            assert sock.recv(4096).endswith(b"websocket\r\n\r\n")
            for frame in frames:
                sock.sendall(frame)
                came = b""
                while len(came) < len(frame):
                    came += sock.recv(65536)
                assert came == frame


def test_what_both_sides_said_before_they_were_linked_arrives_though_both_have_ended(bridge):
    here, there = socket.socketpair(), socket.socketpair()

    async def link():
        loop = asyncio.get_running_loop()
        sides = [Side(Scratch()) for _ in range(2)]
        for side, sock in zip(sides, (here[1], there[1]), strict=True):
            await loop.create_connection(lambda side=side: side, sock=sock)
        while not all(side.ended for side in sides):  # noqa: ASYNC110
            await asyncio.sleep(0)
        sides[0].link(sides[1])
        await asyncio.wait([side.lost for side in sides])

    for pair, words in ((here, b"from here"), (there, b"from there")):
        pair[0].sendall(words)
        pair[0].shutdown(socket.SHUT_WR)
    bridge.call(link())
    with here[0], there[0]:
        assert (read_all(here[0]), read_all(there[0])) == (b"from there", b"from here")


def test_a_read_brings_less_when_many_connections_share_the_memory(bridge):
    async def sizes():
        side = Side(scratch := Scratch())
        found = []
        for scratch.sides in (FEW, FEW + 1):
            found.append(len(side.get_buffer(-1)))
        return found

    assert bridge.call(sizes()) == [LARGE_PIECE, PIECE]
