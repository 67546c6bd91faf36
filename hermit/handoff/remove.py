"""The removal of a directory that somebody else filled, however deep it is and whatever modes its parts have.

It goes by descriptor, one at a time, and follows no link. Nobody may work in the directory any more: the sandbox that
did has ended.
"""

from __future__ import annotations

import os
import stat


def remove(directory: str) -> None:
    """Removes a directory and everything below it; one that is not there is no error.

    Raises:
        OSError: Something in it cannot be removed.
    """
    try:
        here = _open(directory, None)
    except FileNotFoundError:
        return
    try:
        # For each level: its name, and the directories in it that are still to remove.
        levels = [(directory, _remove_files(here))]
        while True:
            name, pending = levels[-1]
            if pending:
                here = _step(here, pending[-1])
                levels.append((pending.pop(), _remove_files(here)))
                continue
            levels.pop()
            if not levels:
                break
            here = _step(here, "..")
            os.rmdir(name, dir_fd=here)
    finally:
        os.close(here)
    os.rmdir(directory)


def _remove_files(here: int) -> list[str]:
    """Removes all but the directories, whose names it returns."""
    os.fchmod(here, stat.S_IRWXU)
    with os.scandir(here) as entries:
        names = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
    for name, is_directory in names.items():
        if not is_directory:
            os.unlink(name, dir_fd=here)
    return [name for name, is_directory in names.items() if is_directory]


def _step(here: int, name: str) -> int:
    there = _open(name, here)
    os.close(here)
    return there


def _open(name: str, here: int | None) -> int:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(name, flags, dir_fd=here)
    except PermissionError:
        os.chmod(name, stat.S_IRWXU, dir_fd=here)
        return os.open(name, flags, dir_fd=here)
