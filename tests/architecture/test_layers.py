"""Imports point down only; what starts in every sandbox needs nothing but the standard library."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

# From the top to the bottom. What stands on one line knows nothing of its neighbours.
LAYERS = (
    ("__main__", "spec"),
    ("cli",),
    ("run",),
    ("roles", "handoff", "agent", "adapter", "evolver"),
    ("config",),
    ("resident",),
    ("sandbox",),
    ("bwrap", "oci", "unconfined"),
    ("net",),
    ("proc", "environ", "relay"),
    ("streams",),
    ("bundle", "clock", "shield", "signals", "untrusted"),
    ("domain",),
    ("errors",),
)
LEVEL = {part: number for number, layer in enumerate(LAYERS) for part in layer}
# The package itself, `hermit`, names its public classes and its version: it is free for all.
FREE = ("hermit", "hermit.__version__")
STANDARD_ONLY = (
    *("domain", "bwrap", "resident", "sandbox", "inside", "relay", "streams", "bundle", "clock", "signals"),
    *("shield", "unconfined", "untrusted"),
)
EXCEPTIONS: dict[tuple[str, str], str] = {
    ("evolver", "agent"): "a learner's worker is an agent's, and an agent can be a learner: decision 0022",
}
# What the standard library has, and what the relay calls its own neighbours by.
INSIDE_OWN = ("around", "checks", "command", "family", "forward", "limits", "network", "relay", "unseen")


def part_of(name: str) -> str:
    """The part of the package a module belongs to: the word after ``hermit``."""
    return name.split(".")[1] if "." in name else ""


def broken(importer: str, imported: str) -> bool:
    """Whether this import between two parts points up or sideways."""
    if importer == imported or (importer, imported) in EXCEPTIONS:
        return False
    return LEVEL[imported] <= LEVEL[importer]


def test_every_part_of_the_package_has_a_layer(root: Path) -> None:
    parts = {
        path.stem for path in (root / "hermit").iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert parts - {"__init__", "testing"} <= set(LEVEL)


def test_imports_point_down_only_and_neighbours_do_not_know_each_other(modules: list[Any]) -> None:
    wrong = []
    for module in modules:
        importer = part_of(module.name)
        if importer in ("", "inside"):  # the package itself, and what imports nothing of it
            continue
        for name, line, _ in module.imports():
            ours = name.split(".")[0] == "hermit" and name not in FREE
            if ours and part_of(name) in LEVEL and broken(importer, part_of(name)):
                wrong.append(f"{module.place}:{line} imports {name}")
    assert wrong == []


def test_an_import_that_points_up_or_sideways_is_seen() -> None:
    assert broken("domain", "run")
    assert broken("roles", "handoff")
    assert broken("bwrap", "oci")
    assert broken("environ", "proc")
    assert not broken("run", "oci")
    assert not broken("cli", "errors")


def test_an_exception_names_parts_that_exist_and_has_a_reason() -> None:
    for (importer, imported), reason in EXCEPTIONS.items():
        assert {importer, imported} <= set(LEVEL)
        assert len(reason) > 20


def test_only_the_run_imports_the_container_engine_beside_the_command_line(modules: list[Any]) -> None:
    users = {
        part_of(module.name) for module in modules for name, _, _ in module.imports() if name.startswith("hermit.oci")
    }
    assert users <= {"oci", "run", "cli"}


def test_the_acting_layer_uses_the_values_and_nothing_else_of_the_package(modules: list[Any]) -> None:
    used = {
        part_of(name)
        for module in modules
        if part_of(module.name) == "agent"
        for name, _, _ in module.imports()
        if name.startswith("hermit.")
    }
    assert used <= {"agent", "domain"}


@pytest.mark.parametrize("part", STANDARD_ONLY)
def test_what_starts_sandboxes_uses_the_standard_library_only(modules: list[Any], part: str) -> None:
    own = [module for module in modules if part_of(module.name) == part]
    assert own
    allowed = {*sys.stdlib_module_names, "hermit", *(INSIDE_OWN if part == "inside" else ())}
    foreign = [
        f"{module.place}:{line} imports {name}"
        for module in own
        for name, line, typing in module.imports()
        if not typing and name.split(".")[0] not in allowed
    ]
    assert foreign == []


def test_the_relay_inside_imports_nothing_of_the_package(modules: list[Any]) -> None:
    found = [
        f"{module.place}:{line} imports {name}"
        for module in modules
        if part_of(module.name) == "inside"
        for name, line, _ in module.imports()
        if name.split(".")[0] == "hermit"
    ]
    assert found == []


def test_each_library_is_known_to_one_part_of_the_package(modules: list[Any]) -> None:
    homes = {"pydantic": "config", "pydantic_core": "config", "yaml": "config", "typer": "cli", "rich": "cli"}
    homes |= {"docker": "oci", "tenacity": "oci", "jinja2": "run"}
    wrong = [
        f"{module.place}:{line} imports {name}"
        for module in modules
        for name, line, _ in module.imports()
        if part_of(module.name) != homes.get(name.split(".")[0], part_of(module.name))
    ]
    assert wrong == []


def test_nothing_but_the_declared_dependencies_is_imported(modules: list[Any], root: Path) -> None:
    import tomllib

    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    declared = [
        *project["dependencies"],
        *(line for extra in ("redact", "tools") for line in project["optional-dependencies"][extra]),
    ]
    names = {"yaml" if "yaml" in line.lower() else line.split(">")[0].strip() for line in declared}
    allowed = {*sys.stdlib_module_names, "hermit", "pydantic_core", *names, *INSIDE_OWN}
    foreign = {name.split(".")[0] for module in modules for name, _, _ in module.imports()} - allowed
    assert foreign == set()
