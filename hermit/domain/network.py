"""What of the network a sandbox has."""

from __future__ import annotations

from enum import Enum


class Network(Enum):
    """``ISOLATED`` is a namespace of its own with loopback only; ``OPEN`` is the network of the place it starts in."""

    ISOLATED = "isolated"
    OPEN = "open"
