"""The sandbox of a declared tool: a template's is strict, a task's is what the task itself declares."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from hermit.domain import codec, strict
from hermit.domain.command import Command
from hermit.domain.sandbox import Enforce, Sandbox
from hermit.roles import task as task_role

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from hermit.config.schema import RunConfig
    from hermit.roles.secrets import Secret

RESULT_BYTES = 1024 * 1024
TIMEOUT_S = 60.0
WORK = "/nonexistent"  # a tool has no attempt it works for
NOT_A_TOOLS = (task_role.WORK_VARIABLE, *task_role.OF_A_CALL, strict.VARIABLE)


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A function that a learner may call: one value of JSON in, one out.

    Args:
        file: The absolute path of its file.
        name: The function's name there.
        takes: The JSON Schema of what it is given.
        gives: The JSON Schema of what it returns.
        timeout_s: Seconds a call may take.
    """

    file: str
    name: str
    takes: Mapping[str, Any] = field(default_factory=dict, hash=False)
    gives: Mapping[str, Any] = field(default_factory=dict, hash=False)
    timeout_s: float = TIMEOUT_S


def of_template(tool: Tool, *, template: str, adapter: str, enforce: Enforce) -> Sandbox:
    """A template's tool: its directory and the template to read, the adapter it acts on to write, and nothing else."""
    shown = tuple(sorted({os.path.dirname(tool.file), template}))
    limits = replace(strict.LIMITS, wall_s=tool.timeout_s)
    return Sandbox(role="tool", read=shown, write=(adapter,), limits=limits, enforce=enforce)


def of_task(
    config: RunConfig, tool: Tool, *, adapter: str | None, secrets: Iterable[Secret], hidden: tuple[str, ...] = ()
) -> Sandbox:
    """A task's tool is task code: what ``environment`` declares, its own file, and the adapter to read."""
    acting = task_role.sandbox(config, work=WORK, adapter=adapter, secrets=secrets, hidden=hidden)
    read = {path for path in acting.read if path != task_role.file_of(config.agent.name)} | {tool.file}
    return replace(
        acting,
        role="tool",
        read=tuple(sorted(read | {str(path) for path in config.environment.read})),
        write=tuple(str(path) for path in config.environment.write),
        env=tuple(pair for pair in acting.env if pair[0] not in NOT_A_TOOLS),
        cwd="/tmp",  # noqa: S108 - the sandbox's own
        limits=task_role.limits(config, timeout_min=tool.timeout_s / 60),
    )


def command(tool: Tool, argument: Any) -> Command:
    """One call of a tool."""
    job = {"callable": f"{tool.file}:{tool.name}", "argument": argument}
    return Command(worker="hermit.agent.worker:run_tool", job=codec.dump(job) + b"\n", result_bytes=RESULT_BYTES)
