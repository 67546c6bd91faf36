"""The system a sandbox shows: programs and libraries, read-only, and the few files of ``/etc`` they need."""

from __future__ import annotations

import os
from importlib import resources

from hermit.bwrap.argv import Link, Operation, Show
from hermit.domain.bind import Bind
from hermit.domain.network import Network

# Where programs and libraries lie: links into /usr on a merged system, directories on others.
ROOT_DIRECTORIES = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
# The links of alternatives, the loader's cache, the time zone, where names are looked up, public certificates.
ETC = ("/etc/alternatives", "/etc/ld.so.cache", "/etc/localtime", "/etc/nsswitch.conf", "/etc/ssl/certs")
# Only a sandbox that has a network has anybody to ask for names.
NETWORK_ETC = ("/etc/resolv.conf", "/etc/hosts", "/etc/services", "/etc/protocols")


def operations(network: Network) -> tuple[Operation, ...]:
    """What every sandbox shows of the place it starts in.

    The users' files are Hermit's own: they name the one user inside, and nobody of the host.
    """
    shown: list[Operation] = [Show(Bind("/usr", "/usr"))]
    for path in ROOT_DIRECTORIES:
        if os.path.islink(path):
            shown.append(Link(os.readlink(path), path))
        elif os.path.isdir(path):
            shown.append(Show(Bind(path, path)))
    wanted = ETC + (NETWORK_ETC if network is Network.OPEN else ())
    shown += [Show(Bind(path, path)) for path in wanted if os.path.exists(path)]
    own = resources.files("hermit.bwrap") / "etc"
    shown += [Show(Bind(str(own / name), f"/etc/{name}")) for name in ("passwd", "group")]
    return tuple(shown)
