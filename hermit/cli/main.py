"""The `hermit` command: its commands, and one way from a failure to an exit code."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

import hermit
from hermit.cli import check, config, console, diff, eval, image, report, train  # noqa: A004 - the command's name
from hermit.errors import ExitCode, HermitError

app = typer.Typer(
    name="hermit",
    help="Run AI agents, their judges and their learners in sandboxes that behave the same on every machine.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("eval", help=eval.HELP)(eval.command)
app.command("train", help=train.HELP)(train.command)
app.command("check", help=check.HELP)(check.command)
app.command("report", help=report.HELP)(report.command)
app.command("diff", help=diff.HELP)(diff.command)
app.add_typer(config.app, name="config")
app.add_typer(image.app, name="image")


def _version(wanted: bool) -> None:
    if wanted:
        print(f"hermit {hermit.__version__}")
        raise typer.Exit


@app.callback()
def root(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Options that every command shares."""


def main() -> None:
    """The entry point; ends the process with the exit code of ``errors.py``."""
    console.fill_streams()
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str], *, program: typer.Typer = app, name: str = "hermit") -> int:
    """Runs one command line and returns its exit code; a failure is one clear message on standard error."""
    try:
        code = program(arguments, prog_name=name, standalone_mode=False)
        sys.stdout.flush()
    except HermitError as error:
        console.say(console.without_keys(f"hermit: {error}"))
        return error.exit_code
    except KeyboardInterrupt:
        console.say("hermit: interrupted")
        return ExitCode.INTERRUPTED
    except (BrokenPipeError, SystemExit):  # whoever read our output has seen enough; typer exits then
        console.silence()
        return ExitCode.OK
    except Exception as error:
        usage = console.usage_message(error)
        if usage is None:
            raise
        console.say(console.without_keys(usage))
        return ExitCode.CONFIG
    if code == ExitCode.INTERRUPTED:  # typer's answer to a KeyboardInterrupt
        console.say("hermit: interrupted")
    return code if isinstance(code, int) else ExitCode.OK
