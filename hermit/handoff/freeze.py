"""The adapter as a run uses it: a copy made once, which later edits do not reach, named by what it holds."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hermit import untrusted
from hermit.errors import ConfigError
from hermit.handoff import budget
from hermit.handoff.collect import collect
from hermit.untrusted import Kind

if TYPE_CHECKING:
    from hashlib import _Hash


@dataclass(frozen=True)
class Frozen:
    """A frozen adapter.

    Args:
        path: The copy.
        digest: SHA-256 over its names, modes and contents, in hexadecimal.
    """

    path: str
    digest: str


def freeze(adapter: str, *, into: str) -> Frozen:
    """Copies the adapter's directory to ``into``, which exists and is empty.

    Raises:
        ConfigError: The directory cannot be read, or is larger than a copy may be.
    """
    try:
        collect(os.path.realpath(adapter), ["."], into=into)
        return Frozen(into, digest(into))
    except (OSError, budget.TooMuch) as error:
        raise ConfigError(f"the adapter cannot be copied: {error}", where=adapter) from None


def digest(root: str) -> str:
    """SHA-256 over every name, kind, executable bit and content below ``root``, in the order of the names.

    Raises:
        OSError: Something cannot be read, or lies too deep.
    """
    total = hashlib.sha256()
    with untrusted.directory(root) as top:
        _add_below(total, top)
    return total.hexdigest()


def _add_below(total: _Hash, top: int) -> None:
    """No recursion, and a bound: a descriptor of each directory on the way is held."""
    levels = [("", top, _entries(top))]
    try:
        while True:
            above, here, entries = levels[-1]
            if entries:
                name, kind = entries.pop()
                path = above + name
                total.update(f"{path}\0{kind.value}\0".encode("utf-8", "surrogateescape"))
                if kind is Kind.DIRECTORY:
                    if len(levels) > budget.DEFAULT.depth:
                        raise OSError(f"directories more than {budget.DEFAULT.depth} deep")
                    inner = untrusted.open_directory(name, at=here)
                    levels.append((path + "/", inner, []))
                    levels[-1] = (path + "/", inner, _entries(inner))
                elif kind is Kind.LINK:
                    total.update(os.fsencode(untrusted.link_text(name, at=here)) + b"\0")
                elif kind is Kind.FILE:
                    _add_file(total, name, at=here)
            elif len(levels) > 1:
                levels.pop()
                os.close(here)
            else:
                return
    finally:
        for _, descriptor, _ in levels[1:]:
            os.close(descriptor)


def _entries(directory: int) -> list[tuple[str, Kind]]:
    """What a directory holds, the last name first."""
    try:
        found = untrusted.entries(directory, most=budget.DEFAULT.entries)
    except untrusted.TooMany:
        raise OSError(f"a directory of more than {budget.DEFAULT.entries} entries") from None
    return [
        (name, kind or untrusted.kind_of(untrusted.status(name, at=directory).st_mode))
        for name, kind in reversed(found)
    ]


def _add_file(total: _Hash, name: str, *, at: int) -> None:
    descriptor, status = untrusted.open_file(name, at=at)
    with os.fdopen(descriptor, "rb") as file:
        total.update(b"x" if status.st_mode & stat.S_IXUSR else b"-")
        total.update(hashlib.file_digest(file, "sha256").digest())
