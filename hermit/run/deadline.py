"""How long an agent still has, asked from inside its sandbox.

The host stops a call by a clock that nobody can set. An agent that counted on the time of day would be wrong after a
step of it, so the moment is told on that clock too: the kernel has one for all its processes, in containers as well.
"""

from __future__ import annotations

import time

from hermit import environ
from hermit.domain.trial import MONOTONIC_DEADLINE


def time_left() -> float | None:
    """Seconds until the call is stopped, never below 0; ``None`` where nothing stops it."""
    given = environ.snapshot().get(MONOTONIC_DEADLINE, "")
    return max(0.0, float(given) - time.monotonic()) if given else None
