"""The bounds a command sets on itself before it starts; they reach every process it starts."""

from __future__ import annotations

import os
import resource

MIB = 1024 * 1024
SCRATCH = ("/tmp", "/dev/shm")  # noqa: S108 - the sandbox's own


def apply(limits: dict[str, int]) -> None:
    """Sets each bound that is given, soft and hard alike, and forbids core files.

    ``memory_mb`` is a bound on data, not on address space: Node and torch reserve far more than they use. ``cpu_s`` is
    hard a second later: the signal of the soft bound says which one ended a process, the hard one's says nothing.
    """
    bounds = [(resource.RLIMIT_CORE, 0)]
    if "memory_mb" in limits:
        bounds.append((resource.RLIMIT_DATA, limits["memory_mb"] * MIB))
    if "file_mb" in limits:
        bounds.append((resource.RLIMIT_FSIZE, limits["file_mb"] * MIB))
    if "open_files" in limits:
        bounds.append((resource.RLIMIT_NOFILE, limits["open_files"]))
    if "cpu_s" in limits:
        bounds.append((resource.RLIMIT_CPU, limits["cpu_s"]))
    if "pids" in limits:
        bounds.append((resource.RLIMIT_NPROC, limits["pids"]))
    for kind, value in bounds:
        hard = resource.getrlimit(kind)[1]
        most = value + (kind == resource.RLIMIT_CPU)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (min(value, most), most))


def full(scratch_mb: int) -> list[str]:
    """The scratch directories that have no room left, for another block or for another file.

    Only from inside, and only while the sandbox stands, can this be seen: its file systems go with it. One whose whole
    size is not ``scratch_mb`` MiB is no scratch of the sandbox: a directory of the host may be shown in its place.
    """
    return [path for path in SCRATCH if is_full(path, scratch_mb * MIB)]


def is_full(path: str, size: int) -> bool:
    """Whether a file system of this size in bytes lies at a path, and is full."""
    try:
        found = os.statvfs(path)
    except OSError:
        return False
    return found.f_blocks * found.f_frsize == size and 0 in (found.f_bavail, found.f_favail)
