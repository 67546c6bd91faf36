"""A sandbox as other programs write it: JSON, checked field by field."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from hermit.domain.bind import Bind
from hermit.domain.limits import Limits
from hermit.domain.network import Network
from hermit.domain.sandbox import Enforce, Sandbox

# Fields of the specification that are refused until they work whole.
LATER = ("hide", "packages", "ports", "sockets", "layout", "allowed_hosts")


def sandbox(document: Any) -> Sandbox:
    """A sandbox from its JSON form: the fields of :class:`Sandbox` by name.

    Raises:
        TypeError: A field is unknown or has the wrong type.
        ValueError: A field has a value that no sandbox has.
        NotImplementedError: The field belongs to the specification and is not supported yet.
    """
    if not isinstance(document, dict):
        raise TypeError(f"a sandbox is an object, not {type(document).__name__}")
    known = {field.name for field in fields(Sandbox)}
    for name in document:
        if name in LATER:
            raise NotImplementedError(f"{name!r} is not supported yet")
        if name not in known:
            raise TypeError(f"a sandbox has no field {name!r}; it has {', '.join(sorted(known))}")
    given: dict[str, Any] = dict(document)
    for name in ("read", "write", "env_allow", "probes"):
        if name in given:
            given[name] = _texts(given[name], name)
    if "binds" in given:
        given["binds"] = tuple(_bind(value) for value in _typed(given["binds"], list, "binds"))
    if "env" in given:
        pairs = _typed(given["env"], dict, "env")
        given["env"] = tuple(zip(pairs, _texts(list(pairs.values()), "env"), strict=True))
    if "limits" in given:
        given["limits"] = Limits(**_typed(given["limits"], dict, "limits"))
    if "network" in given:
        given["network"] = Network(given["network"])
    if "enforce" in given:
        given["enforce"] = Enforce(given["enforce"])
    for name in ("role", "cwd"):
        _typed(given.get(name, ""), str, name)
    return Sandbox(**given)


def _bind(value: Any) -> Bind:
    document = _typed(value, dict, "binds")
    try:
        return Bind(**document)
    except AttributeError:
        raise TypeError("a bind has a source and a target, both text") from None


def _texts(value: Any, name: str) -> tuple[str, ...]:
    return tuple(_typed(item, str, name) for item in _typed(value, list, name))


def _typed(value: Any, kind: type, name: str) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{name!r} takes {kind.__name__}, not {type(value).__name__}")
    return value
