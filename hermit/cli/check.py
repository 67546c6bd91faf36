"""`hermit check`: says whether this machine, and a config, are fit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from hermit import environ
from hermit.cli import attacks, console
from hermit.cli.eval import JsonOption, Overrides
from hermit.config.load import load
from hermit.domain import hide
from hermit.errors import ExitCode
from hermit.run import baselines, train_check
from hermit.run import check as checks
from hermit.run import plan as plans
from hermit.run.attack import campaign
from hermit.run.doctor import images
from hermit.run.doctor.finding import Finding, Level, verdict

HELP = """Say whether this machine, and a config, are fit to run.

Without a config it starts a real sandbox and tries to break out of it, and looks at each thing by itself that a sandbox
is made of. It ends with 0 where sandboxes start, 6 where only a run with `sandbox.enforce: best_effort` would go on,
unconfined, and 3 where nothing runs. With a config it also validates the config, the data
and the paths, says where sandboxes would start and whether the images for them are fit, looks for git histories that
agents are shown, and makes one attempt at the first task there. Where the config names a reference and an empty agent
(`check.reference`, `check.empty`), the first must pass and the second fail. With --attack it then tries known
cheats against the task and its judge, each in an attempt of its own, says which paid and what closes them, and ends with 7
where one did.

\b
Examples:
  hermit check
  hermit check --config run.yaml
  hermit check --config run.yaml --no-probe --json
  hermit check --attack --config run.yaml
  hermit check --attack --config run.yaml --cheat conftest --cheat survivor judge.mode=shared
"""

CODES = {Level.FIT: ExitCode.OK, Level.BEST_EFFORT: ExitCode.BEST_EFFORT, Level.UNFIT: ExitCode.PLACE}


def command(
    overrides: Overrides = None,
    *,
    config: Annotated[Path | None, typer.Option("--config", help="A run config to check too.")] = None,
    no_probe: Annotated[bool, typer.Option("--no-probe", help="Make no attempt at a task.")] = False,
    attack: Annotated[bool, typer.Option("--attack", help="Try known cheats against the task and its judge.")] = False,
    cheat: Annotated[
        list[str] | None, typer.Option("--cheat", metavar="NAME", help="With --attack: try this one alone; repeatable.")
    ] = None,
    tasks: Annotated[
        int, typer.Option("--tasks", min=1, help="With --attack: try each cheat at the first N tasks.")
    ] = 1,
    as_json: JsonOption = False,
) -> int:
    """Runs the command and returns its exit code."""
    attacks.refuse(attack=attack, cheat=cheat, config=config)
    variables = environ.snapshot()
    plan = None
    tried: tuple[baselines.Baseline, ...] = ()
    hidden = variables.get(hide.VARIABLE, "")
    if config is not None:
        file = config.absolute()
        loaded = load(file, tuple(overrides or ()), environ=variables)
        splits = ("train", "test")
        plan = plans.evaluation(loaded, config_file=file, adapter="none", splits=splits, inherited=hidden)
        tried = baselines.planned(plan, inherited=hidden)
    elif overrides:
        raise typer.BadParameter("settings need a --config that they replace settings of")
    findings, attacked = list(checks.machine(variables)), None
    if plan is not None:
        findings.append(Finding("config", True, f"{len(plan.tasks)} tasks, {len(plan.secrets)} secrets"))
        findings += [*checks.published(plan.config), *checks.memory(plan.config)]
        findings += train_check.findings(plan.config, config_file=plan.config_file, inherited=hidden)
        where = images.judged(plan.config, environ=variables)
        findings = [*(checks.beside(findings) if where.elsewhere else findings), *where.findings]
        if checks.goes_on(findings, plan.config):
            findings += checks.tried(plan, where.choice, attempt=not no_probe, known=tried)
            if attack and where.choice is not None and where.choice.kind != "whole":
                attacked = campaign.attack(
                    plan,
                    checks.place_of(where.choice, plan.config),
                    wanted=campaign.chosen(cheat or ()),
                    tasks=tasks,
                    learn=not no_probe,
                    show=attacks.Progress(),
                )
    level = verdict(findings)
    if level is Level.BEST_EFFORT and plan is not None and not checks.goes_on(findings, plan.config):
        level = Level.UNFIT  # the config requires what cannot be had here
    if as_json:
        document: dict[str, Any] = {"fit": level is Level.FIT, "level": level.value}
        document |= {"findings": [finding.as_json() for finding in findings]}
        console.print_json({**document, **attacks.part(attacked)})
    else:
        console.print_findings(findings, level=level)
        attacks.show(attacked)
    return attacks.exit_code(attacked, CODES[level])
