"""The removal of keys from files that lie somewhere: a call's logs, and what calls share.

Somebody else made them, and works there no more. They are gone through by descriptor, one at a time, however deep they lie;
no link is followed, nothing is waited for, and no size is believed. A file without a key is not written; one with a key is
written anew beside itself and put in its place at once.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import sys
from typing import TYPE_CHECKING

from hermit import untrusted
from hermit.handoff import redact
from hermit.untrusted import Kind

if TYPE_CHECKING:
    from collections import Counter
    from typing import BinaryIO

    from hermit.handoff.redact import Found, Redactor

MOST_BYTES = 64 * 1024**3
# What the first bytes of packed files are: what is in them cannot be read like this.
PACKED = (b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\xfd7zXZ\x00", b"(\xb5/\xfd", b"7z\xbc\xaf'\x1c", b"Rar!")


def tree(redactor: Redactor, root: str, *, found: Found) -> None:
    """Scrubs a file, or every file below a directory, in its place, and every name below it.

    Whoever filled it works in it no more. One descriptor is held at a time, however deep it is, and no link is followed.

    Raises:
        OSError: Something scrubbed could not be put in the place of what was there.
    """
    if not redactor:
        return
    try:
        here = untrusted.open_top(root)
    except untrusted.Refused as refused:
        with untrusted.directory(os.path.dirname(root)) as parent:
            if refused.reason != "missing":
                _scrub_entry(redactor, os.path.basename(root), parent, found=found, where=os.path.basename(root))
        return
    try:
        # For each level: its name, and the directories in it that are still to scrub.
        levels = [("", _scrub_level(redactor, here, inside="", found=found))]
        while True:
            name, pending = levels[-1]
            if pending:
                inside = "/".join([*(level for level, _ in levels[1:]), pending[-1]])
                try:
                    there = untrusted.open_directory(pending.pop(), at=here)
                except (untrusted.Refused, OSError):
                    found.unreadable.append(redactor.text(inside))
                    continue
                os.close(here)
                here = there
                levels.append((os.path.basename(inside), _scrub_level(redactor, here, inside=inside, found=found)))
                continue
            levels.pop()
            if not levels:
                return
            above = untrusted.open_parent(at=here)
            os.close(here)
            here = above
            _rename(redactor, name, here, found=found, inside=redactor.text("/".join(level for level, _ in levels[1:])))
    finally:
        os.close(here)


def needed(redactor: Redactor, root: str) -> bool:
    """Whether a key stands in a file, or in any file, link or name below a directory; nothing is changed.

    What cannot be read is nobody's to learn from here.

    Raises:
        OSError: The top cannot be opened.
    """
    if not redactor:
        return False
    try:
        top = untrusted.open_top(root)
    except untrusted.Refused as refused:
        if refused.reason != Kind.FILE.value:
            raise
        with untrusted.directory(os.path.dirname(root)) as parent:
            return _holds_key(redactor, os.path.basename(root), Kind.FILE, at=parent)
    with untrusted.closing(top):
        pending = ["."]
        while pending:
            inside = pending.pop()
            try:
                here = os.dup(top) if inside == "." else untrusted.open_directory_beneath(inside, at=top)
            except OSError:
                continue
            with untrusted.closing(here):
                for name, kind in untrusted.some_entries(here, most=sys.maxsize):
                    if _holds_key(redactor, name, kind, at=here):
                        return True
                    if kind is Kind.DIRECTORY:
                        pending.append(name if inside == "." else f"{inside}/{name}")
    return False


def _holds_key(redactor: Redactor, name: str, kind: Kind | None, *, at: int) -> bool:
    try:
        texts = [os.fsencode(name)]
        if kind is Kind.LINK:
            texts.append(os.fsencode(untrusted.link_text(name, at=at)))
        if any(redactor.data(text) != text for text in texts):
            return True
        if kind is not Kind.FILE:
            return False
        with open(untrusted.open_file(name, at=at)[0], "rb", buffering=0) as file:
            return redactor.holds_any(file)
    except OSError:
        return False


def _scrub_level(redactor: Redactor, directory: int, *, inside: str, found: Found) -> list[str]:
    """Scrubs all that lies in one directory but the directories, whose names it returns."""
    listed = untrusted.some_entries(directory, most=sys.maxsize)
    below = [name for name, kind in listed if kind is Kind.DIRECTORY]
    for name in sorted({name for name, _ in listed}.difference(below)):
        _scrub_entry(redactor, name, directory, found=found, where=redactor.text(os.path.join(inside, name)))
        _rename(redactor, name, directory, found=found, inside=redactor.text(inside))
    return below


def _scrub_entry(redactor: Redactor, name: str, directory: int, *, found: Found, where: str) -> None:
    try:
        if untrusted.kind_of(untrusted.status(name, at=directory).st_mode) is Kind.LINK:
            _scrub_link(redactor, name, directory, found=found, where=where)
            return
        descriptor, status = untrusted.open_file(name, at=directory)
    except OSError as refused:
        reason = refused.reason if isinstance(refused, untrusted.Refused) else refused.strerror
        found.unreadable.append(f"{where}: {reason}")
        return
    with open(descriptor, "rb", buffering=0) as file:
        if status.st_size > MOST_BYTES:  # a size is cheap to claim: a file of holes has any
            found.unreadable.append(f"{where}: more than {MOST_BYTES >> 30} GiB")
            return
        if os.pread(descriptor, 8, 0).startswith(PACKED):
            found.unsearched.append(where)
        if redactor.holds_any(file):
            file.seek(0)
            found.add(where, _rewrite(redactor, file, name, directory))


def _scrub_link(redactor: Redactor, name: str, directory: int, *, found: Found, where: str) -> None:
    text = os.fsencode(untrusted.link_text(name, at=directory))
    scrubbed = redactor.data(text, found=found, where=where)
    if scrubbed != text:
        os.unlink(name, dir_fd=directory)
        os.symlink(scrubbed, os.fsencode(name), dir_fd=directory)


def _rewrite(redactor: Redactor, file: BinaryIO, name: str, directory: int) -> Counter[str]:
    """Writes the file anew without a key, and puts that in its place at once."""
    temporary = f".{secrets.token_hex(8)}.redacted"  # a name that nobody can have taken
    status = os.fstat(file.fileno())
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with open(os.open(temporary, flags, 0o600, dir_fd=directory), "wb") as target:
            counts = redactor.copy(iter(lambda: file.read(redact.PIECE), b""), target.write)
            with contextlib.suppress(PermissionError):  # it may be another user's, and is readable all the same
                os.fchown(target.fileno(), status.st_uid, status.st_gid)
            os.fchmod(target.fileno(), status.st_mode & (stat.S_IRWXU | stat.S_IRWXG | stat.S_IRWXO))
        os.replace(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=directory)
        raise
    return counts


def _rename(redactor: Redactor, name: str, directory: int, *, found: Found, inside: str) -> None:
    parts: list[bytes] = []
    counts = redactor.copy([os.fsencode(name)], parts.append)
    if not counts:
        return
    wanted = os.fsdecode(b"".join(parts))
    free, number = wanted, 1
    while _exists(free, directory):
        number += 1
        free = f"{wanted}.{number}"
    os.rename(name, free, src_dir_fd=directory, dst_dir_fd=directory)
    found.add(f"the name {os.path.normpath(os.path.join(inside, free))}", counts)


def _exists(name: str, directory: int) -> bool:
    try:
        untrusted.status(name, at=directory)
    except untrusted.Refused as refused:
        return refused.reason != "missing"
    return True
