"""The reference covers every key, command, option, exit code and field; the README names nothing that does not exist."""

from __future__ import annotations

import dataclasses
import re
import shlex
from typing import TYPE_CHECKING, Any

import pytest
import typer.main

from hermit.cli.main import app
from hermit.config.schema import RunConfig, known_keys, sections
from hermit.domain.attempt import Status
from hermit.domain.limits import Limits
from hermit.domain.sandbox import Sandbox
from hermit.errors import ExitCode, HermitError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def commands(command: Any = None, *, name: str = "hermit") -> Iterator[tuple[str, Any]]:
    """Every command there is, with its whole name."""
    command = typer.main.get_command(app) if command is None else command
    inner = getattr(command, "commands", {})
    if not inner:
        yield name, command
    for word, below in inner.items():
        yield from commands(below, name=f"{name} {word}")


def options(command: Any) -> set[str]:
    """The options of a command, without the help that each has."""
    return {spelling for parameter in command.params for spelling in parameter.opts if spelling.startswith("--")} - {
        "--help"
    }


def shell_lines(text: str) -> Iterator[str]:
    """Each line of a page's shell blocks that calls the command, a continued line as one."""
    for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            if re.match(r"\s*(\$ )?(docker run .*\b)?hermit ", line):
                yield line


def leaves() -> list[str]:
    """Every key that holds a value."""
    models: dict[str, Any] = {"": RunConfig}
    for key in known_keys():
        above, _, last = key.rpartition(".")
        inner = sections(models[above]) if above in models else {}
        if last in inner:
            models[key] = inner[last]
    return [key for key in known_keys() if key not in models]


def pages(root: Path) -> list[Path]:
    """What a person reads."""
    return [
        root / "README.md",
        *sorted((root / "docs").rglob("*.md")),
        *sorted((root / "examples").glob("*/README.md")),
    ]


@pytest.mark.parametrize("key", leaves())
def test_the_reference_names_every_key(root: Path, key: str) -> None:
    assert f"`{key}`" in (root / "docs" / "reference" / "config.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [name for name, _ in commands()])
def test_the_reference_has_a_section_for_every_command_with_every_option(root: Path, name: str) -> None:
    text = (root / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    found = re.search(rf"^## `{re.escape(name)}`$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"{name} has no section"
    missing = [option for option in options(dict(commands())[name]) if f"`{option}" not in found[1]]
    assert missing == []


def test_the_reference_names_no_command_or_option_that_does_not_exist(root: Path) -> None:
    text = (root / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    known = dict(commands())
    for name, body in re.findall(r"^## `(hermit [^`]*)`$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL):
        assert name in known
        assert set(re.findall(r"^\| `(--[a-z-]+)", body, re.MULTILINE)) <= options(known[name])


def test_the_reference_names_every_exit_code(root: Path) -> None:
    text = (root / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
    for code in ExitCode:
        assert re.search(rf"\| {code.value} `{code.name}` \|", text), code.name
    errors: list[type[HermitError]] = [HermitError, *HermitError.__subclasses__()]
    for error in errors:
        assert re.search(rf"`{error.__name__}` \| {error.exit_code.value} `{error.exit_code.name}`", text), error


def test_the_reference_names_every_status(root: Path) -> None:
    text = (root / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
    assert [status.value for status in Status if f"`{status.value}`" not in text] == []


@pytest.mark.parametrize("model", [Sandbox, Limits])
def test_the_reference_names_every_field_of_a_sandbox(root: Path, model: Any) -> None:
    text = (root / "docs" / "reference" / "sandbox.md").read_text(encoding="utf-8")
    assert [field.name for field in dataclasses.fields(model) if f"| `{field.name}` |" not in text] == []


def test_every_command_that_a_page_shows_exists_with_its_options(root: Path) -> None:
    known, wrong, seen = dict(commands()), [], 0
    for page in pages(root):
        for line in shell_lines(page.read_text(encoding="utf-8")):
            words = shlex.split(line, comments=True)
            words = words[words.index("hermit") :]
            names = [" ".join(words[:length]) for length in (3, 2) if " ".join(words[:length]) in known]
            given = {word.partition("=")[0] for word in words if word.startswith("--")}
            seen += 1
            if words[1:] == ["--version"] or words[1:] == ["--help"]:
                continue
            if not names or not given - {"--help"} <= options(known[names[0]]):
                wrong.append(f"{page.name}: {line.strip()}")
    assert wrong == []
    assert seen >= 5


def test_every_setting_that_a_page_shows_on_a_command_line_is_a_key(root: Path) -> None:
    keys = set(known_keys())
    free = ("agent.params.", "evolver.params.", "backends.", "llm.")
    wrong = []
    for page in pages(root):
        for line in shell_lines(page.read_text(encoding="utf-8")):
            given = re.findall(r"\s([a-z_]+(?:\.[a-z_]+)+)=", line)
            wrong += [f"{page.name}: {key}" for key in given if key not in keys and not key.startswith(free)]
    assert wrong == []


def test_every_link_of_a_page_leads_to_a_file(root: Path) -> None:
    broken = []
    for page in pages(root):
        targets = re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        broken += [f"{page.name} -> {target}" for target in targets if not (page.parent / target).exists()]
    assert broken == []


def test_every_target_of_make_that_a_page_shows_exists(root: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (root / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    shown = {name for page in pages(root) for name in re.findall(r"`make ([a-z-]+)`", page.read_text(encoding="utf-8"))}
    assert shown <= targets
    wanted = "setup demo demo-train image engine test check lint types bench clean"
    assert set(wanted.split()) <= targets


def test_the_readme_is_under_200_lines(root: Path) -> None:
    assert (root / "README.md").read_text(encoding="utf-8").count("\n") < 200


def test_the_readme_names_every_exit_code(root: Path) -> None:
    text = (root / "README.md").read_text(encoding="utf-8").partition("## Exit codes")[2]
    assert [code.value for code in ExitCode if not re.search(rf"\b{code.value}\b", text)] == []
