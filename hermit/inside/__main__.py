"""Starts the relay. The host has read these modules already and sends their code along, so no start looks for a file.

The host's first words (``hermit/bundle.py``) run this code with ``bundle``: the modules, and the relay's orders.
"""

import gc
import sys
from _frozen_importlib import ModuleSpec  # `importlib` itself would cost more
from _frozen_importlib_external import ExtensionFileLoader
from marshal import loads
from posix import _exit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

carried: "dict[str, tuple[str, str, bytes]]"
orders: "dict[str, Any]"
carried, orders = globals()["bundle"]

# Nothing that is loaded here ever goes away again: to look for garbage in it would only cost every start.
gc.disable()


class Carried:
    """Finds and loads the modules that came along: of each its file, its kind, its code."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> "ModuleSpec | None":  # noqa: ARG004 - the protocol's
        """What is known of a module, ``None`` where it did not come along."""
        if name not in carried:
            return None
        file, kind, _ = carried[name]
        loader: Any = ExtensionFileLoader(name, file) if kind == "extension" else Carried
        spec = ModuleSpec(name, loader, origin=file, is_package=kind == "package")
        spec.has_location = True
        if spec.submodule_search_locations is not None:  # a package
            spec.submodule_search_locations.append(file.rpartition("/")[0])
        return spec

    @staticmethod
    def create_module(spec: object) -> None:
        """A plain module will do."""

    @staticmethod
    def exec_module(module: "Any") -> None:
        """Runs the module's code."""
        exec(loads(carried[module.__name__][2]), vars(module))  # noqa: S102, S302 - the host read it from our own files

    @staticmethod
    def forget() -> None:
        """The relay's own modules are gone, for an agent's may have the same names; the package's are still found."""
        for name in orders["own"]:
            del carried[name]
            sys.modules.pop(name, None)


sys.meta_path.insert(0, Carried)

import relay

# No clean-up is owed, and the listening thread must not delay the end.
_exit(relay.main(orders))
