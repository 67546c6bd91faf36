"""The learner: what an Evolver is, what it is given and hands back, and where its method is found.

This package is imported inside the learner's sandbox, where the rest of Hermit is not shown: what a method imports of it
comes along with the start.
"""

from __future__ import annotations

import sys

from hermit.evolver.base import Access, Context, Evolver, FinalResult, Progress, StepResult, Workspace
from hermit.evolver.tools import Cancel, Cancelled, Tool, ToolError, Tools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from hermit.evolver.acting import AgentEvolver
    from hermit.evolver.command import CommandEvolver

__all__ = [
    "Access",
    "AgentEvolver",
    "Cancel",
    "Cancelled",
    "CommandEvolver",
    "Context",
    "Evolver",
    "FinalResult",
    "Progress",
    "StepResult",
    "Tool",
    "ToolError",
    "Tools",
    "Workspace",
]


def __getattr__(name: str) -> Any:
    """The two ready learners are imported when they are first used: the one needs the framework, most methods neither."""
    homes = {"AgentEvolver": "hermit.evolver.acting", "CommandEvolver": "hermit.evolver.command"}
    if name not in homes:
        raise AttributeError(f"module 'hermit.evolver' has no attribute {name!r}")
    __import__(homes[name])
    return getattr(sys.modules[homes[name]], name)
