"""What a sandbox is made of, tried step by step without bubblewrap, in namespaces that end with the child that owns them.

Theory of operation. A child of this process makes one more, in new namespaces, by the same system call as bubblewrap. That
one maps its user, mounts, turns its root round, mounts a ``/proc``, and speaks to itself over its loopback. It writes each
step and the kernel's answer to a pipe and ends; the kernel then drops everything that it made.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import signal
import socket
import struct
from typing import TYPE_CHECKING

from hermit.bwrap import preflight, seccomp
from hermit.run.doctor.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermit.bwrap.preflight import Facts

NEWNS, NEWUSER, NEWPID, NEWNET = 0x20000, 0x10000000, 0x20000000, 0x40000000
MS_BIND_REC, MS_SLAVE_REC, MNT_DETACH = 0x1000 | 0x4000, 0x80000 | 0x4000, 2
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
STEP = struct.Struct("BB")
ANSWER_S = 20
# A step's name, and how bubblewrap words its failure: the table of causes knows those words.
NAMESPACES, MAP, SLAVE, TMPFS, ROOT, OLD_ROOT, PROC, LOOPBACK = range(8)
STEPS = (
    ("new namespaces", "Creating new namespace failed"),
    ("the user's number", "setting up uid map"),
    ("mounts of its own", "Failed to make / slave"),
    ("mount", "Failed to mount tmpfs"),
    ("pivot_root", "pivot_root"),
    ("umount", "unmount old root"),
    ("a /proc of its own", "Can't mount proc on /proc"),
    ("the loopback", "loopback: Failed RTM_NEWADDR"),
)


def answers() -> dict[int, int]:
    """What the kernel answered to each step that was tried, by its number: 0 where it was done.

    Empty where this machine's system calls are not known.
    """
    calls = seccomp.CALLS.get(os.uname().machine)
    if calls is None:
        return {}
    reader, writer = os.pipe()
    try:
        child = os.fork()
    except BlockingIOError:
        os.close(reader)
        os.close(writer)
        return {NAMESPACES: errno.EAGAIN}
    if child == 0:
        with contextlib.suppress(BaseException):
            os.close(reader)
            signal.alarm(ANSWER_S)  # nothing here waits for anybody: this bounds what nobody foresaw
            _inside(writer, calls[0][1])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return dict(STEP.iter_unpack(said[: len(said) // STEP.size * STEP.size]))


def _inside(writer: int, clone: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    flags = NEWNS | NEWUSER | NEWPID | NEWNET | signal.SIGCHLD
    uid, gid = os.geteuid(), os.getegid()
    child = libc.syscall(ctypes.c_long(clone), ctypes.c_long(flags), None, None, None, None)
    if child != 0:
        os.write(writer, STEP.pack(NAMESPACES, ctypes.get_errno() if child < 0 else 0))
        if child > 0:
            os.waitpid(child, 0)
        return
    with contextlib.suppress(BaseException):
        signal.alarm(ANSWER_S)
        _steps(writer, libc, (uid, gid))
    os._exit(0)


def _steps(writer: int, libc: ctypes.CDLL, user: tuple[int, int]) -> None:
    """The steps in their order; the first that fails is the last, but for the loopback, which needs none of them."""
    _told(writer, LOOPBACK, _loopback())
    steps: tuple[tuple[int, Callable[[], int]], ...] = (
        (MAP, lambda: _map(*user)),
        (SLAVE, lambda: _answer(libc.mount(None, b"/", None, MS_SLAVE_REC, None))),
        (TMPFS, lambda: _answer(libc.mount(b"tmpfs", b"/tmp", b"tmpfs", 0, None))),
        (PROC, lambda: _proc(libc)),
        (ROOT, lambda: _turn(libc)),
        (OLD_ROOT, lambda: _answer(libc.umount2(b"/old", MNT_DETACH))),
    )
    for step, answer in steps:
        if _told(writer, step, answer()):
            return


def _told(writer: int, step: int, answer: int) -> int:
    os.write(writer, STEP.pack(step, min(answer, 255)))
    return answer


def _answer(returned: int) -> int:
    return ctypes.get_errno() if returned < 0 else 0


def _map(uid: int, gid: int) -> int:
    try:
        for name, words in (("uid_map", f"1000 {uid} 1"), ("setgroups", "deny"), ("gid_map", f"1000 {gid} 1")):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(words)
    except OSError as error:
        return error.errno or errno.EIO
    return 0


def _proc(libc: ctypes.CDLL) -> int:
    os.mkdir("/tmp/proc")  # noqa: S108 - in the file system that was just mounted
    return _answer(libc.mount(b"proc", b"/tmp/proc", b"proc", 0, None))


def _turn(libc: ctypes.CDLL) -> int:
    os.mkdir("/tmp/old")  # noqa: S108 - in the file system that was just mounted
    turned = _answer(libc.pivot_root(b"/tmp", b"/tmp/old"))
    os.chdir("/")
    return turned


def _loopback() -> int:
    """Brings the loopback up, and hears itself on it."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
            request = fcntl.ioctl(own, SIOCGIFFLAGS, struct.pack("16sH14x", b"lo", 0))
            (flags,) = struct.unpack_from("H", request, 16)
            fcntl.ioctl(own, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | IFF_UP))
            own.settimeout(ANSWER_S / 2)
            own.bind(("127.0.0.1", 0))
            own.sendto(b"x", own.getsockname())
            own.recv(1)
    except OSError as error:
        return error.errno or errno.ETIMEDOUT
    return 0


def probes(facts: Facts, tried: dict[int, int], *, container_cure: str) -> list[Finding]:
    """Whether a sandbox's mounts and its loopback can be made.

    Args:
        facts: The facts of the place.
        tried: What ``answers`` returned.
        container_cure: The whole command that starts a fit container, empty where this is none.
    """
    mounts = [step for step in (NAMESPACES, MAP, SLAVE, TMPFS, PROC, ROOT, OLD_ROOT) if step in tried]
    found = []
    for name, steps, right in (
        ("mount and pivot_root", mounts, "mounted, turned and unmounted in namespaces of its own"),
        ("loopback", [step for step in (NAMESPACES, LOOPBACK) if step in tried], "up in a new network namespace"),
    ):
        failed = next((step for step in steps if tried[step]), None)
        if not tried:
            found.append(Finding(name, True, f"not tried: the system calls of a {os.uname().machine} are not known"))
        elif failed is None:
            found.append(Finding(name, True, right))
        else:
            found.append(_failed(name, (failed, tried[failed]), facts, container_cure=container_cure))
    return found


def _failed(name: str, refused: tuple[int, int], facts: Facts, *, container_cure: str) -> Finding:
    what, words = STEPS[refused[0]]
    text = f"bwrap: {words}: {os.strerror(refused[1])}"
    if refused == (NAMESPACES, errno.EPERM):
        text = "bwrap: No permissions to create new namespace"
    elif refused == (NAMESPACES, errno.ENOSPC):
        text = f"{text} (ENOSPC)"
    elif refused == (NAMESPACES, errno.EINVAL):
        text = "bwrap: the kernel does not support user namespaces"
    cause = preflight.diagnose(text, facts, container_cure=container_cure)
    answer = errno.errorcode.get(refused[1], str(refused[1]))
    return Finding(name, False, f"{what}: {answer}; {cause.what}", cause.cure, unconfined=True)
