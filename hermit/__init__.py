"""Hermit runs AI agents, their judges and their learners in sandboxes that behave the same on every machine."""

from __future__ import annotations

import sys

# Every worker imports this: `typing` would cost it more than the rest of its start, and `importlib` a third of that.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from hermit.agent.base import Agent
    from hermit.domain.bind import Bind
    from hermit.domain.sandbox import Sandbox
    from hermit.domain.trial import JudgeResult, RunOutput
    from hermit.run.adapter_code import AdapterError, call_adapter
    from hermit.run.deadline import time_left
    from hermit.run.session import Session

__version__ = "0.1.0"
__all__ = [
    "AdapterError",
    "Agent",
    "Bind",
    "JudgeResult",
    "RunOutput",
    "Sandbox",
    "Session",
    "__version__",
    "call_adapter",
    "time_left",
]


def __getattr__(name: str) -> Any:
    """Names are imported when they are first used: an agent that wants ``RunOutput`` pays for nothing else."""
    homes = {
        "AdapterError": "hermit.run.adapter_code",
        "Agent": "hermit.agent.base",
        "Bind": "hermit.domain.bind",
        "JudgeResult": "hermit.domain.trial",
        "RunOutput": "hermit.domain.trial",
        "Sandbox": "hermit.domain.sandbox",
        "Session": "hermit.run.session",
        "call_adapter": "hermit.run.adapter_code",
        "time_left": "hermit.run.deadline",
    }
    if name not in homes:
        raise AttributeError(f"module 'hermit' has no attribute {name!r}")
    __import__(homes[name])
    return getattr(sys.modules[homes[name]], name)
