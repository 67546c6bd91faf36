"""One container of a launcher, from its start to its removal; `launcher.py` says what it is for."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import select
import shutil
import socket
import tempfile
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hermit import __version__, proc
from hermit.domain import wire
from hermit.errors import PlaceError, SandboxError
from hermit.oci import container as containers
from hermit.oci import failure, request
from hermit.oci.argv import LIFTING, PYTHON_IN_IMAGE, Container, event_arguments, run_arguments

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator, Mapping

    from hermit.domain.record import Record
    from hermit.errors import HermitError
    from hermit.oci.engine import Engine

# The files of a connection, and the codes of a launcher that could not connect: those of `hermit/resident.py`.
ASKED, SOCKET, WRITTEN = "asked.json", "socket", "written"
NOT_SEEN, NOT_WRITABLE, NOT_CONNECTED = 64, 65, 66
START_S = 120.0
END_S = 20.0
ANSWER_S = 10.0
MOST_GREETING = 1 << 20
MOST_COMPLAINTS = 1 << 16


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What the container of a launcher is.

    Args:
        image: The image's id, so that a fresh container is of the same image whatever its name is given to meanwhile.
        name: What people call the image.
        exchange: The directory that this run and its container share, writable at its own place; nobody else's.
        read: Paths shown read-only at their own place.
        write: Paths shown writable at their own place.
        run: The run, for the container's label.
        memory_mb: MiB that everything in it shares.
        pids: How many processes and threads it may hold.
    """

    image: str
    name: str
    exchange: str
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    run: str = ""
    memory_mb: int = 8192
    pids: int = 4096


@dataclass
class _Ends:
    """What one container's life holds on this side."""

    control: socket.socket
    process: subprocess.Popen[bytes]
    complaints: int


class Life:
    """One container, from its start to its removal.

    Raises:
        PlaceError: It does not start, sees something else than it should, or cannot hold a sandbox.
    """

    def __init__(self, engine: Engine, shape: Shape) -> None:
        self._engine = engine
        self._shape = shape
        self._lock = threading.Lock()
        self._why: dict[str, Any] | None = None
        self._closed = False
        self._began_s = time.time() - 1
        self.name = f"hermit-launcher-{secrets.token_hex(6)}"
        self.lost = False
        self.record: Record | None = None
        self.told = f"{shape.name} {shape.image}, {engine.platform}, {os.path.basename(engine.program)} {engine.server}"
        for module in containers.suited(engine)["lifted"]:
            self.told += f", {LIFTING[module]}"
        self._ends = self._begun()

    def send(self, descriptors: list[int]) -> None:
        """Sends the descriptors of one start to the launcher.

        Raises:
            Unsent: It is gone.
        """
        try:
            with self._lock:
                socket.send_fds(self._ends.control, [b"R"], descriptors)
        except OSError:
            raise request.Unsent from None

    def obituary(self) -> SandboxError:
        """Why the container ended; whoever lost a start asks, the engine is asked once."""
        with self._lock:
            if self._why is None:
                self._why = self._cause()
            self.lost = True  # only now: whoever sees it closes what the cause was read from
        why = self._why
        return SandboxError(
            why["what"], where=self._shape.name, cause=why["cause"], again=why["again"], cure=why["cure"]
        )

    def close(self) -> None:
        """Ends the launcher, everything in its container and the container; a second call is no error."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            ends = self._ends
            ends.control.close()
            self._end_client(ends.process)
            os.close(ends.complaints)

    def _end_client(self, process: subprocess.Popen[bytes]) -> None:
        if not _ended(process, within_s=END_S) or process.returncode == failure.REFUSED:
            # One that is stuck, or whose client left without it; without an engine it still ends by itself.
            with contextlib.suppress(PlaceError):
                containers.remove(self._engine, self.name)
        if process.poll() is None:
            process.kill()
        process.wait()

    def _begun(self) -> _Ends:
        shape = self._shape
        directory = tempfile.mkdtemp(prefix="launcher-", dir=shape.exchange)
        complaints = os.memfd_create("hermit-engine", os.MFD_CLOEXEC)
        process = None
        try:
            asked = {"nonce": secrets.token_hex(16), "paths": [*shape.read, *shape.write]}
            with _listening(directory, asked, owner=self._inside) as listener:
                process = proc.companion(self._arguments(directory), stderr=complaints)
                self._wait(listener, process, complaints)
                control, _ = listener.accept()
            try:
                self._wait(control, process, complaints)
                self._believe(control.recv(MOST_GREETING), asked, directory)
            except BaseException:
                control.close()
                raise
            return _Ends(control, process, complaints)
        except OSError as error:
            raise PlaceError(f"the launcher cannot be started: {error}", where=self._engine.program) from None
        finally:
            if self.record is None:  # it did not come up
                if process is not None:
                    self._end_client(process)
                os.close(complaints)
            shutil.rmtree(directory, ignore_errors=True)

    @property
    def _inside(self) -> tuple[int, int]:
        return containers.user_inside(os.geteuid(), os.getegid())

    def _arguments(self, directory: str) -> list[str]:
        shape, engine = self._shape, self._engine
        uid, gid = self._inside
        container = Container(
            image=shape.image,
            entrypoint=PYTHON_IN_IMAGE,
            command=("-I", "-m", "hermit.resident", directory),
            mounts=containers.mounts(shape.read, write=(shape.exchange, *shape.write)),
            uid=uid,
            gid=gid,
            tmp_mb=64,
            memory_mb=shape.memory_mb,
            pids=shape.pids,
            # An ordinary user is seldom given the control group that holds this bound, and podman refuses without it.
            processors=() if "rootless" in engine.traits else tuple(sorted(os.sched_getaffinity(0))),
            name=self.name,
            labels=containers.labels(shape.run),
            **containers.suited(engine),
        )
        return run_arguments(container, program=engine.program)

    def _wait(self, awaited: socket.socket, process: subprocess.Popen[bytes], complaints: int) -> None:
        """Waits for the launcher, or for the end of its container.

        Raises:
            PlaceError: It ended, or it is too late.
        """
        ended = os.pidfd_open(process.pid)
        try:
            ready = _readable(awaited.fileno(), ended, within_s=START_S)
        finally:
            os.close(ended)
        if awaited.fileno() in ready:
            return
        if not ready:
            what = f"the launcher in the image did not speak within {START_S:g} s"
            raise PlaceError(what, where=self._shape.name, cure="see `docker info`, or use --runtime local")
        code = process.wait()
        words = os.pread(complaints, MOST_COMPLAINTS, 0).decode("utf-8", "replace")
        raise _refusal(code, words, engine=self._engine, shape=self._shape)

    def _believe(self, greeting: bytes, asked: Mapping[str, Any], directory: str) -> None:
        """Takes the launcher's greeting for true where it proves that it sees what it should.

        Raises:
            PlaceError: It does not, is of another version, or can hold no sandbox.
        """
        shape = self._shape
        try:
            said = json.loads(greeting)
            nonce, version, seen = said["nonce"], said["version"], said["paths"]
            refused = wire.failure(said["refused"]) if "refused" in said else None
            record = wire.record(said["record"]) if said.get("record") else None
        except (ValueError, KeyError, TypeError) as error:
            raise PlaceError(f"what answers in the image is no launcher: {error}", where=shape.name) from None
        if version != __version__:
            what = f"the image {shape.name} holds Hermit {version}, and this is {__version__}"
            raise PlaceError(what, where=shape.name, cure="make image")
        if nonce != asked["nonce"]:
            raise _elsewhere(shape.exchange, engine=self._engine)
        for path, identity in zip(asked["paths"], seen, strict=True):
            status = os.stat(path)
            if identity != [status.st_dev, status.st_ino]:
                raise _elsewhere(path, engine=self._engine)
        status = os.lstat(os.path.join(directory, WRITTEN))
        if (status.st_uid, status.st_gid) != self._inside:
            raise _foreign(f"{status.st_uid}:{status.st_gid}", engine=self._engine)
        if refused is not None:
            raise refused
        if record is None:
            raise PlaceError("the launcher in the image started no sandbox", where=shape.name)
        self.record = record

    def _cause(self) -> dict[str, Any]:
        """Why a launcher that was there is gone."""
        ends, shape = self._ends, self._shape
        ended = _ended(ends.process, within_s=ANSWER_S)
        cure = "run the same command again: attempts that a sandbox broke are made anew"
        actions = self._events()
        if actions and "oom" in actions:
            what = f"the memory of the container, {shape.memory_mb} MiB, was full"
            cure = "run fewer attempts at once, or give each less memory"
            return {"what": what, "cause": "container memory", "again": False, "cure": cure}
        if not ended:
            with contextlib.suppress(PlaceError):
                containers.remove(self._engine, self.name)
            what = "the launcher in the container does not answer any more"
            return {"what": what, "cause": "container silent", "again": True, "cure": cure}
        code = ends.process.returncode
        words = failure.last_line(os.pread(ends.complaints, MOST_COMPLAINTS, 0).decode("utf-8", "replace"))
        if actions is None or code == failure.REFUSED:
            what = f"the container engine went away under the container ({words or 'it does not answer'})"
            return {"what": what, "cause": "engine", "again": True, "cure": cure}
        if "kill" in actions or code == failure.KILLED:
            return {"what": "the container was killed", "cause": "container killed", "again": True, "cure": cure}
        what = f"the container ended by itself with {code}" + (f": {words}" if words else "")
        return {"what": what, "cause": "container gone", "again": True, "cure": cure}

    def _events(self) -> set[str] | None:
        """What happened to the container; ``None`` where the engine does not say."""
        arguments = event_arguments(self.name, since_s=self._began_s, until_s=time.time(), program=self._engine.program)
        try:
            finished = proc.capture(arguments, timeout_s=ANSWER_S)
        except (OSError, TimeoutError):
            return None
        if finished.code != 0:
            return None
        return {line.split()[0] for line in finished.stdout.decode(errors="replace").splitlines() if line.strip()}


@contextlib.contextmanager
def _listening(directory: str, asked: Mapping[str, Any], *, owner: tuple[int, int]) -> Iterator[socket.socket]:
    """A socket in the directory that the launcher can connect to, with what it is asked beside it."""
    with open(os.path.join(directory, ASKED), "x", encoding="ascii") as file:
        json.dump(asked, file)
    held = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            # By the descriptor: a run's directory may have a longer name than an address has room for.
            listener.bind(f"/proc/self/fd/{held}/{SOCKET}")
            listener.listen(1)
            for name in (ASKED, SOCKET):
                os.chown(os.path.join(directory, name), *owner)
            # Whoever is let in by mistake can see what is asked, and so be told from somebody who is shown nothing.
            os.chmod(directory, 0o755)  # noqa: S103
            os.chown(directory, *owner)
            yield listener
    finally:
        os.close(held)


def _ended(process: subprocess.Popen[bytes], *, within_s: float) -> bool:
    """Whether a process ends within this time."""
    if process.poll() is not None:
        return True
    descriptor = os.pidfd_open(process.pid)
    try:
        return bool(_readable(descriptor, within_s=within_s)) and process.wait() is not None
    finally:
        os.close(descriptor)


def _readable(*descriptors: int, within_s: float) -> set[int]:
    """Which of these can be read, or have ended, within this time."""
    waiting = select.poll()
    for descriptor in descriptors:
        waiting.register(descriptor, select.POLLIN)
    return {descriptor for descriptor, _ in waiting.poll(within_s * 1000)}


def _refusal(code: int, words: str, *, engine: Engine, shape: Shape) -> HermitError:
    """Why a container ended before its launcher had spoken."""
    if code == NOT_SEEN:
        return _elsewhere(shape.exchange, engine=engine)
    if code == NOT_WRITABLE:
        return _foreign("somebody else", engine=engine)
    if code == NOT_CONNECTED:
        return PlaceError(
            f"{engine.program} shares files of this machine with its containers, and no sockets: "
            "it runs in a virtual machine",
            where=shape.exchange,
            cure="use --runtime whole, which runs the whole command in the image",
        )
    refused = failure.failure(code, words, program=engine.program, image=shape.name)
    if refused is not None:
        return refused
    last = failure.last_line(words) or "it said nothing"
    return PlaceError(f"the launcher in the image ended with {code}: {last}", where=shape.name, cure="make image")


def _elsewhere(path: str, *, engine: Engine) -> PlaceError:
    return PlaceError(
        f"{engine.program} shows another file in place of {path}: its engine has another machine's files",
        where=path,
        cure="use --runtime local; or --runtime whole where the engine shares the paths of the config",
    )


def _foreign(who: str, *, engine: Engine) -> PlaceError:
    return PlaceError(
        f"what a container of {engine.program} writes belongs to {who} on this machine, and not to its caller",
        where=engine.program,
        cure="use an engine that does not map users (podman keeps the caller's), or --runtime local",
    )
