"""The plots of a training run: each dot at its score and its step, each version where the run stood on it."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from hermit.run.reading import curve


def test_dots_stand_at_their_steps_and_higher_scores_are_higher(maker: Any, step_line: Any) -> None:
    drawn = curve.learning(maker.trained(maker.training([step_line(n, n / 4) for n in (1, 2, 3)])))
    assert drawn is not None
    xs, ys = [point.x for point in drawn.points], [point.y for point in drawn.points]
    assert xs == sorted(xs)
    assert ys == sorted(ys, reverse=True)
    assert xs[2] - xs[1] == pytest.approx(xs[1] - xs[0], abs=0.3)
    assert [point.key for point in drawn.points] == ["s1", "s2", "s3"]
    assert [tick.label for tick in drawn.across] == ["1", "2", "3", "end"]
    assert all(curve.LEFT <= x <= curve.WIDTH - curve.RIGHT for x in xs)
    assert all(curve.TOP <= y <= curve.HEIGHT - curve.BOTTOM for y in ys)
    assert [tick.label for tick in drawn.up] == ["0", "0.25", "0.5", "0.75", "1"]


def test_the_whole_run_is_drawn(maker: Any, whole_training: Any) -> None:
    drawn = curve.learning(maker.trained(whole_training))
    assert drawn is not None
    at = {tick.label: tick.at for tick in drawn.across}
    assert [epoch.label for epoch in drawn.epochs] == ["epoch 1", "epoch 2"]
    assert at["3"] < drawn.epochs[0].at < at["4"]
    marks = {mark.title.split()[0]: mark for mark in drawn.marks}
    assert set(marks) == {"root", "step_0003", "final"}
    assert (marks["step_0003"].x - curve.BESIDE, marks["step_0003"].until - curve.BESIDE) == (at["4"], at["6"])
    assert marks["final"].x == marks["final"].until == at["end"] + curve.BESIDE
    assert marks["final"].y < marks["root"].y
    assert [cell.kind for cell in drawn.cells] == [
        "kept",
        "kept",
        "repaired",
        "kept",
        "taken_back",
        "not_taken",
        "kept",
    ]
    assert [tag.x for tag in drawn.tags] == [at["4"]]  # the version that step 3 ended with is what step 4 begins with


def test_a_step_that_changed_nothing_is_seen(maker: Any, step_line: Any) -> None:
    line = step_line(1, commit=step_line(1)["adapter"])
    drawn = curve.learning(maker.trained(maker.training([line])))
    assert [cell.kind for cell in drawn.cells] == ["unchanged"]


def test_thousands_of_steps_are_drawn_with_fewer_dots(maker: Any, step_line: Any) -> None:
    paths = maker.training([])

    paths.steps.write_text("".join(json.dumps(step_line(n, 0.5, epoch=n)) + "\n" for n in range(1, 3001)))
    training = maker.trained(paths)
    drawn, costs = curve.learning(training), curve.spending(training)
    assert len(drawn.points) + drawn.left_out == 3000
    assert len(drawn.points) <= curve.MOST_DOTS
    assert len(drawn.across) <= curve.MOST_TICKS + 1
    assert sum(bool(epoch.label) for epoch in drawn.epochs) <= curve.MOST_EPOCHS
    assert len(costs.pieces) <= 3 * curve.MOST_DOTS


def test_scores_of_any_size_have_a_place(maker: Any, step_line: Any) -> None:
    drawn = curve.learning(maker.trained(maker.training([step_line(1, -9e99), step_line(2, 9e99)])))
    assert [point.y for point in drawn.points] == [curve.HEIGHT - curve.BOTTOM, curve.TOP]


def test_what_each_spent_stands_on_the_others_and_below_the_budget(maker: Any, whole_training: Any) -> None:
    costs = curve.spending(maker.trained(whole_training))
    last = [piece for piece in costs.pieces if "step 6" in piece.title]
    assert [piece.kind for piece in last] == ["attempts", "learner", "tools"]
    for below, above in itertools.pairwise(last):
        assert above.y + above.height == pytest.approx(below.y, abs=0.2)
    assert (costs.unit, costs.bound_label) == ("US dollars", "budget 20")
    assert costs.bound < last[-1].y


@pytest.mark.parametrize(
    ("free", "unit"),
    [({"cost_usd": 0, "tokens": 5}, "tokens"), ({"cost_usd": 0, "tokens": 0}, "seconds")],
)
def test_a_run_without_costs_shows_what_it_took(maker: Any, step_line: Any, free: dict[str, Any], unit: str) -> None:
    line = step_line(1, rollouts=free, learner={"usage": free})
    assert curve.spending(maker.trained(maker.training([line]))).unit == unit


def test_a_run_of_which_nothing_is_known_has_no_plots(maker: Any, step_line: Any) -> None:
    line = step_line(1, None, learner={"usage": {}, "wall_s": 0}, wall_s=0)
    training = maker.trained(maker.training([line]))
    assert curve.learning(training) is curve.spending(training) is None
