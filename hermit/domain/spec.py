"""A sandbox as other programs write it: JSON, checked field by field against the schema that is published."""

from __future__ import annotations

import difflib
import functools
import json
import re
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from hermit.domain import schema
from hermit.domain.bind import Bind
from hermit.domain.limits import Limits
from hermit.domain.network import Forward, Network
from hermit.domain.pathmap import Layout
from hermit.domain.sandbox import Enforce, Sandbox

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermit.domain.schema import Schema

MOST_TOLD = 60
KINDS: dict[str, tuple[type, ...]] = {
    "array": (list,),
    "boolean": (bool,),
    "null": (type(None),),
    "number": (int, float),
    "object": (dict,),
    "string": (str,),
}
# A field of the value that has two names in JSON.
ASIDE = {"forwards": "ports"}
TOLD = {dict: "an object", list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}


class Conflict(ValueError):
    """Fields that no schema can compare: each is right alone, and they cannot be together."""


def parsed(data: bytes) -> Sandbox:
    """A sandbox from the bytes of a JSON text.

    Raises:
        ValueError: They are no JSON, name a field twice, or describe no sandbox; see :func:`sandbox`.
    """
    try:
        document = json.loads(data.decode(), object_pairs_hook=_once, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    return sandbox(document)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for name, value in pairs:
        if name in document:
            raise ValueError(f"{name!r:.{MOST_TOLD}} is given twice in one object")
        document[name] = value
    return document


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def sandbox(document: Any) -> Sandbox:
    """A sandbox from its JSON form: the fields of :class:`Sandbox` by name.

    Raises:
        ValueError: A field is unknown, missing or wrong. The message is one line: the field, what was expected, and
            the nearest field there is.
        Conflict: The fields cannot be together.
    """
    whole = _schema()
    _check(document, whole, "")
    if document.get("network") == Network.OPEN.value:
        for name in schema.ISOLATED_ONLY:
            if document.get(name):
                raise ValueError(f"{name}: expected nothing beside an open network, which reaches what its place does")
    given, forwards = _given(document)
    twice = {str(forward.port) for forward in forwards if forward.socket} & {
        str(forward.port) for forward in forwards if not forward.socket
    }
    if twice:
        raise Conflict(f"sockets.{min(twice)}: the port is among the 'ports' already, and leads to one service")
    try:
        return Sandbox(**given, forwards=forwards)
    except ValueError as error:
        raise Conflict(f"read, write, binds: {error}") from None


def document(sandbox: Sandbox) -> dict[str, Any]:
    """The JSON form of a sandbox, whole: :func:`restored` makes the same one of it."""
    forwards = sandbox.forwards
    plain = {field.name: getattr(sandbox, field.name) for field in fields(sandbox) if field.name != "forwards"}
    return {
        **plain,
        "binds": [vars(bind) for bind in sandbox.binds],
        "network": sandbox.network.value,
        "ports": [forward.port for forward in forwards if not forward.socket],
        "sockets": {str(forward.port): forward.socket for forward in forwards if forward.socket},
        "env": dict(sandbox.env),
        "limits": vars(sandbox.limits),
        "layout": sandbox.layout and vars(sandbox.layout),
        "enforce": sandbox.enforce.value,
    }


def restored(document: dict[str, Any]) -> Sandbox:
    """The sandbox of a document that :func:`document` made; nothing but the values themselves is checked again.

    Raises:
        ValueError: It was changed on the way.
    """
    given, forwards = _given(document)
    return Sandbox(**given, forwards=forwards)


def _given(document: dict[str, Any]) -> tuple[dict[str, Any], tuple[Forward, ...]]:
    given = {name: MADE.get(name, _same)(value) for name, value in document.items()}
    return given, (*given.pop("ports", ()), *given.pop("sockets", ()))


@functools.cache
def _schema() -> Schema:
    return schema.schema()


def _check(value: Any, expected: Schema, where: str) -> None:
    """Compares a value with its schema, the outer parts first.

    Raises:
        ValueError: It is something else.
    """
    if not _fits(value, expected):
        told = TOLD.get(type(value), "null") if expected.get("writeOnly") else _told(value)
        raise ValueError(f"{where or 'a sandbox'}: expected {expected['title']}; found {told}")
    if isinstance(value, list):
        for number, item in enumerate(value):
            _check(item, expected["items"], f"{where}[{number}]")
        if expected.get("uniqueItems") and len(set(value)) < len(value):
            raise ValueError(f"{where}: expected each item once; found {_told(value)}")
    elif isinstance(value, dict):
        _check_names(value, expected, where)
        for name, inner in value.items():
            own = expected.get("properties", {}).get(name, expected.get("additionalProperties"))
            _check(inner, own, _below(where, name))


def _check_names(value: dict[str, Any], expected: Schema, where: str) -> None:
    properties, names = expected.get("properties", {}), expected.get("propertyNames")
    for name in value:
        if names is not None and not re.search(names["pattern"], name):
            raise ValueError(f"{_below(where, name)}: expected {names['title']}; found {name!r:.{MOST_TOLD}}")
        if names is None and name not in properties:
            near = ASIDE.get(name, "")
            if near not in properties:
                near = difflib.get_close_matches(name, properties, n=1, cutoff=0)[0]
            takes = properties[near]["title"]
            raise ValueError(f"{_below(where, name)}: no such field; the nearest is {near!r}, which takes {takes}")
    for name in expected.get("required", ()):
        if name not in value:
            raise ValueError(f"{_below(where, name)}: expected {properties[name]['title']}; found nothing")


def _fits(value: Any, expected: Schema) -> bool:
    """Whether a value itself, without what it holds, is as expected."""
    kinds = expected["type"] if isinstance(expected["type"], list) else [expected["type"]]
    if not any(_is(value, kind) for kind in kinds):
        return False
    if "enum" in expected and value not in expected["enum"]:
        return False
    if isinstance(value, str):
        return "pattern" not in expected or re.search(expected["pattern"], value) is not None
    if isinstance(value, int | float) and not isinstance(value, bool):
        above = value > expected["exclusiveMinimum"] if "exclusiveMinimum" in expected else value >= expected["minimum"]
        return bool(above and value <= expected["maximum"])
    return True


def _is(value: Any, kind: str) -> bool:
    if kind == "integer":  # 64.0 is one in JSON
        return _is(value, "number") and value == value // 1
    return isinstance(value, KINDS[kind]) and (kind == "boolean" or not isinstance(value, bool))


def _below(where: str, name: str) -> str:
    plain = re.fullmatch(r"\w{1,60}", name) is not None
    if plain:
        return f"{where}.{name}" if where else name
    return f"{where}[{name!r:.{MOST_TOLD}}]"


def _told(value: Any) -> str:
    """A value on one line, cut where it is long."""
    words = {None: "null", True: "true", False: "false"}
    if value is None or isinstance(value, bool):
        return words[value]
    return f"{value!r:.{MOST_TOLD}}"


def _same(value: Any) -> Any:
    return value


def _bounds(value: dict[str, Any]) -> Limits:
    return Limits(
        **{name: int(bound) if name != "wall_s" and bound is not None else bound for name, bound in value.items()}
    )


# How a checked value becomes the field's; what is not named here is the field's already.
MADE: dict[str, Callable[[Any], Any]] = {
    "read": tuple,
    "write": tuple,
    "binds": lambda value: tuple(Bind(**each) for each in value),
    "network": Network,
    "allowed_hosts": tuple,
    "ports": lambda value: tuple(Forward(int(port)) for port in value),
    "sockets": lambda value: tuple(Forward(int(port), path) for port, path in value.items()),
    "env": lambda value: tuple(value.items()),
    "env_allow": tuple,
    "limits": _bounds,
    "probes": tuple,
    "packages": tuple,
    "hide": tuple,
    "layout": lambda value: value and Layout(**value),
    "enforce": Enforce,
}
