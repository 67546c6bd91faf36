"""The template's own check: what its rules cannot say."""

from __future__ import annotations

import ast
import json
import os


def check(argument: dict) -> list:
    """What is wrong with an adapter, each as ``{"path": ..., "reason": ...}``: here, that a tool is described and not defined.

    Args:
        argument: The directories of the ``adapter`` and of the template's ``root``.
    """
    described = os.path.join(argument["adapter"], "tools.tools.json")
    if not os.path.exists(described):
        return []
    with open(described, encoding="utf-8") as file:
        names = set(json.load(file))
    with open(os.path.join(argument["adapter"], "tools.py"), encoding="utf-8") as file:
        defined = {node.name for node in ast.parse(file.read()).body if isinstance(node, ast.FunctionDef)}
    return [
        {"path": "tools.tools.json", "reason": f"it describes {name}, which tools.py does not define"}
        for name in sorted(names - defined)
    ]
