"""How a training run went, as plots: the learning curve, and what it cost; the geometry of each, in the units of its drawing."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hermit.run.reading import plots
from hermit.run.reading.outlay import SECONDS_PER_HOUR, Outlays
from hermit.run.reading.plots import Tick, number_of
from hermit.run.reading.steps import OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from hermit.run.reading.outlay import Outlay
    from hermit.run.reading.steps import Step
    from hermit.run.reading.trained import Evaluation, Training

WIDTH, HEIGHT, COST_HEIGHT = 860, 300, 200
LEFT, RIGHT, TOP, BOTTOM = 50, 20, 26, 56
# The strip below the curve: what became of each step's change.
STRIP, CELL = 10, 26
MOST_TICKS, MOST_EPOCHS = 18, 24
# How far a version's mark stands beside the dot of the step that began with it.
BESIDE = 12
# More steps than a screen has dots: every so many of them.
MOST_DOTS = 800
# What a step cost may be told in, as it is called, counted and written.
UNITS = (("usd", "US dollars"), ("tokens", "tokens"), ("seconds", "seconds"))


@dataclass(frozen=True)
class Point:
    """The score of one step, and how far it can be trusted."""

    x: float
    y: float
    low: float | None
    high: float | None
    key: str
    title: str


@dataclass(frozen=True)
class Mark:
    """A version's score on the test split, as long as the run stood on it."""

    x: float
    until: float
    y: float
    low: float | None
    high: float | None
    title: str


@dataclass(frozen=True)
class Cell:
    """What became of a step's change, or a tag that its version got."""

    x: float
    width: float
    kind: str
    key: str
    title: str


@dataclass(frozen=True)
class Epoch:
    """Where an epoch ends, and what it is called in its middle."""

    at: float
    middle: float
    label: str


@dataclass(frozen=True)
class Curve:
    """The learning curve."""

    points: tuple[Point, ...]
    path: str
    marks: tuple[Mark, ...]
    cells: tuple[Cell, ...]
    tags: tuple[Cell, ...]
    epochs: tuple[Epoch, ...]
    across: tuple[Tick, ...]
    up: tuple[Tick, ...]
    left_out: int


@dataclass(frozen=True)
class Piece:
    """What somebody had spent when a step had ended, on top of the others."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    title: str


@dataclass(frozen=True)
class Spent:
    """What the run had cost when each step had ended."""

    unit: str
    pieces: tuple[Piece, ...]
    across: tuple[Tick, ...]
    up: tuple[Tick, ...]
    bound: float | None
    bound_label: str


@dataclass(frozen=True)
class Places:
    """An axis of the places of a run: its steps, and behind the last of them its end."""

    first: int
    last: int
    end: int

    @property
    def step(self) -> float:
        """How far two places are apart."""
        return (WIDTH - LEFT - RIGHT) / (self.last - self.first + 1)

    def at(self, place: float) -> float:
        """Where a place is."""
        return round(LEFT + self.step * (place - self.first + 0.5), 1)

    def ticks(self) -> tuple[Tick, ...]:
        """The marks of the axis."""
        often = math.ceil((self.last - self.first + 1) / MOST_TICKS)
        places = [place for place in range(self.first, self.last + 1) if place % often == 0 and place != self.end]
        named = [Tick(self.at(place), str(place)) for place in places if abs(place - self.end) >= often or often == 1]
        return (*named, Tick(self.at(self.end), "end")) if self.end <= self.last else tuple(named)


def learning(training: Training) -> Curve | None:
    """The learning curve; ``None`` where no step has a score."""
    steps, marks = training.scored, [each for each in training.evaluations if each.at and each.mean is not None]
    if not steps and not marks:
        return None
    axis = _places(training)
    scores = [score for step in steps for score in (step.mean_score, *(step.interval or ())) if score is not None]
    scores += [score for each in marks for score in (each.mean, *(each.interval or ())) if score is not None]
    low, high = plots.span(scores)
    every = math.ceil(len(steps) / MOST_DOTS) or 1
    points = [_point(step, axis, low, high) for step in steps]
    return Curve(
        points=tuple(points[::every]),
        path=" ".join(f"{'L' if number else 'M'}{point.x} {point.y}" for number, point in enumerate(points)),
        marks=tuple(_mark(each, axis, low, high) for each in marks),
        cells=tuple(_cell(step, axis) for step in training.finished),
        tags=tuple(_tag(step, axis) for step in training.finished if step.checkpoint),
        epochs=tuple(_epochs(training, axis)),
        across=axis.ticks(),
        up=tuple(
            Tick(_up(mark, low, high), number_of(mark)) for mark in (low + (high - low) * n / 4 for n in range(5))
        ),
        left_out=len(points) - len(points[::every]),
    )


def _places(training: Training) -> Places:
    numbers = [step.number for step in training.finished]
    return Places(min(numbers, default=1), max(training.end, *numbers, 1), training.end)


def _up(score: float, low: float, high: float) -> float:
    """The height of a score."""
    return round(TOP + (HEIGHT - TOP - BOTTOM) * (1 - (score - low) / (high - low)), 1)


def _ends(interval: tuple[float, float] | None, low: float, high: float) -> tuple[float | None, float | None]:
    return (None, None) if interval is None else (_up(interval[0], low, high), _up(interval[1], low, high))


def _between(interval: tuple[float, float] | None) -> str:
    return f", 95% interval {interval[0]:.4f} to {interval[1]:.4f}" if interval else ""


def _point(step: Step, axis: Places, low: float, high: float) -> Point:
    score = step.mean_score or 0.0
    title = f"{step.title}, epoch {step.epoch}: mean {score:.4f}{_between(step.interval)}, {len(step.tasks)} tasks"
    return Point(axis.at(step.number), _up(score, low, high), *_ends(step.interval, low, high), step.key, title)


def _mark(each: Evaluation, axis: Places, low: float, high: float) -> Mark:
    first, last = each.at or (0, 0)
    title = (
        f"{each.selector} on the test split: mean {each.mean or 0.0:.4f}{_between(each.interval)}, {each.tasks} tasks"
    )
    ends = _ends(each.interval, low, high)
    beside = min(BESIDE, axis.step / 4)
    x, until = round(axis.at(first) + beside, 1), round(axis.at(last) + beside, 1)
    return Mark(x, until, _up(each.mean or 0.0, low, high), *ends, title)


def _cell(step: Step, axis: Places) -> Cell:
    wide = min(CELL, axis.step * 0.8)
    title = f"{step.title}: {OUTCOMES[step.kind]}" + ("" if step.changed else ", nothing changed")
    kind = step.kind if step.changed or step.kind != "kept" else "unchanged"
    return Cell(round(axis.at(step.number) - wide / 2, 1), round(wide, 1), kind, step.key, title)


def _tag(step: Step, axis: Places) -> Cell:
    """A checkpoint is of the version a step ended with, so it stands where the next one begins."""
    return Cell(axis.at(step.number + 1), 0, "checkpoint", step.key, f"checkpoint {step.checkpoint}")


def _epochs(training: Training, axis: Places) -> Iterator[Epoch]:
    """The epochs of the finished steps; of many, only their boundaries."""
    groups = [
        (epoch, [step.number for step in steps])
        for epoch, steps in itertools.groupby(training.finished, key=lambda step: step.epoch)
        if epoch
    ]
    often = math.ceil(len(groups) / MOST_EPOCHS) or 1
    for order, (epoch, numbers) in enumerate(groups):
        label = f"epoch {epoch}" if order % often == 0 else ""
        yield Epoch(axis.at(max(numbers) + 0.5), axis.at((min(numbers) + max(numbers)) / 2), label)


# What it cost


def spending(training: Training) -> Spent | None:
    """What the run had cost by each step, in the first unit of which anything is known; ``None`` where nothing is."""
    steps, axis = training.finished, _places(training)
    running = list(itertools.accumulate((step.spent for step in steps), lambda *both: Outlays.sum(both)))
    whole = running[-1].all if running else Outlays().all
    unit, label = next(((name, label) for name, label in UNITS if getattr(whole, name) > 0), ("", ""))
    if not unit:
        return None
    bound = _bound(training, unit)
    most = max(getattr(whole, unit), bound or 0.0)
    every = math.ceil(len(steps) / MOST_DOTS) or 1
    shown = list(zip(steps, running, strict=True))[::every]
    return Spent(
        unit=label,
        pieces=tuple(piece for step, sofar in shown for piece in _stack(step, sofar, axis, unit=unit, most=most)),
        across=axis.ticks(),
        up=tuple(Tick(_tall(mark, most), number_of(mark)) for mark in _round_marks(most)),
        bound=None if bound is None else _tall(bound, most),
        bound_label=f"budget {number_of(bound)}" if bound is not None else "",
    )


def _bound(training: Training, unit: str) -> float | None:
    """What the budget says of a unit, where it says anything."""
    hours = training.budget.get("hours")
    if unit == "seconds":
        return None if hours is None else hours * SECONDS_PER_HOUR
    return training.budget.get(unit)


def _stack(step: Step, sofar: Outlays, axis: Places, *, unit: str, most: float) -> Iterator[Piece]:
    wide, below = min(CELL, axis.step * 0.8), 0.0
    parts: Iterable[tuple[str, Outlay]] = sofar.parts
    for name, outlay in parts:
        amount = getattr(outlay, unit)
        if amount > 0:
            top, bottom = _tall(below + amount, most), _tall(below, most)
            title = f"{name}, up to {step.title}: {number_of(amount)}"
            yield Piece(
                round(axis.at(step.number) - wide / 2, 1), top, round(wide, 1), round(bottom - top, 1), name, title
            )
        below += amount


def _tall(amount: float, most: float) -> float:
    return round(12 + (COST_HEIGHT - 12 - 36) * (1 - amount / most), 1)


def _round_marks(most: float) -> Sequence[float]:
    """A few round amounts from nothing on."""
    power = 10.0 ** math.floor(math.log10(most))
    step = next(power * part for part in plots.STEPS if most / (power * part) <= plots.MOST_TICKS)
    return [step * number for number in range(int(most / step) + 1)]
