"""What a training run is going to do; every refusal happens here, before anything is created."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import hermit
from hermit import environ
from hermit.adapter import files as adapter_files
from hermit.adapter import template as templates
from hermit.adapter import tree as trees
from hermit.config.tasks import load_tasks
from hermit.errors import ConfigError
from hermit.evolver import loader
from hermit.handoff import freeze
from hermit.handoff.redact import Redactor
from hermit.roles import evolver as evolver_role
from hermit.roles import models as model_roles
from hermit.roles import secrets as run_secrets
from hermit.run import plan as plans
from hermit.run.paths import TrainPaths
from hermit.run.schedule import Batch, batches

if TYPE_CHECKING:
    from pathlib import Path

    from hermit.adapter.files import Reading
    from hermit.adapter.template import Template
    from hermit.config.schema import RunConfig
    from hermit.config.tasks import Task
    from hermit.evolver.loader import Method
    from hermit.roles.models import Model
    from hermit.run.plan import EvalPlan

# What a training run may be given more of, or less, and still be the same run.
MAY_CHANGE = ("budget", "resume_mode", "output_dir", "tree_dir", "run_name", "call_timeout_min", "save_freq")


@dataclass(frozen=True, kw_only=True)
class TrainPlan:
    """One learner, one template, and the training split.

    Args:
        rollouts: How attempts are made: as an evaluation makes them, but for the adapter and the tasks of a step.
        template: Whose rules hold.
        start: The first version, where it is another than the template; checked before anything else.
        method: The learner's method.
        models: The models that the learner calls.
        tree: The directory of the tree.
        paths: Where the files of the run lie.
        batches: The steps.
        validation: The tasks of the validation split, where the method needs them.
        lock: What is trained, in a form that two runs can be compared by.
    """

    rollouts: EvalPlan
    template: Template
    start: Reading | None
    method: Method
    models: tuple[Model, ...]
    tree: Path
    paths: TrainPaths
    batches: tuple[Batch, ...]
    validation: tuple[Task, ...] = ()
    lock: dict[str, Any] = field(default_factory=dict, hash=False)

    @property
    def config(self) -> RunConfig:
        """The run's config."""
        return self.rollouts.config

    @property
    def name(self) -> str:
        """The run's name, which is its branch's too."""
        return self.paths.root.name


def training(config: RunConfig, *, config_file: Path, inherited: str = "") -> TrainPlan:
    """The plan of ``hermit train``.

    Args:
        config: The run's config.
        config_file: Where it was read, absolute.
        inherited: What the variable ``HA_SANDBOX_HIDE`` of this process holds.

    Raises:
        ConfigError: Something cannot be done as it stands; nothing was created.
    """
    if config.template is None:
        cure = f"name one of {', '.join(templates.shipped())}, or a directory with a / in it"
        raise ConfigError("a training run needs a template", where="template", cure=cure)
    template = templates.named(config.template)
    method = loader.load(config)
    method.refuse_unmet(config)
    rollouts = plans.evaluation(config, config_file=config_file, adapter="none", splits=("train",), inherited=inherited)
    models = model_roles.of_learner(config, method.params, environ=environ.snapshot())
    shown = evolver_role.declared(config, method=str(method.directory), template=template.source)
    evolver_role.names(str(path) for path in config.evolver_access.environment)
    run_secrets.refuse_declared(list(shown), rollouts.secrets, copied=frozenset({"template", "evolver.name"}))
    task_set = load_tasks(config)
    data = config.data
    steps = batches(
        rollouts.tasks,
        size=data.step_size,
        epochs=config.trainer.epochs,
        seed=data.shuffle_seed if data.shuffle else None,
    )
    paths = TrainPaths(rollouts.paths.root)
    trees.refuse_name(paths.root.name)
    start = _start(config)
    return TrainPlan(
        rollouts=rollouts,
        template=template,
        start=start,
        method=method,
        models=models,
        tree=config.trainer.tree_dir or config.trainer.output_dir / "trees" / template.manifest.template.id,
        paths=paths,
        batches=tuple(steps),
        validation=task_set.split("val") if method.validation_data else (),
        lock=Redactor(rollouts.keys).value(_lock(rollouts, template, start, method)),
    )


def _start(config: RunConfig) -> Reading | None:
    """What ``start_from`` names; whether it keeps the template's rules is checked once sandboxes can be started."""
    if config.start_from is None:
        return None
    try:
        return adapter_files.read(str(config.start_from))
    except OSError as error:
        what = f"{config.start_from} cannot be read: {error}"
        raise ConfigError(what, where="start_from", cure="name an adapter's directory") from None


def _lock(rollouts: EvalPlan, template: Template, start: Reading | None, method: Method) -> dict[str, Any]:
    """What decides the outcome: what decides an evaluation's, and the template, the learner and the order of the steps."""
    config = rollouts.config
    settings = {
        **rollouts.lock["settings"],
        **config.model_dump(mode="json", include={"evolver", "evolver_access", "model", "task_info", "trainer"}),
    }
    for key in MAY_CHANGE:
        settings["trainer"].pop(key)
    contents = {
        **rollouts.lock["contents"],
        "template": trees.root_commit(template).id,
        "evolver.name": freeze.digest(str(method.directory)),
        "start_from": start.files.digest() if start is not None else "",
        "task_info": freeze.digest(str(config.task_info)) if config.task_info is not None else "",
    }
    decides = {"settings": settings, "contents": contents}
    plain = json.dumps(decides, sort_keys=True).encode()
    return {"digest": hashlib.sha256(plain).hexdigest(), "hermit": hermit.__version__, **decides}
