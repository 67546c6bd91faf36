"""`python -m hermit.sandbox SPEC -- COMMAND`: the command's own code and streams, and 125 where the sandbox failed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.bwrap


@pytest.fixture
def door(machine: Any, tmp_path: Path) -> Callable[..., Any]:
    """Runs a command through the front door, in this sandbox."""

    def run(*command: str, spec: Any = None, stdin: bytes = b"") -> Any:
        file = tmp_path / "spec.json"
        file.write_text(spec if isinstance(spec, str) else json.dumps(spec or {}))
        return machine.run("-m", "hermit.sandbox", str(file), "--", *command, stdin=stdin)

    return run


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (("true",), 0),
        (("sh", "-c", "exit 7"), 7),
        (("sh", "-c", "exit 125"), 125),
        (("sh", "-c", "kill -9 $$"), 137),
        (("sh", "-c", "kill -15 $$"), 143),
        (("surely-absent",), 127),
        (("/surely/absent",), 127),
        (("/usr/lib/os-release",), 126),
        (("/usr/lib",), 126),
    ],
)
def test_the_commands_own_code_passes_through(door: Callable[..., Any], command: tuple[str, ...], code: int) -> None:
    assert door(*command).code == code


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"hide": ["../x"]}, "hide takes names of modules"),
        ({"ports": [80]}, "a port inside is a number from 1024"),
        ({"packages": ["surely-absent"]}, "surely-absent"),
        ({"allowed_hosts": ["*.com"]}, "*.com"),
        ({"bogus": 1}, "a sandbox has no field 'bogus'"),
        ({"read": "x"}, "'read' takes list, not str"),
        ({"read": ["relative"]}, "must be an absolute path"),
        ({"read": ["/surely/absent"]}, "/surely/absent does not exist"),
        ({"limits": {"wall_s": -1}}, "limits.wall_s must be a number above 0"),
        ({"limits": {"bogus": 1}}, "bogus"),
        ({"probes": ["/usr"]}, "secrets absent"),
        ("{", "spec.json"),
        ("[]", "a sandbox is an object, not list"),
        ("", "spec.json"),
    ],
)
def test_a_sandbox_that_cannot_be_is_125_with_the_reason(door: Callable[..., Any], spec: Any, words: str) -> None:
    said = door("touch", "/tmp/ran", spec=spec)
    assert (said.code, said.out) == (125, "")
    assert words in said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize("words", [(), ("x.json",), ("x.json", "true"), ("x.json", "--"), ("--", "true")])
def test_a_wrong_command_line_is_125_with_the_usage(machine: Any, words: tuple[str, ...]) -> None:
    said = machine.run("-m", "hermit.sandbox", *words)
    assert said.code == 125
    assert said.err.startswith("usage: python -m hermit.sandbox SPEC -- COMMAND")


def test_a_missing_spec_is_125_with_its_name(machine: Any) -> None:
    said = machine.run("-m", "hermit.sandbox", "absent.json", "--", "true")
    assert (said.code, "absent.json" in said.err) == (125, True)


def test_the_spec_can_be_read_from_standard_input(machine: Any) -> None:
    spec = json.dumps({"env": {"GIVEN": "here"}}).encode()
    said = machine.run("-m", "hermit.sandbox", "-", "--", "sh", "-c", "echo $GIVEN; cat", stdin=spec)
    assert (said.code, said.out) == (0, "here\n")


def test_the_command_keeps_the_callers_input_and_output(door: Callable[..., Any]) -> None:
    said = door("sh", "-c", "cat; echo complaint >&2", stdin=b"given")
    assert (said.out, said.err) == ("given", "complaint\n")


def test_what_is_not_named_does_not_exist(door: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "secret").write_text("secret")
    hidden = door("cat", f"{tmp_path}/data/secret")
    shown = door("cat", f"{tmp_path}/data/secret", spec={"read": [f"{tmp_path}/data"]})
    assert (hidden.code, hidden.out) == (1, "")
    assert (shown.code, shown.out) == (0, "secret")


def test_a_command_that_hangs_is_stopped(door: Callable[..., Any]) -> None:
    said = door("sh", "-c", "trap '' TERM; sleep 600 & sleep 600", spec={"limits": {"wall_s": 0.5}})
    assert said.code == 137


def test_a_machine_without_bubblewrap_is_125_or_unconfined_by_choice(machine: Any, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for enforce, code in (("required", 125), ("best_effort", 0)):
        file = tmp_path / "spec.json"
        file.write_text(json.dumps({"enforce": enforce}))
        said = machine.run("-m", "hermit.sandbox", str(file), "--", "/bin/true", env={"PATH": str(tmp_path / "empty")})
        assert said.code == code, said.err
