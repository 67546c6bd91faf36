"""Which options a container was started without, each seen from inside by what it does."""

from __future__ import annotations

import contextlib
import errno
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hermit.oci import argv
from hermit.run.doctor.finding import Finding

if TYPE_CHECKING:
    from hermit.bwrap.preflight import Facts

# More than any machine has: the kernel's word for no bound.
UNBOUNDED = 1 << 60


@dataclass(frozen=True, kw_only=True)
class Around:
    """What can be seen of a container beside its user, filter and /proc. The defaults are those of a closed one.

    Args:
        first: Whether this is the first process, which inherits every orphan.
        routes: How many ways lead outside.
        read_only: Whether the root cannot be written.
        scratch: Whether ``/tmp`` is a file system of its own.
        pids: The bound on processes, ``None`` where there is none.
        memory: The bound on memory in bytes, ``None`` where there is none.
    """

    first: bool = False
    routes: int = 0
    read_only: bool = True
    scratch: bool = True
    pids: int | None = 4096
    memory: int | None = 8 << 30


def around() -> Around:
    """What can be seen of this container."""
    return Around(
        first=os.getpid() == 1,
        routes=_routes(),
        read_only=bool(os.statvfs("/").f_flag & os.ST_RDONLY),
        scratch=os.path.ismount("/tmp"),  # noqa: S108 - the container's own
        pids=_bound("pids/pids.max", "pids.max"),
        memory=_bound("memory/memory.limit_in_bytes", "memory.max"),
    )


def _routes() -> int:
    lines = _read("/proc/net/route").splitlines()[1:]
    lines += [line for line in _read("/proc/net/ipv6_route").splitlines() if not line.endswith(" lo")]
    return len(lines)


def _bound(*names: str) -> int | None:
    for name in names:
        text = _read(f"/sys/fs/cgroup/{name}").strip()
        if text.isdigit():
            return int(text) if int(text) < UNBOUNDED else None
    return None


def _read(path: str) -> str:
    with contextlib.suppress(OSError):
        return Path(path).read_text(encoding="utf-8", errors="replace")
    return ""


def missing(facts: Facts, seen: Around) -> list[str]:
    """The names of the options that this container was started without, in the order of the command."""
    lacks = {
        "init": seen.first,
        "read-only": not seen.read_only,
        "tmpfs": not seen.scratch,
        "network": seen.routes > 0,
        "user": facts.uid == 0,
        "cap-drop": facts.cap_bnd != 0,
        "no-new-privileges": not facts.no_new_privs,
        "seccomp": facts.seccomp == 0 or facts.seccomp_blocks or _clone_blocked(facts),
        "systempaths": bool(facts.overmounts),
        "apparmor": "apparmor" in argv.confined_by(facts.lsm_label),
        "label": "selinux" in argv.confined_by(facts.lsm_label),
        "pids-limit": seen.pids is None,
        "memory": seen.memory is None,
    }
    return [name for name, lacking in lacks.items() if lacking]


def _clone_blocked(facts: Facts) -> bool:
    """Whether it is a filter that refuses a user namespace, and not a setting of the machine."""
    return facts.unshare_errno == errno.EPERM and facts.userns_clone != 0 and facts.id_mapped


def probe(facts: Facts, seen: Around, *, container_cure: str) -> Finding:
    """Which options are missing, as they are typed; the cure is the whole command."""
    fit = argv.Container(image="hermit", seccomp=argv.FETCHED_PROFILE, lifted=tuple(argv.LIFTING))
    spelled = argv.options(fit)
    words = [spelled[name] for name in missing(facts, seen)]
    found = f"started without {' '.join(words)}" if words else "started with all of them"
    return Finding("container options", not words, found, container_cure, needed=False)
