from __future__ import annotations

from typing import Any

import pytest

from hermit.config.schema import BudgetConfig
from hermit.run.spending import Spending, tokens_in


@pytest.mark.parametrize(
    ("counts", "tokens"),
    [
        ({}, 0),
        ({"input": 10, "output": 5}, 15),
        ({"input": 10, "output": 5, "total": 12}, 12),
        ({"input": True, "output": "many", "cached": None}, 0),
        ({"input": float("nan"), "output": float("inf"), "more": -5, "other": 2.9}, 2),
    ],
)
def test_tokens_are_the_total_or_the_sum_of_what_are_numbers(counts: dict[str, Any], tokens: int) -> None:
    assert tokens_in(counts) == tokens


def test_costs_add_up_and_unknown_ones_are_counted() -> None:
    spending = Spending()
    spending.add(cost_usd=0.25, tokens={"input": 3})
    spending.add(cost_usd=None, tokens={})
    spending.add(cost_usd=0.5, tokens={"total": 4})
    assert spending.as_json() == {"cost_usd": 0.75, "tokens": 7, "wall_s": 0.0, "unknown_cost_calls": 1}


@pytest.mark.parametrize(
    ("bounds", "word"),
    [
        ({}, ""),
        ({"usd": 3.0}, ""),
        ({"usd": 2.0}, "trainer.budget.usd is used up: 2 of 2"),
        ({"tokens": 101}, ""),
        ({"tokens": 100}, "trainer.budget.tokens is used up: 100 of 100"),
        ({"hours": 1.1}, ""),
        ({"hours": 1.0}, "trainer.budget.hours is used up: 1 of 1"),
    ],
)
def test_the_bound_that_is_reached_is_named(bounds: dict[str, Any], word: str) -> None:
    spending = Spending(usd=2.0, tokens=100, wall_s=3600.0)
    assert spending.reached(BudgetConfig(**bounds)) == word
