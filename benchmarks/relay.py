"""What the bridge costs, against a direct connection and against two socat processes in a row.

Requests with a new connection each, at 1, 16 and 64 connections at once, and the rate of a bulk transfer. The servers and
the clients are other processes, so that the bridge has an interpreter of its own, as in a run. Interleaved rounds; each line
shows medians and their ratios.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import functools
import itertools
import shutil
import socket
import statistics
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from hermit.net.bridge import Bridge, Tcp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ANSWER = b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"
REQUEST = b"GET / HTTP/1.0\r\n\r\n"
CHUNK = bytes(256 * 1024)
MIB = 1024 * 1024


class Answer(asyncio.Protocol):
    """A server that answers and closes."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody came."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:  # noqa: ARG002
        """The request is there."""
        self.transport.write(ANSWER)
        self.transport.close()


class Ask(asyncio.Protocol):
    """A client that asks once."""

    def __init__(self) -> None:
        self.done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.got = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is connected."""
        assert isinstance(transport, asyncio.Transport)
        transport.write(REQUEST)

    def data_received(self, data: bytes) -> None:
        """A part of the answer."""
        self.got += len(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """The answer is over."""
        self.done.set_result(exc is None and self.got == len(ANSWER))


async def serve_answers() -> None:
    """Serves until it is killed, after printing its port."""
    server = await asyncio.get_running_loop().create_server(Answer, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def serve_bulk() -> None:
    """Reads every connection to its end, after printing its port; then says how much came."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        while True:
            sock, _ = listener.accept()
            with sock:
                buffer, total = bytearray(MIB), 0
                while size := sock.recv_into(buffer):
                    total += size
                sock.sendall(str(total).encode())


async def ask(port: int, connections: int, seconds: float) -> float:
    """Requests a second, by so many clients at once."""
    loop, count = asyncio.get_running_loop(), 0
    end = time.perf_counter() + seconds

    async def client() -> None:
        nonlocal count
        while time.perf_counter() < end:
            _, asked = await loop.create_connection(Ask, "127.0.0.1", port)
            assert await asked.done
            count += 1

    began = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(connections)))
    return count / (time.perf_counter() - began)


def push(port: int, megabytes: int) -> float:
    """GB/s of one connection."""
    began = time.perf_counter()
    with socket.create_connection(("127.0.0.1", port)) as sock:
        for _ in range(megabytes * MIB // len(CHUNK)):
            sock.sendall(CHUNK)
        sock.shutdown(socket.SHUT_WR)
        assert int(sock.recv(64)) == megabytes * MIB
    return megabytes * MIB / 1e9 / (time.perf_counter() - began)


@contextlib.contextmanager
def program(*words: str) -> Iterator[int]:
    """The port of a server, which this file is too when started with such words."""
    with subprocess.Popen([sys.executable, __file__, *words], stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            yield int(child.stdout.readline())
        finally:
            child.kill()


def measured(*words: str) -> float:
    """What a client, in a process of its own, measures."""
    done = subprocess.run([sys.executable, __file__, *words], check=True, capture_output=True, text=True)
    return float(done.stdout)


def request_rate(port: int, *, connections: int, seconds: float) -> float:
    """Requests a second."""
    return measured(f"--seconds={seconds}", "ask", str(port), str(connections))


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextlib.contextmanager
def two_socats(port: int) -> Iterator[int]:
    """The port of the first of two socat processes in a row that lead to ``port``."""
    ports = [free_port(), free_port(), port]
    children = []
    try:
        for here, there in itertools.pairwise(ports):
            listen = f"TCP4-LISTEN:{here},bind=127.0.0.1,fork,reuseaddr,backlog=1024"
            children.append(subprocess.Popen(["socat", listen, f"TCP4:127.0.0.1:{there},nodelay"]))
        time.sleep(0.5)
        yield ports[0]
    finally:
        for child in children:
            child.kill()
            child.wait()


def compare(title: str, unit: str, *, ports: dict[str, int], rounds: int, measure: Callable[[int], float]) -> None:
    """Measures each way in turn, several times, and prints one line."""
    rates: dict[str, list[float]] = {name: [] for name in ports}
    for _ in range(rounds):
        for name, port in ports.items():
            rates[name].append(measure(port))
    medians = {name: statistics.median(values) for name, values in rates.items()}
    ours = medians["bridge"]
    words = [f"{name} {value:.4g} {unit}" for name, value in medians.items()]
    words += [f"bridge is {ours / value:.2f} x {name}" for name, value in medians.items() if name != "bridge"]
    print(f"{title}, median of {rounds}: {', '.join(words)}")


def main() -> None:
    """Measures and prints; with a role, plays that."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each round of requests")
    parser.add_argument("--megabytes", type=int, default=512, help="of each bulk transfer")
    parser.add_argument("role", nargs="*", help=argparse.SUPPRESS)
    given = parser.parse_args()
    match given.role:
        case ["serve-answers"]:
            asyncio.run(serve_answers())
        case ["serve-bulk"]:
            serve_bulk()
        case ["ask", port, connections]:
            print(asyncio.run(ask(int(port), int(connections), given.seconds)))
        case ["push", port]:
            print(push(int(port), given.megabytes))
        case _:
            rounds(given)


def rounds(given: argparse.Namespace) -> None:
    """All comparisons."""
    with contextlib.ExitStack() as stack:
        bridge = stack.enter_context(Bridge())
        ways: dict[str, dict[str, int]] = {}
        for role in ("serve-answers", "serve-bulk"):
            port = stack.enter_context(program(role))
            listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
            ways[role] = {"direct": port, "bridge": int(listener.getsockname()[1])}
            bridge.serve(listener, Tcp("127.0.0.1", port))
            if shutil.which("socat"):
                ways[role]["two socats"] = stack.enter_context(two_socats(port))
        if not shutil.which("socat"):
            print("socat is not installed, so the bridge is compared with a direct connection alone")
        for connections in (1, 16, 64):
            compare(
                f"requests at {connections} connections",
                "/s",
                ports=ways["serve-answers"],
                rounds=given.rounds,
                measure=functools.partial(request_rate, connections=connections, seconds=given.seconds),
            )
        compare(
            "bulk",
            "GB/s",
            ports=ways["serve-bulk"],
            rounds=given.rounds,
            measure=lambda port: measured(f"--megabytes={given.megabytes}", "push", str(port)),
        )


if __name__ == "__main__":
    main()
