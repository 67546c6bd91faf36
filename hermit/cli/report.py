"""`hermit report`: what a run came to, as a table here and as a page for a browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hermit.cli import console
from hermit.cli.eval import JsonOption
from hermit.errors import ExitCode
from hermit.run.reading import load, table, trained, training_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermit.run.reading.load import Run
    from hermit.run.reading.trained import Training

HELP = """Print what a run came to, and leave a page that shows all of it.

The page is one file that asks for nothing and runs nothing: scores and how they are distributed, and of each attempt what
was said, its trajectory, and the record of each sandbox. Of a training run it shows the learning curve, and of each step what
it changed, what became of that and what it cost. It is safe to open whatever the agents and the learner wrote.

\b
Examples:
  hermit report runs/mine
  hermit report runs/trained/step_0003
  hermit report runs/mine/eval/none --page page.html
  hermit report runs/mine --json
"""

RunArgument = Annotated[
    Path,
    typer.Argument(
        metavar="RUN", help="The run's directory, or eval/<selector> or step_NNNN in it.", show_default=False
    ),
]


def command(
    run: RunArgument,
    *,
    page: Annotated[
        Path | None,
        typer.Option("--page", help="Write the page to this file; report.html beside the results unless given."),
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Runs the command and returns its exit code."""
    from hermit.run.reading import page as pages  # noqa: PLC0415 - its templates take as long as all other commands

    if trained.found(run):
        return _training(run, page, as_json=as_json)
    with load.opened(run) as opened:
        target = page.absolute() if page else opened.paths.page
        pages.write(pages.Page(opened), target)
        if as_json:
            console.print_json({**table.document(opened), "page": str(target)})
        else:
            console.print_lines(table.lines(opened))
            console.print_facts(facts(opened, target))
    return ExitCode.OK


def _training(run: Path, page: Path | None, *, as_json: bool) -> int:
    from hermit.run.reading import page as pages  # noqa: PLC0415 - as above
    from hermit.run.reading.training_page import TrainingPage  # noqa: PLC0415 - as above

    with trained.opened(run) as training:
        target = page.absolute() if page else training.paths.page
        pages.write(TrainingPage(training), target)
        if as_json:
            console.print_json({**training_table.document(training), "page": str(target)})
        else:
            console.print_steps(training_table.lines(training))
            console.print_facts(training_facts(training, target))
    return ExitCode.OK


def training_facts(training: Training, page: Path) -> Iterator[tuple[str, str]]:
    """What stands below the table of a training run."""
    scored, spent = training.scored, training.spent
    stopped, planned = training.summary.get("stopped"), training.summary.get("of_steps")
    made = f"{len(scored)}" + (f" of {planned}" if isinstance(planned, int) and planned != len(scored) else "")
    yield "run", training.name
    yield "steps", made + ("" if training.ended else "; it has not ended")
    if stopped:
        yield "stopped", str(stopped)
    if scored:
        yield "mean score", f"{scored[0].mean_score:.4f} in the first step, {scored[-1].mean_score:.4f} in the last"
    for each in training.evaluations:
        between = f" (95% interval {each.interval[0]:.4f} to {each.interval[1]:.4f})" if each.interval else ""
        mean = "no summary" if each.mean is None else f"{each.mean:.4f}{between}"
        yield "test split", f"{each.selector}: {mean}" + ("" if each.complete else ", not complete")
    yield "version", training.commit[:12] or "none yet"
    unknown = f", unknown for {spent.all.unknown} calls" if spent.all.unknown else ""
    yield "cost", f"${spent.all.usd:.4f}{unknown}; {spent.all.tokens:,} tokens, {spent.all.seconds:.1f} s"
    shares = (f"{name} ${outlay.usd:.4f} in {outlay.seconds:.1f} s" for name, outlay in spent.parts if outlay.calls)
    yield "spent by", ", ".join(shares) or "nobody"
    for name, used, bound, part in training_table.budget(training):
        yield "budget", f"{used} of {bound} {name} ({part:.0%})"
    for note in training.notes:
        yield "note", note
    yield "page", str(page)


def facts(run: Run, page: Path) -> Iterator[tuple[str, str]]:
    """What stands below the table."""
    tally, made = run.tally, len(run.results)
    between = load.interval(run.summary)
    mean = "none" if tally.mean is None else f"{tally.mean:.4f}"
    wanted = run.summary.get("tasks", 0) * run.summary.get("repeats", 0)
    solved = sum(any(result.solved for result in tries) for tries in run.tasks.values())
    yield "run", run.name
    yield "mean score", mean + (f" (95% interval {between[0]:.4f} to {between[1]:.4f})" if between else "")
    yield "solved once", f"{solved} of {len(run.tasks)} tasks"
    yield "attempts", f"{made}" + (f" of {wanted}" if wanted not in (0, made) else "")
    kinds = [f"{count} {name}" for name, count in tally.statuses.items() if name != "ok"]
    yield "errors", f"{tally.errors} ({', '.join(kinds)})" if kinds else "0"
    if tally.unconfined:
        yield "unconfined", f"{tally.unconfined} attempts ran without a sandbox"
    yield "page", str(page)
