"""The relay's code as one piece: read once by the host, and sent along with the orders of every start.

A start that finds its modules by itself looks into a directory and opens a file for each; that is a tenth of what it
costs to judge an attempt. The interpreter inside is the host's own, so code that the host has loaded is code it takes.
"""

from __future__ import annotations

import functools
import importlib
import marshal
import os
from importlib.machinery import SourceFileLoader
from typing import TYPE_CHECKING, Any

from hermit.domain.bind import contains

if TYPE_CHECKING:
    from hermit.domain.python import Python

# The relay's modules are no package: they have to run before anything can be imported from one.
RELAY = ("around", "checks", "command", "family", "forward", "limits", "network", "relay", "unseen")
# What `hermit.agent.worker` imports of this package.
WORKER = (
    "hermit",
    "hermit.agent",
    "hermit.agent.source",
    "hermit.agent.worker",
    "hermit.domain",
    "hermit.domain.codec",
    "hermit.domain.trial",
)
# What a copy that is made inside imports of it.
ARCHIVER = (
    "hermit",
    "hermit.handoff",
    "hermit.handoff.archive",
    "hermit.handoff.budget",
    "hermit.handoff.walk",
    "hermit.untrusted",
)
# What a learner's worker imports of it, and what a method may import of it where nothing else of the package is shown.
EVOLVER = (
    *WORKER,
    "hermit.agent.base",
    *(f"hermit.domain.{name}" for name in ("bind", "hide", "limits", "network", "pathmap", "sandbox")),
    "hermit.evolver",
    *(f"hermit.evolver.{name}" for name in ("acting", "base", "command", "tools", "views", "wire", "worker")),
    "hermit.untrusted",
)
# The first words of the relay, with the number of a descriptor that holds a bundle. Nobody else has read from it.
FIRST_WORDS = (
    "import sys,marshal,posix;hermit=int(sys.argv[1]);"
    "start,*bundle=marshal.loads(posix.pread(hermit,posix.fstat(hermit).st_size,0));posix.close(hermit);"
    "exec(start)"
)

# Modules of the standard library that these take, and that no interpreter has built in.
STANDARD = ("__future__", "_ctypes", "_socket", "resource")
STANDARD_WORKER = ("_json", "select")

Carried = dict[str, tuple[str, str, bytes]]


def command(executable: str, bundle: int) -> tuple[str, ...]:
    """How the relay is started with the bundle that a descriptor holds."""
    return (executable, "-I", "-S", "-c", FIRST_WORDS, str(bundle))


def packed(python: Python, orders: dict[str, Any], *, worker: str) -> bytes:
    """The relay's code, that of the worker where one is to run, and the orders, as the first words read them.

    Raises:
        OSError: A module of the relay is not where this package lies.
    """
    carried = _carried(python.package, python.standard, worker=worker.partition(":")[0])
    return marshal.dumps((_start(python.package), carried, {**orders, "own": RELAY}))


@functools.cache
def _start(package: str) -> Any:
    return _code("__main__", os.path.join(package, "inside", "__main__.py"))


@functools.cache
def _carried(package: str, standard: tuple[str, ...], *, worker: str) -> Carried:
    """Of each module its file, its kind, and its code where it has one.

    An interpreter with another standard library than this process finds that of its own.
    """
    found = {name: _module(name, f"{package}/inside/{name}") for name in RELAY}
    if worker:
        own = next((modules for modules in (WORKER, ARCHIVER, EVOLVER) if worker in modules), WORKER)
        found |= {name: _module(name, f"{os.path.dirname(package)}/{name.replace('.', '/')}") for name in own}
    for name in (*STANDARD, *(STANDARD_WORKER if worker else ())):
        file = getattr(importlib.import_module(name), "__file__", None)
        if file is None or not any(contains(directory, file) for directory in standard):
            continue
        if file.endswith(".so"):
            found[name] = (file, "extension", b"")
        else:
            found[name] = (file, "module", marshal.dumps(_code(name, file)))
    return found


def _module(name: str, place: str) -> tuple[str, str, bytes]:
    package = os.path.isdir(place)
    file = f"{place}/__init__.py" if package else f"{place}.py"
    return file, "package" if package else "module", marshal.dumps(_code(name, file))


def _code(name: str, file: str) -> Any:
    return SourceFileLoader(name, file).get_code(name)
