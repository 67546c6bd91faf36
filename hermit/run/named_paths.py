"""The paths that a learner names when it calls a tool: what each is on the host, or why it is nothing that can be named.

A path is a place inside the learner's sandbox. It is resolved by what the sandbox shows, and nothing else can be named. What a
tool of the trainer's works on is a copy, made by descriptor at the moment of the call: the learner goes on working
meanwhile, and could swap anything for a link.
"""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING, Any

from hermit import untrusted
from hermit.agent.result import Failure
from hermit.domain.bind import contains
from hermit.handoff import budget
from hermit.handoff.collect import collect
from hermit.untrusted import Kind

if TYPE_CHECKING:
    from hermit.domain.sandbox import Sandbox
    from hermit.run.served import Served

# What a tool of the trainer's works on is an adapter, or a few files; a learner may call sixteen at once.
MOST = budget.Budget(entries=20_000, bytes=512 * budget.MIB, apparent_bytes=budget.GIB, depth=64)


class Refused(Exception):
    """What a tool was given is refused, with what the learner is told.

    Args:
        cause: ``argument`` or ``path``.
        words: Why, on one line.
    """

    def __init__(self, cause: str, words: str) -> None:
        super().__init__(words)
        self.failure = Failure(cause, words[:2000])


def resolved(tool: Served, argument: dict[str, Any], sandbox: Sandbox, *, copies: str) -> dict[str, Any]:
    """The argument with each path in it as one of the host: a copy, or its place.

    Raises:
        Refused: One is not in the learner's view, or cannot be copied.
    """
    found, numbers = dict(argument), itertools.count()
    for name, schema in tool.takes.get("properties", {}).items():
        value = argument.get(name)
        if schema.get("format") == "path" and isinstance(value, str):
            found[name] = _host_path(tool, value, sandbox, f"{copies}/{next(numbers)}")
        elif schema.get("items", {}).get("format") == "path" and isinstance(value, list):
            found[name] = [
                _host_path(tool, each, sandbox, f"{copies}/{next(numbers)}") for each in value if isinstance(each, str)
            ]
    return found


def _host_path(tool: Served, path: str, sandbox: Sandbox, into: str) -> str:
    outside = sandbox.outside(path)
    if outside is None:
        raise Refused("path", f"{path!r:.200} is nothing that {tool.name} can be given: it is not in your view")
    if not tool.copies:
        return outside
    source = max((bind.source for bind in sandbox.mounts if contains(bind.source, outside)), key=len)
    rest = os.path.relpath(outside, source)
    os.mkdir(into, 0o700)
    try:
        if rest == "." and _is_file(source):  # of evolver_access.environment
            source, rest = os.path.split(source)
        copied = collect(source, [rest], into=into, limits=MOST)
    except budget.TooMuch as error:
        raise Refused("path", f"{path!r:.200} is more than {tool.name} can be given: {error}") from None
    except untrusted.Refused as refused:
        raise Refused("path", f"{path!r:.200} cannot be read: {refused.reason}") from None
    if copied.missing:
        raise Refused("path", f"{path!r:.200} does not exist, or is a link")
    return into if rest == "." else f"{into}/{rest}"


def _is_file(path: str) -> bool:
    try:
        with untrusted.directory(path):
            return False
    except untrusted.Refused as refused:
        return refused.reason == Kind.FILE.value
