"""The learning material: what the learner is shown of a step's attempts, as files it can read without knowing Hermit."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hermit.domain.attempt import Status
from hermit.handoff.collect import collect
from hermit.handoff.redact import Found
from hermit.handoff.remove import remove
from hermit.run.paths import (
    file_name,
    flush_directory,
    flush_tree,
    make_directory,
    point_to,
    write_atomically,
    write_json,
)
from hermit.run.report import Tally

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from hermit.config.tasks import Task
    from hermit.handoff.redact import Redactor
    from hermit.run.train_paths import TrainPaths

# Of an attempt's logs, what the agent left; what the judge printed is the judge's own affair.
SHOWN_LOGS = ("agent.out", "agent.err", "messages.jsonl", "agent-logs")
OF_A_ROW = ("status", "phase", "cause", "error", "output", "cost_usd", "wall_s", "tokens", "log")
README = """\
# Learning material

What came of each step so far: how the tasks of the step went with the adapter as it was *before* the step's change.

- `current` is the last step's directory; `index.jsonl` has a line for each step with its mean score.
- `step_NNNN/summary.json`: the step in numbers.
- `step_NNNN/tasks/<id>.json`: a task as the agent got it, what the agent answered, and the judge's score and feedback.
- `step_NNNN/trajectories/<id>/`: what the agent printed and logged, and its messages in `messages.jsonl`.
- `step_NNNN/check_feedback.json`: what checking the adapter after that step found, and what was put right. It is there once
  the step has been checked; its `not_copied` counts what was left in the workspace and could not come along.

A score of `null` with the status `sandbox_error` says that the sandbox broke: nobody's fault here, and no reason to change anything.
"""


@dataclass(frozen=True)
class Step:
    """What is shown of one step.

    Args:
        number: Its number.
        epoch: Which pass over the split it belongs to.
        adapter: The commit of the adapter its attempts were made with.
        tasks: Its tasks, in order.
        rows: The rows of its attempts, as they stand in ``results.jsonl``.
    """

    number: int
    epoch: int
    adapter: str
    tasks: Sequence[Task]
    rows: Sequence[Mapping[str, Any]]

    def summary(self) -> dict[str, Any]:
        """The step in numbers."""
        tally = Tally()
        for row in self.rows:
            tally.add(dict(row))
        return {
            "step": self.number,
            "epoch": self.epoch,
            "adapter": self.adapter,
            "tasks": len(self.tasks),
            "mean_score": tally.mean,
            "statuses": {status.value: tally.statuses[status.value] for status in Status},
        }


def write(paths: TrainPaths, step: Step, *, redactor: Redactor) -> None:
    """Writes the material of a step, whole or not at all, and makes it the current one.

    Args:
        paths: The files of the run; the logs of the step's attempts lie there too.
        step: What is shown.
        redactor: Takes the keys out.

    Raises:
        OSError: It cannot be written.
        budget.TooMuch: The logs are more than a copy may take.
    """
    make_directory(paths.material)
    place = paths.material_of(step.number)
    made = place.with_name(f".{place.name}.new")
    remove(str(made))
    (made / "tasks").mkdir(parents=True)
    (made / "trajectories").mkdir()
    write_json(made / "summary.json", step.summary())
    for task in step.tasks:
        attempts = [row for row in step.rows if row["id"] == task.id]
        name = file_name(task.id)
        whole = {"id": task.id, "task": dict(task.row), "attempts": [shown(row) for row in attempts]}
        write_json(made / "tasks" / f"{name}.json", redactor.value(whole, found=Found(), where=name))
        for row in attempts:
            copy_logs(paths.step(step.number).logs(task.id, row["repeat"]), made / "trajectories" / name)
    flush_tree(made)
    remove(str(place))
    os.rename(made, place)
    flush_directory(paths.material)  # a later step is shown it, and nobody makes it again
    _point_to(paths, step.number)


def add_check(paths: TrainPaths, number: int, feedback: Mapping[str, Any]) -> None:
    """Adds to the material of a step what checking its adapter found; of a bootstrap that is all there is."""
    make_directory(paths.material_of(number))
    write_json(paths.material_of(number) / "check_feedback.json", feedback)


def shown(row: Mapping[str, Any]) -> dict[str, Any]:
    """What the learner is told of one attempt."""
    judge = row["judge"] or {}
    broken = row["status"] == Status.SANDBOX_ERROR.value
    score = None if broken else judge.get("score", 0.0)
    told = {name: row.get(name) for name in OF_A_ROW}
    return {"score": score, "feedback": judge.get("feedback", ""), "extra": judge.get("extra", {}), **told}


def copy_logs(logs: Path, into: Path) -> None:
    """Copies of an attempt's logs what a learner may see; nothing is made where there is nothing.

    Raises:
        OSError: It cannot be copied.
        budget.TooMuch: It is more than a copy may take.
    """
    present = [name for name in SHOWN_LOGS if (logs / name).exists()]
    if present:
        into.mkdir(exist_ok=True)
        collect(str(logs), present, into=str(into))


def _point_to(paths: TrainPaths, number: int) -> None:
    """The index, and the link to the last step."""
    steps = sorted(entry for entry in paths.material.glob("step_*") if (entry / "summary.json").is_file())
    lines = [json.loads((entry / "summary.json").read_bytes()) | {"path": entry.name} for entry in steps]
    index = "".join(f"{json.dumps(line)}\n" for line in lines)
    write_atomically(paths.material / "index.jsonl", index.encode("ascii"))
    write_atomically(paths.material / "README.md", README.encode())
    point_to(paths.material / "current", paths.material_of(number).name)
    flush_directory(paths.material)
