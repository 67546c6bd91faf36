"""What a training run has used up of its budget, and which bound of it is reached."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from hermit.config.schema import BudgetConfig
    from hermit.run.handover import Answer

SECONDS_PER_HOUR = 3600.0


@dataclass
class Spending:
    """The sum so far, of agents and learner.

    Args:
        usd: US dollars, of the calls that say what they cost.
        tokens: Tokens, of the calls that say how many they took.
        wall_s: Seconds the steps took, those of earlier processes of the run too.
        unknown_cost: How many calls do not say what they cost.
    """

    usd: float = 0.0
    tokens: int = 0
    wall_s: float = 0.0
    unknown_cost: int = 0

    def add(self, *, cost_usd: float | None, tokens: Mapping[str, Any]) -> None:
        """Takes one call."""
        if cost_usd is None:
            self.unknown_cost += 1
        else:
            self.usd += cost_usd
        self.tokens += tokens_in(tokens)

    def add_step(self, line: Mapping[str, Any]) -> None:
        """Takes one finished step, as it stands in ``steps.jsonl``."""
        attempts = line.get("rollouts")
        if attempts is not None:
            self._add_sums(attempts)
        self.add_answer(line["learner"]["usage"], line["learner"]["tools"])
        self.wall_s += line["wall_s"]

    def add_answer(self, usage: Mapping[str, Any], tools: Mapping[str, Mapping[str, Any]]) -> None:
        """Takes one call of the learner: what it says it used, and what the tools it called came to."""
        self.usd += usage.get("cost_usd", 0.0)
        self.tokens += int(usage.get("tokens", 0))
        for meter in tools.values():
            self._add_sums(meter)

    def add_final(self, answer: Answer) -> None:
        """Takes the learner's last call, which is no step's."""
        self.add_answer(answer.usage, answer.meters)
        self.wall_s += answer.wall_s

    def _add_sums(self, sums: Mapping[str, Any]) -> None:
        self.usd += sums["cost_usd"]
        self.tokens += sums.get("tokens", 0)
        self.unknown_cost += sums["unknown_cost"]

    def reached(self, budget: BudgetConfig) -> str:
        """Which bound is reached, in words; empty where none is."""
        hours = self.wall_s / SECONDS_PER_HOUR
        bounds = (
            ("usd", self.usd, budget.usd),
            ("tokens", float(self.tokens), budget.tokens),
            ("hours", hours, budget.hours),
        )
        for name, spent, bound in bounds:
            if bound is not None and spent >= bound:
                return f"trainer.budget.{name} is used up: {spent:.6g} of {bound:.6g}"
        return ""

    def as_json(self) -> dict[str, Any]:
        """The sums, for the records of the run."""
        return {
            "cost_usd": round(self.usd, 6),
            "tokens": self.tokens,
            "wall_s": round(self.wall_s, 3),
            "unknown_cost_calls": self.unknown_cost,
        }


def cost_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """What attempts came to, by their rows."""
    sums = Spending()
    for row in rows:
        sums.add(cost_usd=row["cost_usd"], tokens=row.get("tokens") or {})
    return {"cost_usd": round(sums.usd, 6), "tokens": sums.tokens, "unknown_cost": sums.unknown_cost}


def tokens_in(counts: Mapping[str, Any]) -> int:
    """How many tokens a call took: its ``total`` where it gives one, the sum of its kinds otherwise.

    What an agent or a learner says is no number, or none that can be added, counts nothing.
    """
    given = {"total": counts["total"]} if "total" in counts else counts
    numbers = [value for value in given.values() if isinstance(value, (int, float)) and not isinstance(value, bool)]
    return sum(int(value) for value in numbers if math.isfinite(value) and value > 0)
