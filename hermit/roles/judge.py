"""The judge's sandbox: where one attempt is scored."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hermit.domain import codec, hide, strict
from hermit.domain.bind import Bind
from hermit.domain.command import Command
from hermit.domain.sandbox import Sandbox
from hermit.roles import secrets as run_secrets
from hermit.roles import task as task_role

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermit.config.schema import RunConfig
    from hermit.config.tasks import Task
    from hermit.domain.limits import Limits
    from hermit.domain.trial import RunOutput
    from hermit.roles.secrets import Secret

RESULT_BYTES = 4 * 1024 * 1024
NOT_THE_JUDGES = (hide.VARIABLE, strict.VARIABLE, *task_role.OF_A_CALL)


def callable_of(config: RunConfig) -> str:
    """The judge as ``file.py:name``."""
    return f"{config.judge.path}:{config.judge.name}"


def command(config: RunConfig, task: Task, output: RunOutput, *, code: bytes) -> Command:
    """One call of the judge for one attempt."""
    job = {"callable": callable_of(config), "task": dict(task.row), "output": vars(output)}
    whole = codec.dump(job) + b"\n" + code
    return Command(worker="hermit.agent.worker:run_judge", job=whole, result_bytes=RESULT_BYTES)


def limits(config: RunConfig) -> Limits:
    """The judge's own bounds, each in place of the acting call's."""
    own = config.judge.resources.model_dump(exclude_none=True)
    acting = task_role.limits(config, timeout_min=config.judge.timeout_min)
    return replace(acting, **own)


def shared(config: RunConfig, task_sandbox: Sandbox, secrets: Iterable[Secret]) -> Sandbox:
    """The task sandbox's settings once more, over the work as the agent left it, with the judge's file and tests."""
    return replace(_judging(config, task_sandbox, secrets), write=task_sandbox.write)


def separate(
    config: RunConfig, task_sandbox: Sandbox, *, collected: str, work: str, secrets: Iterable[Secret]
) -> Sandbox:
    """A fresh sandbox with a copy of what was collected in place of the agent's work, and nothing it could write."""
    judging = _judging(config, task_sandbox, secrets)
    return replace(judging, write=(), binds=(Bind(collected, work, writable=True),))


def on_host(config: RunConfig, *, work: str) -> Sandbox:
    """What a judge on the host has: its bounds and the place of the work; nothing of it is confined."""
    return Sandbox(role="judge", env=((task_role.WORK_VARIABLE, work),), limits=limits(config), framework=True)


def _judging(config: RunConfig, task_sandbox: Sandbox, secrets: Iterable[Secret]) -> Sandbox:
    own = {str(config.judge.path), *(str(path) for path in config.judge.tests)}
    return replace(
        task_sandbox,
        role="judge",
        binds=(),
        hide=(),
        env=tuple(pair for pair in task_sandbox.env if pair[0] not in NOT_THE_JUDGES),
        read=tuple(sorted({*map(str, config.environment.read), *own})),
        cwd="/tmp",  # noqa: S108 - the sandbox's own; never where the agent could leave something to import
        network=task_role.NETWORKS[config.judge.network],
        allowed_hosts=tuple(config.judge.allowed_hosts),
        limits=limits(config),
        probes=run_secrets.probes(secrets, judge=True),
    )
