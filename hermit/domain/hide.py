"""The names of what a run hides, and the variable that hands them on to processes that start sandboxes themselves."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

VARIABLE = "HA_SANDBOX_HIDE"
# A module with its packages, or a distribution: no separator, no dot at an end or beside another.
NAME = re.compile(r"\w[\w-]*(\.\w[\w-]*)*\Z")


def checked(names: Iterable[str]) -> tuple[str, ...]:
    """The names, each once.

    Raises:
        ValueError: One of them is no name of a module, package or distribution.
    """
    found = dict.fromkeys(names)
    for name in found:
        if not NAME.match(name):
            raise ValueError(f"hide takes names of modules or packages such as bench.scoring, not {name!r}")
    return tuple(found)


def to_environment(names: Iterable[str]) -> str:
    """The names as the variable holds them.

    Raises:
        ValueError: One of them is no name of a module, package or distribution.
    """
    return ",".join(checked(names))


def from_environment(value: str) -> tuple[str, ...]:
    """The names of the variable, in order; none where it is empty.

    Raises:
        ValueError: It holds something that is no name.
    """
    return checked(name for name in re.split(r"[,\s]+", value) if name)


def merged(own: Iterable[str], inherited: Iterable[str]) -> tuple[str, ...]:
    """The own names and the inherited ones: what a parent process hides stays hidden.

    Raises:
        ValueError: One of them is no name of a module, package or distribution.
    """
    return checked((*own, *inherited))
