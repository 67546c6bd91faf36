"""What an agent hands back, and what a judge says of it.

Plain classes, because every worker imports them and ``dataclasses`` costs a worker more than its sandbox does.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


# When an agent's call is stopped: as the time of day, and on the clock of the kernel that nobody can set.
DEADLINE = "HA_DEADLINE"
MONOTONIC_DEADLINE = "HA_DEADLINE_MONOTONIC"


class _Fields:
    """Two values of one class with the same fields are equal, and show their fields."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    __hash__ = None  # type: ignore[assignment]  # their fields can change

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({fields})"


class RunOutput(_Fields):
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

    def __init__(  # noqa: PLR0917 - a record of plain fields, in the order users know
        self,
        output: Any = None,
        log: str = "",
        cost_usd: float | None = None,
        wall_s: float | None = None,
        api_speed: float | None = None,
        messages: list[Any] | None = None,
        tokens: dict[str, Any] | None = None,
        extra: dict[str, Any] | None = None,
    ) -> None:
        self.output = output
        self.log = log
        self.cost_usd = cost_usd
        self.wall_s = wall_s
        self.api_speed = api_speed
        self.messages = [] if messages is None else messages
        self.tokens = {} if tokens is None else tokens
        self.extra = {} if extra is None else extra


class JudgeResult(_Fields):
    """What a judge says of one attempt.

    Args:
        score: A finite number; 1.0 is solved.
        feedback: Words for the learner.
        extra: Anything else, as plain JSON.
    """

    def __init__(self, score: float, feedback: str = "", extra: dict[str, Any] | None = None) -> None:
        self.score = score
        self.feedback = feedback
        self.extra = {} if extra is None else extra
