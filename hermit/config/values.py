"""What a single setting may look like: each kind of value as a type that pydantic checks.

A check that fails raises ``ValueError`` with what was expected; the loader adds the place and what was found.
"""

import os
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, Strict, ValidationInfo

from hermit.domain.sandbox import PATTERN


@dataclass(frozen=True)
class Base:
    """Against what paths are resolved: the config file's directory, absolute, and the variables of the host."""

    directory: Path
    environ: Mapping[str, str]


def resolved(text: str, base: Base) -> str:
    """The absolute, normal form of a path as a config spells it; links are not followed.

    Raises:
        ValueError: It is empty, holds a NUL byte, or asks for a variable or a home directory that is not known.
    """
    if not text or "\0" in text:
        raise ValueError("expected a path that is not empty and holds no NUL byte")
    head, slash, rest = text.partition("/")
    if head.startswith("~") and head != "~":
        raise ValueError(f"{head} is no path: ~ alone is the home directory; write ./{head} for a file of that name")

    def expanded(part: str) -> str:
        return re.sub(r"\$\{([^}]*)\}", lambda match: _variable(match[1], base.environ), part)

    start = _variable("HOME", base.environ) if head == "~" else expanded(head)
    joined = posixpath.join(base.directory, start + slash + expanded(rest))
    return "/" + posixpath.normpath(joined).lstrip("/")


def _variable(name: str, environ: Mapping[str, str]) -> str:
    value = environ.get(name, "")
    if not value:
        raise ValueError(f"the environment variable {name!r} is not set or is empty")
    return value


def _path(value: object, info: ValidationInfo) -> Path:
    if not isinstance(value, str | os.PathLike):
        raise ValueError("expected a path")  # noqa: TRY004 - pydantic turns a ValueError alone into a complaint
    text = os.fspath(value)
    if not isinstance(text, str):
        raise ValueError("expected a path")  # noqa: TRY004
    return Path(resolved(text, info.context) if isinstance(info.context, Base) else text)


def _callable(value: str, info: ValidationInfo) -> str:
    """``file.py:Name`` with an absolute file, ``package.module:Name`` or a plain name as they are."""
    place, colon, name = value.rpartition(":")
    if not colon:
        return value
    if not name.isidentifier():
        raise ValueError("expected file.py:Name or package.module:Name, where Name is a Python name")
    if place.endswith(".py"):
        return f"{resolved(place, info.context)}:{name}" if isinstance(info.context, Base) else value
    if not all(part.isidentifier() for part in place.split(".")):
        raise ValueError("expected file.py:Name or package.module:Name")
    return value


def _name_or_directory(value: str, info: ValidationInfo) -> str:
    """A name as it is; what has a slash, or starts with a dot, ``~`` or ``${``, is a directory."""
    if ("/" in value or value.startswith((".", "~", "${"))) and isinstance(info.context, Base):
        return resolved(value, info.context)
    return value


def names_callable(value: str) -> bool:
    """Whether this names a callable, and no directory."""
    _, colon, name = value.rpartition(":")
    return bool(colon) and name.isidentifier()


def _baseline(value: str, info: ValidationInfo) -> str:
    """``file.py:Name`` or ``package.module:Name``; anything else is a directory."""
    if names_callable(value):
        return _callable(value, info)
    return resolved(value, info.context) if isinstance(info.context, Base) else value


def _collected(value: str) -> str:
    if value.startswith("/") or "\0" in value or ".." in value.split("/"):
        raise ValueError("expected a path relative to the agent's work directory, without '..'")
    return posixpath.normpath(value)


def _variable_pattern(value: str) -> str:
    if not PATTERN.match(value) or not value.strip("*_"):
        raise ValueError("expected the name of a variable or a pattern such as MWM_*")
    return value


def _host(value: str) -> str:
    name = value.removeprefix("*.")
    if not re.fullmatch(r"[A-Za-z0-9_.:\[\]-]+", name) or (name != value and "." not in name.strip(".")):
        raise ValueError("expected a host such as api.example.org or *.example.org, without scheme or path")
    return value


def _image(value: str) -> str:
    # A leading dash would be read as an option by the engine's command line.
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._:/@-]*", value):
        raise ValueError("expected an image reference such as debian:12 or registry.example.org/team/image@sha256:...")
    return value


def _model_reference(value: str) -> str:
    backend, slash, model = value.partition("/")
    if not (slash and backend.strip() and model.strip()):
        raise ValueError("expected <backend>/<model id>, such as openai/gpt-5")
    return value


def _reference_or_mapping(value: object) -> object:
    if isinstance(value, Mapping):
        return value
    if isinstance(value, str):
        return _model_reference(value)
    raise ValueError("expected <backend>/<model id> or a mapping")


def _run_name(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,79}", value):
        raise ValueError("expected at most 80 letters, digits, '.', '_' and '-', not starting with '.' or '-'")
    return value


def _python_name(value: str) -> str:
    if not value.isidentifier():
        raise ValueError("expected a Python name")
    return value


Text = Annotated[str, Strict(), Field(min_length=1)]
Flag = Annotated[bool, Strict()]
Whole = Annotated[int, Strict()]
Count = Annotated[int, Strict(), Field(ge=1)]
Number = Annotated[float, Strict(), Field(allow_inf_nan=False)]
Amount = Annotated[float, Strict(), Field(gt=0, allow_inf_nan=False)]
ConfigPath = Annotated[Path, BeforeValidator(_path)]
Callable = Annotated[Text, AfterValidator(_callable)]
Baseline = Annotated[Text, AfterValidator(_baseline)]
NameOrDirectory = Annotated[Text, AfterValidator(_name_or_directory)]
Collected = Annotated[Text, AfterValidator(_collected)]
VariablePattern = Annotated[Text, AfterValidator(_variable_pattern)]
Host = Annotated[Text, AfterValidator(_host)]
Image = Annotated[Text, AfterValidator(_image)]
Free = Mapping[str, Any]
PythonName = Annotated[Text, AfterValidator(_python_name)]
RunName = Annotated[Text, AfterValidator(_run_name)]
ModelReference = Annotated[Text, AfterValidator(_model_reference)]
# One check in front of the union: pydantic would complain once for each of its members.
ReferenceOrMapping = Annotated[str | Free, BeforeValidator(_reference_or_mapping)]
