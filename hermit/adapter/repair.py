"""What becomes of an adapter that breaks the rules: what is wrong is taken back, and each part of it is told with its reason.

Nothing is guessed: what the template fixes is put back as the template has it, what may not be is dropped, and a file that a
learner may change and got wrong becomes what it was before. The version before passed the checks, so this ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hermit.adapter import manifest, names, spec
from hermit.adapter.exports import exported
from hermit.adapter.files import File, Files, Reading

if TYPE_CHECKING:
    from hermit.adapter.template import Template

DROPPED, RESTORED, TAKEN_BACK = "dropped", "restored", "taken back"


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
        files: The files; they pass the checks that run no code.
        repairs: What was repaired, in the order it was done.
        more: How much more was dropped than is told one by one, by reason.
    """

    files: Files
    repairs: tuple[Repair, ...] = ()
    more: tuple[tuple[str, int], ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The repairs as they stand in ``check_feedback.json``."""
        said = [{"path": each.path, "done": each.done, "reason": each.reason} for each in self.repairs]
        return {"repairs": said, "more_dropped": dict(self.more)}


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
    for path in files.paths:
        if not structure.holds(path):
            files = files.with_files({path: None})
            repairs += [] if path in told else [Repair(path, DROPPED, "it is under no rule of the structure")]
    files = _with_manifest(files, template, repairs)
    for problem in spec.changed_fixed(files, template):
        ours = template.files.by_path.get(problem.path)
        files = files.with_files({problem.path: ours})
        repairs.append(Repair(problem.path, RESTORED if ours else DROPPED, problem.reason))
    files = _with_forms(files, template, before, repairs)
    files = _without_clashes(files, template, before, repairs)
    files = _with_exports(files, template, before, repairs)
    files = _without_clashes(files, template, before, repairs)
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
    for problem in spec.misshapen(files, template):
        files = _taken_back(files, before, problem.path, repairs, reason=problem.reason)
    return files


def _without_clashes(files: Files, template: Template, before: Files, repairs: list[Repair]) -> Files:
    """No two files that some systems take for one, and no more than a rule allows: what is new goes first."""
    fixed = template.manifest.structure.is_fixed
    ranked = sorted(files.paths, key=lambda path: (not fixed(path), path not in before.by_path, path))
    clashes = [(path, f"some systems would take it for {other}") for path, other in names.collisions(ranked).items()]
    clashes += [(problem.path, problem.reason) for problem in spec.surplus(ranked, template)]
    for path, reason in clashes:
        if path in files.by_path:
            files = files.with_files({path: None})
            repairs.append(Repair(path, DROPPED, reason))
    return files


def _with_exports(files: Files, template: Template, before: Files, repairs: list[Repair]) -> Files:
    """Everything exported is there and readable: what is not becomes what it was."""
    for path, reason in exported(files, template.manifest.exports).problems:
        below = {path, *(each for each in {*files.paths, *before.paths} if each.startswith(f"{path}/"))}
        for each in sorted(below):
            if template.manifest.structure.rule(each) is not None:
                files = _taken_back(files, before, each, repairs, reason=reason)
    return files


def _taken_back(files: Files, before: Files, path: str, repairs: list[Repair], *, reason: str) -> Files:
    """One file as it was before; dropped where it was not there."""
    was = before.by_path.get(path)
    if files.by_path.get(path) == was:
        return files
    repairs.append(Repair(path, TAKEN_BACK if was else DROPPED, reason))
    return files.with_files({path: was})
