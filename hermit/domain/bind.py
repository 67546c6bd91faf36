"""One path of the host, shown inside a sandbox under a name of its own."""

from __future__ import annotations

import functools
import posixpath
from dataclasses import dataclass


@functools.lru_cache(maxsize=4096)  # a run names the same few paths for each of its starts
def absolute(path: str, *, what: str) -> str:
    """The normal form of an absolute path: no ``..``, no double or trailing slash.

    Raises:
        ValueError: The path is empty, relative, holds ``..``, a NUL byte or a lone surrogate.
    """
    if not path.startswith("/"):
        raise ValueError(f"{what} must be an absolute path, not {path!r}")
    if "\0" in path:
        raise ValueError(f"{what} holds a NUL byte: {path!r}")
    try:
        path.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise ValueError(f"{what} holds a lone surrogate, which no file name can: {path!r}") from None
    if ".." in path.split("/"):
        raise ValueError(f"{what} must not hold '..': {path!r}")
    return "/" + posixpath.normpath(path).lstrip("/")


def contains(outer: str, inner: str) -> bool:
    """Whether ``inner`` is ``outer`` or lies inside it, compared by the parts of two normal absolute paths."""
    return inner == outer or inner.startswith(outer.rstrip("/") + "/")


@dataclass(frozen=True)
class Bind:
    """``source`` on the host is shown at ``target`` inside, read-only unless ``writable``.

    Raises:
        ValueError: One of the paths is not absolute or holds ``..``, or the target is the root.
    """

    source: str
    target: str
    writable: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", absolute(self.source, what="a bind's source"))
        object.__setattr__(self, "target", absolute(self.target, what="a bind's target"))
        if self.target == "/":
            raise ValueError("a bind's target must not be the root: the sandbox builds its own")
