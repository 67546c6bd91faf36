"""What becomes of an adapter that breaks the rules: what is wrong is taken back, and each part of it is told with its reason.

Nothing is guessed: what the template fixes is put back as the template has it, what may not be is dropped, and a file that a
learner may change and got wrong becomes what it was before. The version before passed the checks, so this ends.
"""

from __future__ import annotations

import bisect
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hermit.adapter import manifest, names, spec
from hermit.adapter.exports import exported
from hermit.adapter.files import UNDER_NO_RULE, File, Files, Reading

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermit.adapter.template import Template

DROPPED, RESTORED, TAKEN_BACK = "dropped", "restored", "taken back"
MOST_TOLD = 500
ROUNDS = 5


@dataclass(frozen=True)
class Repair:
    """One thing that was repaired.

    Args:
        path: Where, in the adapter.
        done: ``dropped``, ``restored`` (as the template has it) or ``taken back`` (as it was before).
        reason: What was wrong.
    """

    path: str
    done: str
    reason: str


@dataclass(frozen=True)
class Repaired:
    """An adapter after its repair.

    Args:
        files: The files.
        repairs: What was repaired, in the order it was done.
        more: How much more was dropped than could be told one by one, by reason.
    """

    files: Files
    repairs: tuple[Repair, ...] = ()
    more: tuple[tuple[str, int], ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The repairs as they stand in ``check_feedback.json``, the first of them one by one."""
        told = self.repairs[:MOST_TOLD]
        said = [{"path": each.path, "done": each.done, "reason": each.reason} for each in told]
        more = Counter(dict(self.more)) + Counter(each.reason for each in self.repairs[MOST_TOLD:])
        return {"repairs": said, "more_repairs": dict(sorted(more.items()))}


def repaired(reading: Reading, template: Template, *, before: Files) -> Repaired:
    """The files of an adapter with everything that breaks a rule taken back.

    Args:
        reading: What a learner left.
        template: Whose rules they are.
        before: The version the learner began with, which breaks none.
    """
    structure = template.manifest.structure
    repairs = [Repair(each.path, DROPPED, each.reason) for each in reading.dropped]
    files, told = reading.files, {each.path for each in reading.dropped}
    outside = [path for path in files.paths if not structure.holds(path)]
    repairs += [Repair(path, DROPPED, UNDER_NO_RULE) for path in outside if path not in told]
    files = files.with_files(dict.fromkeys(outside))
    files = _with_manifest(files, template, repairs)
    changed = {problem.path: problem.reason for problem in spec.changed_fixed(files, template)}
    ours = {path: template.files.by_path.get(path) for path in changed}
    repairs += [Repair(path, RESTORED if ours[path] else DROPPED, reason) for path, reason in changed.items()]
    files = files.with_files(ours)
    files = _with_forms(files, template, before, repairs)
    for _ in range(ROUNDS):  # what goes for one reason may have been what another file needed
        seen = files
        files = _with_exports(_without_clashes(files, template, before, repairs), template, before, repairs)
        if files == seen:
            break
    return Repaired(files, tuple(repairs), reading.more)


def _with_manifest(files: Files, template: Template, repairs: list[Repair]) -> Files:
    """The manifest as the template has it, with what a learner may say of its origin."""
    file = files.by_path.get(manifest.FILE)
    found = manifest.read(file.data)[0] if file else None
    if file and found and not found.changed(template.manifest) and not file.executable:
        return files
    reason = "it is not there" if file is None else "it cannot be read, or its fixed sections differ"
    repairs.append(Repair(manifest.FILE, RESTORED, reason))
    ours = template.files.by_path[manifest.FILE]
    if file and found and found.origin:
        origin = manifest.sections(file.data)["origin"]
        mixed = manifest.without_origin(ours.data) + origin + b"\n"
        read, _ = manifest.read(mixed)
        if read is not None and not read.changed(template.manifest):
            ours = File(mixed)
    return files.with_files({manifest.FILE: ours})


def _with_forms(files: Files, template: Template, before: Files, repairs: list[Repair]) -> Files:
    """Every learnable file in its form: what is wrong in itself is taken back."""
    wrong = {problem.path: problem.reason for problem in spec.misshapen(files, template)}
    return _taken_back(files, before, wrong, repairs)


def _without_clashes(files: Files, template: Template, before: Files, repairs: list[Repair]) -> Files:
    """No two files that some systems take for one, and no more than a rule allows: what is new goes first."""
    fixed = template.manifest.structure.is_fixed
    ranked = sorted(files.paths, key=lambda path: (not fixed(path), path not in before.by_path, path))
    clashes = [(path, f"some systems would take it for {other}") for path, other in names.collisions(ranked).items()]
    clashes += [(problem.path, problem.reason) for problem in spec.surplus(ranked, template)]
    wrong = dict(reversed(clashes))  # of two reasons the first
    repairs += [Repair(path, DROPPED, reason) for path, reason in sorted(wrong.items())]
    return files.with_files(dict.fromkeys(wrong))


def _with_exports(files: Files, template: Template, before: Files, repairs: list[Repair]) -> Files:
    """Everything exported is there and readable: what is not becomes what it was."""
    wrong: dict[str, str] = {}
    known = sorted({*files.paths, *before.paths})
    for path, reason in exported(files, template.manifest.exports).problems:
        # The letter that comes after a slash ends what begins with the path and a slash.
        start, end = (bisect.bisect_left(known, f"{path}{border}") for border in "/0")
        for each in (path, *known[start:end]):
            if template.manifest.structure.rule(each) is not None:
                wrong.setdefault(each, reason)
    return _taken_back(files, before, wrong, repairs)


def _taken_back(files: Files, before: Files, wrong: Mapping[str, str], repairs: list[Repair]) -> Files:
    """Some files as they were before; those that were not there are dropped."""
    was = {path: before.by_path.get(path) for path in wrong}
    changed = [path for path in wrong if files.by_path.get(path) != was[path]]
    repairs += [Repair(path, TAKEN_BACK if was[path] else DROPPED, wrong[path]) for path in changed]
    return files.with_files({path: was[path] for path in changed})
