"""What the trainer puts on a learner's desk before a call, and what it takes from it afterwards.

The desk lies where sandboxes see it and is gone with the process; what has to last is kept in the run's directory, as sanitized
copies. What a call left is kept as one directory that is either there whole or not there: that is what makes a call, which
may have cost money, never be made twice.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from hermit.agent.result import Failure
from hermit.evolver import wire
from hermit.evolver.base import MOST_TEXT
from hermit.handoff import budget, scrub
from hermit.handoff.collect import collect
from hermit.handoff.redact import Found
from hermit.handoff.remove import remove
from hermit.run.paths import flush_directory, flush_tree, point_to, told, write_atomically, write_json
from hermit.run.train_paths import step_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from hermit.adapter.files import Files
    from hermit.config.tasks import Task
    from hermit.evolver.base import FinalResult, StepResult
    from hermit.handoff.collect import Collection
    from hermit.handoff.redact import Redactor
    from hermit.run.learner import Called, Desk
    from hermit.run.train_paths import StepPaths, TrainPaths

# Copies a directory that somebody else filled into one that exists and is empty.
Copier = Callable[[str, str, budget.Budget], "Collection"]
# What lasts from call to call, beside the adapter; scratch lasts while the process does.
LASTING = ("state", "home", "output")
KEPT = ("adapter", *LASTING)
# Of what a learner leaves as its adapter, of which files are read one by one; the rest of its desk may be large.
MOST_ADAPTER = budget.Budget(entries=20_000, bytes=512 * budget.MIB, apparent_bytes=budget.GIB, depth=64)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came of a call, as it is kept.

    Args:
        phase: Which call it was.
        result: What the learner said; ``None`` where it has nothing to say.
        failure: How the call failed; ``None`` where it did not.
        meters: What the tools it called came to, by name.
        wall_s: Seconds it took.
        dropped: How many entries of what it left were not kept, by the part of the desk and the reason.
        scrubbed: Which keys were taken out of what it left, and where: counts, never values.
    """

    phase: str
    result: StepResult | FinalResult | None = None
    failure: Failure | None = None
    meters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    wall_s: float = 0.0
    dropped: Mapping[str, int] = field(default_factory=dict)
    scrubbed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def status(self) -> str:
        """``done``, ``failed``, ``out_of_budget`` or ``stop``."""
        return "failed" if self.failure is not None else getattr(self.result, "status", "done")

    @property
    def error(self) -> str:
        """How it failed, in words; empty where it did not."""
        return "" if self.failure is None else f"{self.failure.cause}: {self.failure.error}"

    @property
    def session(self) -> Any:
        """What the next call is given of this one."""
        return getattr(self.result, "session", None)

    @property
    def usage(self) -> Mapping[str, float]:
        """What the learner says that it used."""
        return self.result.usage if self.result is not None else {}

    def as_json(self) -> dict[str, Any]:
        """The document that is kept."""
        failure = None if self.failure is None else {"cause": self.failure.cause, "error": self.failure.error}
        return {
            "phase": self.phase,
            "failure": failure,
            **wire.written(self.result),
            "meters": {name: dict(meter) for name, meter in self.meters.items()},
            "wall_s": round(self.wall_s, 3),
            "dropped": dict(self.dropped),
            "scrubbed": dict(self.scrubbed),
        }

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Answer:
        """The answer in a document that this program wrote."""
        final = document["phase"] == "finalize"
        said = {"result": document["result"]}
        failure = document["failure"]
        return cls(
            phase=document["phase"],
            result=wire.final_result(said) if final else wire.step_result(said),
            failure=None if failure is None else Failure(failure["cause"], failure["error"]),
            meters=document["meters"],
            wall_s=document["wall_s"],
            dropped=document["dropped"],
            scrubbed=document["scrubbed"],
        )


def answer_of(phase: str, called: Called) -> Answer:
    """What came of a call that has just been made."""
    failed = isinstance(called.result, Failure)
    return Answer(
        phase=phase,
        result=None if failed else called.result,  # type: ignore[arg-type]  # it is no failure
        failure=called.result if failed else None,  # type: ignore[arg-type]  # it is one
        meters={name: vars(meter) for name, meter in called.meters.items()},
        wall_s=called.wall_s,
    )


# Onto the desk


def put_adapter(desk: Desk, files: Files) -> None:
    """Makes the working copy a version, and nothing else."""
    part = desk.part("adapter")
    remove(str(part))
    part.mkdir()
    files.write(str(part))


def put_back(desk: Desk, step: StepPaths) -> None:
    """Makes what lasts what it was when a step's call had ended."""
    for name in LASTING:
        source = step.left(name)
        part = desk.part(name)
        remove(str(part))
        part.mkdir()
        if source.is_dir():
            collect(str(source), ["."], into=str(part))


def put_task_info(desk: Desk, directory: Path | None) -> None:
    """Copies the description of the task."""
    if directory is not None:
        collect(os.path.realpath(directory), ["."], into=str(desk.part("task-info")))


def put_validation(desk: Desk, tasks: Iterable[Task]) -> None:
    """Writes the tasks of the validation split, as an agent would get them."""
    lines = "".join(f"{json.dumps(dict(task.row))}\n" for task in tasks)
    write_atomically(desk.part("validation") / "tasks.jsonl", lines.encode("ascii"))


def put_material(desk: Desk, paths: TrainPaths) -> None:
    """Makes the material what the run has, a step at a time: a step that is there already did not change.

    The last but one may have got what checking its adapter found.
    """
    part = desk.part("material")
    steps = sorted(entry.name for entry in paths.material.glob("step_*"))
    for name in steps:
        if name in steps[-2:]:
            remove(str(part / name))
        if not (part / name).exists():
            (part / name).mkdir()
            collect(str(paths.material / name), ["."], into=str(part / name))
    for name in ("README.md", "index.jsonl"):
        if (paths.material / name).exists():  # there is none of it before the first step
            write_atomically(part / name, (paths.material / name).read_bytes())
    if (paths.material / "current").is_symlink():
        point_to(part / "current", str((paths.material / "current").readlink()))


def put_history(desk: Desk, entries: Iterable[tuple[dict[str, Any], str]]) -> None:
    """Writes the adapter's history: a line for each version, and what it changed.

    Args:
        desk: The desk.
        entries: Of each version what is said of it, with its number in ``step``, and its diff.
    """
    part = desk.part("history")
    lines = []
    for said, diff in entries:
        lines.append(json.dumps(said))
        file = part / f"{step_name(said['step'])}.diff"
        if not file.exists():
            file.write_text(diff, encoding="utf-8")
    write_atomically(part / "index.jsonl", "".join(f"{line}\n" for line in lines).encode("ascii"))


# From the desk


def keep(desk: Desk, step: StepPaths, answer: Answer, *, copy: Copier, redactor: Redactor, scratch: Path) -> Answer:
    """Keeps what a call left, with its answer: whole, or not at all. What is returned is what was kept.

    Args:
        desk: The desk, on which nobody works any more.
        step: Where it is kept.
        answer: What came of the call.
        copy: Copies a directory that a learner filled into one that exists and is empty.
        redactor: Takes the keys out.
        scratch: A directory of this process alone: the run's own never holds a key, not even for a moment.

    Raises:
        HermitError: It cannot be kept, and the call will have to be made again.
        SandboxError: It cannot be copied.
    """
    made = step.call.with_name(f".{step.call.name}.new")
    remove(str(made))
    made.mkdir(parents=True)
    dropped: dict[str, int] = {}
    found = Found()
    with told(step.call):
        for name in KEPT:
            left = _Left(desk.part(name), made / name, MOST_ADAPTER if name == "adapter" else budget.DEFAULT)
            dropped |= left.keep(copy, redactor, scratch=scratch, found=found)
        whole = replace(answer, dropped=dropped, scrubbed=found.as_json() if found else {})
        write_json(made / "answer.json", _without_keys(whole, redactor))
        flush_tree(made)
        os.rename(made, step.call)
        flush_directory(step.call.parent)
    again = kept(step)
    assert again is not None  # noqa: S101 - it has just been written
    return again


@dataclass(frozen=True)
class _Left:
    """A part of the desk that a call has left, and the most that is kept of it."""

    part: Path
    into: Path
    most: budget.Budget

    def keep(self, copy: Copier, redactor: Redactor, *, scratch: Path, found: Found) -> dict[str, int]:
        """Copies it without a key; one that is more than a copy may take is dropped whole, and told."""
        copied = scratch / f"left-{self.part.name}" if redactor else self.into
        copied.mkdir()
        try:
            dropped = copy(str(self.part), str(copied), self.most).dropped
            if redactor:
                scrub.tree(redactor, str(copied), found=found)
                self.into.mkdir()
                collect(str(copied), ["."], into=str(self.into))
        except budget.TooMuch as error:
            remove(str(self.into))
            if self.part.name != "adapter":  # an empty one would say that all of it was taken out
                self.into.mkdir()
            dropped = ((str(error), 1),)
        finally:
            if redactor:
                remove(str(copied))
        return {f"{self.part.name}: {reason}": count for reason, count in dropped}


def _without_keys(answer: Answer, redactor: Redactor) -> dict[str, Any]:
    """The document of an answer without a key, which can be read again whatever stood in the place of one."""
    clean: dict[str, Any] = redactor.value(answer.as_json(), where="answer.json")
    said = clean["result"] or {}
    for name in ("summary", "rationale"):  # the name of a variable may be longer than its value
        if isinstance(said.get(name), str):
            said[name] = said[name][:MOST_TEXT]
    try:
        Answer.read(clean)
    except (KeyError, TypeError, ValueError):
        failure = Failure("result", "what it handed back makes no sense without the keys that stood in it")
        unreadable = replace(answer, result=None, failure=failure, meters={}, dropped={}, scrubbed={})
        return {**clean, **{name: unreadable.as_json()[name] for name in ("phase", "result", "failure", "wall_s")}}
    return clean


def kept(step: StepPaths) -> Answer | None:
    """The answer of a step's call; ``None`` where it has not been made, or not to its end."""
    try:
        document = json.loads((step.call / "answer.json").read_bytes())
    except FileNotFoundError:
        return None
    return Answer.read(document)


def forget(step: StepPaths) -> None:
    """Drops what a step's call left but its answer and its output: a later step has what lasts of it."""
    for name in ("adapter", "state", "home"):
        remove(str(step.left(name)))
