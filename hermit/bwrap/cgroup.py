"""A control group for the processes of one sandbox, where a bound on the user cannot hold.

The kernel does not count the processes of the real root user (``copy_process`` spares ``INIT_USER``), and inside a user
namespace the user of a sandbox started by root is still that one. There a group of the ``pids`` controller holds the
bound; everywhere else the relay's ``RLIMIT_NPROC`` does, and counts for each sandbox by itself.

A process is born in the group of the thread that starts it, so the starting thread enters the group and leaves it again.
A thread that moves itself takes no global lock; moving the process afterwards would wait for one, longer than the whole
sandbox takes to start. Only version 1 moves threads freely, so only version 1 is used.
"""

from __future__ import annotations

import contextlib
import glob
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = "/sys/fs/cgroup"


@dataclass(frozen=True)
class PidsGroup:
    """A directory of the ``pids`` controller, removed at the end; empty where none is needed or to be had."""

    path: str = ""
    held_by: str = "rlimit processes of the user inside"

    @classmethod
    def make(cls, pids: int | None) -> PidsGroup:
        """A group with this bound, where this process is root and may make one."""
        if pids is None or os.geteuid() != 0:
            return cls()
        for parent in _parents():
            path = os.path.join(parent, f"hermit-{os.getpid()}-{time.monotonic_ns()}")
            try:
                os.mkdir(path)
            except OSError:
                continue
            group = cls(path, "cgroup pids")
            try:
                group._write("pids.max", str(pids))
            except OSError:
                group.__exit__()
                continue
            return group
        return cls(held_by="nothing: this process is root, and no pids cgroup of version 1 is writable")

    @property
    def holds(self) -> bool:
        """Whether there is a group."""
        return bool(self.path)

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Processes that this thread starts meanwhile are born in the group."""
        if not self.path:
            yield
            return
        self._write("tasks", "0")
        try:
            yield
        finally:
            _write(os.path.join(os.path.dirname(self.path), "tasks"), "0")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self.path:
            return
        for _attempt in range(50):  # a group is busy for a moment after its last process died
            with contextlib.suppress(OSError):
                os.rmdir(self.path)
                return
            if not os.path.exists(self.path):
                return
            time.sleep(0.01)

    def _write(self, name: str, value: str) -> None:
        _write(os.path.join(self.path, name), value)


def _write(path: str, value: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(value)


def sweep() -> None:
    """Removes the empty groups of hosts that were killed before they could."""
    for parent in _parents():
        for path in glob.glob(os.path.join(glob.escape(parent), "hermit-*-*")):
            if not os.path.exists(f"/proc/{os.path.basename(path).split('-')[1]}"):
                with contextlib.suppress(OSError):
                    os.rmdir(path)


def _parents() -> list[str]:
    """Where this process may make a group: its own place in the hierarchy of the ``pids`` controller."""
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        entries = [line.rstrip("\n").split(":", 2) for line in file]
    own = [f"{ROOT}/pids{path}" for _, controllers, path in entries if "pids" in controllers.split(",")]
    return [path for path in own if os.access(path, os.W_OK)]
