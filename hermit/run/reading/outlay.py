"""What a training run cost, by who spent it: attempts, the learner itself, and each tool that it called."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from hermit.run.reading.load import finite

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

SECONDS_PER_HOUR = 3600.0
MOST_NUMBER = 1e15


@dataclass(frozen=True)
class Outlay:
    """What somebody spent.

    Args:
        usd: US dollars, of the calls that say what they cost.
        tokens: Tokens, of the calls that say how many they took.
        seconds: Seconds it took.
        unknown: How many calls do not say what they cost.
        calls: How many calls there were.
        failed: How many of them failed.
    """

    usd: float = 0.0
    tokens: float = 0
    seconds: float = 0.0
    unknown: int = 0
    calls: int = 0
    failed: int = 0

    def __add__(self, other: Outlay) -> Outlay:
        return Outlay(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))

    def as_json(self) -> dict[str, Any]:
        """The same for machines."""
        return {**vars(self), "usd": round(self.usd, 6), "seconds": round(self.seconds, 3)}


@dataclass(frozen=True)
class Outlays:
    """What a step, or a run, cost.

    Args:
        attempts: What its attempts cost, and all time that is not the learner's: attempts, checks and versions.
        learner: What the learner says that it used itself, and the time of its calls but for the tools.
        tools: What each tool that it called came to.
    """

    attempts: Outlay = field(default_factory=Outlay)
    learner: Outlay = field(default_factory=Outlay)
    tools: Mapping[str, Outlay] = field(default_factory=dict)

    @property
    def served(self) -> Outlay:
        """What the tools came to together."""
        return total(self.tools.values())

    @property
    def all(self) -> Outlay:
        """What everything came to."""
        return self.attempts + self.learner + self.served

    @property
    def parts(self) -> Iterator[tuple[str, Outlay]]:
        """Who spent how much."""
        yield "attempts", self.attempts
        yield "learner", self.learner
        yield "tools", self.served

    @classmethod
    def sum(cls, each: Iterable[Outlays]) -> Outlays:
        """What several steps cost."""
        spent = tuple(each)
        names = dict.fromkeys(name for one in spent for name in one.tools)
        return cls(
            total(one.attempts for one in spent),
            total(one.learner for one in spent),
            {name: total(one.tools.get(name, Outlay()) for one in spent) for name in names},
        )

    def as_json(self) -> dict[str, Any]:
        """The same for machines."""
        return {
            "all": self.all.as_json(),
            "attempts": self.attempts.as_json(),
            "learner": self.learner.as_json(),
            "tools": {name: outlay.as_json() for name, outlay in self.tools.items()},
        }


def total(outlays: Iterable[Outlay]) -> Outlay:
    """The sum."""
    return sum(outlays, Outlay())


def of_call(usage: Any, meters: Any, *, seconds: float) -> tuple[Outlay, dict[str, Outlay]]:
    """What one call of a learner cost: itself, and the tools that it called.

    Args:
        usage: What it says that it used.
        meters: What the tools came to, by name.
        seconds: How long the call took, tools included.
    """
    said = usage if isinstance(usage, dict) else {}
    found = meters if isinstance(meters, dict) else {}
    tools = {str(name): _of_meter(meter) for name, meter in found.items() if isinstance(meter, dict)}
    own = max(0.0, seconds - total(tools.values()).seconds)
    return Outlay(number(said.get("cost_usd")), int(number(said.get("tokens"))), own, calls=1), tools


def of_attempts(sums: Any, statuses: Mapping[str, int], *, seconds: float) -> Outlay:
    """What the attempts of a step cost.

    Args:
        sums: What their rows come to.
        statuses: How many came to each status.
        seconds: Seconds of the step that are not the learner's.
    """
    said = sums if isinstance(sums, dict) else {}
    calls = Counter(statuses).total()
    cost, tokens, unknown = (number(said.get(name)) for name in ("cost_usd", "tokens", "unknown_cost"))
    return Outlay(cost, int(tokens), max(0.0, seconds), int(unknown), calls, calls - statuses.get("ok", 0))


def _of_meter(meter: Mapping[str, Any]) -> Outlay:
    cost, tokens, seconds = (number(meter.get(name)) for name in ("cost_usd", "tokens", "seconds"))
    counts = (int(number(meter.get(name))) for name in ("unknown_cost", "calls", "failed"))
    return Outlay(cost, int(tokens), seconds, *counts)


def number(value: Any) -> float:
    """A number that can be added; what is none counts nothing, and less than nothing is no cost."""
    return min(MOST_NUMBER, max(0.0, float(value))) if finite(value) else 0.0
