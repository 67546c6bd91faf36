"""What a run uses of the machine beside its kernel: room, descriptors, processes, control groups, the clock."""

from __future__ import annotations

import datetime as dt
import os
import resource
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import hermit
from hermit.bwrap import cgroup
from hermit.domain.limits import MIB, WATCHDOG, Limits
from hermit.run.doctor.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

# Less than the first holds no attempt at all; less than the second not many at once.
FREE_MB, PLENTY_MB = 64, 512
FREE_INODES, PLENTY_INODES = 200, 20_000
DESCRIPTORS, PLENTY_DESCRIPTORS = 64, 512
PROCESSES, PLENTY_PROCESSES = 32, 1024
A_DAY_S = 86_400


def probes() -> Iterator[Finding]:
    """A finding for each."""
    yield from scratch()
    yield descriptors(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    yield processes(resource.getrlimit(resource.RLIMIT_NPROC)[0])
    yield control_groups()
    yield clock(time.time(), Path(hermit.__file__).stat().st_mtime)


def scratch() -> Iterator[Finding]:
    """The room where attempts work, if there is a place at all."""
    try:
        directory = tempfile.gettempdir()
    except FileNotFoundError:
        cure = "set TMPDIR to a directory that can be written; for a container: docker run --tmpfs /tmp ..."
        yield Finding("disk space", False, "no directory for temporary files can be written", cure)
        return
    yield from room(directory, os.statvfs(directory))


def room(directory: str, status: os.statvfs_result) -> Iterator[Finding]:
    """The room of a file system, in MiB and in files.

    Args:
        directory: What lies on it.
        status: What the kernel says of it.
    """
    free = status.f_bavail * status.f_frsize // MIB
    cure = f"make room below {directory}, or set TMPDIR elsewhere"
    yield _enough(("disk space", f"{free} MiB free at {directory}"), free, (FREE_MB, PLENTY_MB), cure)
    if status.f_files:
        found = f"{status.f_favail} files can be made at {directory}"
        yield _enough(("inodes", found), status.f_favail, (FREE_INODES, PLENTY_INODES), cure)
    else:
        yield Finding("inodes", True, f"the file system of {directory} counts none")


def descriptors(most: int) -> Finding:
    """How many files this process may hold open; -1 is no bound."""
    named = ("file descriptors", f"{_count(most)} for each process")
    cure = "raise it: ulimit -n 4096; for a container: docker run --ulimit nofile=4096 ..."
    return _enough(named, _unbounded(most), (DESCRIPTORS, PLENTY_DESCRIPTORS), cure)


def processes(most: int) -> Finding:
    """How many processes this user may have, with those it has already; -1 is no bound."""
    cure = "raise it: ulimit -u 4096; for a container: docker run --ulimit nproc=4096 ..."
    named = ("processes", f"{_count(most)} for this user")
    return _enough(named, _unbounded(most), (PROCESSES, PLENTY_PROCESSES), cure)


def _count(most: int) -> str:
    return "any number" if most == resource.RLIM_INFINITY else str(most)


def _unbounded(most: int) -> int:
    return PLENTY_PROCESSES * PLENTY_INODES if most == resource.RLIM_INFINITY else most


def _enough(named: tuple[str, str], have: int, wanted: tuple[int, int], cure: str) -> Finding:
    """Whether there is enough of something: below the first nothing runs, below the second not much at once."""
    name, found = named
    least, plenty = wanted
    return Finding(name, have >= plenty, found, cure, needed=have < least)


def control_groups() -> Finding:
    """Which bounds control groups hold here, by making one and removing it; others hold the rest."""
    with cgroup.Group.make(Limits(memory_mb=256), pids=512) as group:
        holds = [name for name, directory in (("memory", group.memory), ("processes", group.pids)) if directory]
        by_others = group.pids_held_by
    found = [f"hold {' and '.join(holds) or 'nothing'}"]
    found += [] if group.memory else [f"memory is bounded by a {WATCHDOG}"]
    found += [] if group.pids else [f"processes by {by_others}"]
    return Finding("control groups", bool(group.memory), "; ".join(found), _why_not(), needed=False)


def _why_not() -> str:
    root = cgroup.ROOT
    if os.path.exists(f"{root}/cgroup.controllers"):
        return "these are version 2, between whose groups a running process cannot move; the watchdog bounds memory"
    if not os.path.isdir(f"{root}/memory"):
        return "no group of memory is mounted: mount the control group memory, or let the watchdog bound it"
    return "they cannot be written here: start it as root on the machine, or let the watchdog bound memory"


def clock(now: float, installed: float) -> Finding:
    """Whether the clock is behind what it must be past: the moment this was installed.

    Args:
        now: Seconds since 1970 by the clock.
        installed: The same, of Hermit's own files.
    """
    found = f"{dt.datetime.fromtimestamp(now, dt.UTC):%Y-%m-%d %H:%M:%S} UTC"
    behind = now < installed - A_DAY_S
    cure = "set it: certificates and signatures are judged by it"
    return Finding(
        "clock", not behind, f"{found}, before Hermit was installed" if behind else found, cure, needed=False
    )
