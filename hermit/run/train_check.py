"""What `hermit check` says of a config that trains: its template, its learner, its bounds, and whether a run could go on.

Nothing is created and no call of the learner is made.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hermit.adapter import template as templates
from hermit.errors import ConfigError, HermitError
from hermit.run import train, training
from hermit.run.doctor.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hermit.config.schema import RunConfig
    from hermit.run.training import TrainPlan


def findings(config: RunConfig, *, config_file: Path, inherited: str = "") -> Iterator[Finding]:
    """A finding for each part of a training run; none where the config names no learner.

    Args:
        config: The run's config.
        config_file: Where it was read, absolute.
        inherited: What the variable ``HA_SANDBOX_HIDE`` of this process holds.
    """
    if config.evolver.name is None:
        return
    if config.template is not None:
        try:
            manifest = templates.named(config.template).manifest
        except ConfigError as error:
            yield Finding("template", False, str(error).partition("\n  -> ")[0], error.cure)
            return
        yield Finding("template", True, f"{manifest.template.id} {manifest.template.version}")
    try:
        plan = training.training(config, config_file=config_file, inherited=inherited)
    except HermitError as error:
        yield Finding("learner", False, f"{error.where}: {error.what}", error.cure)
        return
    yield Finding("learner", True, f"{plan.learner.method.name}, {len(plan.batches)} steps")
    yield _budget(plan)
    yield _goes_on(plan)


def _budget(plan: TrainPlan) -> Finding:
    """A learner that calls models is bounded by something that counts what they cost."""
    bounds = {name: bound for name, bound in plan.config.trainer.budget if bound is not None}
    if bounds:
        return Finding("training budget", True, ", ".join(f"{bound:g} {name}" for name, bound in bounds.items()))
    what = f"nothing bounds what {len(plan.batches)} steps may cost"
    cure = "set trainer.budget.usd, .tokens or .hours"
    return Finding("training budget", not plan.learner.models, what, cure, needed=False)


def _goes_on(plan: TrainPlan) -> Finding:
    """Whether `hermit train` would begin or go on; a run that has ended is no fault."""
    name, paths = "training run", plan.paths
    try:
        train.refuse_finished(plan)
    except ConfigError as error:
        return Finding(name, False, f"{error.where}: {error.what}", error.cure, needed=False)
    if paths.begun_steps and _digest(paths.lock) != plan.lock["digest"]:
        return Finding(name, False, f"{paths.root}: it holds steps of something else", train.ANOTHER, needed=False)
    begun = f"{plan.name} goes on" if paths.steps.exists() else f"{plan.name} would be a new one"
    return Finding(name, True, begun)


def _digest(lock: Path) -> str:
    try:
        return str(json.loads(lock.read_bytes())["digest"])
    except (OSError, ValueError, TypeError, KeyError):
        return ""
