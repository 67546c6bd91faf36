"""Whether the judge tells right from wrong: `hermit check` has a reference attempt a few tasks, and an empty agent.

A judge that is wired wrongly gives every attempt the same score, and nothing else shows it. The reference must pass and
the empty agent must fail, each by the judge's own word: an agent that falls over before the judge is asked shows nothing.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hermit.config.schema import CheckConfig
from hermit.config.values import names_callable
from hermit.domain.attempt import Phase, Status
from hermit.errors import ConfigError, HermitError, Interrupted
from hermit.run import evaluate
from hermit.run import plan as plans
from hermit.run.doctor.finding import Finding
from hermit.run.paths import RunPaths

if TYPE_CHECKING:
    from hermit.config.schema import RunConfig
    from hermit.run.place import InImage
    from hermit.run.plan import EvalPlan
    from hermit.run.report import Row
    from hermit.sandbox import Place

SOLUTION = "hermit.agent.solution:Solution"
MOST_SAID = 200
CURES = {
    Status.AGENT_ERROR: "correct {key}, or what it is shown (environment.read, check.read)",
    Status.TIMEOUT: "raise agent.timeout_min, or correct {key}",
    Status.JUDGE_ERROR: "correct the judge, or what its sandbox is shown: a wrong answer is score 0, and no error",
    Status.SANDBOX_ERROR: "run `hermit check` without a config",
}


@dataclass(frozen=True)
class Baseline:
    """An agent of which it is known what its attempts come to.

    Args:
        name: ``reference`` or ``empty``.
        plan: The plan of the config, with this agent in place of its own and a few tasks.
        passes: The least score that passes.
    """

    name: str
    plan: EvalPlan
    passes: float

    @property
    def id(self) -> str:
        """What stands for it in a finding."""
        return {"reference": "reference_passes", "empty": "empty_fails"}[self.name]


def planned(plan: EvalPlan, *, inherited: str = "") -> tuple[Baseline, ...]:
    """The baselines that a config names, ready to be tried.

    Args:
        plan: The plan of the config.
        inherited: What the variable ``HA_SANDBOX_HIDE`` of this process holds.

    Raises:
        ConfigError: One of them cannot be tried as it stands; it names the key.
    """
    config, check = plan.config, plan.config.check
    agents: list[tuple[str, RunConfig]] = []
    if check.reference is not None:
        # What it is shown is a secret to everybody else, by the section that is left out here.
        alone = config.model_copy(update={"check": CheckConfig()})
        agents.append(("reference", _with_agent(alone, check.reference, read=check.read)))
    if check.empty is not None:
        agents.append(("empty", _with_agent(config, check.empty)))
    return tuple(
        Baseline(name, _planned(plan, acting, key=f"check.{name}", inherited=inherited), check.passes)
        for name, acting in agents
    )


def _with_agent(config: RunConfig, name: str, *, read: tuple[Path, ...] = ()) -> RunConfig:
    """The config with another agent; a directory of solutions is an agent that hands them in."""
    agent = config.agent.model_copy(update={"name": name})
    if not names_callable(name):
        agent = agent.model_copy(update={"name": SOLUTION, "params": {"solutions": name}})
        read = (*read, Path(name))
    shown = tuple(dict.fromkeys((*config.environment.read, *read)))
    environment = config.environment.model_copy(update={"read": shown})
    return config.model_copy(update={"agent": agent, "environment": environment})


def _planned(plan: EvalPlan, config: RunConfig, *, key: str, inherited: str) -> EvalPlan:
    splits = ("train", "test")
    try:
        made = plans.evaluation(
            config, config_file=plan.config_file, adapter="none", splits=splits, inherited=inherited
        )
    except ConfigError as error:
        raise ConfigError(error.what, where=f"{key} ({error.where})" if error.where else key, cure=error.cure) from None
    return replace(made, tasks=made.tasks[: plan.config.check.tasks])


def tried(baseline: Baseline, where: Place | InImage) -> list[Finding]:
    """What came of a baseline: a finding for each task that came out otherwise, or one where none did."""
    plan = baseline.plan
    with tempfile.TemporaryDirectory(prefix="hermit-check-") as root:
        once = replace(plan, paths=RunPaths(Path(root), plan.paths.selector))
        try:
            rows = list(evaluate.finished_rows(once, where, list(once.attempts)))
        except Interrupted:
            raise
        except HermitError as error:
            return [Finding(baseline.name, False, error.what, error.cure, id=baseline.id)]
    order = [task.id for task in plan.tasks]
    rows.sort(key=lambda row: order.index(row.id))
    judged = _passed if baseline.name == "reference" else _failed
    found = [finding for row in rows if (finding := judged(baseline, row)) is not None]
    words = f"{len(rows)} of {len(rows)} tasks {'pass' if baseline.name == 'reference' else 'fail'}, as they must"
    return found or [Finding(baseline.name, True, words, id=baseline.id)]


def _passed(baseline: Baseline, row: Row) -> Finding | None:
    """What is wrong with an attempt of the reference."""
    if row.status is not Status.OK or row.judge is None:
        return _fell(baseline, row)
    if row.judge.score >= baseline.passes:
        return None
    words = f"score {row.judge.score:g}, and {baseline.passes:g} passes{_said(row)}"
    cure = "correct the judge, this task's reference, or check.passes: no agent can do better than the reference"
    return _finding(baseline, row, words, cure)


def _failed(baseline: Baseline, row: Row) -> Finding | None:
    """What is wrong with an attempt of the empty agent."""
    if row.status is Status.AGENT_ERROR and (row.phase, row.cause) == (Phase.COLLECT, "missing"):
        return None  # it left nothing, and no judge had to be asked
    if row.status is not Status.OK or row.judge is None:
        return _fell(baseline, row)
    if row.judge.score < baseline.passes:
        return None
    words = f"score {row.judge.score:g}, and {baseline.passes:g} passes: the judge pays for nothing{_said(row)}"
    return _finding(baseline, row, words, "correct the judge, or check.empty if it is not empty for this task")


def _fell(baseline: Baseline, row: Row) -> Finding:
    """An attempt of which the judge had nothing to say."""
    phase = row.phase.value if row.phase else ""
    words = f"{row.status.value} in the phase {phase}, {row.cause}: {plain(row.error or '')}"
    return _finding(baseline, row, words, CURES[row.status].format(key=f"check.{baseline.name}"))


def _finding(baseline: Baseline, row: Row, words: str, cure: str) -> Finding:
    return Finding(f"{baseline.name}, task {plain(row.id)}", False, words, cure, id=baseline.id)


def _said(row: Row) -> str:
    feedback = "" if row.judge is None else row.judge.feedback
    return f"; the judge says: {plain(feedback)}" if feedback else ""


def plain(words: str) -> str:
    """Words of an agent or a judge on one short line, with nothing in them that would move a cursor."""
    kept = words if len(words) <= MOST_SAID else f"{words[:MOST_SAID]} ..."
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in kept)
