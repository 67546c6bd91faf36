"""What became of one request to the proxy: the line it leaves in the run's records."""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Decision:
    """One request, decided and over. It holds no path, no query, no header and no user of the request.

    Args:
        time: When it came, in seconds since the epoch.
        verb: Its method; empty where it could not be read.
        host: The host it was for, in the canonical form; empty where it could not be read.
        port: The port it was for.
        allowed: Whether it was allowed to go where it asked; ``reason`` says where it failed all the same.
        rule: The pattern that allowed it, or the fixed word of what refused it: ``request``, ``host``, ``port``,
            ``address`` or ``tls``.
        address: The address that was dialled; empty where none was, or where the host's own proxy was.
        bytes_up: How many bytes came from the sandbox after the head of the request.
        bytes_down: How many bytes came back.
        reason: Why it was refused or failed, or what is remarkable, in one sentence without a full stop.
    """

    time: float
    verb: str = ""
    host: str = ""
    port: int = 0
    allowed: bool = False
    rule: str = ""
    address: str = ""
    bytes_up: int = 0
    bytes_down: int = 0
    reason: str = ""

    def as_json(self) -> str:
        """The decision as a line of JSON, without its end of line."""
        return json.dumps(vars(self))
