"""Where the files of a training run lie: the one place that spells their names, beside those of evaluations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hermit.run.paths import RunPaths

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class StepPaths(RunPaths):
    """The attempts of one training step: an evaluation of the adapter it began with, in a directory of its own."""

    @property
    def evaluation(self) -> Path:
        """The directory of this step, which is called what selects it."""
        return self.root / self.selector

    @property
    def setup(self) -> StepPaths:
        """The files of the learner's first call, which prepares it."""
        return StepPaths(self.root, f"{self.selector}/setup")

    @property
    def rollouts(self) -> Path:
        """The attempts that the learner asked for during its call, a directory for each time it did."""
        return self.evaluation / "run_agent"

    def rollout(self, number: int) -> StepPaths:
        """Those that it asked for at one time."""
        return StepPaths(self.root, f"{self.selector}/{self.rollouts.name}/{number}")

    def printed(self, stream: str) -> Path:
        """What the learner printed during its call: ``out`` or ``err``."""
        return self.evaluation / f"learner.{stream}"

    @property
    def tools(self) -> Path:
        """A line for each call of a tool."""
        return self.evaluation / "tools.jsonl"

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
        ├── report.html                   the page of `hermit report`, where it was asked for
        ├── step_NNNN/                    results.jsonl, logs/ and redaction.jsonl as an evaluation has them, and
        │   ├── learner/                  what the learner's call left: answer.json, output/ and, of the last call,
        │   │                             adapter/ before it was checked, state/ and home/
        │   ├── learner.out learner.err   what it printed
        │   ├── tools.jsonl run_agent/    a line for each call of a tool; the attempts that it asked for
        │   ├── setup/                    of step 0: the same of the call that prepared the learner
        │   ├── check_feedback.json       what checking the adapter found
        │   └── change.diff               what became of it
        ├── final/                        the same of the learner's last call
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
    def page(self) -> Path:
        """The page that shows the run."""
        return self.root / "report.html"

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
        return StepPaths(self.root, step_name(number))

    @property
    def begun_steps(self) -> tuple[Path, ...]:
        """The directories of the steps that were begun."""
        return tuple(sorted(self.root.glob("step_*")))

    @property
    def begun(self) -> tuple[Path, ...]:
        """The directories that files of a run grow in, beside its own: of what was begun so far."""
        calls = (*self.begun_steps, self.step(0).setup.evaluation, self.final.evaluation)
        shown = (self.material, *self.material.glob("step_*"))
        return tuple(each for each in (*calls, *shown) if each.is_dir() and not each.is_symlink())

    @property
    def final(self) -> StepPaths:
        """The files of the learner's last call, after the last step."""
        return StepPaths(self.root, "final")

    @property
    def card(self) -> Path:
        """What the last adapter is, for people."""
        return self.checkout / "CARD.md"

    def material_of(self, number: int) -> Path:
        """What the learner is shown of one step."""
        return self.material / step_name(number)


def step_name(number: int) -> str:
    """A step's directory: its number in four digits, more where it takes more."""
    return f"step_{number:04d}"
