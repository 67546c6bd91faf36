"""What somebody who knows the benchmark knows: the names it asks for, and where its answers lie. Found out by the host."""

from __future__ import annotations

import keyword
import os
import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from hermit import untrusted
from hermit.roles import task as task_role
from hermit.untrusted import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from hermit.config.tasks import Task
    from hermit.run.plan import EvalPlan

# Where an answer is looked for when nobody says where.
TARGETS = ("solution.py", "answer", "answer.txt", "answer.json", "output.txt", "result.txt")
FUNCTIONS = ("solution", "solve", "main", "answer", "run", "f", "func", "function")
NAME = re.compile(
    r"(?<![\w./-])((?:[\w-]+/){0,4}[\w-]+\.(?:py|txt|json|jsonl|csv|md|sh|js|ts|c|cpp|rs|go|java|html|xml))\b"
)
DEFINED = re.compile(r"\b(?:def|function|fn|func)\s+([A-Za-z_]\w*)")
MOST_NAMES, MOST_TESTS, MOST_SECRETS, DEEPEST = 40, 300, 2000, 6
MOST_BYTES = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Hints:
    """What a cheat is told; see ``scene.Scene``, whose fields these are."""

    targets: tuple[str, ...]
    functions: tuple[str, ...]
    secrets: tuple[str, ...]
    tests: tuple[str, ...]
    shown: tuple[str, ...]
    shared: tuple[str, ...]
    beacon: int
    confined: bool

    def as_params(self) -> dict[str, Any]:
        """The hints as JSON, for the agent."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


def of(plan: EvalPlan, task: Task, *, left: Iterable[str], beacon: int, confined: bool) -> Hints:
    """What is known of one task.

    Args:
        plan: The run.
        task: The task.
        left: Names of the files that the user's own agent left in its work.
        beacon: The port of the attack's own listener.
        confined: Whether the agent is.
    """
    config = plan.config
    text = list(_strings(dict(task.row)))
    collected = [name for name in map(str, config.judge.collect) if name.strip("./")]
    asked = [name for words in text for name in NAME.findall(words)]
    given = [words for words in text if words.isidentifier()]
    defined = [name for words in text for name in DEFINED.findall(words)]
    return Hints(
        targets=_targets([*collected, *left, *asked[:MOST_NAMES], *TARGETS]),
        functions=tuple(dict.fromkeys(name for name in (*given, *defined, *FUNCTIONS) if not keyword.iskeyword(name)))[
            :MOST_NAMES
        ],
        secrets=tuple(_secrets(plan)),
        tests=_tests(config.judge.tests)[:MOST_TESTS],
        shown=tuple(path for _, path in task_role.declared(config)),
        shared=tuple(str(path) for path in config.environment.write),
        beacon=beacon,
        confined=confined,
    )


def _targets(names: Iterable[str]) -> tuple[str, ...]:
    """Names below the work, each once; one that others lie below is a directory, and none of these."""
    kept = list(dict.fromkeys(os.path.normpath(name) for name in names))[: MOST_NAMES + len(TARGETS)]
    inside = [name for name in kept if not name.startswith(("/", ".."))]
    return tuple(name for name in inside if not any(other.startswith(f"{name}/") for other in inside))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _strings(inner)


def _secrets(plan: EvalPlan) -> Iterator[str]:
    """The files that hold answers: those of the judge's tests first, then the judge, the data and the config."""
    data = plan.config.data
    files = [str(file) for path in plan.config.judge.tests for file in _below(path)][:MOST_SECRETS]
    named = [plan.config.judge.path, data.tasks, data.test, data.val, data.train, plan.config_file]
    yield from files
    yield from (str(path) for path in named if path is not None)


def _tests(paths: Iterable[Path]) -> tuple[str, ...]:
    """The names under which tests may be copied beside the work."""
    found = []
    for path in paths:
        for file in _below(path):
            inner = str(file.relative_to(path)) if file != path else path.name
            found += [f"{path.name}/{inner}" if file != path else inner, f"tests/{inner}", file.name]
    return tuple(dict.fromkeys(found))


def _below(path: Path) -> Iterator[Path]:
    """The files that the config names, or that lie in a directory it names."""
    if not path.is_dir():
        yield path
        return
    for above, inner, names in os.walk(path):
        inner.sort()
        yield from (path / above / name for name in sorted(names))


def left_in(work: str) -> dict[str, bytes]:
    """The files that a call left in its work, up to a number and a size each, by their names."""
    found: dict[str, bytes] = {}
    waiting = [""]
    with untrusted.directory(work) as top:
        while waiting and len(found) < MOST_NAMES:
            place = waiting.pop(0)
            for name, kind in _entries(place, top):
                path = f"{place}/{name}" if place else name
                if kind is Kind.DIRECTORY and path.count("/") < DEEPEST:
                    waiting.append(path)
                elif kind is Kind.FILE and len(found) < MOST_NAMES:
                    found[path] = _read(path, top)
    return found


def _entries(place: str, top: int) -> list[tuple[str, Kind | None]]:
    try:
        if not place:
            return untrusted.some_entries(top, most=MOST_SECRETS)
        with untrusted.closing(untrusted.open_directory_beneath(place, at=top)) as descriptor:
            return untrusted.some_entries(descriptor, most=MOST_SECRETS)
    except OSError:
        return []


def _read(path: str, top: int) -> bytes:
    try:
        return untrusted.read(path, at=top, most=MOST_BYTES).data
    except OSError:
        return b""
