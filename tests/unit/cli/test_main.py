"""The `hermit` command: one clear message and one exit code for everything that is wrong with a command line."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import hermit as package
from hermit.cli import main
from hermit.errors import ConfigError, HermitError, Interrupted, PlaceError, SandboxError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_the_version_is_printed_alone(hermit: Callable[..., Any]) -> None:
    said = hermit("--version")
    assert (said.code, said.out, said.err) == (0, f"hermit {package.__version__}\n", "")


def test_help_lists_every_command(hermit: Callable[..., Any]) -> None:
    said = hermit("--help")
    assert said.code == 0
    for name in ("eval", "check", "config"):
        assert f"  {name} " in said.out


def test_no_command_at_all_shows_the_help(hermit: Callable[..., Any]) -> None:
    said = hermit()
    assert "Usage: " in said.out + said.err
    assert "eval" in said.out + said.err
    assert "Traceback" not in said.out + said.err


@pytest.mark.parametrize("command", ["eval", "check"])
def test_the_help_of_a_command_has_examples_on_lines_of_their_own(hermit: Callable[..., Any], command: str) -> None:
    said = hermit(command, "--help")
    assert said.code == 0
    examples = said.out.split("Examples:")[1].splitlines()
    assert len([line for line in examples if line.strip().startswith(f"hermit {command}")]) >= 2


@pytest.mark.parametrize(
    ("arguments", "named", "where"),
    [
        (["eval", "--config", "x.yaml", "--bogus"], "--bogus", "hermit eval --help"),
        (["evaluate"], "evaluate", "hermit --help"),
        (["eval"], "--config", "hermit eval --help"),
        (["eval", "--config"], "--config", "--help"),
        (["eval", "--config", "x.yaml", "--runtime", "moon"], "moon", "hermit eval --help"),
        (["config"], "", "hermit config"),
        (["config", "nothing"], "nothing", "hermit config --help"),
        (["config", "show"], "--config", "hermit config show --help"),
        (["check", "agent.name=x"], "--config", "hermit check --help"),
    ],
)
def test_a_wrong_command_line_is_exit_2_with_one_clear_message(
    hermit: Callable[..., Any], arguments: list[str], named: str, where: str
) -> None:
    said = hermit(*arguments)
    assert said.code == 2
    assert named in said.err
    assert where in said.err
    assert "Traceback" not in said.err
    if arguments != ["config"]:
        assert said.out == ""
        assert len(said.err.splitlines()) <= 3


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (HermitError("what", where="where", cure="cure"), 1),
        (ConfigError("what", where="where", cure="cure"), 2),
        (PlaceError("what", where="where", cure="cure"), 3),
        (SandboxError("what", where="where", cure="cure"), 4),
        (Interrupted("what", where="where", cure="cure"), 130),
    ],
)
def test_each_failure_has_its_exit_code_and_its_message_on_standard_error(
    hermit: Callable[..., Any], config: Path, monkeypatch: pytest.MonkeyPatch, error: HermitError, code: int
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr("hermit.cli.eval.load", fail)
    said = hermit("eval", "--config", str(config))
    assert (said.code, said.out, said.err) == (code, "", "hermit: where: what\n  -> cure\n")


def test_ctrl_c_anywhere_is_exit_130(hermit: Callable[..., Any], config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("hermit.cli.eval.load", interrupt)
    said = hermit("eval", "--config", str(config))
    assert (said.code, said.err) == (130, "hermit: interrupted\n")


def test_an_error_of_ours_is_not_hidden(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("hermit.cli.eval.load", fail)
    with pytest.raises(ZeroDivisionError):
        main.run(["eval", "--config", str(config)])


def test_a_message_with_brackets_is_shown_as_it_is(hermit: Callable[..., Any], tmp_path: Path) -> None:
    said = hermit("eval", "--config", str(tmp_path / "[bold]run[/].yaml"))
    assert said.code == 2
    assert "[bold]run[/].yaml" in said.err


@pytest.mark.parametrize("arguments", [["config", "schema"], ["eval", "--help"], ["--version"]])
def test_a_reader_that_has_seen_enough_is_no_failure(arguments: list[str]) -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "hermit", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert child.stdout is not None
    child.stdout.close()
    assert child.stderr is not None
    with child.stderr as stderr:
        complaints = stderr.read()
    assert child.wait(timeout=60) == 0, complaints
    assert complaints == b""


def test_the_module_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "hermit", "--version"], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout.decode()) == (0, f"hermit {package.__version__}\n")


def test_the_installed_command_exists_beside_the_interpreter() -> None:
    program = os.path.join(os.path.dirname(sys.executable), "hermit")
    if not os.path.exists(program):
        pytest.skip("this interpreter runs the package from its source, without the command")
    done = subprocess.run([program, "--version"], capture_output=True, timeout=60, check=False)
    assert done.stdout.decode() == f"hermit {package.__version__}\n"
