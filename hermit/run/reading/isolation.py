"""What held the attempts of a run: each start by its record, and what all records say together."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hermit.run.paths import RunPaths

if TYPE_CHECKING:
    from hermit.run.reading.load import Run, Top

MOST_RECORD = 4 << 20


@dataclass(frozen=True)
class Shown:
    """A path of the machine, where it was seen inside, and whether it could be written there."""

    source: str
    target: str
    writable: bool


@dataclass(frozen=True)
class Bound:
    """A bound, and what held it."""

    name: str
    value: str
    held_by: str


@dataclass(frozen=True)
class Check:
    """Something that was tried from inside, and what came of it."""

    name: str
    passed: bool
    detail: str


@dataclass(frozen=True, kw_only=True)
class Start:
    """The record of one start; the fields are those of ``hermit.domain.record.Record``."""

    name: str
    role: str
    backend: str
    version: str
    confined: bool
    reason: str
    image: str
    network: str
    reaches: tuple[str, ...]
    variables: tuple[str, ...]
    warnings: tuple[str, ...]
    binds: tuple[Shown, ...]
    limits: tuple[Bound, ...]
    checks: tuple[Check, ...]
    ended: str
    empty: bool

    @property
    def held_by(self) -> str:
        """What held it, in a few words."""
        return f"{self.backend} {self.version}".strip() if self.confined else "nothing"

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that did not pass."""
        return tuple(check for check in self.checks if not check.passed)


@dataclass
class Isolation:
    """What the records of a run say together.

    Args:
        starts: How many there are, by role.
        held_by: How many each backend held.
        images: How many were started in each image; an empty name is this machine.
        unconfined: How many nothing held, by the reason.
        passed: How many checks passed, by name.
        failed: How many did not.
        warnings: How often each was given.
        missing: The records that rows name and that cannot be read.
        not_empty: Starts that were not seen to leave no process behind.
    """

    starts: Counter[str] = field(default_factory=Counter)
    held_by: Counter[str] = field(default_factory=Counter)
    images: Counter[str] = field(default_factory=Counter)
    unconfined: Counter[str] = field(default_factory=Counter)
    passed: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    warnings: Counter[str] = field(default_factory=Counter)
    missing: int = 0
    not_empty: int = 0

    def add(self, start: Start | None) -> None:
        """Takes one start, ``None`` where its record cannot be read."""
        if start is None:
            self.missing += 1
            return
        self.starts[start.role] += 1
        self.held_by[start.held_by] += 1
        self.images[start.image] += 1
        self.not_empty += not start.empty
        if not start.confined:
            self.unconfined[start.reason] += 1
        for check in start.checks:
            (self.passed if check.passed else self.failed)[check.name] += 1
        self.warnings.update(start.warnings)

    def add_run(self, run: Run) -> None:
        """Takes every start that the rows of a run name."""
        for result in run.results:
            for name in result.records:
                self.add(start(run.top, name))

    def as_json(self) -> dict[str, Any]:
        """The same for machines."""
        return {
            "starts": dict(self.starts),
            "held_by": dict(self.held_by),
            "images": dict(self.images),
            "unconfined": dict(self.unconfined),
            "checks_passed": self.passed.total(),
            "checks_failed": dict(self.failed),
            "warnings": dict(self.warnings),
            "records_missing": self.missing,
            "not_seen_empty": self.not_empty,
        }


def of_run(run: Run) -> Isolation:
    """What all records that the rows name say."""
    isolation = Isolation()
    isolation.add_run(run)
    return isolation


def start(top: Top, name: str) -> Start | None:
    """The start whose record has this name; ``None`` where there is no record that can be read."""
    content = top.read(RunPaths(top.path, "-").records / name, most=MOST_RECORD)
    try:
        return None if content is None else _start(name, json.loads(content.data))
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _start(name: str, document: dict[str, Any]) -> Start:
    binds, limits, checks = document["binds"], document["limits"], document["checks"]
    return Start(
        name=name,
        role=str(document["role"]),
        backend=str(document["backend"]),
        version=str(document["version"]),
        confined=document["confined"] is True,
        reason=str(document["reason"]),
        image=str(document.get("image", "")),
        network=str(document["network"]),
        reaches=tuple(map(str, document["reaches"])),
        variables=tuple(map(str, document["variables"])),
        warnings=tuple(map(str, document["warnings"])),
        binds=tuple(Shown(str(each["source"]), str(each["target"]), each["writable"] is not False) for each in binds),
        limits=tuple(Bound(str(each["name"]), f"{each['value']:,.10g}", str(each["held_by"])) for each in limits),
        checks=tuple(Check(str(each["name"]), each["passed"] is True, str(each["detail"])) for each in checks),
        ended=str(document["ended"]),
        empty=document["empty"] is True,
    )
