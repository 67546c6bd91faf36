"""The processes a command leaves: adopted, counted, ended. Works the same with and without a namespace."""

from __future__ import annotations

import _ctypes  # the module under `ctypes`, which costs as much as a sandbox
import _signal  # type: ignore[import-not-found]  # `signal` itself imports enum, at a cost
import os
import resource

PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36


def prctl(option: int, value: int) -> None:
    """Sets one attribute of this process.

    Raises:
        OSError: The kernel refused.
    """
    function = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")  # type: ignore[arg-type]  # None is this program
    if _ctypes.call_function(function, (option, value, 0, 0, 0)) != 0:
        raise OSError("prctl failed")


def hide_descriptors() -> None:
    """No process of the same user can open this one's descriptors through ``/proc``, or trace it."""
    prctl(PR_SET_DUMPABLE, 0)


def adopt() -> None:
    """Makes this process the parent of every orphan of its descendants, and closes its descriptors to them."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    hide_descriptors()


def descendants() -> list[int]:
    """Every living process that this one started, or that was started by one of those."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            parent = parent_of(name)
            if parent is not None:
                children.setdefault(parent, []).append(int(name))
    found: list[int] = []
    ahead = [os.getpid()]
    while ahead:
        own = children.get(ahead.pop(), [])
        found += own
        ahead += own
    return found


def parent_of(pid: str) -> int | None:
    """The parent of a process, ``None`` when it is gone or a zombie."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state, parent = file.read().rpartition(b")")[2].split()[:2]
    except OSError:
        return None
    return None if state == b"Z" else int(parent)


def signal_all(number: int) -> None:
    """Sends a signal to every descendant; one that ended meanwhile is no error.

    An init's are all that its namespace holds, and the kernel knows them at once: ``/proc`` may be the one of a sandbox
    around this one, and have other numbers for them.
    """
    for pid in [-1] if os.getpid() == 1 else descendants():
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):  # it ended, or became another user's: unconfined only
            continue


def pass_on(numbers: bytes, command: int) -> None:
    """Sends signals to the command and to all that share its process group, as a terminal does.

    What USR1 and USR2 mean is between their sender and the command: a child that knows nothing of it would end.
    """
    for number in numbers:
        if command in descendants():  # else its number may be another's by now
            alone = number in (_signal.SIGUSR1, _signal.SIGUSR2)
            try:
                os.kill(command if alone else -command, number)
            except (ProcessLookupError, PermissionError):  # as above
                continue


def end_all() -> None:
    """Kills and reaps until this process has no child; its orphans are its children, so then nothing is left."""
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                signal_all(9)
                os.waitpid(-1, 0)
        except ChildProcessError:
            return


def usage() -> tuple[float, int]:
    """Processor seconds of all that was reaped, and the largest resident size of one process in KiB."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime, spent.ru_maxrss
