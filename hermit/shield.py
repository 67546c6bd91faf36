"""How a judge keeps its files from code that it runs: the kernel refuses them to a process, for good, by Landlock.

A child that is going to run an answer calls :func:`give_up_files` first. It needs no privilege and no second sandbox, takes
a millisecond, and holds for every program that the child starts. Nothing takes it back.
"""

from __future__ import annotations

import _ctypes  # the module under `ctypes`, which costs as much as a sandbox
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# The calls by their numbers, which are the same on every architecture.
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
NO_NEW_PRIVILEGES = 38
ABOUT_VERSION = 1
BENEATH = 1
READING = 1 | 4 | 8  # to execute, to read a file, to list a directory
# What each version added to what can be refused: of files, of the network, and of processes beyond the own ones.
REFUSED = ((1, 0, 0x1FFF), (2, 0, 1 << 13), (3, 0, 1 << 14), (4, 1, 3), (5, 0, 1 << 15), (6, 2, 3))


def version() -> int:
    """Which Landlock this kernel has; 0 where it has none, or has it switched off."""
    return max(0, _returned("syscall", CREATE_RULESET, 0, 0, ABOUT_VERSION))


def give_up_files(*, work: str, secret: str) -> bool:
    """From now on this process, and all it starts, opens the system, the interpreter and ``work``, and no other file.

    It reaches no port by TCP where the kernel's version is 4 or more, and signals nobody else where it is 6 or more.

    Args:
        work: A directory that it may still read and write.
        secret: An existing path that it must not be able to open afterwards; it is tried.

    Returns:
        Whether it holds: false where the kernel has no Landlock, and nothing has changed.

    Raises:
        OSError: The kernel refuses, or the secret can be opened all the same.
    """
    known = version()
    if not known:
        return False
    refused = [0, 0, 0]
    for since, kind, rights in REFUSED:
        if known >= since:
            refused[kind] |= rights
    ruleset = _kernel("syscall", CREATE_RULESET, b"".join(map(_number, refused)), 24, 0)
    try:
        for place in shown(without=secret):
            _allow(ruleset, place, READING)
        _allow(ruleset, work, refused[0])
        _kernel("prctl", NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        _kernel("syscall", RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)
    try:
        os.close(os.open(secret, os.O_RDONLY | os.O_CLOEXEC))
    except PermissionError:
        return True
    raise OSError(f"{secret} can be opened all the same: it lies among what is shown")


def shown(*, without: str) -> Iterator[str]:
    """The directories of the system and of the interpreter; one that holds a secret makes way for the standard library."""
    for place in ("/usr", "/lib", "/lib64", "/bin", sys.base_prefix, sys.prefix):
        yield os.path.dirname(os.__file__) if without.startswith(f"{place}/") else place


def _allow(ruleset: int, place: str, rights: int) -> None:
    try:
        descriptor = os.open(place, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        # A packed structure: 64 bits of rights, then 32 of a descriptor.
        rule = _number(rights) + descriptor.to_bytes(4, sys.byteorder)
        _kernel("syscall", ADD_RULE, ruleset, BENEATH, rule, 0)
    finally:
        os.close(descriptor)


def _number(value: int) -> bytes:
    return value.to_bytes(8, sys.byteorder)


def _kernel(function: str, *arguments: int | bytes) -> int:
    returned = _returned(function, *arguments)
    if returned < 0:
        raise OSError(f"the kernel refuses {function}{arguments[:1]}")
    return returned


def _returned(function: str, *arguments: int | bytes) -> int:
    """What a function of the C library returns."""
    address = _ctypes.dlsym(_ctypes.dlopen(None, 0), function)  # type: ignore[arg-type]  # None is this program
    returned: int = _ctypes.call_function(address, arguments)
    return returned
