"""The bounds on a sandbox as a whole where no control group can hold them: its processes are looked at, and ended.

Seen from the host, by the user who started the sandbox, without a privilege. A sample walks the processes below the
sandbox's init by what ``/proc`` says of their children. First it adds up resident sizes, which are cheap to read and
never too small; only where they pass the bound does it ask the kernel for the proportional sizes (``smaps_rollup``), in
which memory that forks share counts once. Files in the sandbox's file systems in memory count where nothing has mapped
them. What no process has mapped and no file system shows, such as a ``memfd`` that was only written, is not seen.

It counts processes and threads too where it is asked to: the kernel's own bound on them spares root.

No thread of its own: whoever watches the sandbox asks ``remaining`` and calls ``sample`` when it is time.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hermit.domain.limits import MIB

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

KIB = 1024
PAGE = os.sysconf("SC_PAGE_SIZE")
SCRATCH = ("/tmp", "/dev/shm")  # noqa: S108 - the sandbox's own

CALM_S = 0.1
# A process fills a gigabyte in a quarter of a second, so a sandbox that holds half of its bound is looked at more often.
ALERT_S = 0.05
# This part of one processor goes into looking; but a sandbox that is made dear to look at is not left alone for it.
SHARE = 0.02
LONGEST_S = 0.5
LARGEST = 3


@dataclass(frozen=True)
class Strike:
    """Why the watchdog ended a sandbox.

    Args:
        sum_mb: What it held in MiB.
        bound_mb: What it may hold in MiB.
        after_s: Seconds since the watch began.
        largest: Its largest processes: (id on the host, name, MiB).
        scratch_mb: What its file systems in memory held in MiB.
    """

    sum_mb: float
    bound_mb: int
    after_s: float
    largest: tuple[tuple[int, str, float], ...] = ()
    scratch_mb: float = 0.0

    def __str__(self) -> str:
        processes = ", ".join(f"{name} {size:.0f}" for _, name, size in self.largest)
        held = f"{self.sum_mb:.0f} MiB of {self.bound_mb} held after {self.after_s:.1f} s"
        return f"{held} (largest: {processes}; files in memory {self.scratch_mb:.0f})"


@dataclass(frozen=True)
class Crowd:
    """Why the watchdog ended a sandbox of too many processes.

    Args:
        count: Its processes and threads.
        bound: How many it may have.
        after_s: Seconds since the watch began.
    """

    count: int
    bound: int
    after_s: float

    def __str__(self) -> str:
        return f"{self.count} processes and threads of {self.bound} after {self.after_s:.1f} s"


@dataclass(frozen=True)
class Size:
    """The memory of one process in bytes: what only processes hold, and what lies in shared memory."""

    pid: int
    own: int
    shared: int = 0

    @property
    def whole(self) -> int:
        """Both together."""
        return self.own + self.shared


class Watchdog:
    """The watch over one sandbox; used by one thread.

    Args:
        bound_mb: What the sandbox may hold in MiB; ``None`` where something else bounds it.
        strike: Ends the sandbox; called once, when a bound has been passed.
        scratch_mb: The size of its own file systems in memory in MiB, by which they are known; 0 where it has none.
        pids: How many processes and threads it may have; ``None`` where something else bounds them.
    """

    def __init__(
        self, bound_mb: int | None, strike: Callable[[], None], *, scratch_mb: int = 0, pids: int | None = None
    ) -> None:
        self.struck: Strike | Crowd | None = None
        self._bound = None if bound_mb is None else bound_mb * MIB
        self._pids = pids
        self._strike = strike
        self._scratch = scratch_mb * MIB
        self._root: int | None = None
        self._born = b""
        self._alert = False
        self._began = self._next = 0.0

    def watch(self, root: int) -> None:
        """Begins with the process whose descendants are the sandbox."""
        born = _birth(root)
        if born:
            self._root, self._born = root, born
            self._began = time.monotonic()
            self._next = self._began + ALERT_S

    def remaining(self) -> float | None:
        """Seconds until the next sample is due, ``None`` while there is nothing to look at."""
        return None if self._root is None else max(0.0, self._next - time.monotonic())

    def tick(self) -> None:
        """Takes a sample if one is due."""
        if self._root is not None and time.monotonic() >= self._next:
            self.sample()

    def sample(self) -> None:
        """Looks once, and strikes where the sandbox holds more than it may."""
        if self._root is None:
            return
        began, spent = time.monotonic(), time.thread_time()
        if _birth(self._root) != self._born:  # it has ended, and its number may be another's by now
            self._root = None
            return
        self._look(self._root)
        spent = time.thread_time() - spent
        pause = ALERT_S if self._alert else CALM_S
        self._next = began + max(pause, min(spent / SHARE, LONGEST_S))

    def _look(self, root: int) -> None:
        self._alert = False
        found = family(root)
        if self._pids is not None:
            count = sum(map(threads, found))
            self._alert = count * 2 > self._pids
            if count > self._pids:
                self._end(Crowd(count, self._pids, time.monotonic() - self._began))
                return
        if self._bound is not None:
            self._weigh(root, found, self._bound)

    def _weigh(self, root: int, found: list[int], bound: int) -> None:
        held, sizes, scratch = self._measure(root, found, bound)
        self._alert |= held * 2 > bound
        if held > bound:
            # Who ends between two readings leaves its part of what they shared to the other, and counts in both.
            held, sizes, scratch = self._measure(root, family(root), bound)
        if held <= bound:
            return
        largest = sorted(sizes, key=lambda size: size.whole, reverse=True)[:LARGEST]
        strike = Strike(
            sum_mb=held / MIB,
            bound_mb=bound // MIB,
            after_s=time.monotonic() - self._began,
            largest=tuple((size.pid, name_of(size.pid), size.whole / MIB) for size in largest),
            scratch_mb=scratch / MIB,
        )
        self._end(strike)

    def _end(self, why: Strike | Crowd) -> None:
        self.struck = why
        self._root = None
        self._strike()

    def _measure(self, root: int, found: list[int], bound: int) -> tuple[int, list[Size], int]:
        scratch = scratch_used(root, size=self._scratch) if self._scratch else 0
        sizes = measured(found, scratch, bound=bound)
        return total(sizes, scratch), sizes, scratch


def total(sizes: Iterable[Size], scratch: int) -> int:
    """What processes and files hold together; a file that a process has mapped is in both, and counts once."""
    own = shared = 0
    for size in sizes:
        own += size.own
        shared += size.shared
    return own + max(shared, scratch)


def measured(pids: Iterable[int], scratch: int, *, bound: int) -> list[Size]:
    """The sizes of processes, each as exact as it takes to tell whether all of it is more than ``bound`` bytes."""
    sizes = [size for size in map(resident, pids) if size is not None]
    sizes.sort(key=lambda size: size.whole, reverse=True)
    rough = total(sizes, scratch)
    for at, size in enumerate(sizes):
        if rough <= bound:
            break
        exact = proportional(size.pid) or Size(size.pid, 0)  # it ended meanwhile
        sizes[at] = exact
        rough += exact.whole - size.whole
    return sizes


def family(root: int) -> list[int]:
    """A process and everything below it; who ends or is born meanwhile may be missed."""
    found, ahead = [], [root]
    while ahead:
        pid = ahead.pop()
        found.append(pid)
        ahead += _children(pid)
    return found


def threads(pid: int) -> int:
    """How many threads a process has, 0 when it is gone."""
    try:
        return len(os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return 0


def resident(pid: int) -> Size | None:
    """What a process has in memory, pages that it shares counted whole; ``None`` when it is gone."""
    numbers = _read(f"/proc/{pid}/statm").split()
    return Size(pid, int(numbers[1]) * PAGE) if len(numbers) > 1 else None


def proportional(pid: int) -> Size | None:
    """What a process has in memory, its part of each page that it shares; where that is hidden, as `resident`."""
    text = _read(f"/proc/{pid}/smaps_rollup")
    sizes = {words[0]: int(words[1]) * KIB for words in map(bytes.split, text.splitlines()[1:]) if len(words) == 3}  # noqa: PLR2004 - name, number, unit
    if b"Pss:" not in sizes:
        return resident(pid)
    shared = sizes.get(b"Pss_Shmem:", 0)
    return Size(pid, sizes[b"Pss:"] - shared + sizes.get(b"SwapPss:", 0), shared)


def scratch_used(root: int, *, size: int) -> int:
    """Bytes in the sandbox's file systems in memory, by way of a process that sees them; 0 where they are hidden.

    Only one whose whole size is ``size`` bytes is the sandbox's own: a directory of the host may be shown in its place.
    """
    used = 0
    for path in SCRATCH:
        try:
            found = os.statvfs(f"/proc/{root}/root{path}")
        except OSError:
            continue
        if found.f_blocks * found.f_frsize == size:
            used += (found.f_blocks - found.f_bfree) * found.f_frsize
    return used


def name_of(pid: int) -> str:
    """What a process calls itself; it may be gone, and may call itself anything."""
    return ascii(_read(f"/proc/{pid}/comm").decode("utf-8", "replace").strip() or "?")[1:-1]


def _children(pid: int) -> list[int]:
    try:
        own = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    return [int(child) for thread in own for child in _read(f"/proc/{pid}/task/{thread}/children").split()]


def _birth(pid: int) -> bytes:
    """When a process was started, in the kernel's ticks; empty when it is gone."""
    words = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return words[19] if len(words) > 19 and words[0] != b"Z" else b""  # noqa: PLR2004 - fields are numbered in proc(5)


def _read(path: str) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read()
    except OSError:  # gone, or not ours to read
        return b""
