"""What an evaluation is going to do; every refusal happens here, before anything is created."""

from __future__ import annotations

import functools
import hashlib
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hermit
from hermit import environ
from hermit.agent.source import compiled
from hermit.bwrap import python
from hermit.config.tasks import load_tasks
from hermit.domain import hide
from hermit.errors import ConfigError
from hermit.handoff import freeze
from hermit.handoff.redact import Redactor, keys_of
from hermit.roles import secrets as run_secrets
from hermit.roles import task as task_role
from hermit.run import refusals, versions
from hermit.run.paths import RunPaths, run_name

if TYPE_CHECKING:
    from hermit.config.schema import RunConfig
    from hermit.config.tasks import Task
    from hermit.handoff.redact import Key
    from hermit.roles.secrets import Secret
    from hermit.run.versions import Chosen


@dataclass(frozen=True)
class Attempt:
    """One attempt at one task."""

    task: Task
    repeat: int

    @property
    def key(self) -> tuple[str, int]:
        """What tells it from every other attempt of the run."""
        return self.task.id, self.repeat


@dataclass(frozen=True, kw_only=True)
class EvalPlan:
    """One adapter, scored on the test split.

    Args:
        config: The run's config.
        config_file: Where it was read.
        adapter: The adapter, or none.
        tasks: The tasks of the split, in its order.
        paths: Where the files of the run lie.
        secrets: What no sandbox may show.
        hidden: What every sandbox but the judge's covers: the config's names and those a parent process handed on.
        lock: What runs, in a form that two runs can be compared by.
        agent_code: The agent's file, compiled; empty where the environment holds the agent.
        judge_code: The judge's file, compiled.
        keys: What nothing that the run keeps may hold.
        beside: What sandboxes show that are started beside those of the attempts.
    """

    config: RunConfig
    config_file: Path
    adapter: Chosen
    tasks: tuple[Task, ...]
    paths: RunPaths
    secrets: tuple[Secret, ...]
    hidden: tuple[str, ...]
    lock: dict[str, Any]
    agent_code: bytes
    judge_code: bytes
    keys: tuple[Key, ...] = field(default=(), repr=False)
    beside: tuple[str, ...] = ()

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """Every attempt, the first at each task before the second at any."""
        return tuple(Attempt(task, repeat) for repeat in range(self.config.eval.repeats) for task in self.tasks)

    @property
    def base(self) -> Path:
        """The directory of the config."""
        return self.config_file.parent


def evaluation(
    config: RunConfig,
    *,
    config_file: Path,
    adapter: str,
    splits: tuple[str, ...] = ("test",),
    inherited: str = "",
) -> EvalPlan:
    """The plan of ``hermit eval``.

    Args:
        config: The run's config.
        config_file: Where it was read, absolute.
        adapter: ``none``, ``root``, ``final``, a tag, a commit or a directory.
        splits: The splits whose tasks may be taken: those of the first one that the config names.
        inherited: What the variable ``HA_SANDBOX_HIDE`` of this process holds.

    Raises:
        ConfigError: Something cannot be done as it stands; nothing was created.
    """
    refusals.refuse_unsupported(config)
    variables = environ.snapshot()
    refusals.refuse_unset(config, variables)
    keys = keys_of(variables, passes=functools.partial(task_role.passes, config))
    name = run_name(given=config.trainer.run_name, config=config_file, agent=config.agent.name)
    chosen = versions.chosen(config, adapter, run=name)
    task_set = load_tasks(config)
    split = next((name for name in splits if name in task_set.splits), splits[-1])
    tasks = task_set.split(split)
    paths = RunPaths(config.trainer.output_dir / name, chosen.name)
    secrets = run_secrets.of_run(config, config_file=str(config_file))
    _refuse(config, chosen.directory, secrets)
    agent = task_role.file_of(config.agent.name)
    return EvalPlan(
        config=config,
        config_file=config_file,
        adapter=chosen,
        tasks=tasks,
        paths=paths,
        secrets=secrets,
        hidden=_hidden(config, inherited),
        lock=Redactor(keys).value(_lock(config, adapter=chosen.digest)),
        keys=keys,
        agent_code=_code(agent, config.agent.name.rpartition(":")[2], key="agent.name") if agent else b"",
        judge_code=_code(str(config.judge.path), config.judge.name, key="judge.path"),
    )


def _refuse(config: RunConfig, adapter: Path | None, secrets: tuple[Secret, ...]) -> None:
    """Every refusal that concerns what is shown: what is missing first, then what would show too much."""
    paths = list(task_role.declared(config))
    refusals.refuse_missing(config, paths)
    declared = [*paths, *_packages(config)]
    declared += [("--adapter", str(adapter))] if adapter else []
    tools = [task_role.file_of(tool) for tool in config.evolver_access.tools]
    declared += [("evolver_access.tools", path) for path in tools if path is not None]
    run_secrets.refuse_declared(declared, secrets, copied=frozenset({"--adapter"}))
    run_secrets.refuse_declared(shown_anyway(), secrets)
    run_secrets.refuse_hard_links(declared, secrets)
    refusals.refuse_services(declared)
    refusals.refuse_scratch(declared, secrets)
    refusals.refuse_impossible(config)
    refusals.refuse_ways_through_writable(config, [*declared, *((secret.key, secret.path) for secret in secrets)])
    refusals.refuse_shared_state(config)
    refusals.refuse_no_place_for_logs(config)


def _packages(config: RunConfig) -> list[tuple[str, str]]:
    """What ``environment.packages`` shows, with its key."""
    try:
        found = python.package_roots(config.environment.packages, python=python.current(), sys_path=sys.path)
    except ValueError as error:
        raise ConfigError(str(error), where="environment.packages", cure="install it, or correct its name") from None
    return [("environment.packages", path) for package in found for path in package.shown]


def _hidden(config: RunConfig, inherited: str) -> tuple[str, ...]:
    try:
        names = hide.merged(config.sandbox.hide, hide.from_environment(inherited))
    except ValueError as error:
        raise ConfigError(str(error), where="sandbox.hide", cure="name modules, packages or distributions") from None
    if "hermit" in (name.partition(".")[0] for name in names):
        raise ConfigError(
            "hermit itself cannot be hidden: its worker runs inside", where="sandbox.hide", cure="leave it out"
        )
    return names


def shown_anyway() -> list[tuple[str, str]]:
    """What every sandbox shows of the machine: its system and the environment this process runs in."""
    shown = python.current()
    places = {"/usr", shown.prefix, shown.base_prefix, shown.package}
    return [("the interpreter's environment, which every sandbox shows", path) for path in sorted(places)]


def _code(file: str, name: str, *, key: str) -> bytes:
    """The code of a callable's file; refused where the file defines no such name."""
    try:
        code, data = compiled(file)
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}", where=key, cure="name an existing file") from None
    except (SyntaxError, ValueError) as error:
        raise ConfigError(f"{file} is not Python: {error}", where=key, cure="correct the file") from None
    if name not in code.co_names:
        raise ConfigError(f"{file} defines no {name}", where=key, cure=f"define `{name}` in it, or name another")
    return data


def _lock(config: RunConfig, *, adapter: str) -> dict[str, Any]:
    """What decides the results, by content; how many run at once and where the files lie does not."""
    settings = config.model_dump(mode="json", include={"data", "agent", "judge", "environment", "sandbox", "eval"})
    settings["agent"].pop("concurrency")
    agent = task_role.file_of(config.agent.name)
    files = {"data.tasks": config.data.tasks, "data.test": config.data.test, "judge.path": config.judge.path}
    contents: dict[str, Any] = {key: _digest(path) for key, path in files.items() if path is not None}
    contents["judge.tests"] = [_digest(path) for path in config.judge.tests]
    if agent is not None:
        contents["agent.name"] = _digest(Path(agent))
    if adapter:
        contents["adapter"] = adapter
    return digested({"settings": settings, "contents": contents})


def digested(decides: dict[str, Any]) -> dict[str, Any]:
    """What decides the results, with the digest two runs are compared by."""
    plain = json.dumps(decides, sort_keys=True).encode()
    return {"digest": hashlib.sha256(plain).hexdigest(), "hermit": hermit.__version__, **decides}


def _digest(path: Path) -> str:
    if path.is_dir():
        return freeze.digest(str(path))
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
