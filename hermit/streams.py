"""What a command takes over, and what is kept of what it writes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hermit.domain.command import Stream

if TYPE_CHECKING:
    from hermit.signals import Caught


@dataclass
class Sink:
    """What one descriptor brought: the first ``cap`` bytes, and the count of all."""

    cap: int
    kept: bytearray = field(default_factory=bytearray)
    total: int = 0

    def take(self, data: bytes) -> None:
        """Adds what was read."""
        self.total += len(data)
        room = self.cap - len(self.kept)
        if room > 0:
            self.kept += data[:room]

    def stream(self) -> Stream:
        """What came, as a value."""
        return Stream(kept=bytes(self.kept), total=self.total)


@dataclass(frozen=True)
class Streams:
    """What a command takes over: descriptors, ``None`` where Hermit feeds it or keeps what it writes; and signals.

    ``job``, ``result`` and ``handover`` are those of a start that another process asked for: what its worker reads, where
    it hands its result back, and the channel over which that process gets the listening sockets.
    """

    stdin: int | None = None
    stdout: int | None = None
    stderr: int | None = None
    signals: Caught | None = None
    job: int | None = None
    result: int | None = None
    handover: int | None = None
