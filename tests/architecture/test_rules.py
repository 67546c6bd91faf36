"""Sizes, and the things that live in one place."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MOST_LINES = 400
MOST_IN_A_FUNCTION = 60
# The rule is two; a third is taken where the three have different types and one order that everybody knows.
MOST_POSITIONAL = 3
POSITIONAL = {"domain/trial.py __init__": "the fields of a result, in the order that agents and judges already use"}
VAGUE = ("utils", "util", "helpers", "helper", "common", "manager", "misc")
# Files that are long because they are data or prose, with the reason.
LONG: dict[str, str] = {}
# What is started and not imported, and the module where commands are registered.
PROGRAMS = ("inside/__main__.py", "cli/main.py")
# Who else touches the standard streams, and why.
STREAMS = {
    "sandbox.py": "the front door of other programs, used where the command line's libraries are too slow to import",
    "oci/whole.py": "asks whether there is a terminal to hand on",
    "inside/command.py": "flushes what the worker it has called printed",
}
# How the options of the two programs are spelled; each has one file that may.
BWRAP_OPTION = re.compile(
    r"--(ro-bind|bind|dev-bind|unshare-\w+|die-with-parent|json-status-fd|tmpfs|remount-ro|cap-drop|clearenv|new-session|symlink|args)(-try)?$"
)
CONTAINER_OPTION = re.compile(
    r"--(read-only|network|security-opt|cap-drop|pids-limit|userns|init|mount|volume|tmpfs|privileged|user|memory|rm)(=|$)"
)


def functions(module: Any) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function and method."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def strings(module: Any) -> Iterator[tuple[str, int]]:
    """Every string that is no docstring, with its line."""
    for node in ast.walk(module.tree):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Constant) and isinstance(child.value, str) and not isinstance(node, ast.Expr):
                yield child.value, child.lineno


def test_no_python_file_of_the_tree_is_over_400_lines(tracked: list[Path], root: Path) -> None:
    long = {}
    for path in tracked:
        if path.suffix == ".py":
            count = path.read_text(encoding="utf-8").count("\n")
            if count > MOST_LINES and str(path.relative_to(root)) not in LONG:
                long[str(path.relative_to(root))] = count
    assert long == {}


def test_no_function_is_over_60_lines(modules: list[Any]) -> None:
    long = [
        f"{module.place}:{node.name} has {node.end_lineno - node.lineno + 1}"
        for module in modules
        for node in functions(module)
        if node.end_lineno is not None and node.end_lineno - node.lineno + 1 > MOST_IN_A_FUNCTION
    ]
    assert long == []


def test_what_follows_the_first_parameters_is_named_by_the_caller(modules: list[Any]) -> None:
    long = []
    for module in modules:
        for node in functions(module):
            given = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
            own = [name for name in given if name not in ("self", "cls")]
            public = not node.name.startswith("_") or node.name == "__init__"
            if len(own) > MOST_POSITIONAL and public and f"{module.place} {node.name}" not in POSITIONAL:
                long.append(f"{module.place}:{node.lineno} {node.name}({', '.join(own)})")
    assert long == []


def test_no_function_passes_keywords_through(modules: list[Any]) -> None:
    found = [f"{module.place}:{node.name}" for module in modules for node in functions(module) if node.args.kwarg]
    assert found == []


def test_no_module_has_a_vague_name(tracked: list[Path], root: Path) -> None:
    found = [str(path.relative_to(root)) for path in tracked if path.suffix == ".py" and path.stem in VAGUE]
    assert found == []


def test_every_public_name_has_a_docstring(modules: list[Any]) -> None:
    missing = []
    for module in modules:
        if ast.get_docstring(module.tree) is None:
            missing.append(module.place)
        silent = [node for node in _public(module.tree) if ast.get_docstring(node) is None]
        missing += [f"{module.place}:{node.lineno} {node.name}" for node in silent]
    assert missing == []


def _public(tree: ast.AST) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) or node.name.startswith("_"):
            continue
        yield node
        if isinstance(node, ast.ClassDef):
            yield from _public(node)


def test_the_first_line_of_a_docstring_is_a_sentence(modules: list[Any]) -> None:
    wrong = []
    for module in modules:
        for node in (module.tree, *_public(module.tree)):
            words = (ast.get_docstring(node) or "").split("\n\n")[0].strip()
            if words and not words.rstrip("`").endswith((".", "?", ":", "::")):
                wrong.append(f"{module.place}: {words[:60]}")
    assert wrong == []


def test_only_the_command_line_prints(modules: list[Any]) -> None:
    found = []
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
                found.append(module.place)
            if isinstance(node, ast.Attribute) and node.attr in ("stdout", "stderr") and _is(node.value, "sys"):
                found.append(module.place)
    assert {place for place in found if not place.startswith("cli/")} <= set(STREAMS)


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def test_only_proc_starts_processes(modules: list[Any]) -> None:
    users = {
        module.place
        for module in modules
        for name, _, typing in module.imports()
        if name.split(".")[0] == "subprocess" and not typing
    }
    assert users == {"proc.py"}
    calls = {
        module.place
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute)
        and _is(node.value, "os")
        and re.match(r"(system|popen|spawn|posix_spawn|exec[lv])", node.attr)
    }
    assert calls <= {"inside/command.py"}, "the relay's child becomes the command"


def test_only_environ_reads_the_environment(modules: list[Any]) -> None:
    users = {
        module.place
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute)
        and node.attr in ("environ", "environb", "getenv", "putenv")
        and _is(node.value, "os")
    }
    # What runs inside reads and sets the sandbox's own.
    assert users <= {"environ.py", "inside/command.py"}


@pytest.mark.parametrize(
    ("option", "home"), [(BWRAP_OPTION, ("bwrap/argv.py", "bwrap/launch.py")), (CONTAINER_OPTION, ("oci/argv.py",))]
)
def test_the_options_of_a_program_are_spelled_in_one_place(
    modules: list[Any], option: re.Pattern[str], home: tuple[str, ...]
) -> None:
    other = {"bwrap/argv.py", "bwrap/launch.py", "oci/argv.py"} - set(home)
    found = [
        f"{module.place}:{line} {text}"
        for module in modules
        for text, line in strings(module)
        if option.match(text) and module.place not in (*home, *other)
    ]
    assert found == []
    assert any(option.match(text) for module in modules if module.place == home[0] for text, _ in strings(module))


def test_bubblewraps_launch_names_only_the_options_that_carry_the_others(modules: list[Any]) -> None:
    (launch,) = [module for module in modules if module.place == "bwrap/launch.py"]
    assert {text for text, _ in strings(launch) if text.startswith("--")} <= {"--args", "--"}


def test_nothing_is_done_when_a_module_is_imported(modules: list[Any]) -> None:
    allowed = (
        ast.Import,
        ast.ImportFrom,
        ast.FunctionDef,
        ast.AsyncFunctionDef,
        ast.ClassDef,
        ast.Assign,
        ast.AnnAssign,
        ast.If,
    )
    wrong = [
        f"{module.place}:{node.lineno}"
        for module in modules
        for node in module.tree.body
        if not isinstance(node, allowed)
        and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        and module.place not in PROGRAMS
    ]
    assert wrong == []


def test_no_module_changes_a_global(modules: list[Any]) -> None:
    found = [
        f"{module.place}:{node.lineno}"
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Global)
    ]
    assert found == []


def test_no_life_ends_by_chance(modules: list[Any]) -> None:
    found = [
        f"{module.place}:{node.name}" for module in modules for node in functions(module) if node.name == "__del__"
    ]
    found += [
        f"{module.place} imports {name}"
        for module in modules
        for name, _, _ in module.imports()
        if name.startswith("atexit")
    ]
    assert found == []


def test_no_failure_is_swallowed_whole(modules: list[Any]) -> None:
    found = [
        f"{module.place}:{node.lineno}"
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or _is(node.type, "Exception") or _is(node.type, "BaseException"))
        and all(isinstance(inner, ast.Pass) for inner in node.body)
    ]
    assert found == []
