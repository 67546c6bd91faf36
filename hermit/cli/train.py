"""`hermit train`: lets a learner improve an adapter on the training split."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermit import environ
from hermit.cli import console
from hermit.cli.eval import ConfigOption, JsonOption, Overrides, Runtime, RuntimeOption
from hermit.config.load import load
from hermit.domain import hide
from hermit.errors import ExitCode, PlaceError
from hermit.run import place, train, training

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermit.run.place import InImage
    from hermit.run.training import TrainPlan
    from hermit.sandbox import Place

HELP = """Let a learner improve an adapter on the training split of a run config.

Each step makes an attempt at each task of a batch, lets the learner change the adapter, checks what it left and keeps it as a
version. The same command again goes on with the first piece that is not there.

\b
Examples:
  hermit train --config run.yaml
  hermit train --config run.yaml trainer.epochs=3 trainer.budget.usd=20
  hermit train --config run.yaml trainer.run_name=second --runtime image --json
  hermit eval --config run.yaml --adapter final
"""


def command(
    config: ConfigOption,
    overrides: Overrides = None,
    *,
    runtime: RuntimeOption = None,
    as_json: JsonOption = False,
) -> int:
    """Runs the command and returns its exit code."""
    variables = environ.snapshot()
    file = config.absolute()
    plan = training.training(
        load(file, tuple(overrides or ()), environ=variables),
        config_file=file,
        inherited=variables.get(hide.VARIABLE, ""),
    )
    where = chosen(plan, runtime, variables)
    with console.ProgressView(console.err()) as view:
        summary = train.train(plan, where, attempts=view, show=lambda line: view.say(step_line(line)))
    if as_json:
        console.print_json(summary)
    else:
        console.print_facts(facts(plan, summary))
    return ExitCode.OK


def chosen(plan: TrainPlan, runtime: Runtime | None, variables: Mapping[str, str]) -> Place | InImage:
    """Where the run's sandboxes are started, said in one line.

    Raises:
        PlaceError: They cannot be started there, or the whole command was to run in the image.
    """
    choice = place.choose(plan.config, runtime=runtime.value if runtime else None, environ=variables)
    if choice.kind == "whole":
        cure = "use --runtime image, or run the command in the image yourself, with the tree's directory mounted"
        raise PlaceError("training does not run whole in an image", where="container.runtime", cure=cure)
    console.err().print(f"sandboxes start {choice.sentence}", markup=False)
    return place.in_images(choice) if choice.kind == "image" else place.here(plan.config)


def step_line(line: dict[str, Any]) -> str:
    """One finished step on one line."""
    score = line.get("mean_score")
    what = "bootstrap" if score is None else f"step {line['step']}, epoch {line['epoch']}: mean {score:.3f}"
    change = f"{line['outcome']}, {line['commit'][:12]}" if line["changed"] else f"{line['outcome']}, nothing changed"
    learner = line["learner"]
    said = learner["error"] or " ".join(learner["summary"].split())
    return console.plain(f"{what}; {change}" + (f"; {said[:200]}" if said else ""))


def facts(plan: TrainPlan, summary: dict[str, Any]) -> list[tuple[str, str]]:
    """What a training run came to, for a person."""
    first, last = summary["first_score"], summary["last_score"]
    scores = "none" if first is None else f"{first:.4f} in the first step, {last:.4f} in the last"
    outcomes = ", ".join(f"{count} {name}" for name, count in summary["outcomes"].items())
    unknown = summary["unknown_cost_calls"]
    rows = [
        ("template", summary["template"]),
        (
            "learner",
            summary["learner"] + (f", failed {summary['learner_failed']} times" if summary["learner_failed"] else ""),
        ),
        ("steps", f"{summary['steps']} of {summary['of_steps']}: {outcomes}"),
        ("mean score", scores),
        ("cost", f"${summary['cost_usd']:.4f}" + (f", unknown for {unknown} calls" if unknown else "")),
        ("time", f"{summary['wall_s']:.1f} s"),
        ("version", f"{summary['commit'][:12]}, {summary['tag']}"),
        ("adapter", str(plan.paths.checkout)),
    ]
    if summary["stopped"]:
        rows.insert(3, ("stopped", summary["stopped"]))
    return rows
