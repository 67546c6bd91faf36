"""Every port that a sandbox is let in to, served from the host by one loop in one thread.

Theory of operation. A socket belongs to the network namespace it was made in, for ever and whoever holds it. So the
relay inside a sandbox makes a listening socket on its own loopback and hands the descriptor out, once, before the
command starts. The host accepts on it here, as on any other, and dials the target from its own network. One thread of
one process carries the bytes; no process inside does, and no socket file of the host is shown.

The rest of Hermit is synchronous. A bridge runs one asyncio loop in a daemon thread; ``serve`` and ``close`` may be
called from any thread but that one.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import os
import resource
import socket
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, TypeVar

from hermit.net.proxy import Conversation, Proxy
from hermit.net.pump import Scratch, Side

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

Result = TypeVar("Result")

MOST_CONNECTIONS = 1024
ACCEPTED_AT_ONCE = 64
# The process needs its descriptors for more than connections, and each of those takes two.
DESCRIPTORS_EACH = 4
# The longest path that the address of a Unix socket has room for, without the NUL at its end.
LONGEST_ADDRESS = 107
# What accept(2) says when the machine or the process is short of something; it may be over in a moment.
SHORT = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
SHORT_PAUSE_S = 0.1
# What accept(2) says on a socket that is none; every other complaint is about one connection that has gone.
BROKEN = frozenset({errno.EBADF, errno.EINVAL, errno.ENOTSOCK, errno.EOPNOTSUPP})


@dataclass(frozen=True)
class Tcp:
    """A service of the host, or one that it reaches, at an address and a port."""

    host: str
    port: int


@dataclass(frozen=True)
class Unix:
    """A service of the host behind a Unix socket."""

    path: str


Target = Tcp | Unix | Proxy


@dataclass(frozen=True, kw_only=True)
class Counts:
    """What a service has done so far.

    Args:
        accepted: Connections that came.
        open: Those that are still there.
        refused: Those whose target did not answer.
        failed: Those that an error of our own ended.
        last_error: The last such error.
    """

    accepted: int = 0
    open: int = 0
    refused: int = 0
    failed: int = 0
    last_error: str = ""


class _Room:
    """What the services of a bridge share: how many connections there may be, who waits for one, and the scratch."""

    def __init__(self, most: int) -> None:
        self.scratch = Scratch()
        self.left = most
        self.waiting: set[Service] = set()

    def give_back(self) -> None:
        self.left += 1
        waiting, self.waiting = self.waiting, set()
        for service in waiting:
            service.listen()


class Service:
    """One listening socket and the connections that came through it. :meth:`Bridge.serve` makes it."""

    def __init__(self, bridge: Bridge, listener: socket.socket, *, target: Target, most: int, room: _Room) -> None:
        self._bridge = bridge
        self._listener = listener
        self._target = target
        self._most = most
        self._room = room
        self._loop = asyncio.get_running_loop()
        self._scratch = room.scratch
        self._tasks: set[asyncio.Task[None]] = set()
        self._sides: set[Side] = set()
        self._closed = False
        self._accepted = self._refused = self._failed = 0
        self._last_error = ""

    @property
    def counts(self) -> Counts:
        """What it has done so far."""
        return Counts(
            accepted=self._accepted,
            open=len(self._tasks),
            refused=self._refused,
            failed=self._failed,
            last_error=self._last_error,
        )

    def close(self) -> None:
        """Stops accepting, breaks off every connection and waits until all are gone; a second call is no error."""
        self._bridge.call(self.stop())

    def listen(self) -> None:
        """Accepts from now on; in the loop only."""
        if not self._closed:
            self._loop.add_reader(self._listener, self._accept)

    async def stop(self) -> None:
        """Does what :meth:`close` says, in the loop."""
        if self._closed:
            return
        self._closed = True
        self._room.waiting.discard(self)
        self._loop.remove_reader(self._listener)
        self._listener.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        while self._sides:
            await asyncio.wait([side.lost for side in self._sides])
        self._bridge.forget(self)

    def _accept(self) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            # Whoever finds no room waits in the kernel's queue, as before any busy server.
            if self._room.left <= 0 or len(self._tasks) >= self._most:
                self._loop.remove_reader(self._listener)
                self._room.waiting.add(self)
                return
            try:
                sock, _ = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in SHORT or error.errno in BROKEN:
                    self._last_error = f"accept: {error.strerror}"
                    self._loop.remove_reader(self._listener)
                    if error.errno in SHORT:
                        self._loop.call_later(SHORT_PAUSE_S, self.listen)
                    return
                continue
            sock.setblocking(False)
            self._accepted += 1
            self._room.left -= 1
            task = self._loop.create_task(self._carry(sock))
            self._tasks.add(task)
            task.add_done_callback(functools.partial(self._forget, sock))

    def _forget(self, sock: socket.socket, task: asyncio.Task[None]) -> None:
        sock.close()  # a task that was cancelled before it began never took it
        self._tasks.discard(task)
        self._room.give_back()

    async def _carry(self, sock: socket.socket) -> None:
        """One connection, from its first byte to its last. An error of it is counted, and disturbs no other."""
        sides: list[Side] = []
        try:
            if isinstance(self._target, Proxy):
                await self._converse(sock, self._target, sides=sides)
            else:
                await self._forward(sock, self._target, sides=sides)
        except Exception as error:  # noqa: BLE001 - whatever it is, the other connections go on
            self._failed += 1
            self._last_error = f"{type(error).__name__}: {error}"
        finally:
            for side in sides:
                side.reset()

    async def _forward(self, sock: socket.socket, target: Tcp | Unix, *, sides: list[Side]) -> None:
        try:
            if isinstance(target, Unix):
                with _address(target.path) as name:
                    server = await self._dial(socket.AF_UNIX, name)
            else:
                family = socket.AF_INET6 if ":" in target.host else socket.AF_INET
                server = await self._dial(family, (target.host, target.port))
        except OSError:
            self._refused += 1
            return
        sides.append(server)
        client = await self._side(sock)
        sides.append(client)
        client.link(server)
        await asyncio.wait((client.lost, server.lost))  # to await one would cancel it together with this task

    async def _converse(self, sock: socket.socket, proxy: Proxy, *, sides: list[Side]) -> None:
        async def dial(family: int, address: tuple[str, int] | str) -> Side:
            try:
                side = await self._dial(family, address)
            except OSError:
                self._refused += 1
                raise
            sides.append(side)
            return side

        client = await self._side(sock)
        sides.append(client)
        await Conversation(client, proxy, dial=dial).run()

    async def _dial(self, family: int, address: tuple[str, int] | str) -> Side:
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            await self._loop.sock_connect(sock, address)
            return await self._side(sock)
        except BaseException:  # a time-out among them
            sock.close()
            raise

    async def _side(self, sock: socket.socket) -> Side:
        side = Side(self._scratch)
        try:
            if sock.family != socket.AF_UNIX:  # a relay that waits for more stalls every small request
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self._loop.create_connection(lambda: side, sock=sock)
        except BaseException:
            sock.close()
            raise
        self._sides.add(side)
        side.lost.add_done_callback(lambda _: self._sides.discard(side))
        return side


@contextlib.contextmanager
def _address(path: str) -> Iterator[str]:
    """A name of a socket file that fits into an address: a run's directory may have a longer one.

    Raises:
        OSError: There is no such file.
    """
    if len(os.fsencode(path)) <= LONGEST_ADDRESS:
        yield path
        return
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


class Bridge:
    """The network of all sandboxes of a run, as a context: inside it services come and go, after it none is left.

    Args:
        most: How many connections there may be at once in all; ``None`` takes what the process's bound on open files
            leaves room for.
    """

    def __init__(self, *, most: int | None = None) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._services: set[Service] = set()
        self._room = _Room(0)

    def __enter__(self) -> Self:
        most = self._most or max(1, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // DESCRIPTORS_EACH)
        self._room = _Room(most)
        self._loop = loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=loop.run_forever, name="hermit-bridge", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def serve(self, listener: socket.socket, target: Target, *, most: int = MOST_CONNECTIONS) -> Service:
        """Serves a listening socket, of whichever network namespace, and owns it from now on.

        Args:
            listener: It listens already.
            target: Where its connections lead.
            most: How many of them there may be at once; the next ones wait.

        Raises:
            RuntimeError: The bridge is not open.
        """
        service = self.call(self._start(listener, target, most=most))
        if service is None:
            raise RuntimeError("the bridge is closed: a service lives inside its context")
        return service

    def close(self) -> None:
        """Ends every service and the thread; a second call is no error."""
        self.call(self._stop())
        with self._lock:
            loop, self._loop = self._loop, None
            if loop is None or self._thread is None:
                return
            loop.call_soon_threadsafe(loop.stop)
            self._thread.join()
            loop.close()

    def call(self, work: Coroutine[None, None, Result]) -> Result | None:
        """What this work in the loop returns; ``None``, undone, where there is no loop any more."""
        # The lock keeps the loop from ending between the question and the work.
        with self._lock:
            if self._loop is None:
                work.close()
                return None
            return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def forget(self, service: Service) -> None:
        """Takes note that a service has stopped; in the loop only."""
        self._services.discard(service)

    async def _start(self, listener: socket.socket, target: Target, *, most: int) -> Service:
        listener.setblocking(False)
        service = Service(self, listener, target=target, most=most, room=self._room)
        self._services.add(service)
        service.listen()
        return service

    async def _stop(self) -> None:
        for service in tuple(self._services):
            await service.stop()
