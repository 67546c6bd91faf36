from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hermit.config.tasks import Task
from hermit.handoff.redact import Key, Redactor
from hermit.run import material
from hermit.run.train_paths import TrainPaths

if TYPE_CHECKING:
    from pathlib import Path


def row(task_id: str, *, score: float | None, **more: Any) -> dict[str, Any]:
    judge = None if score is None else {"score": score, "feedback": f"{task_id}: {score}", "extra": {"k": 1}}
    whole = {"repeat": 0, "id": task_id, "status": "ok", "phase": "", "cause": "", "error": None, "output": "answer"}
    return {**whole, "judge": judge, "cost_usd": None, "wall_s": 1.0, "tokens": {}, "log": "", **more}


def step(number: int, *rows: dict[str, Any]) -> material.Step:
    tasks = [Task(one["id"], {"id": one["id"], "question": "?"}, 1) for one in rows]
    return material.Step(number=number, epoch=1, adapter="c0ffee", tasks=tasks, rows=rows)


@pytest.fixture
def paths(tmp_path: Path) -> TrainPaths:
    return TrainPaths(tmp_path / "run")


def read(path: Path) -> Any:
    return json.loads(path.read_bytes())


def test_each_task_of_a_step_is_a_file_with_the_question_the_answer_and_the_verdict(paths: TrainPaths) -> None:
    material.write(paths, step(3, row("a/b", score=0.5), row("b", score=None)), redactor=Redactor(()))
    place = paths.material / "step_0003"
    told = read(place / "tasks" / "a%2Fb.json")
    assert told["task"] == {"id": "a/b", "question": "?"}
    (attempt,) = told["attempts"]
    assert (attempt["output"], attempt["score"], attempt["feedback"]) == ("answer", 0.5, "a/b: 0.5")
    assert attempt["extra"] == {"k": 1}
    summary = read(place / "summary.json")
    assert (summary["step"], summary["adapter"], summary["mean_score"], summary["tasks"]) == (3, "c0ffee", 0.25, 2)


def test_an_attempt_that_a_sandbox_broke_has_no_score(paths: TrainPaths) -> None:
    broken = row("a", score=None, status="sandbox_error", error="it broke")
    material.write(paths, step(1, broken, row("b", score=1.0)), redactor=Redactor(()))
    place = paths.material / "current"
    assert read(place / "tasks" / "a.json")["attempts"][0]["score"] is None
    assert read(place / "summary.json")["mean_score"] == 1.0


def test_the_agents_logs_come_along_and_the_judges_do_not(paths: TrainPaths) -> None:
    logs = paths.step(1).logs("a", 0)
    (logs / "agent-logs").mkdir(parents=True)
    for name in ("agent.out", "judge.out", "judge.err", "collected.jsonl", "messages.jsonl", "agent-logs/turn"):
        (logs / name).write_text(name)
    (logs / "agent-logs" / "leaves").symlink_to("/etc/passwd")
    material.write(paths, step(1, row("a", score=1.0)), redactor=Redactor(()))
    kept = paths.material / "step_0001" / "trajectories" / "a"
    found = {str(path.relative_to(kept)) for path in kept.rglob("*") if not path.is_dir()}
    assert found == {"agent.out", "messages.jsonl", "agent-logs/turn"}


def test_no_key_is_in_what_a_learner_is_shown(paths: TrainPaths) -> None:
    value = "sk-0123456789abcdef"
    leaking = row("a", score=1.0, output=f"my key is {value}")
    material.write(paths, step(1, leaking), redactor=Redactor((Key("MODEL_API_KEY", value),)))
    told = (paths.material / "step_0001" / "tasks" / "a.json").read_text()
    assert value not in told
    assert "<MODEL_API_KEY>" in told


def test_the_index_has_a_line_for_each_step_and_current_is_the_last(paths: TrainPaths) -> None:
    for number in (1, 2):
        material.write(paths, step(number, row("a", score=number / 2)), redactor=Redactor(()))
    lines = [json.loads(line) for line in (paths.material / "index.jsonl").read_text().splitlines()]
    assert [(line["step"], line["mean_score"], line["path"]) for line in lines] == [
        (1, 0.5, "step_0001"),
        (2, 1.0, "step_0002"),
    ]
    assert (paths.material / "current").readlink().name == "step_0002"
    assert "current" in (paths.material / "README.md").read_text()


def test_a_step_that_was_half_written_is_written_anew(paths: TrainPaths) -> None:
    material.write(paths, step(1, row("a", score=0.0)), redactor=Redactor(()))
    (paths.material / ".step_0001.new").mkdir()
    (paths.material / "step_0001" / "left").write_text("")
    material.write(paths, step(1, row("a", score=1.0)), redactor=Redactor(()))
    assert read(paths.material / "step_0001" / "summary.json")["mean_score"] == 1.0
    assert sorted(path.name for path in paths.material.iterdir()) == [
        "README.md",
        "current",
        "index.jsonl",
        "step_0001",
    ]
    assert not (paths.material / "step_0001" / "left").exists()


def test_what_checking_found_is_added(paths: TrainPaths) -> None:
    material.write(paths, step(1, row("a", score=0.0)), redactor=Redactor(()))
    material.add_check(paths, 1, {"passed": False})
    assert read(paths.material / "step_0001" / "check_feedback.json") == {"passed": False}
