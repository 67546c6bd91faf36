"""What a start left behind as evidence: what was bound, what passed in, what was checked."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hermit.domain.bind import Bind


@dataclass(frozen=True)
class Check:
    """One thing that was tried from inside before the command started, and what came of it."""

    name: str
    passed: bool
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class Record:
    """The evidence of one start.

    Args:
        role: Who ran inside.
        backend: ``bubblewrap`` or ``unconfined``.
        version: The backend's version.
        confined: Whether anything was confined at all.
        reason: Why not, where nothing was.
        binds: Every path of the host that was shown, the system's and the interpreter's included.
        variables: The names of the variables inside; never a value.
        network: ``isolated`` or ``open``.
        limits: Each bound with the mechanism that holds it.
        checks: What was tried from inside, in order.
        ended: How it ended, in a few words; empty while it runs.
        empty: Whether the process namespace was seen empty at the end.
    """

    role: str
    backend: str
    version: str
    confined: bool
    reason: str = ""
    binds: tuple[Bind, ...] = ()
    variables: tuple[str, ...] = ()
    network: str = "isolated"
    limits: tuple[tuple[str, float, str], ...] = ()
    checks: tuple[Check, ...] = ()
    ended: str = ""
    empty: bool = False

    def as_json(self) -> dict[str, Any]:
        """The record as plain data for a file."""
        document = asdict(self)
        document["limits"] = {name: {"value": value, "held_by": held_by} for name, value, held_by in self.limits}
        return document
