"""``steps.jsonl``: a line for each finished step, and what they come to."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import TYPE_CHECKING, Any

from hermit.domain.attempt import Status
from hermit.errors import ConfigError
from hermit.run.paths import write_atomically

if TYPE_CHECKING:
    from pathlib import Path

    from hermit.run.handover import Answer
    from hermit.run.spending import Spending
    from hermit.run.training import TrainPlan

NEEDED = {"step", "epoch", "commit", "adapter", "learner", "wall_s"}


def read(path: Path) -> list[dict[str, Any]]:
    """The finished steps of a run, in order; none where there is no file.

    Raises:
        ConfigError: A line is none of a step.
    """
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return []
    found = []
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if not isinstance(row, dict) or not row.keys() >= NEEDED:
            cure = "put the file back, or give the run another trainer.run_name"
            raise ConfigError("this is no step of a training run", where=f"{path}, line {number}", cure=cure)
        found.append(row)
    return found


def add(path: Path, lines: list[dict[str, Any]], line: dict[str, Any]) -> None:
    """Finishes a step: the file holds it from here on, or it was never finished.

    Raises:
        HermitError: There is no room for it.
    """
    whole = [*lines, line]
    write_atomically(path, "".join(f"{json.dumps(each)}\n" for each in whole).encode("ascii"))
    lines.append(line)


def final(answer: Answer, *, outcome: str) -> dict[str, Any]:
    """What a summary says of the learner's last call."""
    return {
        "status": answer.status,
        "error": answer.error,
        "summary": getattr(answer.result, "summary", ""),
        "outcome": outcome,
        "usage": dict(answer.usage),
        "tools": dict(answer.meters),
        "wall_s": answer.wall_s,
    }


def summary(
    plan: TrainPlan, lines: list[dict[str, Any]], *, commit: str, stopped: str, spending: Spending
) -> dict[str, Any]:
    """The document of a training run's ``summary.json``."""
    scored = [line for line in lines if line.get("mean_score") is not None]
    scores = [line["mean_score"] for line in scored]
    statuses: Counter[str] = Counter()
    for line in scored:
        statuses.update(line["statuses"])
    identity = plan.template.manifest.template
    last = [line["mean_score"] for line in scored if line["epoch"] == scored[-1]["epoch"]] if scored else []
    return {
        "run": plan.name,
        "template": f"{identity.id}@{identity.version}",
        "learner": plan.learner.method.name,
        "commit": commit,
        "tag": f"{plan.name}/final",
        "steps": len(scored),
        "of_steps": len(plan.batches),
        "epochs": max((line["epoch"] for line in lines), default=0),
        "first_score": scores[0] if scores else None,
        "last_score": scores[-1] if scores else None,
        "mean_of_last_epoch": math.fsum(last) / len(last) if last else None,
        "changed": sum(line["changed"] for line in lines),
        "outcomes": dict(Counter(line["outcome"] for line in lines)),
        "learner_failed": sum(line["learner"]["status"] == "failed" for line in lines),
        "statuses": {status.value: statuses[status.value] for status in Status},
        "stopped": stopped,
        "complete": True,
        **spending.as_json(),
    }
