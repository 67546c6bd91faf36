"""Runs an adapter's tools file and looks at what it defines: called in a strict sandbox, where nothing else of Hermit is.

Its answer is the adapter's word about itself, for the code that answers runs beside the code that is asked about.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def undefined(argument: dict[str, Any]) -> list[str]:
    """Those of the ``names`` that the ``file`` does not define as something to call once it has run."""
    module = type(sys)("adapter_tools")
    module.__file__ = argument["file"]
    sys.modules["adapter_tools"] = module
    sys.path.insert(0, os.path.dirname(argument["file"]))
    with open(argument["file"], "rb") as file:
        code = compile(file.read(), argument["file"], "exec", dont_inherit=True)
    exec(code, vars(module))  # noqa: S102 - to run this code is what the sandbox is for
    return [name for name in argument["names"] if not callable(vars(module).get(name))]
