"""What a probe found, and what all of them come to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class Level(Enum):
    """How much of a run one finding, or all of them, leaves possible."""

    FIT = "fit"
    WITHOUT = "without"  # sandboxes start; something that a run can do without is missing or weaker
    BEST_EFFORT = "best_effort"  # no sandbox starts; a run whose config says `enforce: best_effort` goes on unconfined
    UNFIT = "unfit"  # nothing runs here, or nothing should


@dataclass(frozen=True)
class Finding:
    """One thing that was looked for.

    Args:
        name: What, for a person.
        ok: Whether it is as it has to be.
        found: What was found.
        cure: The command that cures it, where it is not.
        needed: Whether Hermit can do without it.
        group: What it is a part of, for whoever shows many of them in one line.
        unconfined: Whether it stands in the way of sandboxes alone, so that a run without them goes on.
        id: What, for a program: it stays the same when words change; made from the name unless given.
    """

    name: str
    ok: bool
    found: str
    cure: str = ""
    needed: bool = True
    group: str = ""
    unconfined: bool = False
    id: str = ""

    def __post_init__(self) -> None:
        if not self.id:
            object.__setattr__(self, "id", slug(self.name))

    @property
    def level(self) -> Level:
        """What it leaves possible."""
        if self.ok:
            return Level.FIT
        if not self.needed:
            return Level.WITHOUT
        return Level.BEST_EFFORT if self.unconfined else Level.UNFIT

    def as_json(self) -> dict[str, str]:
        """The finding for a program."""
        level = self.level.value
        words = {"name": self.name, "found": self.found, "cure": "" if self.ok else self.cure, "group": self.group}
        return {"id": self.id, "level": level, **words}


def slug(name: str) -> str:
    """A name as an id."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def verdict(findings: Iterable[Finding]) -> Level:
    """What all of them leave possible: fit, fit with best_effort only, or unfit."""
    levels = {finding.level for finding in findings}
    return next((level for level in (Level.UNFIT, Level.BEST_EFFORT) if level in levels), Level.FIT)
