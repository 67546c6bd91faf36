"""The filter of a sandbox whose user the kernel takes for root: nobody inside makes a control group namespace. Pure.

Who owns the namespace of its control groups may mount their file system, and every file there belongs to root: with it
a process that the kernel takes for root could lift the bounds of its own sandbox, and stop whatever else the machine
runs. User namespaces stay allowed, for a sandbox inside the sandbox needs one.
"""

from __future__ import annotations

import errno
import struct

# Of each machine its own calls and those of its older programs: (architecture, clone, unshare) in the kernel's numbers.
CALLS = {
    "x86_64": ((0xC000003E, 56, 272), (0x40000003, 120, 310)),
    "aarch64": ((0xC00000B7, 220, 97), (0x40000028, 120, 337)),
    "riscv64": ((0xC00000F3, 220, 97),),
}
CLONE3 = 435  # the same everywhere
X32 = 0x40000000  # a third table of x86_64, which hardly any kernel has: it would be a way around the first
CLONE_NEWCGROUP = 0x02000000
# Instructions (linux/filter.h), and where the kernel puts the number, the architecture and the first argument.
LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16
ALLOW, REFUSE = 0x7FFF0000, 0x00050000


def program(machine: str) -> bytes:
    """The filter for a machine, by the name that ``uname`` has for it.

    A namespace is refused as the kernel itself does where none is left. ``clone3`` hides its flags behind a pointer,
    and does not exist: every C library falls back to ``clone``.

    Raises:
        ValueError: The machine's calls are not known.
    """
    if machine not in CALLS:
        raise ValueError(f"the system calls of a {machine} are not known, so a sandbox of root cannot be closed on it")
    lines = [(LOAD, 0, 0, ARCHITECTURE)]
    for architecture, clone, unshare in CALLS[machine]:
        lines += [
            (EQUAL, 0, 10, architecture),
            (LOAD, 0, 0, NUMBER),
            (AT_LEAST, 6, 0, X32),
            (EQUAL, 5, 0, CLONE3),
            (EQUAL, 1, 0, clone),
            (EQUAL, 0, 2, unshare),
            (LOAD, 0, 0, FIRST_ARGUMENT),
            (ANY_BIT, 2, 0, CLONE_NEWCGROUP),
            (RETURN, 0, 0, ALLOW),
            (RETURN, 0, 0, REFUSE | errno.ENOSYS),
            (RETURN, 0, 0, REFUSE | errno.ENOSPC),
        ]
    lines.append((RETURN, 0, 0, REFUSE | errno.ENOSYS))
    return b"".join(struct.pack("<HBBI", code, met, unmet, value) for code, met, unmet, value in lines)
