"""How far a mean can be trusted: the interval holds the true mean as often as it says, also where attempts are alike."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermit.domain.interval import mean_of, of_mean, quantile

if TYPE_CHECKING:
    from collections.abc import Sequence


def ends(*scores: Sequence[float]) -> tuple[float, float]:
    found = of_mean(scores)
    assert found is not None
    return round(found.low, 4), round(found.high, 4)


@pytest.mark.parametrize("scores", [[], [[]], [[1.0]], [[0.0, 1.0, 1.0]], [[1.0], []]])
def test_less_than_two_tasks_have_no_interval(scores: list[list[float]]) -> None:
    assert of_mean(scores) is None


def test_single_attempts_have_wilsons_interval_with_students_quantile() -> None:
    # By hand: p = 0.8, n = 10, t(9) = 2.26216; centre (p + t^2/2n) / (1 + t^2/n), half t/(1 + t^2/n) sqrt(pq/n + t^2/4n^2).
    assert ends(*[[1.0]] * 8, *[[0.0]] * 2) == (0.4445, 0.9524)


def test_where_every_task_was_solved_the_interval_has_a_width_and_ends_at_one() -> None:
    assert ends(*[[1.0]] * 164) == (0.9768, 1.0)
    assert ends(*[[0.0]] * 10) == (0.0, 0.3385)


def test_repeats_of_a_task_that_are_alike_add_nothing() -> None:
    once = [[1.0]] * 6 + [[0.0]] * 4
    assert ends(*once) == ends(*([score] * 5 for (score,) in once))


def test_repeats_that_differ_by_chance_make_it_narrower_and_never_more_than_as_many_tasks_would() -> None:
    one, many = of_mean([[1.0], [0.0]] * 10), of_mean([[1.0, 0.0]] * 20)
    assert one is not None
    assert many is not None
    assert many.high - many.low < one.high - one.low
    apart = of_mean([[1.0], [0.0]] * 20)
    assert apart is not None
    assert many.high - many.low >= apart.high - apart.low


def test_scores_beyond_one_have_students_interval() -> None:
    found = of_mean([[3.0], [5.0], [4.0]])
    assert found is not None
    assert found.method == "t"
    assert (found.low, found.high) == pytest.approx((4 - 2.484, 4 + 2.484), abs=0.01)


def test_scores_past_what_can_be_squared_have_a_mean_and_no_interval() -> None:
    assert mean_of([1.5e308, 1.5e308]) == pytest.approx(1.5e308)
    assert of_mean([[1.7e308], [-1.7e308]]) is None


@given(st.lists(st.lists(st.floats(0, 1), max_size=4), max_size=8))
def test_the_interval_of_scores_from_0_to_1_holds_the_mean_and_stays_there(scores: list[list[float]]) -> None:
    found = of_mean(scores)
    if found is not None:
        mean = mean_of([score for attempts in scores for score in attempts])
        assert 0 <= found.low <= mean <= found.high <= 1
        assert found.low < found.high


@given(st.lists(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=3), max_size=5))
def test_no_finite_scores_break_it(scores: list[list[float]]) -> None:
    found = of_mean(scores)
    assert found is None or found.low <= found.high


@pytest.mark.parametrize(
    ("freedom", "value"), [(1, 12.7062), (2, 4.30265), (3, 3.18245), (4, 2.77645), (9, 2.26216), (163, 1.97462)]
)
def test_students_quantile_is_that_of_the_tables(freedom: int, value: float) -> None:
    assert quantile(0.975, freedom) == pytest.approx(value, rel=0.002)


@pytest.mark.parametrize(("tasks", "repeats"), [(10, 1), (10, 4), (40, 4)])
@pytest.mark.parametrize("ease", [(1.0, 1.0), (0.3, 0.1), (9.0, 1.0)])
def test_it_holds_the_true_mean_as_often_as_it_says(tasks: int, repeats: int, ease: tuple[float, float]) -> None:
    chance = random.Random(5)  # noqa: S311 - a test that comes out the same each time
    true, rounds = ease[0] / sum(ease), 600

    def attempts() -> list[float]:
        solved = chance.betavariate(*ease)
        return [float(chance.random() < solved) for _ in range(repeats)]

    found = [of_mean([attempts() for _ in range(tasks)]) for _ in range(rounds)]
    held = sum(one is not None and one.low <= true <= one.high for one in found)
    assert held / rounds > 0.92
