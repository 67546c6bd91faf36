"""The system a sandbox shows: programs and libraries, read-only, the few files of ``/etc`` they need, and the kernel's own.

Most of it is the same for everybody. ``/proc`` is not: its settings belong to root, and whom the kernel takes for root
owns them inside as well, whatever number it has there.

* Where **root** starts a sandbox, the settings are shown read-only. By these covers the kernel knows that ``/proc`` is
  not whole, and mounts no fresh one for anybody inside (``mount_too_revealing``). That has to be so: a fresh one would
  have no covers, and its settings would be the user's own to change.
* In a sandbox **inside that one**, the outer ``/proc`` is therefore shown read-only: it knows the processes of the outer
  sandbox, and no others.
* An **ordinary user** owns nothing there: no covers, and a fresh ``/proc`` at every depth.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from importlib import resources

from hermit.bwrap import seccomp
from hermit.bwrap.argv import File, Filter, Kernel, Link, Operation, Show
from hermit.domain.bind import Bind
from hermit.domain.network import Network
from hermit.errors import SandboxError

# Where programs and libraries lie: links into /usr on a merged system, directories on others.
ROOT_DIRECTORIES = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
# The links of alternatives, and the loader's cache.
ETC = ("/etc/alternatives", "/etc/ld.so.cache")
# Only a sandbox that has a network has anybody to ask for names.
NETWORK_ETC = ("/etc/resolv.conf", "/etc/hosts", "/etc/services", "/etc/protocols", "/etc/nsswitch.conf")
# Only one that speaks to hosts has anybody to trust.
CERTIFICATES = "/etc/ssl/certs"
# The users' files are Hermit's own: they name the one user inside, and nobody of the host.
USERS = ("passwd", "group")


# What of /proc its owner can write with effect on the whole machine; bubblewrap itself covers interrupts and buses.
KERNEL_SETTINGS = ("/proc/sys", "/proc/sysrq-trigger", "/proc/acpi/wakeup", "/proc/scsi", "/proc/asound")
# Directories of /proc that exist to be mounted over: the kernel disregards what lies on them.
PROC_MOUNT_POINTS = ("/proc/sys/fs/binfmt_misc", "/proc/fs/nfsd", "/proc/openprom")
# The machine's own namespace of processes (the kernel's PROC_PID_INIT_INO).
FIRST_PID_NAMESPACE = "pid:[4026531836]"


@dataclass(frozen=True, kw_only=True)
class Ground:
    """What the sandboxes of this process stand on.

    Args:
        root: Whether the kernel takes this user for root.
        lent: The device number of this place's ``/proc`` where a sandbox has to make do with that; 0 where it gets one
            of its own.
        deepest: Whether this is a sandbox that was lent its ``/proc`` itself: read-only, it can set up no other.
    """

    root: bool = False
    lent: int = 0
    deepest: bool = False

    @property
    def shared(self) -> tuple[str, ...]:
        """The namespaces that a sandbox has to share with the one around it."""
        return ("cgroup",) if self.lent else ()


def is_root() -> bool:
    """Whether the kernel takes this user for root: then it owns the settings of the kernel, also in a sandbox."""
    try:
        owner = os.stat("/proc/sys").st_uid
    except OSError:  # a kernel without settings: root is who has the number
        return os.geteuid() == 0
    # An owner without a number here is shown as somebody whom this user may happen to be.
    return owner == os.geteuid() and str(owner) != _read("/proc/sys/kernel/overflowuid").strip()


def ground() -> Ground:
    """What a sandbox stands on that is started here and now.

    ``/proc`` is lent by a sandbox that root started, and by nobody else: a machine or a container would show processes
    that have nothing to do with this one.
    """
    root = is_root()
    if not inside_roots() or not masks(_read("/proc/self/mountinfo")):
        return Ground(root=root)
    if not own_proc(_read("/proc/self/status")):
        return Ground(root=root, deepest=True)
    own = os.readlink("/proc/self/ns/pid") != FIRST_PID_NAMESPACE
    return Ground(root=root, lent=os.stat("/proc").st_dev if own else 0)


def inside_roots() -> bool:
    """Whether this is the inside of a sandbox that root started: its user is never 0, whoever the kernel takes it for."""
    return os.geteuid() != 0 and is_root()


def own_proc(status: str) -> bool:
    """Whether ``/proc`` belongs to the namespace of this process, which then has one number in it and no other."""
    numbers = re.search(r"^NSpid:(.*)$", status, re.MULTILINE)
    return numbers is None or len(numbers[1].split()) == 1


def masks(mountinfo: str) -> tuple[str, ...]:
    """What is mounted below ``/proc`` and so hides a part of it."""
    return tuple(
        point
        for point in mount_points(mountinfo)
        if point.startswith("/proc/") and not point.startswith(PROC_MOUNT_POINTS)
    )


def mount_points(mountinfo: str) -> tuple[str, ...]:
    """Every place where something is mounted."""
    points = (line.split(" ")[4] for line in mountinfo.splitlines() if line.count(" ") > 4)  # noqa: PLR2004 - proc(5)
    return tuple(re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal.group(1), 8)), point) for point in points)


def kernel(here: Ground) -> tuple[Operation, ...]:
    """What lies at ``/proc`` and ``/dev``, and what nobody inside can ask the kernel for.

    Raises:
        SandboxError: No sandbox can be set up here.
        ValueError: The user is root, and the calls of this machine are not known.
    """
    if not here.root:
        return (Kernel("proc"), Kernel("dev"))
    if here.deepest:
        raise SandboxError(
            "the sandbox around this one lends it a /proc that cannot be written, and so it can hold no other",
            cause="depth",
            cure="nest one sandbox less; started by an ordinary user or in the image, sandboxes nest deeper",
        )
    proc: tuple[Operation, ...] = (Show(Bind("/proc", "/proc")),)
    if not here.lent:
        proc = (Kernel("proc"), *(Show(Bind(path, path)) for path in KERNEL_SETTINGS if os.path.exists(path)))
    return (*proc, Kernel("dev"), Filter(seccomp.program(os.uname().machine)))


def operations(network: Network, *, trusting: bool = False) -> tuple[Operation, ...]:
    """What every sandbox shows of the place it starts in. A link costs nothing; each mount costs every start.

    Args:
        network: Which network it has.
        trusting: Whether it speaks to hosts, and so needs the public certificates.
    """
    shown: list[Operation] = [Show(Bind("/usr", "/usr"))]
    for path in ROOT_DIRECTORIES:
        if os.path.islink(path):
            shown.append(Link(os.readlink(path), path))
        elif os.path.isdir(path):
            shown.append(Show(Bind(path, path)))
    wanted = ETC + (NETWORK_ETC if network is Network.OPEN else ())
    if trusting or network is Network.OPEN:
        wanted += (CERTIFICATES,)
    shown += [Show(Bind(path, path)) for path in wanted if os.path.exists(path)]
    zone = os.path.realpath("/etc/localtime")
    if zone.startswith("/usr/") and os.path.exists(zone):
        shown.append(Link(zone, "/etc/localtime"))
    own = resources.files("hermit.bwrap") / "etc"
    shown += [File(f"/etc/{name}", (own / name).read_bytes()) for name in USERS]
    return tuple(shown)


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()
