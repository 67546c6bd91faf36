"""The six checks that say whether files are an adapter of a template; four and a half of them run no code.

They are numbered, as people and learners cite them. What needs the adapter's own code to run, or the template's, is done in
a strict sandbox by ``hermit/run/adapter_check.py``, with what is found here.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from hermit.adapter import formats, manifest
from hermit.adapter.exports import exported
from hermit.adapter.files import UNDER_NO_RULE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermit.adapter.files import Files, Reading
    from hermit.adapter.template import Template

NAMES = {
    1: "files under rules",
    2: "formats",
    3: "manifest fixed sections",
    4: "fixed files unchanged",
    5: "it deploys",
    6: "the template's own check",
}
MOST_PROBLEMS, MOST_REASON = 100, 500


class State(Enum):
    """What came of a check."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong: a path in the adapter, and why."""

    path: str
    reason: str


@dataclass(frozen=True)
class Check:
    """One of the six.

    Args:
        number: Which.
        state: What came of it.
        problems: What it found, the first of it.
        more: How many more there are.
    """

    number: int
    state: State
    problems: tuple[Problem, ...] = ()
    more: int = 0

    @classmethod
    def of(cls, number: int, problems: Iterable[Problem], *, more: int = 0) -> Check:
        """The check that has found these problems, or none."""
        found = [replace(each, reason=each.reason[:MOST_REASON]) for each in problems]
        state = State.FAILED if found or more else State.PASSED
        return cls(number, state, tuple(found[:MOST_PROBLEMS]), more + len(found[MOST_PROBLEMS:]))

    @property
    def name(self) -> str:
        """What it is called."""
        return NAMES[self.number]

    def as_json(self) -> dict[str, Any]:
        """The check as it stands in ``check_feedback.json``."""
        problems = [{"path": each.path, "reason": each.reason} for each in self.problems]
        said = {"number": self.number, "name": self.name, "state": self.state.value, "problems": problems}
        return {**said, "more": self.more} if self.more else said


@dataclass(frozen=True)
class Report:
    """What the six checks found."""

    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether all six passed."""
        return all(check.state is State.PASSED for check in self.checks)

    @property
    def failed(self) -> tuple[Check, ...]:
        """Those that found something."""
        return tuple(check for check in self.checks if check.state is State.FAILED)

    def with_check(self, changed: Check) -> Report:
        """The report with another outcome of one check."""
        return Report(tuple(changed if check.number == changed.number else check for check in self.checks))

    def as_json(self) -> dict[str, Any]:
        """The report as it stands in ``check_feedback.json``."""
        return {"passed": self.passed, "checks": [check.as_json() for check in self.checks]}


def examined(reading: Reading, template: Template) -> Report:
    """The checks that run no code: the first four, and of the fifth that everything exported is there and readable.

    The fifth is run where the manifest could be trusted, the sixth never.
    """
    files = reading.files
    dropped = [Problem(each.path, each.reason) for each in reading.dropped]
    known = {each.path for each in reading.dropped}
    outside = [path for path in files.paths if not template.manifest.structure.holds(path) and path not in known]
    dropped += [Problem(path, UNDER_NO_RULE) for path in outside]
    deploys = [Problem(path, reason) for path, reason in exported(files, template.manifest.exports).problems]
    return Report(
        (
            Check.of(1, dropped, more=sum(count for _, count in reading.more)),
            Check.of(2, [*misshapen(files, template), *surplus(files.paths, template)]),
            Check.of(3, _manifest_problems(files, template)),
            Check.of(4, changed_fixed(files, template)),
            Check.of(5, deploys),
            Check(6, State.NOT_RUN),
        )
    )


def misshapen(files: Files, template: Template) -> list[Problem]:
    """The files that a learner may change and that have not the form they have to have; in the order of the paths."""
    ruled = ((path, template.manifest.structure.rule(path)) for path in files.paths)
    reasons = ((path, formats.unfit(files.by_path[path].data, rule.format)) for path, rule in ruled if rule)
    return [Problem(path, reason) for path, reason in reasons if reason]


def surplus(paths: Iterable[str], template: Template) -> list[Problem]:
    """Those of the paths that are too many for their rule: the last ones in the order they are given in."""
    counts: Counter[str] = Counter()
    found = []
    for path in paths:
        rule = template.manifest.structure.rule(path)
        if rule is None or rule.format.max_files is None:
            continue
        counts[rule.glob.text] += 1
        if counts[rule.glob.text] > rule.format.max_files:
            found.append(Problem(path, f"{rule.glob.text} allows {rule.format.max_files} files"))
    return found


def changed_fixed(files: Files, template: Template) -> list[Problem]:
    """The files that are the template's and are not as it has them."""
    fixed = template.manifest.structure.is_fixed
    found = []
    for path in sorted({*template.files.paths, *files.paths}):
        if not fixed(path):
            continue
        ours, theirs = template.files.by_path.get(path), files.by_path.get(path)
        if theirs is None:
            found.append(Problem(path, "it is fixed, and is not there"))
        elif ours is None:
            found.append(Problem(path, "it would be fixed, and the template has no such file"))
        elif ours != theirs:
            found.append(Problem(path, "it is fixed, and differs from the template's"))
    return found


def _manifest_problems(files: Files, template: Template) -> list[Problem]:
    file = files.by_path.get(manifest.FILE)
    if file is None:
        return [Problem(manifest.FILE, "it is not there")]
    found, problems = manifest.read(file.data)
    if found is None:
        return [Problem(manifest.FILE, f"{each.where.text}: {each.text}") for each in problems]
    changed = [
        Problem(manifest.FILE, f"{name} differs from the template's") for name in found.changed(template.manifest)
    ]
    return changed + ([Problem(manifest.FILE, "it is executable")] if file.executable else [])
