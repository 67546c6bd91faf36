"""The method of a learner: its directory and what its ``evolver.yaml`` says. None of its code runs here."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermit.agent.source import compiled
from hermit.config.document import Placed, Problem, described, read_mapping, refusal, shown
from hermit.errors import ConfigError

if TYPE_CHECKING:
    from hermit.config.schema import RunConfig

FILE = "evolver.yaml"
KEYS = ("class", "needs", "params", "description")
NEEDS = ("validation_data", "environment")
SHIPPED = Path(__file__).parent / "methods"


@dataclass(frozen=True, kw_only=True)
class Method:
    """A learner as it is installed.

    Args:
        name: As the config names it.
        directory: Its directory on the host.
        callable_name: Its class, as ``/path/file.py:Name`` or ``package.module:Name``.
        params: Its defaults with the config's ``evolver.params`` over them.
        validation_data: Whether it needs the validation split.
        environment: Whether it needs ``evolver_access.environment``.
        description: What it does, in a sentence.
        code: The file of its class, compiled; empty where a package holds the class.
    """

    name: str
    directory: Path
    callable_name: str
    params: Mapping[str, Any] = field(default_factory=dict, hash=False)
    validation_data: bool = False
    environment: bool = False
    description: str = ""
    code: bytes = field(default=b"", repr=False)

    def refuse_unmet(self, config: RunConfig) -> None:
        """Refuses a run that does not give the method what it needs.

        Raises:
            ConfigError: It needs something that the config does not name.
        """
        access = config.evolver_access.environment
        needed = (
            (self.validation_data and config.data.val is None, "validation data", "data.val"),
            (self.environment and not access, "an environment", "evolver_access.environment"),
        )
        for unmet, what, key in needed:
            if unmet:
                raise ConfigError(f"the learner {self.name} needs {what}", where=key, cure=f"set {key}")

    def at(self, directory: Path) -> str:
        """Its class where the method lies in another directory, as in a copy of it."""
        file, _, name = self.callable_name.rpartition(":")
        if not file.startswith("/"):
            return self.callable_name
        return f"{directory / Path(file).relative_to(self.directory)}:{name}"


def shipped() -> tuple[str, ...]:
    """The names of the methods that come with Hermit."""
    return tuple(sorted(path.parent.name for path in SHIPPED.glob(f"*/{FILE}")))


def load(config: RunConfig) -> Method:
    """The method that ``evolver.name`` names.

    Raises:
        ConfigError: There is none of that name, its ``evolver.yaml`` is wrong, or its class is not to be had.
    """
    name = config.evolver.name
    if name is None:
        cure = f"name one of {', '.join(shipped())}, or a directory with an {FILE}"
        raise ConfigError("a training run needs a learner", where="evolver.name", cure=cure)
    directory = _directory(name)
    file = directory / FILE
    if not file.is_file():
        raise ConfigError(f"{directory} holds no {FILE}", where="evolver.name", cure=f"write {FILE} into it")
    root = read_mapping(file)
    problems = _problems(root)
    if problems:
        raise refusal(problems, where=str(file), cure=f"correct it; an {FILE} has {', '.join(KEYS)}")
    said = root.plain()
    callable_name = _class(said["class"], root.value["class"], directory)
    needs = said.get("needs") or {}
    needed = {key: key in needs if isinstance(needs, list) else needs.get(key, False) for key in NEEDS}
    return Method(
        name=directory.name if "/" in name else name,
        directory=directory,
        callable_name=callable_name,
        params=merged(said.get("params") or {}, config.evolver.params),
        validation_data=needed["validation_data"],
        environment=needed["environment"],
        description=said.get("description") or "",
        code=_code(callable_name, root.value["class"]),
    )


def _directory(name: str) -> Path:
    if "/" in name:
        path = Path(name)
        if not path.is_dir():
            raise ConfigError(f"{name} is no directory", where="evolver.name", cure=f"name one with an {FILE} in it")
        return path
    if name in shipped():
        return SHIPPED / name
    near = difflib.get_close_matches(name, shipped(), n=1, cutoff=0)[0]
    what = f"no learner of the name {shown(name)} comes with Hermit; the nearest is {near}"
    raise ConfigError(what, where="evolver.name", cure=f"write ./{name} for a directory of that name")


def _problems(root: Placed) -> list[Problem]:
    """Everything that is wrong with what an ``evolver.yaml`` says, each at its place."""
    found = []
    for key, value in root.value.items():
        if key not in KEYS:
            near = difflib.get_close_matches(key, KEYS, n=1, cutoff=0)[0]
            found.append(Problem(value.where, f"{shown(key)} is not a known key; the nearest is {near}"))
    if "class" not in root.value:
        found.append(Problem(root.where, "class is required and missing: write file.py:Name"))
    kinds = (("class", str, "text"), ("description", str, "text"), ("params", dict, "a mapping"))
    for key, kind, words in kinds:
        value = root.value.get(key)
        empty = value is not None and value.value is None and key != "class"
        if value is not None and not empty and not isinstance(value.value, kind):
            found.append(Problem(value.where, f"{key}: expected {words}, found {described(value.plain())}"))
    return found + _problems_of_needs(root.value.get("needs"))


def _problems_of_needs(needs: Placed | None) -> list[Problem]:
    """``needs`` is a list of names, or a mapping of names to true and false."""
    if needs is None or needs.value is None:
        return []
    if isinstance(needs.value, dict):
        names = [(key, value.where) for key, value in needs.value.items()]
        flags = [(key, value) for key, value in needs.value.items() if not isinstance(value.value, bool)]
    elif isinstance(needs.value, list):
        names, flags = [(str(item.plain()), item.where) for item in needs.value], []
    else:
        return [Problem(needs.where, f"needs: expected a mapping or a list, found {described(needs.plain())}")]
    found = []
    for name, where in names:
        if name not in NEEDS:
            near = difflib.get_close_matches(name, NEEDS, n=1, cutoff=0)[0]
            found.append(Problem(where, f"needs.{shown(name)} is not a known need; the nearest is {near}"))
    return found + [
        Problem(value.where, f"needs.{shown(key)}: expected true or false, found {described(value.plain())}")
        for key, value in flags
    ]


def _class(text: str, placed: Placed, directory: Path) -> str:
    """The class as a worker finds it: a file of the method's own directory, or a module."""
    place, _, name = text.rpartition(":")
    cure = "write file.py:Name, a file below the method's directory, or package.module:Name"
    if not name.isidentifier() or not place:
        raise ConfigError(f"class: {described(text)} names no class", where=placed.where.text, cure=cure)
    if not place.endswith(".py"):
        if not all(part.isidentifier() for part in place.split(".")):
            raise ConfigError(f"class: {described(text)} names no class", where=placed.where.text, cure=cure)
        return text
    if place.startswith("/") or ".." in place.split("/"):
        raise ConfigError(f"class: {place} leads out of {directory}", where=placed.where.text, cure=cure)
    file = directory / place
    if not file.resolve().is_relative_to(directory.resolve()):
        raise ConfigError(f"class: {file} leads out of {directory}", where=placed.where.text, cure=cure)
    return f"{file}:{name}"


def _code(callable_name: str, placed: Placed) -> bytes:
    file, _, name = callable_name.rpartition(":")
    if not file.startswith("/"):
        return b""
    where = placed.where.text
    try:
        code, data = compiled(file)
    except OSError as error:
        raise ConfigError(
            f"{file} cannot be read: {error.strerror}", where=where, cure="name an existing file"
        ) from None
    except (SyntaxError, ValueError) as error:
        raise ConfigError(f"{file} is not Python: {error}", where=where, cure="correct the file") from None
    if name not in code.co_names:
        raise ConfigError(f"{file} defines no {name}", where=where, cure=f"define `{name}` in it, or name another")
    return data


def merged(defaults: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The defaults with what was given over them; a mapping is merged with a mapping, all else takes its place whole."""
    found = dict(defaults)
    for key, value in given.items():
        before = found.get(key)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            found[key] = merged(before, value)
        else:
            found[key] = value
    return found
