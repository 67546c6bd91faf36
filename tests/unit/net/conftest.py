"""A bridge, servers of the host on loopback, and a proxy in front of them whose names are made up."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from dataclasses import dataclass, field
from ipaddress import ip_network

import pytest

from hermit.net.bridge import Bridge, Tcp
from hermit.net.hosts import HostPattern, Rule, Rules
from hermit.net.proxy import Patience, Proxy

MIB = 1024 * 1024
LOOPBACK = (ip_network("127.0.0.0/8"),)
PATIENT = Patience(head_s=60, look_up_s=60, dial_s=60, hello_s=60, farewell_s=60)


def listening() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0), backlog=512)


def port_of(sock: socket.socket) -> int:
    return sock.getsockname()[1]


def client_hello(name: str | None) -> bytes:
    """What the standard library's TLS client says first."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    outgoing = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def read_all(sock: socket.socket) -> bytes:
    """Everything up to the end of the stream, or to its breaking off."""
    came = bytearray()
    try:
        while piece := sock.recv(65536):
            came += piece
    except ConnectionResetError:
        pass
    return bytes(came)


class Server:
    """A server of the host that hands each connection to ``serve`` in a thread."""

    def __init__(self, serve, listener=None):
        self.listener = listener or listening()
        self.threads = []
        self.main = threading.Thread(target=self._accept, args=(serve,))
        self.main.start()

    def _accept(self, serve):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            self.threads.append(threading.Thread(target=self._run, args=(serve, sock)))
            self.threads[-1].start()

    @staticmethod
    def _run(serve, sock):
        with sock:
            try:
                serve(sock)
            except OSError:
                return

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for thread in (self.main, *self.threads):
            thread.join()

    @property
    def target(self):
        return Tcp("127.0.0.1", port_of(self.listener))


def echo(sock):
    while piece := sock.recv(65536):
        sock.sendall(piece)


def until(truth) -> None:
    """Waits for something that is about to be true."""
    end = time.monotonic() + 20
    while not truth():
        assert time.monotonic() < end
        time.sleep(0.005)


class Origin:
    """A server of the host: it answers the first bytes of each connection with ``answer`` and keeps all that came."""

    def __init__(self, answer: bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") -> None:
        self.answer = answer
        self.listener = listening()
        self.port = port_of(self.listener)
        self._heard: list[bytearray] = []
        self._threads: list[threading.Thread] = []
        self._farewell = socket.socket()
        self._farewell.bind(("127.0.0.1", 0))
        self._main = threading.Thread(target=self._accept)
        self._main.start()

    def _accept(self) -> None:
        with self.listener:
            while True:
                sock, peer = self.listener.accept()
                if peer == self._farewell.getsockname():
                    sock.close()
                    return
                self._heard.append(bytearray())
                thread = threading.Thread(target=self._serve, args=(sock, self._heard[-1]))
                self._threads.append(thread)
                thread.start()

    def _serve(self, sock: socket.socket, heard: bytearray) -> None:
        with sock:
            try:
                while piece := sock.recv(65536):
                    heard += piece
                    if len(heard) == len(piece):
                        sock.sendall(self.answer)
            except OSError:
                return

    @property
    def connections(self) -> int:
        """How many have been accepted so far."""
        return len(self._heard)

    def came(self) -> list[bytes]:
        """What each connection said, once all of them are over; nobody is served after it."""
        if self._main.is_alive():
            self._farewell.connect(("127.0.0.1", self.port))  # its turn comes after all that connected before
        self._main.join()
        for thread in self._threads:
            thread.join()
        self._farewell.close()
        return [bytes(heard) for heard in self._heard]


@dataclass
class Front:
    """A proxy of one test, with what it looked up and decided."""

    bridge: Bridge
    origin: Origin
    addresses: dict[str, list[str]] = field(default_factory=dict)
    looked_up: list[str] = field(default_factory=list)
    decisions: list = field(default_factory=list)
    port: int = 0

    def resolve(self, name: str) -> list[str]:
        self.looked_up.append(name)
        if name not in self.addresses:
            raise OSError("no such name")
        return self.addresses[name]

    def open(self, *patterns: str, networks=LOOPBACK, **settings) -> Front:
        """Starts the proxy with an allowlist; ``PORT`` in a pattern is the origin's."""
        rules = Rules(tuple(Rule(HostPattern.parse(self.fill(text)), networks) for text in patterns))
        proxy = Proxy(
            **{"rules": rules, "log": self.decisions.append, "resolve": self.resolve, "patience": PATIENT, **settings}
        )
        listener = listening()
        self.port = port_of(listener)
        self.bridge.serve(listener, proxy)
        return self

    def fill(self, text: str) -> str:
        return text.replace("PORT", str(self.origin.port))

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=20)

    def say(self, words: str | bytes) -> bytes:
        """The whole answer to these bytes, after which nothing more is sent."""
        data = self.fill(words).encode("latin-1") if isinstance(words, str) else words
        with self.connect() as sock:
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
            return read_all(sock)

    def tunnel(self, target: str, first: bytes) -> bytes:
        """What comes back through a tunnel after its first bytes; nothing where the tunnel is closed instead."""
        with self.connect() as sock:
            sock.sendall(self.fill(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n").encode())
            assert sock.recv(4096) == b"HTTP/1.1 200 Connection established\r\n\r\n"
            sock.sendall(first)
            sock.shutdown(socket.SHUT_WR)
            return read_all(sock)

    def came(self) -> list[bytes]:
        """What each connection to the origin said, in full; the bridge is closed for it."""
        self.bridge.close()
        return self.origin.came()

    @property
    def last(self):
        """The decision of the latest request; the bridge is closed for it, so that all have been logged."""
        self.bridge.close()
        return self.decisions[-1]


@pytest.fixture
def bridge():
    with Bridge() as opened:
        yield opened


@pytest.fixture
def serve(bridge):
    """Serves a target and gives the address to connect to with the service."""

    def start(target, **settings):
        listener = listening()
        address = listener.getsockname()
        service = bridge.serve(listener, target, **settings)
        return lambda: socket.create_connection(address, timeout=20), service

    return start


@pytest.fixture
def origin():
    server = Origin()
    yield server
    server.came()


@pytest.fixture
def front(origin, bridge):
    """A proxy behind which api.example.com is the origin; the bridge closes before the origin does."""
    return Front(bridge, origin, addresses={"api.example.com": ["127.0.0.1"]})
