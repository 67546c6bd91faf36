"""How far the mean score of a run can be trusted, as an interval. Pure, and of the standard library."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

LEVEL = 0.95


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


def quantile(p: float, freedom: int) -> float:
    """The quantile of Student's t; exact for 1 and 2 degrees, by its series within 0.2 % from 3 on.

    The series is number 26.7.5 of Abramowitz and Stegun, "Handbook of Mathematical Functions", 1964.
    """
    if freedom == 1:
        return math.tan(math.pi * (p - 0.5))
    if freedom == 2:  # noqa: PLR2004 - the other one that has a closed form
        return (2 * p - 1) * math.sqrt(0.5 / (p * (1 - p)))
    z, n = NormalDist().inv_cdf(p), freedom
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + math.fsum(term / n**power for power, term in enumerate(terms, 1))
