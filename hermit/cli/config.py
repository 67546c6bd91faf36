"""`hermit config`: what a run config may say, and what one says."""

from __future__ import annotations

import typer

from hermit import environ
from hermit.cli import console
from hermit.cli.eval import ConfigOption, Overrides
from hermit.config.load import load
from hermit.config.schema import json_schema
from hermit.errors import ExitCode

app = typer.Typer(help="What a run config may say, and what one says.", no_args_is_help=True)


@app.command(help="Print the JSON Schema of a run config, for editors and other programs.")
def schema() -> int:
    """Runs the command and returns its exit code."""
    console.print_json(json_schema())
    return ExitCode.OK


@app.command(help="Print a config as Hermit reads it: defaults filled in, settings replaced, paths absolute.")
def show(config: ConfigOption, overrides: Overrides = None) -> int:
    """Runs the command and returns its exit code."""
    loaded = load(config.absolute(), tuple(overrides or ()), environ=environ.snapshot())
    console.print_json(loaded.model_dump(mode="json"))
    return ExitCode.OK
