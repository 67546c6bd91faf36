"""A careful copy of files that somebody else made.

Every name is opened relative to the descriptor of its directory and no link is followed on the way, so a path that is
exchanged during the copy leads nowhere else. Regular files and directories are copied; a link is copied as a link when
its text stays inside the tree; everything else is dropped and counted. Modes keep their read, write and execute bits
for the owner only; setuid, setgid, sticky, owners, times and extended attributes are not carried over.
"""

from __future__ import annotations

import errno
import os
import posixpath
import stat
from collections import Counter
from dataclasses import dataclass, field

CHUNK = 1 << 20
MOST_ENTRIES = 200_000
MOST_BYTES = 16 * 1024**3
MOST_DEPTH = 128


class TooMuch(Exception):
    """There is more to copy than a copy may take; the message says of what."""


@dataclass
class Copied:
    """What a copy took and what it dropped.

    Args:
        entries: How many files, directories and links were copied.
        bytes: How many bytes the files hold.
        dropped: How many entries were dropped, by reason.
    """

    entries: int = 0
    bytes: int = 0
    dropped: Counter[str] = field(default_factory=Counter)

    def count(self, size: int) -> None:
        """Adds one entry.

        Raises:
            TooMuch: The copy has become too large.
        """
        self.entries += 1
        self.bytes += size
        if self.entries > MOST_ENTRIES:
            raise TooMuch(f"more than {MOST_ENTRIES} files")
        if self.bytes > MOST_BYTES:
            raise TooMuch(f"more than {MOST_BYTES >> 30} GiB")


def copy(source_dir: int, name: str, target_dir: int, *, copied: Copied, inside: str = "") -> None:
    """Copies one entry of a directory, and what lies below it, into another directory; one that is not there is no error.

    Args:
        source_dir: Descriptor of the directory that holds it.
        name: Its name there, one component.
        target_dir: Descriptor of the directory that gets it, under the same name.
        copied: Counts what was taken and dropped.
        inside: The path of ``source_dir`` from the root of the tree, for judging links.

    Raises:
        TooMuch: The tree is larger than a copy may be.
        OSError: The target cannot be written, or the source cannot be read for another reason than its kind.
    """
    try:
        kind = os.stat(name, dir_fd=source_dir, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return
    if stat.S_ISLNK(kind):
        _copy_link(source_dir, name, target_dir, copied=copied, inside=inside)
    elif stat.S_ISDIR(kind):
        _copy_directory(source_dir, name, target_dir, copied=copied, inside=inside)
    elif stat.S_ISREG(kind):
        _copy_file(source_dir, name, target_dir, copied=copied)
    else:
        copied.dropped["special file"] += 1


def _copy_link(source_dir: int, name: str, target_dir: int, *, copied: Copied, inside: str) -> None:
    text = os.readlink(name, dir_fd=source_dir)
    leads = posixpath.normpath(posixpath.join(inside, text))
    # A link that climbs after a name may climb out of another link's target: then its text says nothing.
    climbs_late = ".." in text.lstrip("./").split("/")
    if text.startswith("/") or climbs_late or leads == ".." or leads.startswith("../"):
        copied.dropped["link that leaves"] += 1
        return
    os.symlink(text, name, dir_fd=target_dir)
    copied.count(0)


def _copy_directory(source_dir: int, name: str, target_dir: int, *, copied: Copied, inside: str) -> None:
    path = posixpath.join(inside, name)
    if path.count("/") >= MOST_DEPTH:
        raise TooMuch(f"directories more than {MOST_DEPTH} deep")
    source = _open_as(name, os.O_DIRECTORY, source_dir, copied=copied)
    if source is None:
        return
    try:
        os.mkdir(name, 0o700, dir_fd=target_dir)
        target = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=target_dir)
        try:
            copied.count(0)
            with os.scandir(source) as entries:
                names = sorted(entry.name for entry in entries)
            for entry in names:
                copy(source, entry, target, copied=copied, inside=path)
        finally:
            os.close(target)
    finally:
        os.close(source)


def _copy_file(source_dir: int, name: str, target_dir: int, *, copied: Copied) -> None:
    source = _open_as(name, os.O_NONBLOCK, source_dir, copied=copied)
    if source is None:
        return
    try:
        status = os.fstat(source)
        if not stat.S_ISREG(status.st_mode):  # it was exchanged since it was looked at
            copied.dropped["special file"] += 1
            return
        copied.count(status.st_size)
        mode = 0o600 | (status.st_mode & stat.S_IXUSR)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        target = os.open(name, flags, mode, dir_fd=target_dir)
        try:
            _copy_bytes(source, target, status.st_size)
        finally:
            os.close(target)
    finally:
        os.close(source)


def _copy_bytes(source: int, target: int, size: int) -> None:
    """Copies at most ``size`` bytes: a file that grows meanwhile is not followed."""
    left = size
    while left > 0:
        try:
            moved = os.copy_file_range(source, target, min(left, CHUNK))
        except OSError as error:
            if error.errno not in (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
                raise
            moved = os.write(target, os.read(source, min(left, CHUNK)))
        if moved == 0:
            return
        left -= moved


def _open_as(name: str, flags: int, directory: int, *, copied: Copied) -> int | None:
    """A descriptor of the entry itself, ``None`` where it was exchanged for a link or may not be read."""
    try:
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | flags, dir_fd=directory)
    except PermissionError:
        copied.dropped["unreadable"] += 1
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENOTDIR, errno.ENOENT, errno.ENXIO):
            raise
        copied.dropped["exchanged during the copy"] += 1
    return None
