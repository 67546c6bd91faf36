"""The host's environment: the one place that reads it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def snapshot() -> Mapping[str, str]:
    """The host's variables as they are now, in a copy that later changes do not reach."""
    return dict(os.environ)
