"""The one way the host looks at what somebody else made: files, directories and links of an agent, a judge or a learner.

Whoever made them chose their names, kinds, sizes and modes, and may have been changing them a moment ago. So everything
is opened by its name in a directory that is open already, never by a path that is looked up anew; no link is followed;
a FIFO or a device is never waited for; at most so many bytes are read, whatever a size says; and names are bytes, those
that are no UTF-8 stand in a ``str`` as Python's ``surrogateescape`` writes them. ``tests/architecture`` keeps the parts
of the package that handle such files from opening anything by another way.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import itertools
import os
import stat
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# openat2(2): its number is the same on every architecture; these are of <linux/openat2.h>.
OPENAT2 = 437
NO_MAGICLINKS, NO_SYMLINKS, BENEATH = 0x02, 0x04, 0x08
# What the machine's own security modules put on every file: nobody chose it.
LABELS = ("security.selinux", "security.ima", "security.evm", "security.apparmor")
CAPABILITY = "security.capability"
CHUNK = 1 << 20
REASONS = {
    errno.ENOENT: "missing",
    errno.ENAMETOOLONG: "missing",
    errno.EACCES: "unreadable",
    errno.EPERM: "unreadable",
    errno.EXDEV: "leaves",
    errno.ELOOP: "link",
}


class Kind(Enum):
    """What an entry of a directory is; the value is what a person is told."""

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    FIFO = "FIFO"
    SOCKET = "socket"
    DEVICE = "device"


class Refused(OSError):
    """Something is not what may be read.

    Args:
        path: Its name, as it was asked for.
        reason: Why not, in a few words of a closed set: ``missing``, ``link``, ``unreadable``, ``leaves``, or a kind.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{shown(path)}: {reason}")
        self.path = path
        self.reason = reason


class TooMany(Exception):
    """A directory holds more entries than may be listed."""


@dataclass(frozen=True)
class Content:
    """What was read of a file.

    Args:
        data: Its first bytes.
        cut: Whether there was more.
    """

    data: bytes
    cut: bool

    @property
    def text(self) -> str:
        """The bytes as text that can be printed; those that are no UTF-8 stand in hexadecimal."""
        return shown(self.data)


def shown(name: str | bytes) -> str:
    """A name or a content for a person: any bytes, as text that can be printed in UTF-8."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def kind_of(mode: int) -> Kind:
    """The kind that a mode of ``stat`` says."""
    kinds = {
        stat.S_IFREG: Kind.FILE,
        stat.S_IFDIR: Kind.DIRECTORY,
        stat.S_IFLNK: Kind.LINK,
        stat.S_IFIFO: Kind.FIFO,
        stat.S_IFSOCK: Kind.SOCKET,
    }
    return kinds.get(stat.S_IFMT(mode), Kind.DEVICE)


def open_top(path: str) -> int:
    """A descriptor of a directory to start from, whose last part is no link; the caller closes it.

    Raises:
        Refused: It is a link, no directory, missing or closed to this user.
        OSError: It cannot be opened for another reason.
    """
    return _opened(path, os.O_DIRECTORY, None)


@contextlib.contextmanager
def directory(path: str) -> Iterator[int]:
    """As :func:`open_top`, closed at the end."""
    with closing(open_top(path)) as descriptor:
        yield descriptor


def open_parent(*, at: int) -> int:
    """A descriptor of the directory that holds an open one; for trees that nobody changes any more.

    Raises:
        OSError: It cannot be opened.
    """
    return os.open("..", READ | os.O_DIRECTORY, dir_fd=at)


def open_directory(name: str, *, at: int) -> int:
    """A descriptor of a directory in another one; the caller closes it.

    Raises:
        Refused: It is no directory, or cannot be read.
        OSError: It cannot be opened for another reason.
    """
    return _opened(_component(name), os.O_DIRECTORY, at)


def open_file(name: str, *, at: int) -> tuple[int, os.stat_result]:
    """A descriptor, for reading, of a regular file in a directory, and what is known of it; the caller closes it.

    Raises:
        Refused: It is no regular file, or cannot be read.
        OSError: It cannot be opened for another reason.
    """
    return _regular(_opened(_component(name), 0, at), name)


def open_directory_beneath(path: str, *, at: int) -> int:
    """A descriptor of a directory some directories below one, over no link; the caller closes it.

    Args:
        path: Relative, of names only.
        at: The directory it is below.

    Raises:
        Refused: It leads out, over a link, to another kind, or cannot be read.
        OSError: It cannot be opened for another reason.
    """
    return _beneath(path, os.O_DIRECTORY, at)


def open_file_beneath(path: str, *, at: int) -> tuple[int, os.stat_result]:
    """As :func:`open_directory_beneath`, of a regular file, for reading."""
    return _regular(_beneath(path, 0, at), path)


@contextlib.contextmanager
def closing(descriptor: int) -> Iterator[int]:
    """Closes a descriptor at the end."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def read(path: str, *, at: int, most: int) -> Content:
    """The first ``most`` bytes of a regular file below a directory; a size is not believed.

    Raises:
        Refused: As for :func:`open_directory_beneath`.
        OSError: It cannot be read.
    """
    with closing(open_file_beneath(path, at=at)[0]) as descriptor:
        data = bytearray()
        while len(data) <= most:
            piece = os.read(descriptor, min(CHUNK, most + 1 - len(data)))
            if not piece:
                break
            data += piece
        return Content(bytes(data[:most]), cut=len(data) > most)


def entries(descriptor: int, *, most: int) -> list[tuple[str, Kind | None]]:
    """What a directory holds, in the order of the names; no kind where it cannot be told.

    Raises:
        TooMany: There are more than ``most``; no more than that were looked at.
        OSError: The directory cannot be listed.
    """
    found = some_entries(descriptor, most=most + 1)
    if len(found) > most:
        raise TooMany
    found.sort(key=lambda pair: os.fsencode(pair[0]))
    return found


def some_entries(descriptor: int, *, most: int) -> list[tuple[str, Kind | None]]:
    """As :func:`entries`, but at most so many of them, and in no order.

    Raises:
        OSError: The directory cannot be listed.
    """
    with contextlib.closing(each_entry(descriptor)) as listed:
        return list(itertools.islice(listed, most))


def each_entry(descriptor: int) -> Generator[tuple[str, Kind | None]]:
    """As :func:`some_entries`, one after the other, so that none waits in memory; the caller closes it.

    Raises:
        OSError: The directory cannot be listed.
    """
    with os.scandir(descriptor) as listed:
        for entry in listed:
            yield entry.name, _kind_of_entry(entry)


def status(name: str, *, at: int) -> os.stat_result:
    """What is known of an entry of a directory, a link itself included.

    Raises:
        Refused: It is missing, or cannot be looked at.
    """
    try:
        return os.stat(_component(name), dir_fd=at, follow_symlinks=False)
    except OSError as error:
        raise _refusal(name, error, at) from None


def link_text(name: str, *, at: int) -> str:
    """Where a link points; nothing is looked up there.

    Raises:
        Refused: It is no link.
    """
    try:
        return os.readlink(_component(name), dir_fd=at)
    except OSError as error:
        if error.errno == errno.EINVAL:
            raise Refused(name, kind_of(status(name, at=at).st_mode).value) from None
        raise _refusal(name, error, at) from None


def attributes(descriptor: int) -> list[str]:
    """The names of the extended attributes that somebody gave an open file or directory."""
    try:
        return [name for name in os.listxattr(descriptor) if name not in LABELS]
    except OSError:  # the file system has none
        return []


def _kind_of_entry(entry: os.DirEntry[str]) -> Kind | None:
    """From the listing alone, as file systems tell it; the rare kinds are looked at."""
    try:
        if entry.is_file(follow_symlinks=False):
            return Kind.FILE
        if entry.is_dir(follow_symlinks=False):
            return Kind.DIRECTORY
        if entry.is_symlink():
            return Kind.LINK
        return kind_of(entry.stat(follow_symlinks=False).st_mode)
    except OSError:  # gone meanwhile, or in a directory that may be listed and not entered
        return None


def _component(name: str) -> str:
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise Refused(name, "leaves")
    return name


def _regular(descriptor: int, name: str) -> tuple[int, os.stat_result]:
    """Looks at what was opened, for the name may have been given to something else before it was."""
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode):
        return descriptor, status
    os.close(descriptor)
    raise Refused(name, kind_of(status.st_mode).value)


def _opened(name: str, flags: int, at: int | None) -> int:
    try:
        return os.open(name, READ | flags, dir_fd=at)
    except OSError as error:
        raise _refusal(name, error, at) from None


def _refusal(name: str, error: OSError, at: int | None) -> Exception:
    """What stands for an error of an open: a refusal where the entry is the cause, else the error."""
    reason = REASONS.get(error.errno or 0, "")
    if error.errno in (errno.ENOTDIR, errno.ENXIO, errno.ENODEV):
        try:
            reason = kind_of(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode).value
        except OSError:  # below something that is no directory
            reason = "missing"
    return Refused(name, reason) if reason else error


def _beneath(path: str, flags: int, at: int) -> int:
    try:
        for name in path.split("/"):
            _component(name)
        call = _openat2()
        if call is None:
            return _step_by_step(path, flags, at)
        try:
            return call(os.fsencode(path), READ | flags, at)
        except OSError as error:
            # Not on this kernel, forbidden by a filter, or undecided because something was moved: step by step then.
            if error.errno not in (errno.ENOSYS, errno.EPERM, errno.EAGAIN):
                raise _refusal(path, error, at) from None
        return _step_by_step(path, flags, at)
    except Refused as refused:
        raise Refused(path, refused.reason) from None


def _step_by_step(path: str, flags: int, at: int) -> int:
    """The same as ``openat2`` with its three rules, one directory after the other."""
    *parents, last = path.split("/")
    here = os.dup(at)
    try:
        for name in parents:
            try:
                there = _opened(name, os.O_DIRECTORY, here)
            except Refused as refused:
                known = refused.reason in ("unreadable", Kind.LINK.value)
                raise Refused(name, refused.reason if known else "missing") from None
            os.close(here)
            here = there
        return _opened(last, flags, here)
    finally:
        os.close(here)


@functools.cache
def _openat2() -> Callable[[bytes, int, int], int] | None:
    """The kernel's own way to stay below a directory; ``None`` where this interpreter cannot call it."""
    try:
        import ctypes  # noqa: PLC0415 - most of what is opened is one name in a directory and needs no call of this kind

        library = ctypes.CDLL(None, use_errno=True)
    except (ImportError, OSError):
        return None
    rules = BENEATH | NO_SYMLINKS | NO_MAGICLINKS

    def call(path: bytes, flags: int, at: int) -> int:
        how = (ctypes.c_uint64 * 3)(flags, 0, rules)
        found: int = library.syscall(OPENAT2, at, path, ctypes.byref(how), ctypes.sizeof(how))
        if found < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return found

    return call
