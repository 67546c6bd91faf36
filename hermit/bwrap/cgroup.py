"""A control group for the processes of one sandbox: it bounds them as a whole, counts, and names what it refused.

``memory`` counts everything the sandbox fills: heap, forks, ``memfd`` and files in memory, mapped or not. ``pids``
counts its processes where nothing else can: the kernel does not count those of the real root user (``copy_process``
spares ``INIT_USER``), and inside a user namespace the user of a sandbox started by root is still that one. Everywhere
else the relay's ``RLIMIT_NPROC`` does, and counts for each sandbox by itself, but tells nobody when it refuses.

A process is born in the group of the thread that starts it, so the starting thread enters the group and leaves it again.
A thread that moves itself takes no global lock; moving the process afterwards would wait for one, longer than the whole
sandbox takes to start. Only version 1 moves threads freely: version 2 moves whole processes between groups that bound
memory, and this process cannot follow. So only version 1 is used; where there is none, a watchdog bounds memory and
processes.
"""

from __future__ import annotations

import contextlib
import glob
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from hermit.bwrap.system import is_root
from hermit.domain.limits import MIB, WATCHDOG

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermit.domain.limits import Limits

ROOT = "/sys/fs/cgroup"
# What bubblewrap, its init and the relay may hold beside the command. The kernel may end any process that has a thread
# in a group without memory, and the starting thread is in it for a moment: so no group is ever smaller than this.
OWN_MB = 32
# A group that still has a process after half a second keeps it: a later `sweep` removes what it can.
FIRST_PAUSE_S, LAST_PAUSE_S = 0.0002, 0.2

MEMORY = "cgroup memory"
PIDS = "cgroup pids"
RLIMIT_PIDS = "rlimit processes of the user inside"


@dataclass(frozen=True, kw_only=True)
class Counted:
    """What the groups of a sandbox have counted.

    Args:
        oom_kills: Processes that the kernel ended because there was no memory.
        at_bound: Whether the sandbox as a whole met its own bound on memory; if memory was refused and it did not, the
            machine had none left.
        peak_mb: The most memory that the sandbox held at once in MiB; ``None`` where no group counted.
        forks_refused: How many processes the kernel refused to start.
    """

    oom_kills: int = 0
    at_bound: bool = False
    peak_mb: float | None = None
    forks_refused: int = 0


@dataclass(frozen=True, kw_only=True)
class Group:
    """The directories of one sandbox in the hierarchies of ``memory`` and ``pids``, removed at the end.

    Each is empty where no bound is asked for, or where this process may not make one.

    Args:
        memory: Its directory in the hierarchy of ``memory``.
        pids: Its directory in the hierarchy of ``pids``.
        pids_held_by: What holds the bound on processes.
    """

    memory: str = ""
    pids: str = ""
    pids_held_by: str = RLIMIT_PIDS

    @classmethod
    def make(cls, limits: Limits, *, pids: int | None) -> Group:
        """A group with the bound on memory, and where this process is root the bound of ``pids`` processes."""
        memory = _memory_directory(limits.memory_mb)
        try:
            directory, held_by = _pids_directory(pids)
        except BaseException:
            _remove(memory)
            raise
        return cls(memory=memory, pids=directory, pids_held_by=held_by)

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Processes that this thread starts meanwhile are born in the group."""
        with _entered(self.memory, self.pids):
            yield

    def alarm(self) -> int | None:
        """A descriptor that becomes readable when the sandbox is out of memory, and when its group is removed.

        The kernel ends one process and lets the others go on, in a state that nobody has asked for: who started the
        sandbox ends all of it. ``None`` where no group bounds memory. The caller closes it.
        """
        if not self.memory:
            return None
        alarm = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        try:
            with open(os.path.join(self.memory, "memory.oom_control"), encoding="ascii") as watched:
                _write(os.path.join(self.memory, "cgroup.event_control"), f"{alarm} {watched.fileno()}")
        except OSError:  # a kernel without the alarm: it still ends processes, and counts them
            os.close(alarm)
            return None
        return alarm

    def counted(self) -> Counted:
        """What the group has counted so far; to be asked before it is removed."""
        memory, pids = self.memory, self.pids
        kills = _count(memory, "memory.oom_control", "oom_kill") if memory else 0
        peak = _count(memory, "memory.max_usage_in_bytes") if memory else 0
        return Counted(
            oom_kills=kills,
            at_bound=bool(memory) and _was_full(memory, peak),
            peak_mb=peak / MIB if memory else None,
            forks_refused=_count(pids, "pids.events", "max") if pids else 0,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            _remove(self.memory)
        finally:
            _remove(self.pids)


def sweep() -> None:
    """Removes the empty groups of hosts that were killed before they could."""
    for parent in (*_parents("pids"), *_parents("memory")):
        for path in glob.glob(os.path.join(glob.escape(parent), "hermit-*-*")):
            if not os.path.exists(f"/proc/{os.path.basename(path).split('-')[1]}"):
                with contextlib.suppress(OSError):
                    os.rmdir(path)


def _memory_directory(memory_mb: int | None) -> str:
    if memory_mb is None:
        return ""
    most = str((memory_mb + OWN_MB) * MIB)
    path = _made("memory", "memory.limit_in_bytes", most)
    if path:
        # Swap counts too where the kernel counts it; it must not be less than the bound above, so it comes second.
        with contextlib.suppress(OSError):
            _write(os.path.join(path, "memory.memsw.limit_in_bytes"), most)
    return path


def _pids_directory(pids: int | None) -> tuple[str, str]:
    """A directory that bounds processes, and what does where there is none."""
    if pids is None or not is_root():
        return "", RLIMIT_PIDS
    path = _made("pids", "pids.max", str(pids))
    return (path, PIDS) if path else ("", WATCHDOG)


def _was_full(path: str, peak: int) -> bool:
    """Whether a group met its own bound; else what it was refused, a group above it or the machine refused."""
    most = _count(path, "memory.limit_in_bytes")
    # By the highest sum, for not every kernel counts what it refused (``memory.failcnt``). Memory is charged in heaps
    # of pages, so the sum may stay a little below the bound.
    return 0 < most - most // 16 <= peak


def _made(controller: str, name: str, value: str) -> str:
    """A new directory with one bound, empty where none can be made."""
    for parent in _parents(controller):
        path = os.path.join(parent, f"hermit-{os.getpid()}-{time.monotonic_ns()}")
        try:
            os.mkdir(path)
        except OSError:
            continue
        try:
            _write(os.path.join(path, name), value)
        except OSError:
            _remove(path)
            continue
        return path
    return ""


@contextlib.contextmanager
def _entered(*paths: str) -> Iterator[None]:
    with contextlib.ExitStack() as left:
        for path in filter(None, paths):
            _write(os.path.join(path, "tasks"), "0")
            left.callback(_write, os.path.join(os.path.dirname(path), "tasks"), "0")
        yield


def _remove(path: str) -> None:
    """Removes a group; it is busy for a moment after its last process died."""
    pause_s = FIRST_PAUSE_S
    while path and pause_s < LAST_PAUSE_S:
        try:
            os.rmdir(path)
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(pause_s)
            pause_s *= 1.5
        else:
            return


def _count(path: str, name: str, key: str = "") -> int:
    """A number that the kernel shows, alone in its file or behind a key; 0 where it shows none."""
    try:
        with open(os.path.join(path, name), encoding="ascii") as file:
            lines = file.read().splitlines()
    except OSError:
        return 0
    found = [line.removeprefix(key).strip() for line in lines if line.split(" ")[0] == key or not key]
    return int(found[0]) if found and found[0].isdigit() else 0


def _write(path: str, value: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(value)


def _parents(controller: str) -> list[str]:
    """Where this thread may make a group: its own place in the hierarchy of the controller.

    The thread's own: the first thread, which ``/proc/self`` shows, may be in the group of a sandbox that it starts.
    """
    with open("/proc/thread-self/cgroup", encoding="utf-8") as file:
        entries = [line.rstrip("\n").split(":", 2) for line in file]
    own = [f"{ROOT}/{controller}{path}" for _, names, path in entries if controller in names.split(",")]
    return [path for path in own if os.access(path, os.W_OK)]
