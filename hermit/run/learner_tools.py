"""The tools a learner is served: the two that are always the trainer's own, and those that a template or a task declares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermit.agent.result import Failure
from hermit.run import tools
from hermit.run.served import Implementation, Returned, Served

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermit.domain.record import Record
    from hermit.domain.sandbox import Sandbox
    from hermit.roles.tool import Tool
    from hermit.sandbox import Place

ADAPTER = {"type": "string", "format": "path", "default": "adapter"}
MOST_TASKS = 1000
GRACE_S = 30.0


def check_spec(call: Implementation, *, timeout_s: float = 600.0) -> Served:
    """``check_spec {"adapter": path}``: the numbered checks of an adapter, as the trainer will make them.

    Args:
        call: Gets ``adapter``, a copy of the directory that was named.
        timeout_s: Seconds it may take.
    """
    return Served(
        name="check_spec",
        call=call,
        description="Checks an adapter as the trainer will before it commits it: the working copy unless another is named.",
        takes={"type": "object", "properties": {"adapter": ADAPTER}, "additionalProperties": False},
        gives={"type": "object"},
        timeout_s=timeout_s,
        unfit=lambda argument: _wrong(argument, known=("adapter",)),
    )


def run_agent(call: Implementation, *, timeout_s: float = 3600.0) -> Served:
    """``run_agent {"tasks": [id, ...], "adapter": path}``: rollouts of the agent with an adapter.

    Args:
        call: Gets ``tasks`` and ``adapter``, a copy of the directory that was named; the logs it returns are copied.
        timeout_s: Seconds it may take.
    """
    tasks = {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": MOST_TASKS}
    return Served(
        name="run_agent",
        call=call,
        description="Runs the agent on tasks of the training split with an adapter: the working copy unless another is named.",
        takes={
            "type": "object",
            "properties": {"tasks": tasks, "adapter": ADAPTER},
            "required": ["tasks"],
            "additionalProperties": False,
        },
        gives={"type": "object"},
        timeout_s=timeout_s,
        unfit=_unfit_for_rollouts,
    )


def declared(tool: Tool, *, place: Place, sandbox: Sandbox, keep: Callable[[Record], None]) -> Served:
    """A tool that a template or a task declares, in its own sandbox.

    A path among its arguments (``"format": "path"`` in ``takes``) becomes one of the host, where the tool's own sandbox shows
    it if it does at all.

    Args:
        tool: What it says of itself.
        place: Where its sandbox is started.
        sandbox: Its sandbox.
        keep: Takes the record of each start.
    """

    def call(argument: dict[str, Any], cancel: int) -> Returned | Failure:
        value = tools.call(tool, argument, place=place, sandbox=sandbox, keep=keep, cancel=cancel)
        return value if isinstance(value, Failure) else Returned(value["returned"])

    return Served(
        name=tool.name,
        call=call,
        takes=tool.takes or {"type": "object"},
        gives=tool.gives,
        timeout_s=tool.timeout_s + GRACE_S,
        copies=False,
    )


def _unfit_for_rollouts(argument: dict[str, Any]) -> str:
    named = argument.get("tasks")
    right = isinstance(named, list) and 0 < len(named) <= MOST_TASKS and all(isinstance(one, str) for one in named)
    if not right:
        return f"tasks is a list of 1 to {MOST_TASKS} ids"
    return _wrong(argument, known=("tasks", "adapter"))


def _wrong(argument: dict[str, Any], *, known: tuple[str, ...]) -> str:
    unknown = set(argument) - set(known)
    if unknown:
        return f"{min(unknown)!r:.80} is none of {', '.join(known)}"
    return "" if isinstance(argument["adapter"], str) else "adapter is a path"
