"""The geometry of the plots: everything is counted once, and lies in its drawing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermit.domain.attempt import Status
from hermit.run.reading import plots
from hermit.run.reading.load import KINDS, Result

SCORE = st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(-1e15, 1e15))
TIME = st.floats(0, 1e7)


def result(score: float | None = 1.0, wall_s: float = 1.0, status: Status = Status.OK) -> Result:
    return Result(
        id="a",
        repeat=0,
        status=status,
        score=score,
        phase="",
        cause="",
        wall_s=wall_s,
        cost_usd=None,
        confined=True,
        records=(),
        at=0,
        size=1,
        number=1,
    )


@given(st.lists(SCORE, min_size=1, max_size=60))
def test_every_score_is_in_one_bar_of_the_drawing(scores: list[float]) -> None:
    drawn = plots.histogram(scores)
    assert drawn is not None
    assert sum(bar.count for bar in drawn.bars) == len(scores)
    assert max(bar.height for bar in drawn.bars) == pytest.approx(plots.HEIGHT - plots.TOP - plots.BOTTOM)
    assert all(plots.LEFT <= bar.x <= bar.x + bar.width <= plots.WIDTH - plots.RIGHT for bar in drawn.bars)


def test_a_full_score_is_in_the_last_bar_and_none_in_the_first() -> None:
    drawn = plots.histogram([0.0, 1.0, 1.0])
    assert drawn is not None
    assert [bar.count for bar in drawn.bars] == [1, *[0] * 8, 2]
    assert drawn.bars[-1].title == "2 of 3 scores from 0.9 to 1"


@given(st.lists(st.tuples(SCORE, TIME), min_size=1, max_size=40))
def test_every_attempt_with_a_score_is_a_dot_in_the_drawing(pairs: list[tuple[float, float]]) -> None:
    drawn = plots.scatter([result(score, wall_s) for score, wall_s in pairs])
    assert drawn is not None
    assert len(drawn.dots) == len(pairs)
    for dot in drawn.dots:
        assert 0 <= dot.x <= plots.WIDTH
        assert 0 <= dot.y <= plots.HEIGHT
    for tick in drawn.across:
        assert plots.LEFT - 1 <= tick.at <= plots.WIDTH


def test_dots_lead_to_the_attempt_whose_number_they_have() -> None:
    drawn = plots.scatter([result(), result(None, status=Status.SANDBOX_ERROR), result(0.5)])
    assert drawn is not None
    assert [(dot.number, dot.kind) for dot in drawn.dots] == [(1, "solved"), (3, "partly")]


def test_more_dots_than_can_be_told_apart_are_left_out_and_counted() -> None:
    drawn = plots.scatter([result()] * (2 * plots.MOST_DOTS + 1))
    assert drawn is not None
    assert len(drawn.dots) <= plots.MOST_DOTS
    assert len(drawn.dots) + drawn.left_out == 2 * plots.MOST_DOTS + 1


def test_where_no_attempt_has_a_score_nothing_is_drawn() -> None:
    assert plots.scatter([result(None, status=Status.SANDBOX_ERROR)]) is None
    assert plots.histogram([]) is None


def test_the_shares_are_the_whole_in_the_order_from_good_to_ours() -> None:
    made = [result(), result(0.0), result(0.5), result(0.0, status=Status.TIMEOUT), result()]
    shares = plots.shares(made)
    assert [(share.kind, share.count) for share in shares] == [
        ("solved", 2),
        ("partly", 1),
        ("unsolved", 1),
        ("timeout", 1),
    ]
    assert sum(share.width for share in shares) == pytest.approx(100)
    assert [share.x for share in shares] == pytest.approx([0, 40, 60, 80])


def test_every_status_has_a_kind() -> None:
    assert {result(0.0, status=status).kind for status in Status} <= set(KINDS)


@given(st.floats(0.001, 1e6), st.floats(0.001, 1e6))
def test_an_axis_of_times_has_a_few_marks(first: float, second: float) -> None:
    axis = plots.Times(min(first, second), max(first, second))
    assert len(axis.ticks()) <= max(plots.MOST_TICKS + 1, 10)
