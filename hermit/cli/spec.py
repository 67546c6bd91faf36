"""`python -m hermit.spec`: says whether a directory is an adapter of a template."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hermit import sandbox as sandboxes
from hermit import untrusted
from hermit.adapter import files as adapter_files
from hermit.adapter import template as templates
from hermit.adapter.spec import State
from hermit.cli import console
from hermit.cli.eval import JsonOption
from hermit.domain.sandbox import Enforce
from hermit.errors import ConfigError, ExitCode
from hermit.run import adapter_check, bench

HELP = """Say whether a directory is an adapter of a template, by six numbered checks.

It ends with 0 where all pass and with 1 where one does not. The adapter's own code and the template's check run in a strict
sandbox: the adapter and the template to read, no network, no variable.

\b
Examples:
  python -m hermit.spec my-adapter --root skills-and-tools
  python -m hermit.spec my-adapter --root ./my-template --json
"""
MARKS = {State.PASSED: "ok", State.FAILED: "wrong", State.NOT_RUN: "not run"}

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command(help=HELP)
def command(
    adapter: Annotated[Path, typer.Argument(metavar="ADAPTER", help="The adapter's directory.")],
    root: Annotated[
        str, typer.Option("--root", help="The template: id[@version], or a directory.", show_default=False)
    ],
    *,
    enforce: Annotated[
        Enforce, typer.Option("--enforce", help="What to do where no sandbox starts.")
    ] = Enforce.REQUIRED,
    as_json: JsonOption = False,
) -> int:
    """Runs the command and returns its exit code."""
    is_path = "/" in root or root.startswith(".") or (root not in templates.shipped() and Path(root).is_dir())
    template = (
        templates.load(str(Path(root).resolve()), key="--root") if is_path else templates.named(root, key="--root")
    )
    try:
        reading = adapter_files.read(str(adapter.resolve()), structure=template.manifest.structure)
    except OSError as error:
        reason = error.reason if isinstance(error, untrusted.Refused) else error.strerror
        raise ConfigError(f"it cannot be read: {reason}", where=str(adapter), cure="name a directory") from None
    place = sandboxes.preflight(enforce)
    with bench.scratch_directory() as scratch:
        where = adapter_check.Strict(place, enforce, str(scratch))
        report = adapter_check.check_spec(reading, template, where=where)
    if as_json:
        console.print_json({**report.as_json(), "confined": place.confined})
    else:
        console.print_rows(
            ("", "", ""), [(f"{check.number}", MARKS[check.state], check.name) for check in report.checks]
        )
        for check in report.failed:
            for line in console.problem_lines(check):
                console.out().print(line, markup=False)
    return ExitCode.OK if report.passed else ExitCode.INTERNAL
