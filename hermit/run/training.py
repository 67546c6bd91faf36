"""What a training run is going to do; every refusal happens here, before anything is created."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermit import environ
from hermit.adapter import files as adapter_files
from hermit.adapter import template as templates
from hermit.adapter import tree as trees
from hermit.config.tasks import load_tasks
from hermit.errors import ConfigError
from hermit.handoff import freeze
from hermit.handoff.redact import Redactor
from hermit.run import learner_plan, versions
from hermit.run import plan as plans
from hermit.run.schedule import Batch, batches
from hermit.run.train_paths import TrainPaths

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermit.adapter.files import Reading
    from hermit.adapter.template import Template
    from hermit.config.schema import RunConfig
    from hermit.config.tasks import Task
    from hermit.evolver.loader import Method
    from hermit.run.learner_plan import LearnerPlan
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
        learner: Who learns.
        tree: The directory of the tree.
        paths: Where the files of the run lie.
        batches: The steps.
        validation: The tasks of the validation split, where the method needs them.
        lock: What is trained, in a form that two runs can be compared by.
    """

    rollouts: EvalPlan
    template: Template
    start: Reading | None
    learner: LearnerPlan
    tree: str
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
    variables = environ.snapshot()
    rollouts = plans.evaluation(config, config_file=config_file, adapter="none", splits=("train",), inherited=inherited)
    learner = learner_plan.planned(config, template=Path(template.source), secrets=rollouts.secrets, environ=variables)
    paths = TrainPaths(rollouts.paths.root)
    keys = tuple(dict.fromkeys((*rollouts.keys, *learner.keys)))
    once = config.model_copy(update={"eval": config.eval.model_copy(update={"repeats": 1})})
    rollouts = replace(rollouts, config=once, keys=keys, beside=_beside(config), paths=paths.final)
    data, name = config.data, rollouts.paths.root.name
    trees.branch(name)
    steps = batches(
        rollouts.tasks,
        size=data.step_size,
        epochs=config.trainer.epochs,
        seed=data.shuffle_seed if data.shuffle else None,
    )
    start = _start(config)
    validation = load_tasks(config).split("val") if learner.method.validation_data else ()
    lock = _lock(rollouts, template, start, learner.method)
    lock = _with_splits(lock, train=rollouts.tasks, validation=validation)
    return TrainPlan(
        rollouts=rollouts,
        template=template,
        start=start,
        learner=learner,
        tree=versions.tree_directory(config),
        paths=paths,
        batches=tuple(steps),
        validation=validation,
        lock=Redactor(rollouts.keys).value(plans.digested(lock)),
    )


def _beside(config: RunConfig) -> tuple[str, ...]:
    """What the learner's sandboxes show of the machine beside the exchange directory and what agents are shown."""
    tools = [name.rpartition(":")[0] for name in config.evolver_access.tools]
    return tuple(dict.fromkeys([*map(str, config.evolver_access.environment), *tools]))


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
    settings.pop("eval")
    contents = {
        **rollouts.lock["contents"],
        "template": trees.root_commit(template).id,
        "evolver.name": freeze.digest(str(method.directory)),
        "start_from": start.files.digest() if start is not None else "",
        "task_info": freeze.digest(str(config.task_info)) if config.task_info is not None else "",
    }
    return {"settings": settings, "contents": contents}


def _with_splits(lock: dict[str, Any], *, train: Iterable[Task], validation: Iterable[Task]) -> dict[str, Any]:
    """The same with what is trained on; what is tested on decides nothing here."""
    contents = {key: digest for key, digest in lock["contents"].items() if key != "data.test"}
    for key, tasks in (("data.train", train), ("data.val", validation)):
        ids = json.dumps([task.id for task in tasks]).encode()
        contents[key] = hashlib.sha256(ids).hexdigest()
    return {**lock, "contents": contents}
