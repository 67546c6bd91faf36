"""A template: the first version of an adapter, which says what every later one may be."""

from __future__ import annotations

import ast
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hermit import untrusted
from hermit.adapter import files as adapter_files
from hermit.adapter import formats, manifest
from hermit.adapter.exports import exported
from hermit.adapter.files import Files
from hermit.config.document import refusal
from hermit.errors import ConfigError

if TYPE_CHECKING:
    from hermit.adapter.manifest import Manifest

# The templates that come with Hermit lie beside this file, each in a directory of its id.
SHIPPED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "templates")
BYTECODE = "__pycache__"
CURE = "correct the template"


@dataclass(frozen=True)
class Template:
    """A template.

    Args:
        manifest: What it says.
        files: What it holds.
        source: Where it was read, for a person.
    """

    manifest: Manifest
    files: Files
    source: str = ""


def shipped() -> tuple[str, ...]:
    """The ids of the templates that come with Hermit."""
    with untrusted.directory(SHIPPED) as here:
        listed = untrusted.entries(here, most=1000)
    return tuple(name for name, kind in listed if kind is untrusted.Kind.DIRECTORY and name != BYTECODE)


def named(name: str, *, key: str = "template") -> Template:
    """A template by its name: a directory, where the name holds a ``/``, or ``id[@version]`` of one that comes with Hermit.

    Raises:
        ConfigError: There is none, it has another version, or it is broken.
    """
    if "/" in name:
        return load(os.path.realpath(name), key=key)
    wanted, _, version = name.partition("@")
    if wanted not in shipped():
        raise ConfigError(
            f"there is no template {wanted!r}",
            where=key,
            cure=f"name one of {', '.join(shipped())}, or a directory with a / in it",
        )
    found = load(os.path.join(SHIPPED, wanted), key=key)
    if version and version != found.manifest.template.version:
        raise ConfigError(
            f"the template {wanted} is here in version {found.manifest.template.version}, not {version}",
            where=key,
            cure=f"name {wanted}@{found.manifest.template.version}, or a directory that holds the other one",
        )
    return found


def load(directory: str, *, key: str = "template") -> Template:
    """The template that a directory holds.

    Raises:
        ConfigError: It cannot be read, or breaks a rule of its own; the message names each that it breaks.
    """
    try:
        reading = adapter_files.read(directory)
    except OSError as error:
        reason = error.reason if isinstance(error, untrusted.Refused) else error.strerror
        raise ConfigError(f"{directory} cannot be read: {reason}", where=key, cure="name a directory") from None
    dropped = [each for each in reading.dropped if each.path.split("/")[-1] != BYTECODE]
    kept = {path: file for path, file in reading.files.by_path.items() if BYTECODE not in path.split("/")}
    return of_files(Files(kept), source=directory, dropped=[(each.path, each.reason) for each in dropped])


def of_files(files: Files, *, source: str, dropped: list[tuple[str, str]] | None = None) -> Template:
    """The template that these files are.

    Raises:
        ConfigError: They break a rule of their own; the message names each that they break.
    """
    where = os.path.join(source, manifest.FILE)
    data = files.get(manifest.FILE)
    if data is None:
        raise ConfigError(f"it is no template: it has no {manifest.FILE}", where=source, cure="write one")
    found, problems = manifest.read(data, name=where)
    if found is None:
        raise refusal(list(problems), where=where, cure=CURE)
    wrong = [*(dropped or ()), *_broken(files, found)]
    if wrong:
        lines = "".join(f"\n  {path}: {reason}" for path, reason in wrong[:20])
        raise ConfigError(f"the template breaks its own rules{lines}", where=source, cure=CURE)
    return Template(found, files, source)


def _broken(files: Files, found: Manifest) -> list[tuple[str, str]]:
    """What a template itself gets wrong: a path, and why."""
    structure = found.structure
    wrong = [(path, adapter_files.UNDER_NO_RULE) for path in files.paths if not structure.holds(path)]
    for path in files.paths:
        rule = structure.rule(path)
        reason = formats.unfit(files.by_path[path].data, rule.format) if rule else ""
        wrong += [(path, reason)] if reason else []
    for key, name in (("check", found.check), *(("evolver_tools", tool) for tool in found.evolver_tools)):
        wrong += _broken_callable(files, found, key=key, name=name) if name else []
    return wrong + list(exported(files, found.exports).problems)


def _broken_callable(files: Files, found: Manifest, *, key: str, name: str) -> list[tuple[str, str]]:
    """A template's own code has to be there, and out of a learner's reach."""
    path, _, function = name.rpartition(":")
    text = formats.as_text(files.get(path) or b"\0")
    if text is None:
        return [(path, f"{key} names it, and it is no text that is there")]
    if not found.structure.is_fixed(path):
        return [(path, f"{key} names it, and it is not fixed")]
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError) as error:
        return [(path, f"it is not Python: {error}")]
    defined = any(isinstance(node, ast.FunctionDef) and node.name == function for node in body)
    return [] if defined else [(path, f"{key} names {function}, which it does not define")]
