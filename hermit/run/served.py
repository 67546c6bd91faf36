"""A tool that a learner is served, what it returns, and what its calls come to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hermit.agent.result import Failure


@dataclass(frozen=True)
class Returned:
    """What a tool returned.

    Args:
        value: Plain JSON.
        cost_usd: What it cost; ``None`` where that is not known.
        logs: A directory on the host with logs of what it ran, of which the learner gets a copy.
    """

    value: Any
    cost_usd: float | None = 0.0
    logs: str | None = None


Implementation = Callable[[dict[str, Any], int], "Returned | Failure"]


@dataclass(frozen=True, kw_only=True)
class Served:
    """A tool as the endpoint serves it.

    Args:
        name: Its name.
        call: Does it: gets the argument, in which each path is one of the host, and a descriptor that becomes readable when
            nobody waits for it any more.
        description: What it does.
        takes: The JSON Schema of what it is given; a text of ``"format": "path"`` at its top, or a list of them, names
            files of the learner's.
        gives: The JSON Schema of what it returns.
        timeout_s: Seconds a call may take.
        unfit: Why an argument does not fit, in words; empty where it does.
        copies: Whether it gets copies of what the paths name; else their places on the host.
    """

    name: str
    call: Implementation
    description: str = ""
    takes: Mapping[str, Any] = field(default_factory=lambda: {"type": "object"})
    gives: Mapping[str, Any] = field(default_factory=dict)
    timeout_s: float = 60.0
    unfit: Callable[[Any], str] = lambda _: ""
    copies: bool = True

    @property
    def told(self) -> dict[str, Any]:
        """What a learner is told of it."""
        return {
            "name": self.name,
            "description": self.description,
            "takes": dict(self.takes),
            "gives": dict(self.gives),
            "timeout_s": self.timeout_s,
        }


@dataclass
class Meter:
    """What the calls of each tool come to: a few counts by name.

    Args:
        calls: How often it was called.
        failed: How often it failed.
        seconds: How long it took.
        bytes_in: How much it was given.
        bytes_out: How much it gave back.
        cost_usd: What it cost, as far as that is known.
        unknown_cost: How many calls' cost is not known.
    """

    calls: int = 0
    failed: int = 0
    seconds: float = 0.0
    bytes_in: int = 0
    bytes_out: int = 0
    cost_usd: float = 0.0
    unknown_cost: int = 0

    def add(self, row: Mapping[str, Any]) -> None:
        """Adds one call, as it is logged."""
        self.calls += 1
        self.failed += row["status"] != "ok"
        self.seconds += row["seconds"]
        self.bytes_in += row["bytes_in"]
        self.bytes_out += row["bytes_out"]
        self.cost_usd += row["cost_usd"] or 0.0
        self.unknown_cost += row["cost_usd"] is None
