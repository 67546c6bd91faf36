"""How an agent runs code of its adapter: in a strict sandbox of its own, inside the one the agent runs in.

The adapter was written by a learner, so its tools and renders are trusted with less than the agent: no variable, no network,
nothing of the work. What they are given and what they return is JSON.
"""

from __future__ import annotations

import functools
import os
from dataclasses import replace
from typing import Any

from hermit import environ
from hermit import sandbox as sandboxes
from hermit.agent.result import Failure, handed_back
from hermit.domain import codec, spec, strict
from hermit.domain.bind import contains
from hermit.domain.command import Command
from hermit.domain.sandbox import Enforce, Sandbox

RESULT_BYTES = 1024 * 1024
NOT_CONFINED = f"{strict.VARIABLE} is not set: the run is not confined"


class AdapterError(RuntimeError):
    """Code of the adapter failed, or returned what is no JSON: for the agent to deal with, in whose process it is raised."""


def call_adapter(
    file: str | os.PathLike[str], name: str, *, argument: Any = None, timeout_s: float | None = None
) -> Any:
    """Calls a function of one of the adapter's files with one value of JSON, and returns what it returns.

    Args:
        file: The file, in the adapter.
        name: The function, which takes one argument.
        argument: What it gets.
        timeout_s: Seconds it may take; those of the strict sandbox unless given, and never more.

    Raises:
        AdapterError: The function failed, took too long, or returned what is no JSON or more than 1 MiB of it.
        SandboxError: The strict sandbox failed.
        PlaceError: None can be started here.
    """
    given = environ.snapshot().get(strict.VARIABLE, "")
    sandbox = spec.parsed(given.encode()) if given else Sandbox(limits=strict.LIMITS)
    path = os.path.realpath(file)
    if given and not any(contains(os.path.realpath(shown), path) for shown in sandbox.read):
        raise AdapterError(f"{path} is no file of the adapter")
    if timeout_s is not None:
        wall_s = timeout_s if sandbox.limits.wall_s is None else min(timeout_s, sandbox.limits.wall_s)
        sandbox = replace(sandbox, limits=replace(sandbox.limits, wall_s=wall_s))
    job = {"callable": f"{path}:{name}", "argument": argument}
    command = Command(worker="hermit.agent.worker:run_tool", job=codec.dump(job) + b"\n", result_bytes=RESULT_BYTES)
    place = _place(sandbox.enforce) if given else sandboxes.unconfined(NOT_CONFINED)
    value = handed_back(command, place.run(replace(sandbox, role="check"), command, keep=lambda _: None))
    if isinstance(value, Failure):
        raise AdapterError(f"{value.cause}: {value.error}")
    return value["returned"]


@functools.cache
def _place(enforce: Enforce) -> sandboxes.Place:
    """Where the strict sandbox is started; found out once for each process."""
    return sandboxes.preflight(enforce)
