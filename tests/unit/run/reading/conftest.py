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
from hermit.run.reading import load, trained
from hermit.run.train_paths import StepPaths, TrainPaths

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


def a_step(number: int, score: float | None = 0.5, **more: Any) -> dict[str, Any]:
    """A line of ``steps.jsonl`` as a run leaves it; each step makes a version of its own."""
    learner = {
        "status": "done",
        "error": "",
        "usage": {"cost_usd": 0.25, "tokens": 100},
        "tools": {},
        "summary": f"changed {number}",
        "rationale": "it was wrong",
        "wall_s": 2.0,
    }
    scored = {
        "tasks": ["a", "b"],
        "mean_score": score,
        "statuses": {"ok": 2, "agent_error": 0},
        "rollouts": {"cost_usd": 0.5, "tokens": 10, "unknown_cost": 1},
    }
    given = {
        "step": number,
        "epoch": 1,
        "ends_epoch": False,
        **(scored if score is not None else {}),
        "adapter": commit_of(number - 1),
        "commit": commit_of(number),
        "changed": True,
        "outcome": "kept",
        "learner": learner,
        "wall_s": 5.0,
        "checkpoint": "",
    }
    given |= {name: value for name, value in more.items() if name != "learner"}
    given["learner"] = {**learner, **more.get("learner", {})}
    return given


def commit_of(number: int) -> str:
    """The version that a step ends with; 0 is the first."""
    return f"{number:040x}"


DIFF = """\
diff --git a/ADAPTER.md b/ADAPTER.md
--- a/ADAPTER.md
+++ b/ADAPTER.md
@@ -1 +1,2 @@
 Read it.
-old
+new
+newer
"""
CHECKED = {
    "outcome": "kept",
    "passed": True,
    "checks": [{"number": 1, "name": "files under rules", "state": "passed", "problems": []}],
    "repairs": [],
    "more_repairs": {},
    "after_repair": None,
    "not_copied": {},
}
TOOL = {"call": 1, "tool": "check_spec", "status": "ok", "error": "", "seconds": 0.5, "cost_usd": 0.0}


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

    def training(
        self,
        lines: Sequence[dict[str, Any]],
        *,
        name: str = "trained",
        summary: dict[str, Any] | None = None,
        lock: dict[str, Any] | None = LOCK,
    ) -> TrainPaths:
        """The files of a training run: its lines, and what each step has without its attempts."""
        paths = TrainPaths(self.root / name)
        paths.root.mkdir(parents=True)
        paths.steps.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        for path, document in ((paths.lock, lock), (paths.summary, summary)):
            if document is not None:
                path.write_text(json.dumps(document))
        for line in lines:
            self.step(paths.step(line["step"]), checked={**CHECKED, "outcome": line["outcome"]})
        return paths

    def step(
        self,
        place: StepPaths,
        *,
        rows: Sequence[dict[str, Any]] = (),
        checked: dict[str, Any] | None = None,
        diff: str = DIFF,
        calls: Sequence[dict[str, Any]] = (),
    ) -> None:
        """The files of one step."""
        place.evaluation.mkdir(exist_ok=True)
        for path, found in ((place.results, rows), (place.tools, calls)):
            if found:
                path.write_bytes(b"".join(json.dumps(each).encode() + b"\n" for each in found))
        if rows:
            scores = [row["judge"]["score"] if row["judge"] else 0.0 for row in rows]
            summary = {"mean_score": sum(scores) / len(scores), "mean_interval": {"low": 0.25, "high": 0.75}}
            place.summary.write_text(json.dumps({**summary, "attempts": len(rows)}))
        if checked is not None:
            place.check.write_text(json.dumps(checked))
        place.change.write_bytes(diff.encode("utf-8", "surrogatepass"))

    def trained(self, paths: TrainPaths) -> trained.Training:
        """A training run, open until the test ends."""
        return self.ends.enter_context(trained.opened(paths.root))

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


@pytest.fixture
def step_line() -> Callable[..., dict[str, Any]]:
    """Makes a line of a training run."""
    return a_step


@pytest.fixture
def whole_training(maker: Maker) -> TrainPaths:
    """A training run in which everything there is to see was made: see ``rich``."""
    return rich(maker)


def rich(maker: Maker, *, say: str = "", name: str = "trained") -> TrainPaths:
    """A training run with every outcome, two epochs, tools, costs against a budget, evaluations and a last call.

    Args:
        maker: Makes it.
        say: Stands wherever an agent, a judge or a learner can put words.
        name: Its name.
    """
    tools = {"check_spec": {"calls": 2, "failed": 1, "seconds": 0.5, "cost_usd": 0.1, "unknown_cost": 0}}
    said = {"summary": f"Changed it{say}", "rationale": f"because{say}", "tools": {**tools, f"more{say}": {"calls": 1}}}
    budget = {"usd": 20.0, "tokens": None, "hours": 1.0}
    lines = [
        a_step(0, None, epoch=0),
        a_step(1, 0.25, learner=said),
        a_step(2, 0.5, learner=said, outcome="repaired"),
        a_step(3, 0.5, ends_epoch=True, checkpoint=f"{name}/step_0003", learner=said),
        a_step(4, 0.75, epoch=2, commit=commit_of(3), changed=False, outcome="taken back", learner=said),
        a_step(
            5,
            0.5,
            epoch=2,
            adapter=commit_of(3),
            commit=commit_of(3),
            changed=False,
            outcome="not taken",
            learner={"status": "failed", "error": f"exception: it broke{say}", "summary": "", "rationale": ""},
        ),
        a_step(6, 0.75, epoch=2, adapter=commit_of(3), ends_epoch=True, budget=budget, learner=said),
    ]
    summary = {
        "complete": True,
        "stopped": "",
        "of_steps": 6,
        "learner": "mine",
        "template": "t@1",
        "commit": commit_of(7),
    }
    paths = maker.training(lines, name=name, summary=summary)
    rows = [row(f"a{say.encode('utf-8', 'replace').decode()}", output=f"out{say}"), row("b", 0.0), row("c", None)]
    problem = {"path": f"skills/x{say}", "reason": f"it is no text{say}"}
    failed = {"number": 2, "name": f"formats{say}", "state": "failed", "problems": [problem]}
    checked = {
        **CHECKED,
        "passed": False,
        "checks": [failed],
        "repairs": [{**problem, "done": f"dropped{say}"}],
        "more_repairs": {"under no rule": 3},
        "after_repair": {"checks": [failed]},
        "not_copied": {f"link{say}": 2},
    }
    diff = DIFF + f"diff --git a/n{say} b/n{say}\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+new{say}\n"
    calls = [TOOL, {**TOOL, "status": "timeout", "error": f"too long{say}", "tool": f"t{say}"}]
    for number in range(1, 7):
        line = lines[number]
        outcome = {**(CHECKED if line["outcome"] == "kept" else checked), "outcome": line["outcome"]}
        maker.step(paths.step(number), rows=rows, checked=outcome, diff=diff if line["changed"] else "", calls=calls)
        place = paths.step(number)
        place.left("output").mkdir(parents=True)
        (place.left("output") / "notes.md").write_bytes(f"notes{say}".encode("utf-8", "surrogatepass"))
        (place.evaluation / "learner.out").write_bytes(f"printed{say}".encode("utf-8", "surrogatepass"))
    maker.step(paths.final, checked=CHECKED, diff=diff)
    answer = {"phase": "finalize", "failure": None, "result": {"summary": f"The end{say}"}, "meters": {}, "wall_s": 1.0}
    paths.final.call.mkdir()
    (paths.final.call / "answer.json").write_text(json.dumps(answer))
    for selector, version, mean in (("root", 0, 0.25), ("step_0003", 3, 0.5), ("final", 7, 0.875), ("none", None, 0.1)):
        interval = {"low": mean - 0.1, "high": min(1.0, mean + 0.1)}
        told = {
            "commit": None if version is None else commit_of(version),
            "mean_score": mean,
            "mean_interval": interval,
        }
        told |= {"tasks": 8, "solved_once": 2, "complete": selector != "none", "attempts": 1, "repeats": 1}
        maker.run([row("x")], name=name, selector=selector, summary=told)
    records = {
        f"20260101T000000.000001-{role}-{step}-0.json": record(role=role, reason=say, warnings=(f"careful{say}",))
        for role, step in (("evolver", "step_0001"), ("tool", "step_0001"), ("evolver", "final"))
    }
    for file, made in records.items():
        (RunPaths(paths.root, "-").records / file).write_bytes(made.as_json())
    return paths
