"""What a learner is going to be given; every refusal that concerns it happens here, before anything is created."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hermit.errors import ConfigError
from hermit.evolver import loader
from hermit.handoff.redact import keys_of
from hermit.net.hosts import Rules
from hermit.roles import evolver as evolver_role
from hermit.roles import models as model_role
from hermit.roles import secrets as run_secrets
from hermit.run import refusals, tools

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from hermit.config.schema import RunConfig
    from hermit.evolver.loader import Method
    from hermit.handoff.redact import Key
    from hermit.roles.models import Model
    from hermit.roles.secrets import Secret
    from hermit.roles.tool import Tool

README = "README.md"
# Shown as copies on the desk, which may be made of what lies among what Hermit wrote.
COPIED = frozenset({"evolver.name", "template", "task_info"})


@dataclass(frozen=True, kw_only=True)
class LearnerPlan:
    """The learner of a run.

    Args:
        method: Its method.
        models: The models that it and its roles call.
        tools: The task's tools that it may call.
        keys: The keys among the host's variables, with those that pass into its sandbox however short they are.
    """

    method: Method
    models: tuple[Model, ...]
    tools: tuple[Tool, ...]
    keys: tuple[Key, ...] = field(default=(), repr=False)


def planned(
    config: RunConfig, *, template: Path, secrets: tuple[Secret, ...], environ: Mapping[str, str]
) -> LearnerPlan:
    """The learner that the config asks for.

    Args:
        config: The run's config.
        template: The template's directory.
        secrets: What no sandbox of the run may show.
        environ: The host's variables.

    Raises:
        ConfigError: Something cannot be done as it stands; nothing was created.
    """
    method = loader.load(config)
    method.refuse_unmet(config)
    models = model_role.of_learner(config, method.params, environ=environ)
    model_role.refuse_keyless(models, environ)
    _refuse_unset(config, environ)
    _refuse_hosts(config)
    declared = evolver_role.declared(config, method=str(method.directory), template=str(template))
    evolver_role.names(str(path) for path in config.evolver_access.environment)
    _refuse_shown(config, declared, secrets)
    return LearnerPlan(
        method=method,
        models=models,
        tools=tuple(tools.declared(name, key="evolver_access.tools") for name in config.evolver_access.tools),
        keys=keys_of(environ, passes=functools.partial(evolver_role.passes, config, models)),
    )


def _refuse_shown(config: RunConfig, declared: tuple[tuple[str, str], ...], secrets: tuple[Secret, ...]) -> None:
    """What is missing first, then what would show too much."""
    refusals.refuse_missing(config, declared)
    if config.task_info is not None and not (config.task_info / README).is_file():
        what = f"{config.task_info} holds no {README}"
        raise ConfigError(what, where="task_info", cure="write the objective and the feedback contract into it")
    run_secrets.refuse_declared(declared, secrets, copied=COPIED)
    run_secrets.refuse_hard_links(declared, secrets)
    refusals.refuse_services(declared)
    refusals.refuse_scratch(declared, secrets)
    refusals.refuse_ways_through_writable(config, declared)


def _refuse_unset(config: RunConfig, environ: Mapping[str, str]) -> None:
    for name in config.sandbox.evolver.env:
        if "*" not in name and name not in environ:
            cure = f"export {name}, or leave it out"
            raise ConfigError(f"the variable {name} is not set", where="sandbox.evolver.env", cure=cure)


def _refuse_hosts(config: RunConfig) -> None:
    try:
        Rules.parse(list(config.sandbox.evolver.allowed_hosts))
    except ValueError as error:
        cure = "name hosts such as api.example.com"
        raise ConfigError(str(error), where="sandbox.evolver.allowed_hosts", cure=cure) from None
