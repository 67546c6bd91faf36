"""The task sandbox: where the acting agent attempts one task."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hermit.domain import codec, hide, strict
from hermit.domain.bind import Bind
from hermit.domain.command import Command
from hermit.domain.limits import Limits
from hermit.domain.network import Network
from hermit.domain.sandbox import Enforce, Sandbox
from hermit.domain.trial import DEADLINE, MONOTONIC_DEADLINE
from hermit.roles import secrets as run_secrets

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermit.config.schema import RunConfig
    from hermit.config.tasks import Task
    from hermit.roles.secrets import Secret

# The working directory is named to the agent and to its judge by this variable, beside being the agent's cwd.
WORK_VARIABLE = "HERMIT_WORK"
# Where the logs of a call go: a directory beside the agent's file, fresh for each call, named by a variable too.
LOGS = ".logs"
LOGS_VARIABLE = "HERMIT_LOGS"
# What is about one call of an agent, and no business of a judge or a tool.
OF_A_CALL = (LOGS_VARIABLE, DEADLINE, MONOTONIC_DEADLINE)
NETWORKS = {"no-network": Network.ISOLATED, "allowlist": Network.ISOLATED, "public": Network.OPEN}


@dataclass(frozen=True)
class Deadline:
    """When a call is stopped at the latest.

    Args:
        clock_s: As the time of day, in seconds since 1970 (UTC).
        monotonic_s: The same moment on the kernel's monotonic clock, which the host counts by.
    """

    clock_s: float
    monotonic_s: float

    @property
    def variables(self) -> tuple[tuple[str, str], ...]:
        """As an agent is told."""
        return (DEADLINE, f"{self.clock_s:.3f}"), (MONOTONIC_DEADLINE, f"{self.monotonic_s:.3f}")


def file_of(callable_name: str) -> str | None:
    """The file of ``/path/file.py:Name``; ``None`` for ``package.module:Name``, which the environment holds."""
    where = callable_name.rpartition(":")[0]
    return where if where.endswith(".py") else None


def declared(config: RunConfig) -> tuple[tuple[str, str], ...]:
    """Every path the task sandbox shows because the config says so, with the key that says it."""
    environment = config.environment
    pairs = [("environment.read", str(path)) for path in environment.read]
    pairs += [("environment.write", str(path)) for path in environment.write]
    agent = file_of(config.agent.name)
    return (*pairs, ("agent.name", agent)) if agent else tuple(pairs)


def logs_of(config: RunConfig) -> str | None:
    """Where the logs of a call are shown; ``None`` for an agent that has no file, and so nothing beside it."""
    agent = file_of(config.agent.name)
    return None if agent is None else f"{os.path.dirname(agent)}/{LOGS}"


def passes(config: RunConfig, name: str) -> bool:
    """Whether the host's variable ``name`` passes into the task sandbox."""
    return Sandbox(env_allow=tuple(config.environment.env)).passes(name)


def limits(config: RunConfig, *, timeout_min: float | None) -> Limits:
    """The bounds of the config's ``environment.resources``, with a wall clock."""
    given = config.environment.resources.model_dump(exclude_none=True)
    return Limits(**given, wall_s=None if timeout_min is None else timeout_min * 60)


def sandbox(
    config: RunConfig,
    *,
    work: str,
    adapter: str | None,
    secrets: Iterable[Secret],
    hidden: tuple[str, ...] = (),
    logs: str = "",
    renamed: bool = True,
    deadline: Deadline | None = None,
) -> Sandbox:
    """The sandbox of one attempt: what the task declares, the agent's file, its adapter, its own directories.

    Args:
        config: The run's config.
        work: The attempt's own working directory.
        adapter: The frozen adapter.
        secrets: What each start proves absent.
        hidden: What is covered.
        logs: The attempt's own directory for logs, shown beside the agent's file; none where it is empty.
        renamed: Whether a path can be shown under another name; else the logs stay where they are.
        deadline: When the call is stopped; ``None`` where nothing stops it.
    """
    environment = config.environment
    beside = (logs_of(config) if renamed else logs) if logs else None
    read = {str(path) for path in environment.read}
    read |= {path for path in (file_of(config.agent.name), adapter) if path is not None}
    return Sandbox(
        role="task",
        read=tuple(sorted(read)),
        write=(*(str(path) for path in environment.write), work),
        binds=(Bind(logs, beside, writable=True),) if beside is not None and renamed else (),
        cwd=work,
        network=NETWORKS[environment.network],
        allowed_hosts=tuple(environment.allowed_hosts),
        env=(
            (WORK_VARIABLE, work),
            *(((LOGS_VARIABLE, beside),) if beside is not None else ()),
            *(deadline.variables if deadline is not None else ()),
            *_for_adapter(config, adapter if renamed else None),
            *(((hide.VARIABLE, hide.to_environment(hidden)),) if hidden else ()),
        ),
        env_allow=tuple(environment.env),
        limits=limits(config, timeout_min=config.agent.timeout_min),
        probes=run_secrets.probes(secrets, judge=False),
        framework=True,
        packages=tuple(environment.packages),
        hide=hidden,
        enforce=Enforce(config.sandbox.enforce),
    )


def _for_adapter(config: RunConfig, adapter: str | None) -> tuple[tuple[str, str], ...]:
    """What starts the strict sandbox of the adapter's own code; nothing where there is no adapter or no sandbox."""
    if adapter is None:
        return ()
    inner = strict.sandbox(adapter, enforce=Enforce(config.sandbox.enforce))
    return ((strict.VARIABLE, strict.to_environment(inner)),)


def command(config: RunConfig, task: Task, *, adapter: str | None, base: str, code: bytes) -> Command:
    """One call of the agent for one task."""
    job = {
        "callable": config.agent.name,
        "task": dict(task.row),
        "adapter": adapter,
        "params": dict(config.agent.params),
        "base": base,
    }
    return Command(worker="hermit.agent.worker:run_agent", job=codec.dump(job) + b"\n" + code)
