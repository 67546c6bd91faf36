"""The Python a sandbox shows: the interpreter that runs Hermit, with its environment as installed."""

from __future__ import annotations

import compileall
import glob
import os
import sys
import sysconfig
from typing import TYPE_CHECKING

import hermit
from hermit.bwrap.argv import Empty, Operation, Show
from hermit.domain.bind import Bind, contains
from hermit.domain.python import Python

if TYPE_CHECKING:
    from collections.abc import Collection

# Site directories of Debian's interpreter and of those built by hand, all below /usr, which every sandbox shows.
SYSTEM_SITES = (
    "/usr/lib/python3/dist-packages",
    "/usr/lib/python3.*/site-packages",
    "/usr/local/lib/python3.*/dist-packages",
    "/usr/local/lib/python3.*/site-packages",
)


def current() -> Python:
    """The interpreter that runs this process."""
    paths = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    system = [path for path in sys.path if os.path.basename(path) == "dist-packages"]
    sites = {os.path.abspath(path) for path in (*paths, *system)}
    base_prefix = os.path.abspath(sys.base_prefix)
    return Python(
        executable=os.path.abspath(sys.executable),
        prefix=os.path.abspath(sys.prefix),
        base_prefix=base_prefix,
        sites=tuple(sorted(sites)),
        others=_other_sites(base_prefix, sites),
        package=os.path.dirname(os.path.abspath(hermit.__file__)),
    )


def operations(python: Python, *, framework: bool) -> tuple[Operation, ...]:
    """Shows the environment and its standard library, and an empty directory in place of every other site directory.

    The ``hermit`` package is shown at its own place when ``framework``, and covered where the environment holds it
    otherwise. What ``.pth`` files add beside the site directories is not shown.
    """
    shown = {path for path in (python.prefix, python.base_prefix) if not contains("/usr", path)}
    executable = os.path.realpath(python.executable)
    if not any(contains(root, executable) for root in (*shown, "/usr")):
        shown.add(executable)
    operations: list[Operation] = [Show(Bind(path, path)) for path in sorted(shown)]
    operations += [Empty(path) for path in python.others]
    installed = any(contains(site, python.package) for site in python.sites)
    if framework and not installed:
        operations.append(Show(Bind(python.package, python.package)))
    elif installed and not framework:
        operations.append(Empty(python.package))
    return tuple(operations)


def compile_relay(python: Python) -> None:
    """Keeps byte code of what every start imports; a tree that cannot be written is used as it is, more slowly."""
    for directory in ("inside", "agent", "domain"):
        compileall.compile_dir(os.path.join(python.package, directory), quiet=2, maxlevels=0)
    compileall.compile_file(os.path.join(python.package, "__init__.py"), quiet=2)


def path_inside(python: Python) -> str:
    """The ``PATH`` inside: this environment's programs first, then the system's."""
    return ":".join([os.path.dirname(python.executable), "/usr/local/bin", "/usr/bin", "/bin"])


def _other_sites(base_prefix: str, sites: Collection[str]) -> tuple[str, ...]:
    """Site directories of other interpreters, those that hold anything: an empty one needs no cover."""
    base = glob.glob(f"{glob.escape(base_prefix)}/lib/python3.*/site-packages")
    system = [path for pattern in SYSTEM_SITES for path in glob.glob(pattern)]
    found = {os.path.realpath(path) for path in (*base, *system)}
    foreign = (path for path in found if not any(contains(path, site) for site in sites))
    return tuple(sorted(path for path in foreign if os.path.isdir(path) and os.listdir(path)))
