"""A run config from its file: defaults, then the YAML, then the command line, checked and frozen."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pydantic

from hermit.config.document import Placed, Problem, Where, described, parse, read_mapping, refusal, shown
from hermit.config.moved import MOVED
from hermit.config.schema import RunConfig, known_keys
from hermit.config.values import Base

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic_core import ErrorDetails

# What each complaint of pydantic says was expected; the braces are filled from the complaint's context.
_EXPECTED: Mapping[str, str] = {
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "finite_number": "a finite number",
    "float_type": "a number",
    "greater_than": "more than {gt:g}",
    "greater_than_equal": "at least {ge}",
    "int_type": "a whole number",
    "literal_error": "{expected}",
    "mapping_type": "a mapping",
    "model_type": "a mapping",
    "string_too_short": "text that is not empty",
    "string_type": "text",
    "tuple_type": "a list",
}


def load(path: Path, overrides: Sequence[str] = (), *, environ: Mapping[str, str]) -> RunConfig:
    """The run that a config file and the command line ask for; every path in it is absolute.

    Args:
        path: The YAML file; relative paths, of the command line too, start at its directory.
        overrides: ``key.sub=value`` from the command line, the value in YAML; each takes the key's place whole.
        environ: The host's variables, for ``${VAR}`` and ``~`` in paths.

    Raises:
        ConfigError: The file cannot be read or something in it is wrong; it lists everything that is wrong, each with
            its line and key.
    """
    root = read_mapping(path)
    problems: list[Problem] = []
    for index, override in enumerate(overrides):
        problems += _override(root, override, index=index)
    problems += _superseded(root)
    base = Base(Path.cwd() / path.parent, environ)
    try:
        config = RunConfig.model_validate(root.plain(), context=base)
    except pydantic.ValidationError as error:
        problems += [_problem(root, detail) for detail in error.errors(include_url=False)]
        raise refusal(problems, where=shown(str(path))) from None
    if problems:
        raise refusal(problems, where=shown(str(path)))
    return config


def _override(root: Placed, override: str, *, index: int) -> list[Problem]:
    """Puts one override into the tree; what is wrong with it otherwise."""
    where = Where((1, index), f"command line: {shown(override)}")
    key, equals, text = override.partition("=")
    parts = key.strip().split(".")
    if not equals or not all(parts):
        return [Problem(where, "expected key.sub=value")]
    value, problems = parse(text, at=lambda _line: where)
    if problems:
        return problems
    section = root.value
    for depth, part in enumerate(parts[:-1], start=1):
        inner = section.get(part)
        if inner is None or inner.value is None:
            inner = section[part] = Placed({}, where)
        if not isinstance(inner.value, dict):
            above = _dotted(parts[:depth])
            return [Problem(where, f"{above} is {described(inner.plain())}: nothing can be set below it")]
        section = inner.value
    section[parts[-1]] = value
    return []


def _superseded(root: Placed) -> list[Problem]:
    """What is wrong with keys that have moved; they are taken out of the tree, so that nothing else complains of them."""
    problems = []
    for row in MOVED:
        *above, last = row.path
        sections = [root.value]
        for part in above:
            inner = sections[-1].get(part)
            sections.append(inner.value if inner and isinstance(inner.value, dict) else {})
        if last not in sections[-1]:
            continue
        gone = sections[-1].pop(last)
        problems.append(Problem(gone.where, row.sentence))
        if above == ["pipeline"] and not sections[-1]:
            root.value.pop("pipeline")
    return problems


def _problem(root: Placed, detail: ErrorDetails) -> Problem:
    """A complaint of pydantic, at the place its value was written."""
    key = _dotted(detail["loc"])
    return Problem(root.find(detail["loc"]), _complaint(key, detail))


def _complaint(key: str, detail: ErrorDetails) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "extra_forbidden":
        return f"{key} is not a known key; the nearest is {_nearest(key)}"
    if kind == "missing":
        return f"{key} is required and missing"
    found = described(detail["input"])
    if kind == "value_error":
        return f"{key}: {context['error']}; found {found}"
    expected = _EXPECTED[kind].format(**context) if kind in _EXPECTED else detail["msg"]
    return f"{key}: expected {expected}, found {found}"


def _nearest(key: str) -> str:
    """The known key most like this one, by its whole path or, where only the section is wrong, by its last part."""

    def likeness(known: str) -> tuple[float, float, str]:
        whole = difflib.SequenceMatcher(None, key, known).ratio()
        last = difflib.SequenceMatcher(None, key.rpartition(".")[2], known.rpartition(".")[2]).ratio()
        return max(whole, last * 0.95), whole, known

    return max(map(likeness, known_keys()))[-1]


def _dotted(path: Sequence[Any]) -> str:
    """A key as a person writes it, such as ``environment.read[0]``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += ("." if text else "") + shown(part)
    return text
