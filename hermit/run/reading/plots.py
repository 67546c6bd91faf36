"""Where looking is better than reading: the geometry of each plot, as values in the units of its drawing."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hermit.run.reading.load import KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermit.run.reading.load import Result

# Of a drawing: its size, and what its axes take of it.
WIDTH, HEIGHT = 420, 220
LEFT, RIGHT, TOP, BOTTOM = 44, 14, 18, 34
BINS = 10
MOST_DOTS = 3000
# Times that differ by more than this are drawn by their logarithm.
WIDE = 30.0
SHORTEST_S = 0.001
MOST_TICKS = 6
# A logarithm over so few powers of ten has marks between them.
FEW = 3
STEPS = (0.2, 0.25, 0.5, 1, 2)
# How far dots of one score are moved apart, of the height.
SPREAD = 0.09


@dataclass(frozen=True)
class Tick:
    """A mark of an axis."""

    at: float
    label: str


@dataclass(frozen=True)
class Bar:
    """How many scores lie in one part of the range."""

    x: float
    y: float
    width: float
    height: float
    count: int
    title: str


@dataclass(frozen=True)
class Histogram:
    """How the scores are distributed."""

    bars: tuple[Bar, ...]
    ticks: tuple[Tick, ...]


@dataclass(frozen=True)
class Dot:
    """One attempt: its time against its score."""

    x: float
    y: float
    kind: str
    number: int
    title: str


@dataclass(frozen=True)
class Scatter:
    """Every attempt that has a score, or as many as can be told apart."""

    dots: tuple[Dot, ...]
    across: tuple[Tick, ...]
    up: tuple[Tick, ...]
    left_out: int


@dataclass(frozen=True)
class Share:
    """What part of the attempts is of one kind; places are in percent."""

    kind: str
    label: str
    count: int
    x: float
    width: float


def histogram(scores: Sequence[float]) -> Histogram | None:
    """How the scores are distributed; ``None`` where there is none."""
    if not scores:
        return None
    low, high = span(scores)
    counts = Counter(min(BINS - 1, int((score - low) / (high - low) * BINS)) for score in scores)
    wide, tall = (WIDTH - LEFT - RIGHT) / BINS, HEIGHT - TOP - BOTTOM
    most = max(counts.values())
    bars = []
    for number in range(BINS):
        count = counts[number]
        height = tall * count / most
        begins, ends = (number_of(low + (high - low) * (number + side) / BINS) for side in (0, 1))
        title = f"{count} of {len(scores)} scores from {begins} to {ends}"
        bars.append(Bar(LEFT + wide * number + 1, TOP + tall - height, wide - 2, height, count, title))
    return Histogram(tuple(bars), across(low, high))


def scatter(results: Sequence[Result]) -> Scatter | None:
    """The time of each attempt against its score; ``None`` where no attempt has one."""
    scored = [(number, result) for number, result in enumerate(results, 1) if result.score is not None]
    if not scored:
        return None
    step = math.ceil(len(scored) / MOST_DOTS)
    shown = scored[::step]
    low, high = span([result.score for _, result in scored if result.score is not None])
    times = [max(result.wall_s, SHORTEST_S) for _, result in scored]
    axis = Times(min(times), max(times))
    dots = []
    for number, result in shown:
        x, y = axis.at(max(result.wall_s, SHORTEST_S)), up(result.score or 0.0, low, high)
        # Scores are often equal: dots of one score are moved apart, each always by the same.
        y += ((number * 0.618034) % 1.0 - 0.5) * SPREAD * (HEIGHT - TOP - BOTTOM)
        title = f"{result.title}: score {number_of(result.score or 0.0)}, {result.wall_s:.2f} s"
        dots.append(Dot(round(x, 1), round(y, 1), result.kind, number, title))
    marks = [low + (high - low) * part / 4 for part in range(5)]
    ticks = tuple(Tick(up(mark, low, high), number_of(mark)) for mark in marks)
    return Scatter(tuple(dots), axis.ticks(), ticks, len(scored) - len(shown))


def shares(results: Sequence[Result]) -> tuple[Share, ...]:
    """What the attempts came to, as parts of the whole."""
    counts = Counter(result.kind for result in results)
    found, x = [], 0.0
    for kind, label in KINDS.items():
        if counts[kind]:
            width = 100 * counts[kind] / len(results)
            found.append(Share(kind, label, counts[kind], x, width))
            x += width
    return tuple(found)


def span(scores: Sequence[float]) -> tuple[float, float]:
    """The range of an axis of scores: from 0 to 1 where all lie there."""
    low, high = min(0.0, *scores, 0.0), max(1.0, *scores, 1.0)
    return low, high


def up(score: float, low: float, high: float) -> float:
    """The height of a score."""
    inner = (HEIGHT - TOP - BOTTOM) * (1 - SPREAD)
    return TOP + (HEIGHT - TOP - BOTTOM) * SPREAD / 2 + inner * (1 - (score - low) / (high - low))


def across(low: float, high: float) -> tuple[Tick, ...]:
    """The marks below a range of scores."""
    wide = WIDTH - LEFT - RIGHT
    return tuple(Tick(LEFT + wide * part / 5, number_of(low + (high - low) * part / 5)) for part in range(6))


@dataclass(frozen=True)
class Times:
    """An axis of seconds, by their logarithm where they differ much."""

    least: float
    most: float

    @property
    def wide(self) -> bool:
        """Whether the times differ much."""
        return self.most / self.least > WIDE

    def at(self, seconds: float) -> float:
        """Where a time is."""
        if self.wide:
            part = math.log(seconds / self.least) / math.log(self.most / self.least)
        else:
            part = seconds / (self.most * 1.02)
        return LEFT + part * (WIDTH - LEFT - RIGHT)

    def ticks(self) -> tuple[Tick, ...]:
        """The marks of the axis."""
        if self.wide:
            first, last = math.ceil(math.log10(self.least)), math.floor(math.log10(self.most))
            marks = [10.0**power for power in range(first, last + 1)]
            if len(marks) < FEW:
                finer = (10.0**power * part for power in range(first - 1, last + 1) for part in (1, 2, 5))
                marks = [mark for mark in finer if self.least <= mark <= self.most]
        else:
            power = 10.0 ** math.floor(math.log10(self.most))
            step = next(power * part for part in STEPS if self.most / (power * part) <= MOST_TICKS)
            marks = [step * number for number in range(int(self.most / step) + 1)]
        return tuple(Tick(self.at(mark) if mark else LEFT, f"{mark:g} s") for mark in marks)


def number_of(value: float) -> str:
    """A number as a person writes it."""
    return f"{value:.4g}"
