"""What a learner is: four calls, what each is given, and what it hands back. All of it runs inside the learner's sandbox."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from hermit.domain.sandbox import Sandbox
    from hermit.evolver.tools import Cancel, Tools

PHASES = ("setup", "bootstrap", "step", "finalize")
STATUSES = ("done", "failed", "out_of_budget", "stop")
MOST_TEXT = 256 * 1024  # characters of a summary, or of a rationale
MOST_NUMBER = 1e15


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """Where a learner works, as paths inside its sandbox.

    Args:
        adapter: The working copy: what a step leaves here is its result.
        learning_material: What the rollouts showed, a directory for each step; read-only.
        task_info: The description of the task; read-only.
        history: The adapter's history; read-only.
        state: The learner's own, kept from call to call.
        scratch: Room to work in, kept from call to call and never handed on.
        output: What the learner leaves for people.
        method: The learner's own directory; read-only.
        root: The template's root; read-only.
        agent_logs: The logs of what ``run_agent`` ran; read-only.
    """

    adapter: Path
    learning_material: Path
    task_info: Path
    history: Path
    state: Path
    scratch: Path
    output: Path
    method: Path
    root: Path
    agent_logs: Path


@dataclass(frozen=True, kw_only=True)
class Access:
    """What a learner may see beyond its workspace; read-only.

    Args:
        validation: What the validation split is good for; ``None`` unless the method needs it.
        environment: The paths of ``evolver_access.environment`` by their names.
    """

    validation: Path | None = None
    environment: Mapping[str, Path] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far the training is.

    Args:
        epoch: The epoch, from 1.
        step: The step, from 1; 0 is the bootstrap.
        is_epoch_end: Whether this is the last step of its epoch.
    """

    epoch: int
    step: int
    is_epoch_end: bool = False


@dataclass(frozen=True, kw_only=True)
class Context:
    """What one call is given.

    Args:
        workspace: Where it works.
        access: What it may see beyond that.
        tools: What it may ask of the trainer, by name; ``check_spec`` is always there.
        params: The method's own parameters under those of ``evolver.params``.
        message: What the trainer has to say to the learner, for a prompt.
        sandbox: The sandbox around this call as it is seen from inside: ``view`` narrows it for a role of the method's own.
        cancel: Whether the trainer wants the call to end, and how long it may still take.
        tool_url: Where the tools are, for programs that speak HTTP.
        base: The method's directory, where the relative paths of ``params`` start.
        progress: How far the training is; ``None`` in ``setup`` and ``finalize``.
        session: What the last step's result had as its ``session``.
    """

    workspace: Workspace
    access: Access
    tools: Tools
    params: Mapping[str, Any]
    message: str
    sandbox: Sandbox
    cancel: Cancel
    tool_url: str
    base: Path
    progress: Progress | None = None
    session: Any = None


@dataclass(frozen=True)
class StepResult:
    """What a step says of itself; its result is what it has left in ``ctx.workspace.adapter``.

    Args:
        status: ``done``, ``failed``, ``out_of_budget``, or ``stop`` to end the training.
        summary: What was changed, for the commit and the card.
        rationale: Why.
        session: Plain JSON that the next step's context holds.
        usage: What it used: numbers by name; ``cost_usd`` and ``tokens`` count for the run's budget.
        extra: Anything else, as plain JSON.

    Raises:
        ValueError: The status is none of the four, a text is too long, or a number is none.
        TypeError: A field is of another type.
    """

    status: str = "done"
    summary: str = ""
    rationale: str = ""
    session: Any = None
    usage: Mapping[str, float] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise ValueError(f"a status is one of {', '.join(STATUSES)}, not {self.status!r:.40}")
        _check_texts(self, "summary", "rationale")
        _check_mappings(self)


@dataclass(frozen=True)
class FinalResult:
    """What a learner says at the end of the run; what it has left in ``ctx.workspace.adapter`` is the final adapter.

    Args:
        summary: What the run has come to.
        usage: As for a step.
        extra: Anything else, as plain JSON.

    Raises:
        ValueError: The text is too long, or a number is none.
        TypeError: A field is of another type.
    """

    summary: str = ""
    usage: Mapping[str, float] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_texts(self, "summary")
        _check_mappings(self)


class Evolver:
    """A learner. Each call is made on a fresh object in a fresh process: what shall last lies in ``ctx.workspace.state``.

    ``sandbox_framework`` says whether its sandbox shows the ``hermit`` package, for a method that starts sandboxes or
    commands of its own with it.
    """

    sandbox_framework: ClassVar[bool] = False

    def setup(self, ctx: Context) -> None:
        """Prepares the state, once, before anything else."""

    def bootstrap(self, ctx: Context) -> StepResult | None:  # noqa: ARG002 - a subclass uses it
        """Changes the adapter before the first rollout; ``None`` leaves it as it is. Committed as step 0."""
        return None

    def step(self, ctx: Context) -> StepResult:  # noqa: ARG002 - a subclass uses it
        """Learns from the newest material. A subclass has to define it."""
        raise TypeError(f"{type(self).__name__} has no step(ctx)")

    def finalize(self, ctx: Context) -> FinalResult:  # noqa: ARG002 - a subclass uses it
        """Ends the run, once, after the last step."""
        return FinalResult()


def _check_texts(result: object, *names: str) -> None:
    for name in names:
        text = getattr(result, name)
        if not isinstance(text, str):
            raise TypeError(f"{name} must be text, not {type(text).__name__}")
        if len(text) > MOST_TEXT:
            raise ValueError(f"{name} may have {MOST_TEXT} characters, not {len(text)}")


def _check_mappings(result: StepResult | FinalResult) -> None:
    for name in ("usage", "extra"):
        if not isinstance(getattr(result, name), dict):
            raise TypeError(f"{name} must be a dict, not {type(getattr(result, name)).__name__}")
    for name, value in result.usage.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not 0 <= value <= MOST_NUMBER:
            raise ValueError(f"usage.{name} must be a number from 0 to {MOST_NUMBER:g}, not {value!r:.40}")
