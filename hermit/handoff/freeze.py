"""The adapter as a run uses it: a copy made once, which later edits do not reach, named by what it holds."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass

from hermit.errors import ConfigError
from hermit.handoff import sanitize
from hermit.handoff.collect import collect


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
    except (OSError, sanitize.TooMuch) as error:
        raise ConfigError(f"the adapter cannot be copied: {error}", where=adapter) from None


def digest(root: str) -> str:
    """SHA-256 over every name, kind, executable bit and content below ``root``, in the order of the names."""
    total = hashlib.sha256()
    for directory, names, files in os.walk(root):
        names.sort()
        for name in sorted([*names, *files]):
            path = os.path.join(directory, name)
            status = os.lstat(path)
            total.update(
                f"{os.path.relpath(path, root)}\0{stat.S_IFMT(status.st_mode)}\0".encode("utf-8", "surrogateescape")
            )
            if stat.S_ISLNK(status.st_mode):
                total.update(os.fsencode(os.readlink(path)) + b"\0")
            elif stat.S_ISREG(status.st_mode):
                total.update(b"x" if status.st_mode & stat.S_IXUSR else b"-")
                with open(path, "rb") as file:
                    total.update(hashlib.file_digest(file, "sha256").digest())
    return total.hexdigest()
