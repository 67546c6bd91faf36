"""What an agent hands back, what a judge says of it, and what one attempt comes to."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any


@dataclass
class RunOutput:
    """What one call of an agent hands back; every field is plain JSON.

    Args:
        output: The answer, as the judge expects it.
        log: Free text about the call.
        cost_usd: What it cost in US dollars, ``None`` where unknown.
        wall_s: Seconds it took by its own account.
        api_speed: Tokens a second at the model, ``None`` where unknown.
        messages: The trajectory.
        tokens: Token counts by kind.
        extra: Anything else.
    """

    output: Any = None
    log: str = ""
    cost_usd: float | None = None
    wall_s: float | None = None
    api_speed: float | None = None
    messages: list[Any] = field(default_factory=list)
    tokens: dict[str, Any] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass
class JudgeResult:
    """What a judge says of one attempt: a finite ``score``, words for the learner, anything else in ``extra``."""

    score: float
    feedback: str = ""
    extra: dict[str, Any] = field(default_factory=dict)


class Status(Enum):
    """What one attempt came to. All but ``SANDBOX_ERROR`` have a score; that one is ours, and has none."""

    OK = "ok"
    AGENT_ERROR = "agent_error"
    TIMEOUT = "timeout"
    JUDGE_ERROR = "judge_error"
    SANDBOX_ERROR = "sandbox_error"
