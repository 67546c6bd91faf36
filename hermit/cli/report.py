"""`hermit report`: what a run came to, as a table here and as a page for a browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hermit.cli import console
from hermit.cli.eval import JsonOption
from hermit.errors import ExitCode
from hermit.run.reading import load, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermit.run.reading.load import Run

HELP = """Print what a run came to, and leave a page that shows all of it.

The page is one file that asks for nothing and runs nothing: scores and how they are distributed, and of each attempt what
was said, its trajectory, and the record of each sandbox. It is safe to open whatever the agents wrote.

\b
Examples:
  hermit report runs/mine
  hermit report runs/mine/eval/none --page page.html
  hermit report runs/mine --json
"""

RunArgument = Annotated[
    Path, typer.Argument(metavar="RUN", help="The run's directory, or eval/<selector> in it.", show_default=False)
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

    with load.opened(run) as opened:
        target = page.absolute() if page else opened.paths.page
        pages.write(opened, target)
        if as_json:
            console.print_json({**table.document(opened), "page": str(target)})
        else:
            console.print_lines(table.lines(opened))
            console.print_facts(facts(opened, target))
    return ExitCode.OK


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
