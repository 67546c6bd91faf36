"""The bounds a command sets on itself before it starts; they reach every process it starts."""

from __future__ import annotations

import resource

MIB = 1024 * 1024


def apply(limits: dict[str, int]) -> None:
    """Sets each bound that is given, soft and hard alike, and forbids core files.

    ``memory_mb`` is a bound on data, not on address space: Node and torch reserve far more than they use.
    """
    bounds = [(resource.RLIMIT_CORE, 0)]
    if "memory_mb" in limits:
        bounds.append((resource.RLIMIT_DATA, limits["memory_mb"] * MIB))
    if "file_mb" in limits:
        bounds.append((resource.RLIMIT_FSIZE, limits["file_mb"] * MIB))
    if "cpu_s" in limits:
        bounds.append((resource.RLIMIT_CPU, limits["cpu_s"]))
    if "pids" in limits:
        bounds.append((resource.RLIMIT_NPROC, limits["pids"]))
    for kind, value in bounds:
        hard = resource.getrlimit(kind)[1]
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (bound, bound))
