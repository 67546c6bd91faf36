"""A Base Agent as a learner: it gets a prompt from a file of the method and works on the adapter."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from hermit.agent import source, worker
from hermit.agent.base import Agent
from hermit.domain.trial import RunOutput
from hermit.evolver.base import Context, Evolver, FinalResult, StepResult

if TYPE_CHECKING:
    from pathlib import Path

MOST_PROMPT = 4 * 1024 * 1024
MOST_SUMMARY = 4000


class AgentEvolver(Evolver):
    """Runs ``params.agent``, an Agent class as ``file.py:Name`` or ``package.module:Name``, with a prompt for each call.

    ``params.prompts`` names a file for each of ``bootstrap``, ``step`` and ``finalize``; a call without one is left out.
    In a prompt ``{message}``, ``{step}``, ``{epoch}`` and ``{adapter}`` and the other names of the workspace are filled in.
    ``params.agent_params`` are the agent's own.
    """

    def bootstrap(self, ctx: Context) -> StepResult | None:
        """Runs the agent where there is a prompt for it."""
        return self._act(ctx, "bootstrap")

    def step(self, ctx: Context) -> StepResult:
        """Runs the agent.

        Raises:
            ValueError: There is no prompt for it.
        """
        result = self._act(ctx, "step")
        if result is None:
            raise ValueError("evolver.params.prompts names no file for step")
        return result

    def finalize(self, ctx: Context) -> FinalResult:
        """Runs the agent where there is a prompt for it."""
        result = self._act(ctx, "finalize")
        return FinalResult() if result is None else FinalResult(result.summary, result.usage, result.extra)

    def _act(self, ctx: Context, phase: str) -> StepResult | None:
        prompts = ctx.params.get("prompts") or {}
        if not isinstance(prompts, dict):
            raise TypeError("evolver.params.prompts names a file for each call")
        if phase not in prompts:
            return None
        agent = _agent(ctx)
        task = {
            "id": phase if ctx.progress is None else f"{phase}-{ctx.progress.step}",
            "prompt": filled(_text(ctx.base, prompts[phase]), values(ctx)),
            "phase": phase,
            "workspace": {name: str(path) for name, path in vars(ctx.workspace).items()},
            "tool_url": ctx.tool_url,
            "session": ctx.session,
        }
        output = agent.run(task, ctx.workspace.adapter)
        if not isinstance(output, RunOutput):
            raise TypeError(f"run() returned {type(output).__name__}, not RunOutput")
        _keep(ctx.workspace.output / "agent", f"{task['id']}.json", output)
        return _result(output)


def values(ctx: Context) -> dict[str, str]:
    """What can stand in a prompt, by name."""
    progress = ctx.progress
    own = {name: os.path.relpath(path, ctx.sandbox.cwd) for name, path in vars(ctx.workspace).items()}
    epoch, step = ("", "") if progress is None else (str(progress.epoch), str(progress.step))
    return {**own, "epoch": epoch, "step": step, "message": ctx.message, "tool_url": ctx.tool_url}


def filled(prompt: str, known: dict[str, str]) -> str:
    """The prompt with the values in their places; what was filled in is never read again, and other braces stay."""
    parts = prompt.split("{")
    text = [parts[0]]
    for part in parts[1:]:
        name, closing, rest = part.partition("}")
        text.append(known[name] + rest if closing and name in known else "{" + part)
    return "".join(text)


def _agent(ctx: Context) -> Agent:
    named = ctx.params.get("agent")
    if not isinstance(named, str) or ":" not in named:
        raise ValueError(f"evolver.params.agent is file.py:Name or package.module:Name, not {named!r:.80}")
    place, _, name = named.rpartition(":")
    code = b""
    if place.endswith(".py"):
        place = str(ctx.base / place)
        code = source.compiled(place)[1]
    found = worker.callable_of(f"{place}:{name}", code)
    if not isinstance(found, type) or not issubclass(found, Agent):
        raise TypeError(f"{name} is no class that extends hermit.Agent")
    return found(dict(ctx.params.get("agent_params") or {}), ctx.base)


def _text(base: Path, name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise ValueError(f"a prompt is the name of a file, not {name!r:.80}")
    with open(base / name, encoding="utf-8") as file:
        return file.read(MOST_PROMPT)


def _keep(directory: Path, name: str, output: RunOutput) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_text(json.dumps(vars(output), indent=1), encoding="utf-8")


def _result(output: RunOutput) -> StepResult:
    summary = output.output if isinstance(output.output, str) else output.log
    counts = [count for count in output.tokens.values() if isinstance(count, int) and not isinstance(count, bool)]
    usage: dict[str, float] = {} if output.cost_usd is None else {"cost_usd": output.cost_usd}
    if counts:
        usage["tokens"] = sum(counts)
    return StepResult(summary=summary[:MOST_SUMMARY], session=output.extra.get("session"), usage=usage)
