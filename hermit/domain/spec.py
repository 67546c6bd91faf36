"""A sandbox as other programs write it: JSON, checked field by field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermit.domain.bind import Bind
from hermit.domain.limits import Limits
from hermit.domain.network import Forward, Network
from hermit.domain.pathmap import Layout
from hermit.domain.sandbox import Enforce, Sandbox

if TYPE_CHECKING:
    from collections.abc import Callable


def sandbox(document: Any) -> Sandbox:
    """A sandbox from its JSON form: the fields of :class:`Sandbox` by name.

    Raises:
        TypeError: A field is unknown or has the wrong type.
        ValueError: A field has a value that no sandbox has.
    """
    if not isinstance(document, dict):
        raise TypeError(f"a sandbox is an object, not {type(document).__name__}")
    for name in document:
        if name not in READERS:
            raise TypeError(f"a sandbox has no field {name!r}; it has {', '.join(sorted(READERS))}")
    given = {name: READERS[name](value, name) for name, value in document.items()}
    forwards = (*given.pop("ports", ()), *given.pop("sockets", ()))
    return Sandbox(**given, forwards=forwards)


def _binds(value: Any, name: str) -> tuple[Bind, ...]:
    return tuple(_bind(item, name) for item in _typed(value, list, name))


def _bind(value: Any, name: str) -> Bind:
    document = _typed(value, dict, name)
    _typed(document.get("writable", False), bool, "writable")
    try:
        return Bind(**document)
    except AttributeError:
        raise TypeError("a bind has a source and a target, both text") from None


def _ports(value: Any, name: str) -> tuple[Forward, ...]:
    return tuple(Forward(port) for port in _typed(value, list, name))


def _sockets(value: Any, name: str) -> tuple[Forward, ...]:
    pairs = _typed(value, dict, name)
    if not all(port.isdecimal() for port in pairs):
        raise TypeError(f"{name!r} takes ports with the path of a socket each")
    return tuple(Forward(int(port), _typed(path, str, name)) for port, path in pairs.items())


def _layout(value: Any, name: str) -> Layout:
    document = _typed(value, dict, name)
    try:
        return Layout(**document)
    except AttributeError:
        raise TypeError("a layout has an outside and an inside root, both text") from None


def _env(value: Any, name: str) -> tuple[tuple[str, str], ...]:
    pairs = _typed(value, dict, name)
    return tuple(zip(pairs, _texts(list(pairs.values()), name), strict=True))


def _texts(value: Any, name: str) -> tuple[str, ...]:
    return tuple(_typed(item, str, name) for item in _typed(value, list, name))


def _typed(value: Any, kind: type, name: str) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{name!r} takes {kind.__name__}, not {type(value).__name__}")
    return value


# How each field is read; what has no reader is no field.
READERS: dict[str, Callable[[Any, str], Any]] = {
    "role": lambda value, name: _typed(value, str, name),
    "read": _texts,
    "write": _texts,
    "binds": _binds,
    "cwd": lambda value, name: _typed(value, str, name),
    "network": lambda value, _: Network(value),
    "allowed_hosts": _texts,
    "ports": _ports,
    "sockets": _sockets,
    "env": _env,
    "env_allow": _texts,
    "limits": lambda value, name: Limits(**_typed(value, dict, name)),
    "probes": _texts,
    "packages": _texts,
    "hide": _texts,
    "layout": _layout,
    "framework": lambda value, name: _typed(value, bool, name),
    "enforce": lambda value, _: Enforce(value),
}
