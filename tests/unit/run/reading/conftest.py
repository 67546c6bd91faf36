"""Runs made by hand: the files that a run leaves, with words of our choosing in them."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from hermit.domain.bind import Bind
from hermit.domain.record import Check, Record
from hermit.run.paths import RunPaths
from hermit.run.reading import load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

LOCK = {
    "digest": "d",
    "hermit": "0.1.0",
    "settings": {"agent": {"name": "/set/agent.py:run", "params": {}}, "judge": {"mode": "shared"}},
    "contents": {"data.tasks": "t1", "judge.path": "j1"},
}


def row(task: str, score: float | None = 1.0, **more: Any) -> dict[str, Any]:
    """A row as a run leaves it; one without a score failed."""
    status = "ok" if score is not None else "agent_error"
    judge = None if score is None else {"score": score, "feedback": "seen", "extra": {}}
    return {
        "repeat": 0,
        "id": task,
        "status": status,
        "phase": "" if judge else "agent",
        "cause": "" if judge else "exception",
        "error": None if judge else "it failed",
        "output": "an answer" if judge else None,
        "judge": judge,
        "cost_usd": None,
        "wall_s": 0.5,
        "log": "",
        "confined": True,
        "records": [],
        **more,
    }


def record(**more: Any) -> Record:
    """The record of a start that was held."""
    given: dict[str, Any] = {
        "role": "task",
        "backend": "bubblewrap",
        "version": "0.8.0",
        "confined": True,
        "binds": (Bind("/usr", "/usr"), Bind("/tmp/work", "/work", writable=True)),
        "variables": ("HOME",),
        "limits": (("memory_mb", 1048576, "cgroup memory"),),
        "checks": (Check("own processes", passed=True, detail="1 visible"),),
        "ended": "exit 0",
        "empty": True,
    }
    return Record(**{**given, **more})


@dataclass
class Maker:
    """Makes runs below a directory."""

    root: Path
    ends: ExitStack = field(default_factory=ExitStack)

    def run(
        self,
        rows: Sequence[dict[str, Any]],
        *,
        name: str = "one",
        selector: str = "none",
        lock: dict[str, Any] | None = LOCK,
        summary: dict[str, Any] | None = None,
        records: dict[str, Record | bytes] | None = None,
    ) -> RunPaths:
        """The files of a run."""
        paths = RunPaths(self.root / name, selector)
        paths.evaluation.mkdir(parents=True)
        paths.results.write_bytes(b"".join(json.dumps(each).encode() + b"\n" for each in rows))
        for path, document in ((paths.lock, lock), (paths.summary, summary)):
            if document is not None:
                path.write_text(json.dumps(document))
        paths.records.mkdir(exist_ok=True)
        for file, made in (records or {}).items():
            (paths.records / file).write_bytes(made if isinstance(made, bytes) else made.as_json())
        return paths

    def opened(self, rows: Sequence[dict[str, Any]], **more: Any) -> load.Run:
        """A run, open until the test ends."""
        return self.open(self.run(rows, **more).root)

    def open(self, path: Path) -> load.Run:
        """What is there, open until the test ends."""
        return self.ends.enter_context(load.opened(path))


@pytest.fixture
def maker(tmp_path: Path) -> Iterator[Maker]:
    with ExitStack() as ends:
        yield Maker(tmp_path / "runs", ends)


@pytest.fixture
def a_row() -> Callable[..., dict[str, Any]]:
    """Makes a row."""
    return row


@pytest.fixture
def a_record() -> Callable[..., Record]:
    """Makes a record."""
    return record
