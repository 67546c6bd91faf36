"""JSON over HTTP for whoever is inside a sandbox: one request and one answer a connection, read strictly and bounded.

Whoever asks is not trusted: with the size of what it sends, with when it sends it, or with ever reading an answer. Each
connection has a thread of its own, and there are so many at most; whoever finds no room waits in the kernel's queue.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import socket
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import h11

from hermit.net.request import LARGEST_HEAD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PIECE = 64 * 1024
MOST_CONNECTIONS = 16
QUEUE = 64
# For the whole of a request, and for the whole of an answer to be taken.
PATIENCE_S = 60.0
FAREWELL_S = 2.0
SOCKET = "tools.sock"
JSON = (("Content-Type", "application/json"), ("Connection", "close"))


@dataclass(frozen=True)
class Request:
    """One request that was read whole.

    Args:
        method: ``GET`` or ``POST``.
        path: What it asks for, from the first slash on.
        body: What it holds.
    """

    method: str
    path: str
    body: bytes = b""


@dataclass(frozen=True)
class Answer:
    """What is answered: a status of HTTP, and plain JSON."""

    status: int
    document: Any


class _Unfit(Exception):
    """A request that nobody looks into, with the status of its answer."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status


class Service:
    """Answers on a listening socket while it is open; at its end every connection is broken off.

    Args:
        listener: The socket; it is closed at the end.
        answer: Answers a request, in a thread of its own; it may take as long as it does.
        most_body: The longest body that is read.
    """

    def __init__(self, listener: socket.socket, answer: Callable[[Request], Answer], *, most_body: int) -> None:
        self._listener = listener
        self._answer = answer
        self._most_body = most_body
        self._room = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._lock = threading.Lock()
        self._open: dict[threading.Thread, socket.socket] = {}
        self._stop, self._far = os.pipe()
        self._thread = threading.Thread(target=self._accept, name="service", daemon=True)

    def __enter__(self) -> Self:
        self._listener.setblocking(False)
        self._listener.listen(QUEUE)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._far)
        self._thread.join()
        self._listener.close()
        with self._lock:
            left = dict(self._open)
        for connection in left.values():
            with contextlib.suppress(OSError):  # it has ended meanwhile
                connection.shutdown(socket.SHUT_RDWR)
        for thread in left:
            thread.join()
        os.close(self._stop)

    def _accept(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._stop, selectors.EVENT_READ)
            selector.register(self._listener, selectors.EVENT_READ)
            while not any(key.fd == self._stop for key, _ in selector.select()):
                if not self._room.acquire(timeout=0.1):
                    continue
                try:
                    connection, _ = self._listener.accept()
                except OSError:  # it left again, or there is no descriptor for it now
                    self._room.release()
                    continue
                thread = threading.Thread(target=self._serve, args=(connection,), name="service", daemon=True)
                with self._lock:
                    self._open[thread] = connection
                thread.start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection, contextlib.suppress(OSError, h11.ProtocolError):  # whoever asked has gone
                self._converse(connection)
        finally:
            with self._lock:
                del self._open[threading.current_thread()]
            self._room.release()

    def _converse(self, connection: socket.socket) -> None:
        http = h11.Connection(h11.SERVER, max_incomplete_event_size=LARGEST_HEAD)
        try:
            request = read(connection, http, most_body=self._most_body)
        except _Unfit as unfit:
            said = Answer(unfit.status, {"failed": "request", "error": str(unfit)})
        else:
            said = self._answer(request)
        if http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = json.dumps(said.document).encode("ascii")
            head = h11.Response(status_code=said.status, headers=[*JSON, ("Content-Length", str(len(body)))])
            connection.settimeout(PATIENCE_S)
            for event in (head, h11.Data(data=body), h11.EndOfMessage()):
                connection.sendall(http.send(event) or b"")
            _drain(connection)


def _drain(connection: socket.socket) -> None:
    """Reads what is still coming: a connection that is closed before is reset, and the answer may be lost with it."""
    connection.shutdown(socket.SHUT_WR)
    end = time.monotonic() + FAREWELL_S
    while (left_s := end - time.monotonic()) > 0:
        connection.settimeout(left_s)
        if not connection.recv(PIECE):
            return


def read(connection: socket.socket, http: h11.Connection, *, most_body: int) -> Request:
    """The request that comes on a connection.

    Raises:
        _Unfit: It is none, comes too slowly, or is too long.
        OSError: The connection broke off.
    """
    end = time.monotonic() + PATIENCE_S
    head: h11.Request | None = None
    body = bytearray()
    while True:
        try:
            event = http.next_event()
        except h11.RemoteProtocolError as error:
            raise _Unfit(error.error_status_hint, "it is no HTTP request") from None
        if event is h11.NEED_DATA:
            _receive(connection, http, left_s=end - time.monotonic())
        elif isinstance(event, h11.Request):
            if event.method not in (b"GET", b"POST"):
                raise _Unfit(405, "a tool is called by POST, and GET says which there are")
            head = event
            if http.they_are_waiting_for_100_continue:
                connection.sendall(http.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > most_body:
                raise _Unfit(413, f"its body has more than {most_body} bytes")
        elif isinstance(event, h11.EndOfMessage) and head is not None:
            return Request(head.method.decode("ascii"), head.target.decode("ascii"), bytes(body))
        else:
            raise ConnectionResetError("whoever asked has gone")


def _receive(connection: socket.socket, http: h11.Connection, *, left_s: float) -> None:
    if left_s <= 0:
        raise _Unfit(408, "it comes too slowly")
    connection.settimeout(left_s)
    try:
        http.receive_data(connection.recv(PIECE))
    except TimeoutError:
        raise _Unfit(408, "it comes too slowly") from None


@contextlib.contextmanager
def unix_listener(directory: str) -> Iterator[tuple[socket.socket, str]]:
    """A Unix socket in a directory, however long its path is, and its path; the file is gone afterwards."""
    place = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    path = f"{directory}/{SOCKET}"
    with contextlib.ExitStack() as ends:
        ends.callback(os.close, place)
        listener = ends.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        # An address has room for 107 bytes: through the open directory every path is short.
        listener.bind(f"/proc/self/fd/{place}/{SOCKET}")
        ends.callback(os.unlink, path)
        os.chmod(path, 0o600)
        yield listener, path


@contextlib.contextmanager
def loopback_listener() -> Iterator[tuple[socket.socket, int]]:
    """A port of this machine's own loopback, for whoever runs here without a sandbox."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.bind(("127.0.0.1", 0))
        yield listener, listener.getsockname()[1]
