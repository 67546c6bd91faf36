"""How far the mean score of a run can be trusted, as an interval. Pure, and of the standard library."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

LEVEL = 0.95
# With more degrees of freedom than this the normal quantile is as good.
MANY = 2000


@dataclass(frozen=True)
class Interval:
    """Where the mean score over tasks like these is, by what was seen of it.

    Args:
        low: Its lower end.
        high: Its upper end.
        method: ``wilson`` for scores from 0 to 1, ``t`` for any others.
        tasks: How many tasks it rests on.
    """

    low: float
    high: float
    method: str
    tasks: int

    def as_json(self) -> dict[str, Any]:
        """The interval as it stands in a summary."""
        return {"low": self.low, "high": self.high, "level": LEVEL, "method": self.method, "tasks": self.tasks}


def of_mean(scores: Collection[Sequence[float]]) -> Interval | None:
    """The interval of the mean over all attempts, at 95 %; ``None`` for less than two tasks.

    Attempts at one task are alike, so the tasks are what is counted, and the attempts at each are one cluster: the
    variance of the mean is that of the clusters' residuals (Liang and Zeger, Biometrika 73, 1986, for a mean; Miller,
    "Adding Error Bars to Evals", 2024, for evaluations). It is never taken to be less than that of the single attempts.

    Scores from 0 to 1 get Wilson's interval (JASA 22, 1927), which stays within 0 and 1 and has a width where every task
    was solved, with two changes for clusters (Korn and Graubard, Survey Methodology 24, 1998; Dean and Pagano, Journal of
    Survey Statistics and Methodology 3, 2015): the effective number of attempts, which is p(1-p) over that variance, in
    place of their number, and Student's t with one degree of freedom less than there are tasks in place of the normal
    quantile. Where no two scores differ there is no variance to be seen, and each task counts once. Other scores get the
    interval of Student's t around the mean.

    Args:
        scores: The scores of each task's attempts.
    """
    clusters = [attempts for attempts in scores if attempts]
    if len(clusters) < 2:  # noqa: PLR2004 - one task says nothing of how tasks differ
        return None
    try:
        return _interval(clusters)
    except OverflowError:  # scores past what squares can be taken of
        return None


def mean_of(scores: Sequence[float]) -> float:
    """The mean of some scores, as large as they may be."""
    try:
        return math.fsum(scores) / len(scores)
    except OverflowError:
        return math.fsum(score / len(scores) for score in scores)


def _interval(clusters: list[Sequence[float]]) -> Interval:
    tasks = len(clusters)
    every = [score for attempts in clusters for score in attempts]
    number = len(every)
    mean = mean_of(every)
    between = math.fsum((math.fsum(attempts) - mean * len(attempts)) ** 2 for attempts in clusters)
    spread = max(between, math.fsum((score - mean) ** 2 for score in every))
    t = quantile(0.5 + LEVEL / 2, tasks - 1)
    if all(0 <= score <= 1 for score in every):
        alike = min(every) == max(every)
        effective = tasks if alike or not spread else mean * (1 - mean) * number**2 / spread
        return Interval(*_wilson(mean, effective, t), method="wilson", tasks=tasks)
    half = t * math.sqrt(tasks / (tasks - 1) * spread) / number
    if not math.isfinite(half):
        raise OverflowError
    return Interval(mean - half, mean + half, method="t", tasks=tasks)


def _wilson(mean: float, number: float, z: float) -> tuple[float, float]:
    whole = 1 + z * z / number
    middle = (mean + z * z / (2 * number)) / whole
    half = z / whole * math.sqrt(max(0.0, mean * (1 - mean)) / number + (z / (2 * number)) ** 2)
    # Rounding must not put an end past the mean, nor past what a score can be.
    return min(mean, max(0.0, middle - half)), max(mean, min(1.0, middle + half))


def quantile(probability: float, freedom: int) -> float:
    """The quantile of Student's distribution above its middle, by halving where it lies."""
    if freedom > MANY:
        return NormalDist().inv_cdf(probability)
    low, high = 0.0, 1.0
    while below(high, freedom) < probability:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        if below(middle, freedom) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def below(value: float, freedom: int) -> float:
    """How much of Student's distribution lies below a positive value (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    angle = math.atan(value / math.sqrt(freedom))
    cosine = math.cos(angle)
    odd = freedom % 2
    term, total = (cosine, 0.0) if odd else (1.0, 0.0)
    for number in range(1 + odd, freedom, 2):
        total += term
        term *= cosine * cosine * number / (number + 1)
    inside = 2 / math.pi * (angle + math.sin(angle) * total) if odd else math.sin(angle) * total
    return (1 + inside) / 2
