"""Hermit runs AI agents, their judges and their learners in sandboxes that behave the same on every machine."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # `typing` itself would cost every worker more than the rest of its start
if TYPE_CHECKING:
    from typing import Any

    from hermit.agent.base import Agent
    from hermit.domain.bind import Bind
    from hermit.domain.sandbox import Sandbox
    from hermit.domain.trial import JudgeResult, RunOutput

__version__ = "0.1.0"
__all__ = ["Agent", "Bind", "JudgeResult", "RunOutput", "Sandbox", "__version__"]


def __getattr__(name: str) -> Any:
    """Names are imported when they are first used: an agent that wants ``RunOutput`` pays for nothing else."""
    homes = {
        "Agent": "hermit.agent.base",
        "Bind": "hermit.domain.bind",
        "JudgeResult": "hermit.domain.trial",
        "RunOutput": "hermit.domain.trial",
        "Sandbox": "hermit.domain.sandbox",
    }
    if name not in homes:
        raise AttributeError(f"module 'hermit' has no attribute {name!r}")
    return getattr(import_module(homes[name]), name)
