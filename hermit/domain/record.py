"""What a start left behind as evidence: what was bound, what passed in, what was checked."""

from __future__ import annotations

import json
from dataclasses import dataclass
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
        image: The image it was started in, with its platform and engine; empty for this machine.
        binds: Every path of the host that was shown, the system's and the interpreter's included.
        variables: The names of the variables inside; never a value.
        network: ``isolated`` or ``open``.
        reaches: What an isolated network reaches: forwards as ``port -> service``, and the allowed hosts.
        limits: Each bound with the mechanism that holds it.
        warnings: What could not be done as it was asked for, or not as it is done elsewhere.
        checks: What was tried from inside, in order.
        ended: How it ended, in a few words; empty while it runs.
        empty: Whether the process namespace was seen empty at the end.
        decisions: What the proxy decided, a line of JSON each; they are kept in a file of their own.
    """

    role: str
    backend: str
    version: str
    confined: bool
    reason: str = ""
    image: str = ""
    binds: tuple[Bind, ...] = ()
    variables: tuple[str, ...] = ()
    network: str = "isolated"
    reaches: tuple[str, ...] = ()
    limits: tuple[tuple[str, float, str], ...] = ()
    warnings: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    ended: str = ""
    empty: bool = False
    decisions: tuple[str, ...] = ()

    def as_json(self) -> bytes:
        """The record as a file: JSON with a line for each field, and for each bind and check."""
        document = {
            **vars(self),
            "binds": [vars(bind) for bind in self.binds],
            "limits": [{"name": name, "value": value, "held_by": held_by} for name, value, held_by in self.limits],
            "checks": [vars(check) for check in self.checks],
        }
        del document["decisions"]
        lines = (f"{json.dumps(key)}: {_spread(value)}" for key, value in document.items())
        return ("{\n" + ",\n".join(lines) + "\n}\n").encode("ascii")

    def evidence(self, *, kept_as: str) -> dict[str, Any]:
        """What of it stands in the row of an attempt.

        Args:
            kept_as: The name of the file that holds all of it.
        """
        return {
            "role": self.role,
            "backend": f"{self.backend} {self.version}",
            "image": self.image,
            "confined": self.confined,
            "checks": len(self.checks),
            "passed": sum(check.passed for check in self.checks),
            "empty": self.empty,
            "record": kept_as,
        }


def _spread(value: Any) -> str:
    """A list of objects takes a line for each; anything else takes one line."""
    if isinstance(value, list) and value:
        return "[\n  " + ",\n  ".join(map(json.dumps, value)) + "\n]"
    return json.dumps(value)
