"""Any command as a learner: it is told of its workspace by variables and a JSON file, and may answer in another."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

from hermit import untrusted
from hermit.evolver.base import PHASES, Context, Evolver, FinalResult, StepResult

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

CONTEXT, RESULT = "context.json", "result.json"
MOST_RESULT = 1024 * 1024
MOST_WORDS = 2000
MOST_VARIABLE = 64 * 1024
PATHS = {
    "HERMIT_ADAPTER": "adapter",
    "HERMIT_MATERIAL": "learning_material",
    "HERMIT_TASK_INFO": "task_info",
    "HERMIT_HISTORY": "history",
    "HERMIT_STATE": "state",
    "HERMIT_SCRATCH": "scratch",
    "HERMIT_OUTPUT": "output",
    "HERMIT_METHOD": "method",
    "HERMIT_ROOT": "root",
    "HERMIT_AGENT_LOGS": "agent_logs",
}


class CommandEvolver(Evolver):
    """Runs ``params.command``, a list of words or a line for ``sh``, in each of ``params.phases``.

    The command's working directory is that of the method. It succeeds with the exit code 0; what it prints is kept with
    the call's own output.
    """

    sandbox_framework = True

    def setup(self, ctx: Context) -> None:
        """Runs the command where ``params.phases`` names this call."""
        result = self._run(ctx, "setup")
        if result is not None and result.status == "failed":
            raise RuntimeError(result.summary)

    def bootstrap(self, ctx: Context) -> StepResult | None:
        """Runs the command where ``params.phases`` names this call."""
        return self._run(ctx, "bootstrap")

    def step(self, ctx: Context) -> StepResult:
        """Runs the command."""
        return self._run(ctx, "step") or StepResult("failed", summary="params.phases leaves out step")

    def finalize(self, ctx: Context) -> FinalResult:
        """Runs the command where ``params.phases`` names this call."""
        result = self._run(ctx, "finalize")
        if result is not None and result.status == "failed":
            raise RuntimeError(result.summary)
        return FinalResult() if result is None else FinalResult(result.summary, result.usage, result.extra)

    def _run(self, ctx: Context, phase: str) -> StepResult | None:
        if phase not in phases(ctx.params):
            return None
        from hermit import environ, proc  # noqa: PLC0415 - of the framework, which is shown to this method

        words = command(ctx.params)
        own = ctx.workspace.scratch / ".command"
        own.mkdir(exist_ok=True)
        (own / RESULT).unlink(missing_ok=True)
        (own / CONTEXT).write_text(json.dumps(described(ctx, phase), indent=1), encoding="utf-8")
        env = {**environ.snapshot(), **variables(ctx, phase, own=own)}
        code, last = proc.logged(words, env=env, cwd=str(ctx.workspace.method))
        if code:
            return StepResult("failed", summary=f"{words[0]} ended with {code}: {last}"[:MOST_WORDS])
        return answered(str(own)) or StepResult(summary=f"{words[0]} ended with 0")


def phases(params: Mapping[str, Any]) -> tuple[str, ...]:
    """The calls in which the command runs.

    Raises:
        ValueError: One of them is none.
    """
    named = params.get("phases") or ["step"]
    if not isinstance(named, list) or not set(map(str, named)) <= set(PHASES):
        raise ValueError(f"evolver.params.phases is a list of {', '.join(PHASES)}, not {named!r:.80}")
    return tuple(named)


def command(params: Mapping[str, Any]) -> list[str]:
    """The words of the command; a line of text is one for the shell.

    Raises:
        ValueError: There is none.
    """
    given = params.get("command")
    if isinstance(given, str) and given.strip():
        return ["sh", "-c", given]
    if isinstance(given, list) and given and all(isinstance(word, str) and word for word in given):
        return list(given)
    raise ValueError(f"evolver.params.command is a line for the shell or a list of words, not {given!r:.80}")


def variables(ctx: Context, phase: str, *, own: Path) -> dict[str, str]:
    """What the command's variables say beside those of the sandbox."""
    progress = ctx.progress
    found = {name: str(getattr(ctx.workspace, part)) for name, part in PATHS.items()}
    found |= {
        "HERMIT_PHASE": phase,
        "HERMIT_CONTEXT": str(own / CONTEXT),
        "HERMIT_RESULT": str(own / RESULT),
        "HERMIT_MESSAGE": _as_variable(ctx.message),
        "HERMIT_TOOL": f"{sys.executable} -m hermit.evolver.call",
        "HERMIT_TOOL_URL": ctx.tool_url,
        "HERMIT_VALIDATION": "" if ctx.access.validation is None else str(ctx.access.validation),
        "HERMIT_EPOCH": "" if progress is None else str(progress.epoch),
        "HERMIT_STEP": "" if progress is None else str(progress.step),
        "HERMIT_EPOCH_END": "1" if progress is not None and progress.is_epoch_end else "",
        "HERMIT_LEFT_S": "" if ctx.cancel.left_s is None else f"{ctx.cancel.left_s:.0f}",
    }
    return found


def _as_variable(text: str) -> str:
    """The beginning of a text, as far as a variable can hold it: the kernel passes 128 KiB, and no NUL byte."""
    data = text.replace("\0", "").encode("utf-8", "replace")
    return data[:MOST_VARIABLE].decode("utf-8", "ignore")


def described(ctx: Context, phase: str) -> dict[str, Any]:
    """The whole context as the command reads it in ``HERMIT_CONTEXT``."""
    progress = ctx.progress
    return {
        "phase": phase,
        "workspace": {name: str(path) for name, path in vars(ctx.workspace).items()},
        "validation": None if ctx.access.validation is None else str(ctx.access.validation),
        "environment": {name: str(path) for name, path in ctx.access.environment.items()},
        "params": ctx.params,
        "message": ctx.message,
        "progress": None if progress is None else vars(progress),
        "session": ctx.session,
        "tool_url": ctx.tool_url,
        "tools": {
            name: {"description": tool.description, "takes": dict(tool.takes), "gives": dict(tool.gives)}
            for name, tool in ctx.tools.items()
        },
    }


def answered(directory: str) -> StepResult | None:
    """What the command left in ``HERMIT_RESULT``: fields of a StepResult as JSON; ``None`` where it left nothing.

    Raises:
        ValueError: It is no such JSON.
        TypeError: A field has another type.
    """
    with untrusted.directory(directory) as here:
        try:
            found = untrusted.read(RESULT, at=here, most=MOST_RESULT)
        except untrusted.Refused as refused:
            if refused.reason == "missing":
                return None
            raise ValueError(f"HERMIT_RESULT is no file: {refused.reason}") from None
    if found.cut:
        raise ValueError(f"HERMIT_RESULT has more than {MOST_RESULT} bytes")
    said = json.loads(found.data)
    unknown = set(said) - set(StepResult.__dataclass_fields__) if isinstance(said, dict) else {os.fspath(RESULT)}
    if unknown:
        raise ValueError(f"HERMIT_RESULT holds fields of a StepResult, and {min(unknown)!r} is none")
    return StepResult(**said)
