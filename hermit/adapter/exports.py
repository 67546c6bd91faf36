"""What an agent gets of an adapter: its context, its skills, its roles and its tools, read from its files."""

from __future__ import annotations

import ast
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hermit.adapter import formats
from hermit.domain import codec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermit.adapter.files import Files
    from hermit.adapter.manifest import Exports

SKILL_FILE = "SKILL.md"
MOST_SOURCE = 256 * 1024  # its syntax tree takes two hundred times as much


@dataclass(frozen=True)
class Skill:
    """Something an agent can look up when it needs it.

    Args:
        name: Its name: that of its directory.
        description: When it is of use, on a line.
        path: Where its text lies in the adapter.
        text: The text itself, without its head.
        files: What else lies beside it, by path in the adapter.
    """

    name: str
    description: str
    path: str
    text: str = field(repr=False)
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Role:
    """Somebody an agent can be, or can hand a part of its work to.

    Args:
        name: Its name: that of its file.
        description: What it is for, on a line.
        path: Where its text lies in the adapter.
        text: The text itself, without its head.
        settings: What else its head holds.
    """

    name: str
    description: str
    path: str
    text: str = field(repr=False)
    settings: dict[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class AdapterTool:
    """A function of the adapter that an agent can call.

    Args:
        name: Its name.
        description: What it says of itself.
        takes: The JSON Schema of its argument; empty where it says none.
        gives: The JSON Schema of what it returns.
    """

    name: str
    description: str
    takes: dict[str, Any] = field(default_factory=dict, hash=False)
    gives: dict[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Exported:
    """What an agent gets.

    Args:
        context: Texts by the path of their file.
        skills: The skills by name.
        roles: The roles by name.
        tools: The tools by name.
        problems: What could not be had: a path and why.
    """

    context: dict[str, str]
    skills: dict[str, Skill]
    roles: dict[str, Role]
    tools: dict[str, AdapterTool]
    problems: tuple[tuple[str, str], ...] = ()


def exported(files: Files, exports: Exports) -> Exported:
    """Everything that an adapter gives to an agent; what is broken is told and left out."""
    wrong: list[tuple[str, str]] = []
    return Exported(
        context=_context(files, exports, wrong),
        skills={skill.name: skill for skill in _skills(files, exports.skills, wrong)},
        roles={role.name: role for role in _roles(files, exports.agents, wrong)},
        tools={tool.name: tool for tool in _tools(files, exports.tools, wrong)},
        problems=tuple(wrong),
    )


def _context(files: Files, exports: Exports, wrong: list[tuple[str, str]]) -> dict[str, str]:
    found = {}
    for path in exports.context:
        text = _text(files, path, wrong)
        if text is not None:
            found[path] = text
    return found


def _text(files: Files, path: str, wrong: list[tuple[str, str]]) -> str | None:
    data = files.get(path)
    if data is None:
        wrong.append((path, "it is exported, and is not there"))
        return None
    text = formats.as_text(data)
    if text is None:
        wrong.append((path, formats.NOT_TEXT))
    return text


def _page(files: Files, path: str, wrong: list[tuple[str, str]]) -> formats.Page | None:
    """A text whose head gives a description."""
    text = _text(files, path, wrong)
    if text is None:
        return None
    found = formats.page(text)
    if found.problem or not isinstance(found.head.get("description"), str):
        wrong.append((path, found.problem or "its front matter has no description"))
        return None
    return found


def _skills(files: Files, directory: str, wrong: list[tuple[str, str]]) -> Iterator[Skill]:
    below = [
        path.removeprefix(f"{directory}/") for path in files.paths if directory and path.startswith(f"{directory}/")
    ]
    for name in sorted({path.split("/")[0] for path in below if "/" in path}):
        path = f"{directory}/{name}/{SKILL_FILE}"
        if files.get(path) is None:
            wrong.append((f"{directory}/{name}", f"a skill has a {SKILL_FILE}"))
            continue
        found = _page(files, path, wrong)
        if found is None:
            continue
        if found.head.get("name", name) != name:
            wrong.append((path, f"its front matter names another skill than its directory, {name}"))
            continue
        beside = tuple(
            f"{directory}/{other}"
            for other in below
            if other.startswith(f"{name}/") and other != f"{name}/{SKILL_FILE}"
        )
        yield Skill(name, found.head["description"], path, found.body.strip("\n"), beside)


def _roles(files: Files, directory: str, wrong: list[tuple[str, str]]) -> Iterator[Role]:
    for path in files.paths:
        above, _, name = path.rpartition("/")
        if not directory or above != directory or not name.endswith(".md"):
            continue
        found = _page(files, path, wrong)
        if found is not None:
            rest = {key: value for key, value in found.head.items() if key not in ("name", "description")}
            yield Role(name.removesuffix(".md"), found.head["description"], path, found.body.strip("\n"), rest)


def _tools(files: Files, path: str, wrong: list[tuple[str, str]]) -> Iterator[AdapterTool]:
    """The public functions that a file defines, read and not run: a tool takes one value of JSON."""
    text = _text(files, path, wrong) if path else None
    if text is None:
        return
    if len(text) > MOST_SOURCE:
        wrong.append((path, f"it has more than {MOST_SOURCE} letters"))
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a learner's escapes are its own business
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        wrong.append((path, f"it is not Python: {str(error) or type(error).__name__}"[:300]))
        return
    said = _said(files, f"{path.removesuffix('.py')}.tools.json", wrong)
    for node in tree.body:
        if isinstance(node, ast.AsyncFunctionDef) and not node.name.startswith("_"):
            wrong.append((path, f"the tool {node.name} is asynchronous; a tool is a plain function"))
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            if _takes_one(node.args):
                says = said.get(node.name, {})
                words = (ast.get_docstring(node) or "").strip()
                yield AdapterTool(node.name, words, says.get("takes", {}), says.get("gives", {}))
            else:
                wrong.append((path, f"the tool {node.name} does not take one argument"))


def _said(files: Files, path: str, wrong: list[tuple[str, str]]) -> dict[str, dict[str, Any]]:
    """What the file beside the tools says of each; nothing where there is none."""
    data = files.get(path)
    if data is None:
        return {}
    if len(data) > MOST_SOURCE:
        wrong.append((path, f"it has more than {MOST_SOURCE} bytes"))
        return {}
    try:
        document = codec.load(data)
    except ValueError as error:
        wrong.append((path, f"it is not JSON: {error}"))
        return {}
    rows = document.values() if isinstance(document, dict) else [None]
    if all(
        isinstance(row, dict) and all(isinstance(row.get(key, {}), dict) for key in ("takes", "gives")) for row in rows
    ):
        return dict(document)
    wrong.append((path, 'it is no object of {"tool": {"takes": {...}, "gives": {...}}}'))
    return {}


def _takes_one(given: ast.arguments) -> bool:
    positional = [*given.posonlyargs, *given.args]
    needed = len(positional) - len(given.defaults)
    keywords = [default for default in given.kw_defaults if default is None]
    return not keywords and needed <= 1 and (len(positional) >= 1 or given.vararg is not None)
