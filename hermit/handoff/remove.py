"""The removal of a directory that somebody else filled, however deep and wide it is and whatever modes its parts have.

It goes by descriptor, one at a time, and follows no link. Nobody may work in the directory any more: the sandbox that
did has ended.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from hermit import untrusted
from hermit.untrusted import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

# So many entries are looked at at once: a directory of millions does not wait in memory.
AT_ONCE = 10_000


def remove(directory: str) -> None:
    """Removes a directory and everything below it; one that is not there is no error.

    Raises:
        OSError: Something in it cannot be removed, or it is a link or no directory.
    """
    try:
        here = _open(lambda: untrusted.open_top(directory), lambda: os.chmod(directory, stat.S_IRWXU))
    except untrusted.Refused as refused:
        if refused.reason != "missing":
            raise
        return
    try:
        # For each level: its name, the directories in it that are still to remove, and whether more may be in it.
        levels = [(directory, *_remove_files(here))]
        while True:
            name, pending, more = levels[-1]
            if pending:
                inner = pending.pop()
                here = _step(here, inner)
                levels.append((inner, *_remove_files(here)))
            elif more:
                levels[-1] = (name, *_remove_files(here))
            else:
                levels.pop()
                if not levels:
                    break
                here = _step(here, "..")
                os.rmdir(name, dir_fd=here)
    finally:
        os.close(here)
    os.rmdir(directory)


def _remove_files(here: int) -> tuple[list[str], bool]:
    """Removes what is no directory of some of the entries; the names of those that are, and whether there are more."""
    os.fchmod(here, stat.S_IRWXU)
    found = untrusted.some_entries(here, most=AT_ONCE)
    for name, kind in found:
        if kind is not Kind.DIRECTORY:
            os.unlink(name, dir_fd=here)
    return [name for name, kind in found if kind is Kind.DIRECTORY], len(found) == AT_ONCE


def _step(here: int, name: str) -> int:
    if name == "..":
        there = untrusted.open_parent(at=here)
    else:
        there = _open(
            lambda: untrusted.open_directory(name, at=here), lambda: os.chmod(name, stat.S_IRWXU, dir_fd=here)
        )
    os.close(here)
    return there


def _open(open_it: Callable[[], int], unlock: Callable[[], None]) -> int:
    """Opens a directory, whatever its mode is."""
    try:
        return open_it()
    except untrusted.Refused as refused:
        if refused.reason != "unreadable":
            raise
    unlock()
    return open_it()
