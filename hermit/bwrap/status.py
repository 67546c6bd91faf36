"""Whose failure it was: the sandbox's or the command's. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hermit import relay
from hermit.errors import SandboxError

if TYPE_CHECKING:
    from hermit.domain.command import Outcome
    from hermit.relay import Said


# Bubblewrap writes two short documents; more than this is not bubblewrap's.
MOST_STATUS = 1 << 16


@dataclass
class Status:
    """What bubblewrap itself reported on its status descriptor: one JSON document for each event."""

    text: bytearray = field(default_factory=bytearray)

    def take(self, data: bytes) -> None:
        """Adds what was read.

        Raises:
            SandboxError: It is more than bubblewrap writes.
        """
        if len(self.text) + len(data) > MOST_STATUS:
            raise SandboxError("bubblewrap reported far more than it does", cause="status")
        self.text += data

    def document(self) -> dict[str, Any]:
        """Every key reported so far."""
        found: dict[str, Any] = {}
        decoder = json.JSONDecoder()
        text, at = self.text.decode("utf-8", "replace"), 0
        while (start := text.find("{", at)) >= 0:
            try:
                value, at = decoder.raw_decode(text, start)
            except (ValueError, RecursionError):  # the rest of it is still to come, or it is not bubblewrap's
                break
            found.update(value)
        return found

    @property
    def init(self) -> int | None:
        """The process id, on the host, of the sandbox's init."""
        pid = self.document().get("child-pid")
        return pid if type(pid) is int and 0 < pid < 1 << 22 else None  # the kernel's PID_MAX_LIMIT


def verdict(said: Said, outcome: Outcome, *, complaints: str, code: int) -> Outcome:
    """The outcome of a command that ran, or that could not be started inside a sandbox that stood.

    Raises:
        SandboxError: The sandbox itself failed: it refused, did not stand, or broke before the command began.
    """
    failed = [check for check in said.checks if not check.passed]
    if said.refused or failed:
        what = "; ".join(f"{check.name}: {check.detail}" for check in failed)
        raise SandboxError(f"the sandbox is not closed ({what})", cause="check", cure="run `hermit check`")
    if not said.ready:
        detail = complaints.splitlines()[-1] if complaints else f"bubblewrap ended with {code} and said nothing"
        raise SandboxError(f"the sandbox did not start: {detail}", cause="start", cure="run `hermit check`")
    return relay.unstartable(said, outcome) or outcome
