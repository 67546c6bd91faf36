"""The system a sandbox shows: programs and libraries, read-only, and the few files of ``/etc`` they need."""

from __future__ import annotations

import os
from importlib import resources

from hermit.bwrap.argv import File, Link, Operation, Show
from hermit.domain.bind import Bind
from hermit.domain.network import Network

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


# What of a fresh /proc the real root user can write, capabilities or none: the settings of the whole kernel.
KERNEL_SETTINGS = ("/proc/sys", "/proc/sysrq-trigger")


def shields(uid: int) -> tuple[Operation, ...]:
    """Read-only covers over the kernel's settings, where the user outside is root.

    The user inside is then that same user under another number, and the files of ``/proc/sys`` are its own. An ordinary
    user needs none, and would lose the fresh ``/proc`` of a sandbox inside the sandbox by one.
    """
    if uid != 0:
        return ()
    return tuple(Show(Bind(path, path)) for path in KERNEL_SETTINGS if os.path.exists(path))


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
