"""`check_spec` whole: the checks of an adapter that run no code, then its own code and its template's, in a strict sandbox.

What is checked is a value, written into a scratch directory for the sandboxes that look at it: what passed is what was
looked at, whatever becomes of the directory it was read from.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermit import untrusted
from hermit.adapter import probe
from hermit.adapter.exports import exported
from hermit.adapter.repair import Repaired, repaired
from hermit.adapter.spec import Check, Problem, Report, State, examined
from hermit.agent.result import Failure, handed_back
from hermit.domain import codec, strict
from hermit.domain.command import Command
from hermit.handoff.remove import remove
from hermit.run.bench import lend

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermit.adapter.files import Files, Reading
    from hermit.adapter.template import Template
    from hermit.domain.sandbox import Enforce
    from hermit.sandbox import Place

RESULT_BYTES = 256 * 1024
DEPLOYS, OWN = 5, 6
# The probe is shown under this name, beside the adapter and the template.
PROBE = "probe.py"
MOST_PROBE = 64 * 1024


@dataclass(frozen=True)
class Strict:
    """Where the code of an adapter and of its template is run.

    Args:
        place: Where the sandboxes are started.
        enforce: What to do where none can be: as the run has it.
        scratch: A directory that the place sees, for what a check shows; each leaves it as it was.
        cancel: A descriptor that becomes readable when the run is given up.
    """

    place: Place
    enforce: Enforce
    scratch: str
    cancel: int | None = None


@dataclass(frozen=True)
class Settled:
    """What becomes of what a learner left.

    Args:
        files: The adapter as it goes on; it passes all six checks, or is the version before.
        outcome: ``kept`` as it was left, ``repaired``, or ``taken back`` whole.
        report: What the checks said of what was left.
        repaired: What was repaired; ``None`` where nothing had to be.
        after: What the checks said after the repair; ``None`` where there was none.
    """

    files: Files
    outcome: str
    report: Report
    repaired: Repaired | None = None
    after: Report | None = None

    def as_json(self) -> dict[str, Any]:
        """The document of ``check_feedback.json``."""
        said = {"outcome": self.outcome, **self.report.as_json(), "repairs": [], "more_repairs": {}}
        said |= self.repaired.as_json() if self.repaired else {}
        return {**said, "after_repair": self.after.as_json() if self.after else None}


def check_spec(reading: Reading, template: Template, *, where: Strict) -> Report:
    """What the six checks say of an adapter.

    Its code is run where the first checks have nothing to say, and the template's check where its own code has run.

    Raises:
        SandboxError: A strict sandbox failed.
        Interrupted: The run was given up.
    """
    report = examined(reading, template)
    if report.failed:
        return report
    with _shown(reading.files, template, where) as shown:
        report = report.with_check(Check.of(DEPLOYS, _deployed(shown, reading.files, template, where)))
        if report.failed:
            return report
        if not template.manifest.check:
            return report.with_check(Check(OWN, State.PASSED))
        return report.with_check(Check.of(OWN, _own_check(shown, template, where)))


def settled(reading: Reading, template: Template, *, before: Files, where: Strict) -> Settled:
    """The adapter that goes on from what a learner left: what passes, what passes after a repair, or the version before.

    Args:
        reading: What the learner left.
        template: Whose rules hold.
        before: The version the learner began with.
        where: Where code is run.

    Raises:
        SandboxError: A strict sandbox failed; nothing is said of the adapter.
        Interrupted: The run was given up.
    """
    report = check_spec(reading, template, where=where)
    if report.passed:
        return Settled(reading.files, "kept", report)
    mended = repaired(reading, template, before=before)
    after = check_spec(replace(reading, files=mended.files, dropped=(), more=()), template, where=where)
    if after.passed:
        return Settled(mended.files, "repaired", report, mended, after)
    return Settled(before, "taken back", report, mended, after)


@dataclass(frozen=True)
class _Shown:
    adapter: str
    root: str
    probe: str


@contextlib.contextmanager
def _shown(files: Files, template: Template, where: Strict) -> Iterator[_Shown]:
    """What the sandboxes of one check show, in a directory that is gone afterwards."""
    directory = tempfile.mkdtemp(prefix="check-", dir=where.scratch)
    try:
        shown = _Shown(*(os.path.join(directory, name) for name in ("adapter", "root", PROBE)))
        for name, each in ((shown.adapter, files), (shown.root, template.files)):
            os.mkdir(name)
            each.write(name)
        with untrusted.directory(os.path.dirname(probe.__file__)) as own:
            Path(shown.probe).write_bytes(untrusted.read(PROBE, at=own, most=MOST_PROBE).data)
        lend(Path(directory), where.place)
        yield shown
    finally:
        remove(directory)


def _deployed(shown: _Shown, files: Files, template: Template, where: Strict) -> list[Problem]:
    """What is wrong with the adapter's own code once it runs."""
    exports = template.manifest.exports
    names = sorted(exported(files, exports).tools)
    if not exports.tools:
        return []
    argument = {"file": f"{shown.adapter}/{exports.tools}", "names": names}
    said = _called(f"{shown.probe}:undefined", argument, shown=(shown.adapter, shown.probe), where=where)
    if isinstance(said, Failure):
        return [Problem(exports.tools, f"it does not run: {said.cause}: {said.error}")]
    missing = said if isinstance(said, list) and all(isinstance(name, str) for name in said) else names
    return [
        Problem(exports.tools, f"the tool {name} is not there once it has run") for name in missing if name in names
    ]


def _own_check(shown: _Shown, template: Template, where: Strict) -> list[Problem]:
    """What the template's own check says."""
    path, _, name = template.manifest.check.rpartition(":")
    argument = {"adapter": shown.adapter, "root": shown.root}
    said = _called(f"{shown.root}/{path}:{name}", argument, shown=(shown.adapter, shown.root), where=where)
    if isinstance(said, Failure):
        return [Problem(path, f"the template's check failed: {said.cause}: {said.error}")]
    if not isinstance(said, list):
        return [Problem(path, "the template's check returned no list")]
    found = []
    for each in said:
        match each:
            case str():
                found.append(Problem("", each))
            case {"path": str() as where_at, "reason": str() as reason}:
                found.append(Problem(where_at, reason))
            case _:
                found.append(
                    Problem(path, "the template's check returned something that is neither text nor a problem")
                )
    return found


def _called(callable_name: str, argument: Any, *, shown: tuple[str, ...], where: Strict) -> Any:
    """What a function returned in the strict sandbox, or how it failed."""
    sandbox = replace(strict.sandbox(shown[0], enforce=where.enforce), read=tuple(sorted(shown)))
    job = {"callable": callable_name, "argument": argument}
    command = Command(worker="hermit.agent.worker:run_tool", job=codec.dump(job) + b"\n", result_bytes=RESULT_BYTES)
    outcome = where.place.run(sandbox, command, keep=lambda _: None, cancel=where.cancel)
    value = handed_back(command, outcome)
    return value if isinstance(value, Failure) else value["returned"]
