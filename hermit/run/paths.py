"""Where the files of a run lie: the one place that spells their names."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Of a file system's 255 bytes, so that a time, a role and an ending fit beside it.
LONGEST_NAME = 120


@dataclass(frozen=True)
class RunPaths:
    """The files of one evaluation.

    ::

        <output_dir>/<run_name>/
        ├── sandbox/                      a record for each start of a sandbox
        │   ├── <time>-<role>-<id>-<repeat>.json
        │   └── <time>-<role>-<id>-<repeat>.proxy.jsonl   what its proxy decided, where it had one
        └── eval/<selector>/
            ├── lock.json                 what runs: another config, agent, judge or data may not add to it
            ├── results.jsonl             a line for each attempt, as they end
            ├── summary.json              what they come to
            ├── redaction.jsonl           which keys were scrubbed where, where any were
            └── logs/<id>-<repeat>/       what the agent and the judge printed, where they printed anything
                ├── agent.out agent.err judge.out judge.err
                ├── trajectory.json       the messages the agent handed back, where it did
                ├── agent-logs/           a copy of the agent's `.logs`, where it wrote any
                └── collected.jsonl       what a separate judge got of the work: a line for each file, with its digest

    Args:
        root: The run's directory.
        selector: Which adapter is evaluated.
    """

    root: Path
    selector: str

    @property
    def evaluation(self) -> Path:
        """The directory of this evaluation."""
        return self.root / "eval" / self.selector

    @property
    def lock(self) -> Path:
        """What runs."""
        return self.evaluation / "lock.json"

    @property
    def results(self) -> Path:
        """A line for each attempt."""
        return self.evaluation / "results.jsonl"

    @property
    def summary(self) -> Path:
        """What the attempts come to."""
        return self.evaluation / "summary.json"

    @property
    def records(self) -> Path:
        """A record for each start."""
        return self.root / "sandbox"

    @property
    def redaction(self) -> Path:
        """What was scrubbed from what each attempt left: counts, never values."""
        return self.evaluation / "redaction.jsonl"

    def logs(self, task_id: str, repeat: int) -> Path:
        """What one attempt printed."""
        return self.evaluation / "logs" / f"{file_name(task_id)}-{repeat}"

    def agent_logs(self, task_id: str, repeat: int) -> Path:
        """The copy of what the agent of one attempt logged."""
        return self.logs(task_id, repeat) / "agent-logs"

    def trajectory(self, task_id: str, repeat: int) -> Path:
        """The messages the agent of one attempt handed back."""
        return self.logs(task_id, repeat) / "trajectory.json"

    def manifest(self, task_id: str, repeat: int) -> Path:
        """What a separate judge got of one attempt's work."""
        return self.logs(task_id, repeat) / "collected.jsonl"

    def new_record(self, role: str, task_id: str, repeat: int) -> Path:
        """A name for the record of a start that happens now."""
        now = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")
        return self.records / f"{now}-{role}-{file_name(task_id)}-{repeat}.json"


@dataclass(frozen=True)
class StepPaths(RunPaths):
    """The attempts of one training step: an evaluation of the adapter it began with, in a directory of its own."""

    number: int = 0

    @property
    def evaluation(self) -> Path:
        """The directory of this step."""
        return self.root / step_name(self.number)

    @property
    def call(self) -> Path:
        """What the learner's call left: its answer and copies. Where this is there, the call is never made again."""
        return self.evaluation / "learner"

    def left(self, name: str) -> Path:
        """A part of the learner's desk as it was when the call had ended."""
        return self.call / name

    @property
    def check(self) -> Path:
        """What checking the adapter found."""
        return self.evaluation / "check_feedback.json"

    @property
    def change(self) -> Path:
        """What the step changed, as a diff."""
        return self.evaluation / "change.diff"


@dataclass(frozen=True)
class TrainPaths:
    """The files of one training run, beside those of its evaluations.

    ::

        <output_dir>/<run_name>/
        ├── sandbox/                      a record for each start of a sandbox
        ├── lock.json                     what is trained: another config, agent, judge, template or data may not go on
        ├── steps.jsonl                   a line for each finished step
        ├── summary.json                  what they come to
        ├── step_NNNN/                    results.jsonl, logs/ and redaction.jsonl as an evaluation has them, and
        │   ├── learner/                  what the learner's call left: answer.json, output/ and, of the last call,
        │   │                             adapter/ before it was checked, state/ and home/
        │   ├── learner.out learner.err   what it printed
        │   ├── tools.jsonl               a line for each call of a tool
        │   ├── check_feedback.json       what checking the adapter found
        │   └── change.diff               what became of it
        ├── learning_material/            what the learner is shown
        │   ├── README.md
        │   ├── index.jsonl               a line for each step
        │   ├── current                   a link to the last one
        │   └── step_NNNN/
        │       ├── summary.json  tasks/<id>.json  trajectories/<id>/  check_feedback.json
        └── checkout/                     the last adapter, with CARD.md

    Args:
        root: The run's directory.
    """

    root: Path

    @property
    def lock(self) -> Path:
        """What is trained."""
        return self.root / "lock.json"

    @property
    def steps(self) -> Path:
        """A line for each finished step."""
        return self.root / "steps.jsonl"

    @property
    def summary(self) -> Path:
        """What the steps come to."""
        return self.root / "summary.json"

    @property
    def material(self) -> Path:
        """What the learner is shown of the steps."""
        return self.root / "learning_material"

    @property
    def checkout(self) -> Path:
        """The last adapter."""
        return self.root / "checkout"

    def step(self, number: int) -> StepPaths:
        """The files of one step."""
        return StepPaths(self.root, step_name(number), number)

    def material_of(self, number: int) -> Path:
        """What the learner is shown of one step."""
        return self.material / step_name(number)


def step_name(number: int) -> str:
    """A step's directory: its number in four digits, more where it takes more."""
    return f"step_{number:04d}"


def file_name(task_id: str) -> str:
    """A task's id as one component of a path: two ids never share one, and any id has one."""
    name = quote(task_id, safe="")
    if name.startswith("."):
        name = "%2E" + name[1:]
    if len(name) > LONGEST_NAME:
        name = f"{name[:80]}+{hashlib.sha256(task_id.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
    return name


def run_name(*, given: str | None, config: Path, agent: str) -> str:
    """The run's name: the one that was given, or the config's directory and the agent's name."""
    return given or re.sub(r"[^A-Za-z0-9._-]+", "-", f"{config.parent.name}-{agent.rpartition(':')[2]}").strip(".-")


def write_atomically(path: Path, data: bytes) -> None:
    """Writes a file whole or not at all; whoever reads it sees the old one or the new one."""
    with written_atomically(path) as file:
        file.write(data)


@contextlib.contextmanager
def written_atomically(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, which is at its place when it is whole, and never when the writing fails."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fchmod(file.fileno(), 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
