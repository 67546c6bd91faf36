"""What paired differences say, against values that are known and properties that hold of any."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermit.domain.interval import MANY, below, quantile
from hermit.run.reading.paired import paired, sign_test


@pytest.mark.parametrize(
    ("freedom", "value"),
    [
        (1, 12.7062),
        (2, 4.30265),
        (3, 3.18245),
        (4, 2.77645),
        (9, 2.26216),
        (30, 2.04227),
        (163, 1.97462),
        (9999, 1.95996),
    ],
)
def test_the_quantiles_are_those_of_the_tables(freedom: int, value: float) -> None:
    assert quantile(0.975, freedom) == pytest.approx(value, rel=1e-4)


def test_the_last_exact_quantile_meets_the_normal_one() -> None:
    assert quantile(0.975, MANY) == pytest.approx(quantile(0.975, MANY + 1), rel=1e-3)


@given(st.integers(1, 300), st.floats(0, 50))
def test_the_distribution_is_one(freedom: int, value: float) -> None:
    assert 0.5 <= below(value, freedom) <= 1 + 1e-12
    assert below(value, freedom) <= below(value + 1, freedom) + 1e-12


@pytest.mark.parametrize(
    ("won", "lost", "p"),
    [(0, 0, None), (1, 0, 1.0), (5, 0, 0.0625), (0, 5, 0.0625), (8, 2, 0.109375), (3, 3, 1.0), (1000, 0, 2.0**-999)],
)
def test_the_sign_test_is_exact(won: int, lost: int, p: float | None) -> None:
    assert sign_test(won, lost) == (None if p is None else pytest.approx(p, rel=1e-12))


def test_ten_thousand_tasks_are_no_overflow() -> None:
    p = sign_test(5200, 4800)
    assert p is not None
    assert 1e-5 < p < 1e-3


def test_the_differences_of_an_example_have_the_interval_that_a_book_would_give() -> None:
    said = paired([1, 0, 0, 1, -1, 0, 1, 0, 1, 0])
    assert (said.won, said.lost, said.same) == (4, 1, 5)
    assert said.mean == pytest.approx(0.3)
    assert said.low == pytest.approx(-0.18283, abs=1e-4)
    assert said.high == pytest.approx(0.78283, abs=1e-4)
    assert said.sign_p == pytest.approx(0.375)


@pytest.mark.parametrize("differences", [[0.5], [0.0] * 8, [0.25] * 8])
def test_differences_that_do_not_vary_have_no_interval(differences: list[float]) -> None:
    said = paired(differences)
    assert (said.low, said.high) == (None, None)


def test_no_difference_says_nothing() -> None:
    with pytest.raises(ValueError, match="no difference"):
        paired([])


@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.25, 1.0]), min_size=1, max_size=60))
def test_the_two_directions_mirror_each_other(differences: list[float]) -> None:
    forth, back = paired(differences), paired([-difference for difference in differences])
    assert (forth.won, forth.lost, forth.same) == (back.lost, back.won, back.same)
    assert forth.mean == pytest.approx(-back.mean, abs=1e-12)
    assert forth.sign_p == back.sign_p
    if forth.low is not None and forth.high is not None and back.high is not None:
        assert forth.low <= forth.mean <= forth.high
        assert math.isclose(forth.low, -back.high, abs_tol=1e-9)
