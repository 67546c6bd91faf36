"""What paired differences say: their mean with an interval, and the sign test. Pure, and of the standard library.

Two runs over the same tasks are compared task by task: how hard a task is cancels out of its difference, which is what
makes a small change visible. The interval of the mean is Student's; it takes the differences for a sample of those of
tasks like these. The sign test takes nothing for granted but that the tasks are independent, and says how often at least
so lopsided a count of won and lost tasks would come of two runs that differ by chance alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import stdev
from typing import TYPE_CHECKING

from hermit.domain.interval import LEVEL, quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

# Two scores that differ by less are the same.
SAME = 1e-9


@dataclass(frozen=True)
class Paired:
    """What the differences of a sequence of pairs say.

    Args:
        mean: Their mean.
        low: The lower end of its interval; ``None`` where the differences do not vary, or there is only one.
        high: The upper end.
        won: How many are positive.
        lost: How many are negative.
        same: How many are none.
        sign_p: The two-sided p-value of the sign test; ``None`` where nothing was won or lost.
    """

    mean: float
    low: float | None
    high: float | None
    won: int
    lost: int
    same: int
    sign_p: float | None


def paired(differences: Sequence[float]) -> Paired:
    """What these differences say.

    Raises:
        ValueError: There is none.
    """
    if not differences:
        raise ValueError("there is no difference to say something of")
    number = len(differences)
    mean = math.fsum(differences) / number
    spread = stdev(differences) if number > 1 else 0.0
    half = quantile(0.5 + LEVEL / 2, number - 1) * spread / math.sqrt(number) if spread else None
    won = sum(difference > SAME for difference in differences)
    lost = sum(difference < -SAME for difference in differences)
    return Paired(
        mean,
        None if half is None else mean - half,
        None if half is None else mean + half,
        won,
        lost,
        number - won - lost,
        sign_test(won, lost),
    )


def sign_test(won: int, lost: int) -> float | None:
    """How often two runs that differ by chance alone would come to a count as lopsided as this, or more."""
    number = won + lost
    if not number:
        return None
    ways = tail = 1
    for count in range(min(won, lost)):
        ways = ways * (number - count) // (count + 1)
        tail += ways
    return min(1.0, float(Fraction(tail, 2 ** (number - 1))))
