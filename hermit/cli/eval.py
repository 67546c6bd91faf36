"""`hermit eval`: scores one adapter on the test split."""

from __future__ import annotations

import math
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from hermit import environ
from hermit.cli import console
from hermit.cli.ci import Reports
from hermit.config.load import load
from hermit.domain import hide
from hermit.errors import ExitCode, Interrupted
from hermit.run import evaluate, place
from hermit.run import plan as plans

HELP = """Score one adapter on the test split of a run config.

Results go to <output_dir>/<run_name>/eval/<selector>/ as they come. The same command again goes on where it stopped.

\b
Examples:
  hermit eval --config run.yaml --adapter none
  hermit eval --config run.yaml --adapter my-adapter/ agent.concurrency=8 eval.repeats=3
  hermit eval --config run.yaml --adapter root template=skills-and-tools
  hermit eval --config run.yaml --adapter none --runtime image --json
  hermit eval --config run.yaml --adapter none --junit report.xml --fail-under 0.9
"""


class Runtime(Enum):
    """Where sandboxes are started."""

    AUTO = "auto"
    IMAGE = "image"
    LOCAL = "local"
    WHOLE = "whole"


ConfigOption = Annotated[Path, typer.Option("--config", help="The run config.", show_default=False)]
RuntimeOption = Annotated[
    Runtime | None,
    typer.Option("--runtime", help="Where sandboxes are started; the config's container.runtime unless given."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of words.")]
Overrides = Annotated[
    list[str] | None, typer.Argument(metavar="[KEY.SUB=VALUE]...", help="Settings that replace the config's.")
]


def command(
    config: ConfigOption,
    overrides: Overrides = None,
    *,
    adapter: Annotated[str, typer.Option(help="none|root|final|TAG|COMMIT|DIR: none is the baseline.")] = "none",
    fresh: Annotated[bool, typer.Option("--fresh", help="Start over: drop the results of an earlier run.")] = False,
    runtime: RuntimeOption = None,
    as_json: JsonOption = False,
    junit: Annotated[Path | None, typer.Option("--junit", help="Leave a JUnit XML report in this file.")] = None,
    fail_under: Annotated[
        float | None, typer.Option("--fail-under", help="End with 5 where the mean score is below this.")
    ] = None,
) -> int:
    """Runs the command and returns its exit code."""
    if fail_under is not None and not math.isfinite(fail_under):
        raise typer.BadParameter("--fail-under takes a finite number")
    variables = environ.snapshot()
    given = tuple(overrides or ())
    file = config.absolute()
    plan = plans.evaluation(
        load(file, given, environ=variables),
        config_file=file,
        adapter=adapter,
        inherited=variables.get(hide.VARIABLE, ""),
    )
    reports = Reports(plan, junit.absolute() if junit else None, fail_under, variables)
    reports.refuse()
    choice = place.choose(plan.config, runtime=runtime.value if runtime else None, environ=variables)
    console.say(f"sandboxes start {choice.sentence}")
    reports.begin()
    try:
        if choice.kind == "whole":
            arguments = inside_arguments(plan, given, fresh=fresh, as_json=as_json)
            code = place.in_image(plan, choice, arguments, environ=variables)
        else:
            code = _from_here(plan, choice, fresh=fresh, as_json=as_json)
    except Interrupted:
        reports.end(ExitCode.INTERRUPTED)
        raise
    return reports.end(code)


def _from_here(plan: plans.EvalPlan, choice: place.Choice, *, fresh: bool, as_json: bool) -> int:
    """Makes the attempts with this process as their host, and returns the exit code."""
    where = place.in_images(choice) if choice.kind == "image" else place.here(plan.config)
    with console.ProgressView(console.err()) as view:
        summary = evaluate.evaluate(plan, where, fresh=fresh, show=view, leave=console.leave)
    with console.heard_or_not(matters=True):
        if as_json:
            console.print_json(summary)
        else:
            console.print_summary(summary, where=str(plan.paths.evaluation))
    return ExitCode.SANDBOX if summary["statuses"]["sandbox_error"] else ExitCode.OK


def inside_arguments(plan: plans.EvalPlan, overrides: tuple[str, ...], *, fresh: bool, as_json: bool) -> list[str]:
    """The same command as it runs inside the image, with every path absolute and the run's place fixed."""
    config = plan.config
    arguments = ["eval", "--config", str(plan.config_file), "--runtime", "local"]
    arguments += ["--adapter", plan.adapter.word]
    arguments += ["--fresh"] if fresh else []
    arguments += ["--json"] if as_json else []
    return [
        *arguments,
        *overrides,
        f"trainer.output_dir={config.trainer.output_dir}",
        f"trainer.run_name={plan.paths.root.name}",
    ]
