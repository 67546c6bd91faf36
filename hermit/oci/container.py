"""What every container of ours has: who it belongs to, what is shown in it, whose its files are, and its removal."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Any

from hermit.domain.bind import Bind, contains
from hermit.domain.sandbox import GID, UID
from hermit.errors import PlaceError
from hermit.oci.argv import LIFTING, kill_arguments
from hermit.proc import capture

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermit.oci.engine import Engine

# Which run a container serves, and which process of which machine started it: whoever that is takes it along.
RUN_LABEL = "hermit.run"
OWNER_LABEL = "hermit.owner.pid"
STARTED_LABEL = "hermit.owner.started"
HOST_LABEL = "hermit.host"
BOOT_LABEL = "hermit.boot"
PROCESSES_LABEL = "hermit.owner.namespace"
REMOVAL_S = 60.0
# What the image itself consists of; a path of the host at one of these places would replace a part of it.
_IMAGE_OWN = ("/opt/hermit", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/proc", "/sys", "/dev")
_IMAGE_CLOSED = ("/opt/hermit", "/proc", "/sys", "/dev")


def labels(run: str) -> tuple[tuple[str, str], ...]:
    """The labels of a container that this process starts for a run."""
    return (
        (RUN_LABEL, run),
        (OWNER_LABEL, str(os.getpid())),
        (STARTED_LABEL, started(os.getpid()) or ""),
        (HOST_LABEL, socket.gethostname()),
        (BOOT_LABEL, boot()),
        (PROCESSES_LABEL, namespace()),
    )


def boot() -> str:
    """The name of this machine's life since it was started; the kernel makes a new one each time."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def namespace() -> str:
    """The process namespace in which a number means the process it means here."""
    return str(os.stat("/proc/self/ns/pid").st_ino)


def started(pid: int) -> str | None:
    """When a process was started, in ticks since the machine was; ``None`` where there is none of this number."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name before may hold anything, but no other bracket follows it.
            return file.read().rpartition(b")")[2].split()[19].decode("ascii")
    except (FileNotFoundError, ProcessLookupError):
        return None


def mounts(read: Iterable[str], *, write: Iterable[str]) -> tuple[Bind, ...]:
    """What is shown in a container, each path at its own place.

    Raises:
        PlaceError: A path does not exist, or would cover a part of the image.
    """
    binds = [Bind(path, path, writable=True) for path in dict.fromkeys(write)]
    writable = {bind.target for bind in binds}
    binds += [Bind(path, path) for path in dict.fromkeys(read) if Bind(path, path).target not in writable]
    for bind in binds:
        if not os.path.exists(bind.source):
            raise PlaceError(f"{bind.source} does not exist and cannot be shown in the image", where=bind.source)
        hides = any(contains(bind.target, own) for own in _IMAGE_OWN)
        if hides or any(contains(closed, bind.target) for closed in _IMAGE_CLOSED):
            cure = "move it elsewhere, or use --runtime local"
            raise PlaceError(f"{bind.target} would cover a part of the image", where=bind.source, cure=cure)
    return tuple({bind.target: bind for bind in binds}.values())


def user_inside(uid: int, gid: int) -> tuple[int, int]:
    """The user and group a caller has inside: the caller's own, and never root's."""
    return (UID, GID) if uid == 0 else (uid, gid)


def suited(engine: Engine) -> dict[str, Any]:
    """The fields of a container that follow from the engine: whose its files are, and which modules would deny mounts."""
    return {"userns": engine.userns, "lifted": tuple(sorted(engine.traits & LIFTING.keys()))}


def give(directory: str, *, uid: int, gid: int) -> None:
    """Makes a user the owner of a directory and of everything below it, links themselves included, never their targets.

    The walk goes by descriptor and holds one at a time, so neither a link nor the depth of a tree leads it astray. It
    stays on the directory's file system.

    Raises:
        OSError: An entry cannot be given away.
    """
    here = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fchown(here, uid, gid)
        device = os.fstat(here).st_dev
        # Per level: the identity of its directory, and the directories in it that are still to visit.
        levels = [(_identity(here), _give_entries(here, uid=uid, gid=gid, device=device))]
        while levels:
            identity, pending = levels[-1]
            if pending:
                here = _step(here, pending.pop())
                levels.append((_identity(here), _give_entries(here, uid=uid, gid=gid, device=device)))
                continue
            levels.pop()
            if levels:
                here = _step(here, "..")
                if _identity(here) != levels[-1][0]:
                    raise OSError(f"{directory} was changed while it was given to {uid}:{gid}, near {identity}")
    finally:
        os.close(here)


def _give_entries(here: int, *, uid: int, gid: int, device: int) -> list[str]:
    directories = []
    with os.scandir(here) as entries:
        for entry in entries:
            if entry.stat(follow_symlinks=False).st_dev != device:
                continue
            os.chown(entry.name, uid, gid, dir_fd=here, follow_symlinks=False)
            if entry.is_dir(follow_symlinks=False):
                directories.append(entry.name)
    return directories


def _step(here: int, name: str) -> int:
    there = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
    os.close(here)
    return there


def _identity(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def remove(engine: Engine, name: str) -> None:
    """Removes a container, running or not; one that is gone is no error.

    Raises:
        PlaceError: It cannot be removed.
    """
    cure = f"{engine.program} rm --force {name}"
    try:
        finished = capture(kill_arguments(name, program=engine.program), timeout_s=REMOVAL_S)
    except TimeoutError:
        raise PlaceError(f"the container {name} could not be removed", where=engine.program, cure=cure) from None
    words = finished.stderr.decode(errors="replace").lower()
    # The engine removes it by itself at its end; being late is no failure.
    if finished.code != 0 and "no such container" not in words and "already in progress" not in words:
        raise PlaceError(
            f"the container {name} could not be removed: {finished.last_words}", where=engine.program, cure=cure
        )
