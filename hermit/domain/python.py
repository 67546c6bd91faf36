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
        standard: The directories of its standard library.
        shown: What has to be shown of it, beyond what every sandbox shows: trees and files, under each name they have.
        links: Links between the names of its program that lie in no shown tree, as (text, path).
        others: What lies in a shown tree and is not part of it: site directories of other interpreters, and what
            ``.pth`` files add beside the site directories.
        aliases: The names, of ``python`` and ``python3``, that do not start it in its own directory of programs.
        user_site: The user's site directory, which an isolated interpreter does not look into; empty without one.
        package: The directory of the ``hermit`` package it runs.
    """

    executable: str
    prefix: str
    base_prefix: str
    sites: tuple[str, ...]
    standard: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    others: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    user_site: str = ""
    package: str


@dataclass(frozen=True, kw_only=True)
class Package:
    """One of ``environment.packages``: installed beside the site directories, and shown alone.

    Args:
        name: As it was asked for.
        shown: Its package directories or module files, at their own place; none where they are shown already.
        search: The directories that must be on ``sys.path`` inside for it to be imported.
    """

    name: str
    shown: tuple[str, ...] = ()
    search: tuple[str, ...] = ()
