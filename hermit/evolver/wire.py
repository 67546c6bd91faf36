"""What crosses the wall of the learner's sandbox as JSON: its context on the way in, its results on the way out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hermit.domain.network import Forward, Network
from hermit.domain.pathmap import Layout
from hermit.domain.sandbox import Enforce, Sandbox
from hermit.evolver.base import Access, Context, FinalResult, Progress, StepResult, Workspace
from hermit.evolver.tools import Cancel, Tool, Tools

# A session and an extra are handed on by the host, in every context that follows.
MOST_RESULT = 4 * 1024 * 1024


def context(document: dict[str, Any]) -> Context:
    """What a call is given, from what the host wrote."""
    url = document["tool_url"]
    access = document["access"]
    progress = document["progress"]
    return Context(
        workspace=Workspace(**{name: Path(path) for name, path in document["workspace"].items()}),
        access=Access(
            validation=None if access["validation"] is None else Path(access["validation"]),
            environment={name: Path(path) for name, path in access["environment"].items()},
        ),
        tools=Tools(Tool(url=url, **said) for said in document["tools"]),
        params=document["params"],
        message=document["message"],
        sandbox=_around(document["sandbox"]),
        cancel=Cancel(url, left_s=document["left_s"]),
        tool_url=url,
        base=Path(document["base"]),
        progress=None if progress is None else Progress(**progress),
        session=document["session"],
    )


def _around(document: dict[str, Any]) -> Sandbox:
    """The sandbox around a call as it is seen from inside, where every path is at its own place."""
    root = document["root"]
    return Sandbox(
        role="evolver",
        read=tuple(document["read"]),
        write=tuple(document["write"]),
        cwd=root,
        network=Network(document["network"]),
        allowed_hosts=tuple(document["allowed_hosts"]),
        forwards=tuple(Forward(port) for port in document["ports"]),
        env=tuple(document["env"].items()),
        env_allow=tuple(document["env_allow"]),
        framework=document["framework"],
        hide=tuple(document["hide"]),
        layout=Layout(root, root),
        enforce=Enforce(document["enforce"]),
    )


def written(result: StepResult | FinalResult | None) -> dict[str, Any]:
    """A result as it leaves the sandbox."""
    return {"result": None if result is None else dict(vars(result))}


def step_result(document: Any) -> StepResult | None:
    """The result of a step, or of a bootstrap that may have none, from what somebody else's code handed back.

    Raises:
        TypeError: It has another shape.
        ValueError: A value in it is out of its bounds.
    """
    fields = _fields(document, StepResult)
    return None if fields is None else StepResult(**fields)


def final_result(document: Any) -> FinalResult | None:
    """The result at the end of the run, in the same way."""
    fields = _fields(document, FinalResult)
    return None if fields is None else FinalResult(**fields)


def _fields(document: Any, kind: type[StepResult | FinalResult]) -> dict[str, Any] | None:
    if not isinstance(document, dict) or set(document) != {"result"}:
        raise TypeError("a learner's call hands back one object with its result")
    fields = document["result"]
    if fields is None:
        return None
    if not isinstance(fields, dict):
        raise TypeError(f"a {kind.__name__} is an object, not {type(fields).__name__}")
    unknown = set(fields) - set(kind.__dataclass_fields__)
    if unknown:
        raise TypeError(f"{kind.__name__} has no field {min(unknown)!r:.60}")
    return fields
