"""Which interpreter, with which environment, a sandbox shows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Python:
    """An interpreter as it is installed.

    Args:
        executable: The program to start.
        prefix: Where its environment lies: a virtual environment, or the installation itself.
        base_prefix: Where its standard library lies.
        sites: The site directories on its ``sys.path``.
        others: The site directories of other interpreters that lie where a sandbox would show them.
        package: The directory of the ``hermit`` package it runs.
    """

    executable: str
    prefix: str
    base_prefix: str
    sites: tuple[str, ...]
    others: tuple[str, ...] = ()
    package: str
