"""What a sandbox is granted, each path opened once: what was looked at is what is shown, or nothing starts.

Whoever may write beside a granted path can put a link or another directory in its place, after it was looked at and
before it is mounted. So each source is opened once. bubblewrap from 0.10 on is handed the descriptor; an older one looks
the path up again. On every version the relay compares what it finds at each place with what was opened here, so a swap
shows the old file or ends the start.

What was opened is held as long as the sandbox lives: until then no other file can get its number. What the system and the
interpreter show is not opened: beside it nobody may write but root, and the user whose program this is.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import resource
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hermit.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hermit.domain.bind import Bind

# The sandbox's own three streams take the numbers below this one.
STREAMS = 3
# So few descriptors fit beside everything else, whatever the bound; with more, this many stay free for the rest.
FEW = 64
SPARE = 512


@dataclass(frozen=True)
class Grant:
    """A path of the host that is shown, held open.

    Args:
        bind: Where it is shown.
        descriptor: What was opened: it can be neither read nor written, only named.
        device: The number of its file system.
        inode: Its own number there.
    """

    bind: Bind
    descriptor: int
    device: int
    inode: int


@contextlib.contextmanager
def opened(binds: Sequence[Bind], *, where: str) -> Iterator[tuple[Grant, ...]]:
    """Holds the sources of the binds open.

    Raises:
        SandboxError: One does not exist or cannot be looked up, or this process may not hold that many descriptors.
    """
    _make_room(len(binds))
    with contextlib.ExitStack() as held:
        yield tuple(_opened(bind, held, where=where) for bind in binds)


def _opened(bind: Bind, held: contextlib.ExitStack, *, where: str) -> Grant:
    try:
        descriptor = _open(bind.source)
        held.callback(os.close, descriptor)
        status = os.fstat(descriptor)
    except OSError as error:
        raise _refusal(bind.source, error, where=where) from None
    return Grant(bind, descriptor, status.st_dev, status.st_ino)


def _open(source: str) -> int:
    """A descriptor of what a path leads to; a link is followed, as it is by a mount."""
    flags = os.O_PATH | os.O_CLOEXEC
    try:
        # Asked for as a directory, one that an automounter serves is mounted now; else it would be by the mount.
        descriptor = os.open(source, flags | os.O_DIRECTORY)
    except NotADirectoryError:
        descriptor = os.open(source, flags)
    if descriptor >= STREAMS:
        return descriptor
    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, STREAMS)
    finally:
        os.close(descriptor)


def _refusal(source: str, error: OSError, *, where: str) -> SandboxError:
    if error.errno in (errno.EMFILE, errno.ENFILE):
        what = f"no descriptor is left for {source}: each path that is shown takes one"
        return SandboxError(what, where=where, cause="descriptors", cure="raise `ulimit -n`, or declare fewer paths")
    if error.errno not in (errno.ENOENT, errno.ENOTDIR):
        what = f"{source} cannot be looked up: {error.strerror}"
        cure = "make it reachable for the user who runs this, or do not declare it"
        return SandboxError(what, where=where, cause="missing source", cure=cure)
    what = "is a link that leads nowhere" if os.path.islink(source) else "does not exist here"
    cure = "create it, or do not declare it; inside a sandbox only what that one shows exists"
    return SandboxError(f"{source} {what}", where=where, cause="missing source", cure=cure)


def _make_room(count: int) -> None:
    """Lets this process hold that many more descriptors, as far as its own hard bound allows.

    The bound is the whole process's; a sandbox's command gets one of its own (``Limits.open_files``).
    """
    if count <= FEW:
        return
    wanted = len(os.listdir("/proc/self/fd")) + count + SPARE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft not in (resource.RLIM_INFINITY, hard) and wanted > soft:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))
