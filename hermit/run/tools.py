"""Declared tools: what they say of themselves, and a call of one, with everything that crosses the wall checked."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from hermit.agent.result import Failure, handed_back
from hermit.domain import codec
from hermit.errors import ConfigError
from hermit.roles import tool as tool_role
from hermit.roles.tool import Tool

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hermit.domain.record import Record
    from hermit.domain.sandbox import Sandbox
    from hermit.sandbox import Place

MOST_ARGUMENT = 1024 * 1024
LONGEST_S = 24 * 60 * 60
FIELDS = {"takes", "gives", "timeout_s"}
NOT_INSTALLED = "jsonschema checks what tools are given and return, and is not installed"


def declared(callable_name: str, *, key: str) -> Tool:
    """A tool by its callable ``/path/file.py:name``, with what the file ``file.tools.json`` beside it says of it.

    That file is an object of ``{name: {takes, gives, timeout_s}}``: two JSON Schemas and seconds. What it leaves out takes
    any object, gives anything, and has a minute.

    Raises:
        ConfigError: The file is not there, or what it says of the tool is no such object.
    """
    file, _, name = callable_name.rpartition(":")
    if not os.path.isfile(file):
        raise ConfigError(f"{file or callable_name} is no file", where=key, cure="name a tool as file.py:function")
    said = _said(f"{file.removesuffix('.py')}.tools.json").get(name, {})
    where = f"{file.removesuffix('.py')}.tools.json: {name}"
    if not isinstance(said, dict) or not set(said) <= FIELDS:
        raise ConfigError(f"a tool says {', '.join(sorted(FIELDS))}", where=where, cure="correct the file")
    takes, gives = said.get("takes", {"type": "object"}), said.get("gives", {})
    for schema in (takes, gives):
        _refuse_schema(schema, where)
    timeout_s = said.get("timeout_s", tool_role.TIMEOUT_S)
    if isinstance(timeout_s, bool) or not isinstance(timeout_s, int | float) or not 0 < timeout_s <= LONGEST_S:
        raise ConfigError(f"timeout_s is a number up to {LONGEST_S}", where=where, cure="correct the file")
    return Tool(file=file, name=name, takes=takes, gives=gives, timeout_s=float(timeout_s))


def _said(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            document = json.loads(file.read())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"it cannot be read: {error}", where=path, cure="write JSON into it") from None
    if not isinstance(document, dict):
        raise ConfigError("it is no object", where=path, cure='write {"tool": {"takes": {...}, "gives": {...}}}')
    return document


def call(
    tool: Tool,
    argument: Any,
    *,
    place: Place,
    sandbox: Sandbox,
    keep: Callable[[Record], None],
    cancel: int | None = None,
) -> dict[str, Any] | Failure:
    """Calls a tool in its sandbox: ``{"returned": value}``, or how the call failed.

    Raises:
        SandboxError: The sandbox failed.
        Interrupted: ``cancel`` became readable.
        ConfigError: The library that checks schemas is not installed.
    """
    wrong = unfit(argument, tool.takes)
    if wrong:
        return Failure("argument", f"{tool.name} cannot take it: {wrong}")
    try:
        size = len(codec.dump(argument))
    except (TypeError, ValueError) as error:
        return Failure("argument", f"what {tool.name} is given is no JSON: {error}")
    if size > MOST_ARGUMENT:
        return Failure("argument", f"{tool.name} is given {size} bytes; {MOST_ARGUMENT} are passed on")
    command = tool_role.command(tool, argument)
    value = handed_back(command, place.run(sandbox, command, keep=keep, cancel=cancel))
    if isinstance(value, Failure):
        return value
    wrong = unfit(value.get("returned"), tool.gives)
    return Failure("result", f"{tool.name} returned something else: {wrong}") if wrong else value


def unfit(value: Any, schema: Mapping[str, Any]) -> str:
    """Why a value does not fit a schema, on one line; empty where it does. Nothing is ever fetched for a schema."""
    if not schema:
        return ""
    jsonschema, registry = _library()
    try:
        found = next(jsonschema.Draft202012Validator(schema, registry=registry).iter_errors(value), None)
    except Exception as error:  # noqa: BLE001 - a reference that leads nowhere has a class of another library
        return f"its schema cannot be used: {type(error).__name__}"
    if found is None:
        return ""
    return f"{found.json_path}: {found.message}"[:500]


def _refuse_schema(schema: Any, where: str) -> None:
    jsonschema, _ = _library()
    if not isinstance(schema, dict):
        raise ConfigError("a schema is an object", where=where, cure="write it as JSON Schema")
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        what = f"it is no JSON Schema: {error.message}"[:300]
        raise ConfigError(what, where=where, cure="write it as JSON Schema, draft 2020-12") from None


def _library() -> tuple[Any, Any]:
    """The library, and a registry of schemas that fetches none."""
    try:
        import jsonschema  # type: ignore[import-untyped]  # noqa: PLC0415 - an extra, which only declared tools need
        import referencing  # noqa: PLC0415
    except ImportError:
        raise ConfigError(NOT_INSTALLED, cure="pip install 'hermit-oci[tools]'") from None
    return jsonschema, referencing.Registry()
