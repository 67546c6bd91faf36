"""What of the network a sandbox has."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from hermit.domain.bind import absolute

# Below this, only a privileged user may listen, and there is none inside.
FIRST_PORT = 1024
LAST_PORT = 65535


class Network(Enum):
    """``ISOLATED`` is a namespace of its own with loopback only; ``OPEN`` is the network of the place it starts in."""

    ISOLATED = "isolated"
    OPEN = "open"


@dataclass(frozen=True)
class Forward:
    """A port of the sandbox's own loopback that leads to one service of the host.

    Args:
        port: The port inside.
        socket: The Unix socket outside; empty for the same port of the host's loopback.

    Raises:
        ValueError: The port cannot be listened on inside, or the socket's path is not absolute.
    """

    port: int
    socket: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.port, bool) or not isinstance(self.port, int) or not FIRST_PORT <= self.port <= LAST_PORT:
            raise ValueError(f"a port inside is a number from {FIRST_PORT} to {LAST_PORT}, not {self.port!r:.40}")
        if self.socket:
            object.__setattr__(self, "socket", absolute(self.socket, what="the socket of a forward"))

    def __str__(self) -> str:
        return f"{self.port} -> {self.socket or f'127.0.0.1:{self.port}'}"
