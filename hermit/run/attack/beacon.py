"""A server that nobody declared, on this machine's loopback: what it says is the answer, where one is known."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

EVERY_S = 0.2
PATIENCE_S = 5.0
MOST_ASKED = 64 * 1024


@contextlib.contextmanager
def lit(answers: Mapping[str, bytes]) -> Iterator[int]:
    """Says these answers to whoever asks, on the port that is yielded; silent afterwards."""
    said = json.dumps({"answers": {name: data.decode("utf-8", "replace") for name, data in answers.items()}}).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(said)}\r\nConnection: close\r\n\r\n".encode()
    out = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(EVERY_S)
        thread = threading.Thread(target=_serve, args=(server, head + said, out), name="beacon")
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            out.set()
            thread.join()


def _serve(server: socket.socket, said: bytes, out: threading.Event) -> None:
    while not out.is_set():
        with contextlib.suppress(OSError):  # one that asks badly is not answered; nor is nobody
            link = server.accept()[0]
            with link:
                link.settimeout(PATIENCE_S)
                asked = b""
                while b"\r\n\r\n" not in asked and len(asked) < MOST_ASKED:
                    piece = link.recv(4096)
                    if not piece:
                        break
                    asked += piece
                link.sendall(said)
