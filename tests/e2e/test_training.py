"""The first training run as its README has it: the loop end to end, and what the learner's sandbox shows of the other roles."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.e2e.conftest import Machine, Said

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "first_training"
pytestmark = pytest.mark.bwrap


@dataclass(frozen=True)
class First:
    """A copy of the example, and the commands of its README."""

    machine: Machine
    root: Path

    @property
    def run(self) -> Path:
        return self.root / "runs" / "first_training"

    def hermit(self, command: str, *more: str, runtime: str = "local", env: dict[str, str] | None = None) -> Said:
        words = ["-m", "hermit", command, "--config", str(self.root / "run.yaml"), "--runtime", runtime, *more]
        return self.machine.run(*words, env=env)

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.run / "steps.jsonl").read_text().splitlines()]


@pytest.fixture
def first(machine: Machine, tmp_path: Path) -> First:
    shutil.copytree(EXAMPLE, tmp_path / "first", ignore=shutil.ignore_patterns("runs", "__pycache__"))
    return First(machine, tmp_path / "first")


def loop(first: First, runtime: str) -> None:
    before = first.hermit("eval", "--adapter", "root", "--json", runtime=runtime)
    assert before.code == 0, before.err
    assert before.summary["mean_score"] == 0.0
    said = first.hermit("train", "--json", runtime=runtime)
    assert said.code == 0, said.err
    assert (said.summary["steps"], said.summary["first_score"], said.summary["last_score"]) == (4, 0.0, 1.0)
    after = first.hermit("eval", "--adapter", "final", "--json", runtime=runtime)
    assert after.code == 0, after.err
    assert (after.summary["mean_score"], after.summary["tasks"]) == (1.0, 8)
    assert after.summary["commit"] == said.summary["commit"]
    assert [line["outcome"] for line in first.lines] == ["kept"] * 4
    card = (first.run / "checkout" / "CARD.md").read_text()
    assert said.summary["commit"] in card
    assert "Asked for it: Answer in capital letters." in card
    assert not list((first.machine.scratch).iterdir())


def test_the_first_training_goes_from_nothing_to_everything_on_tasks_nobody_trained_on(first: First) -> None:
    loop(first, "local")
    again = first.hermit("train")
    assert (again.code, "this training run has ended" in again.err) == (2, True)
    records = [json.loads(path.read_text()) for path in (first.run / "sandbox").glob("*-evolver-*.json")]
    assert len(records) == 4
    assert all(record["confined"] and record["empty"] for record in records)


@pytest.mark.docker
@pytest.mark.image
def test_the_first_training_does_the_same_in_the_image(first: First) -> None:
    loop(first, "image")
    records = [json.loads(path.read_text()) for path in (first.run / "sandbox").glob("*.json")]
    assert {record["role"] for record in records} >= {"task", "evolver", "tool"}
    assert all(record["image"] for record in records if record["confined"])


# Looks for planted words in everything that can be read from inside, and leaves rubbish for the copy on its way out.
SEARCHES = """
import os, socket, stat
from hermit.evolver import Evolver, FinalResult, StepResult
WANTED = [word.encode() for word in ("planted-" + name for name in ("data", "answer", "judge", "test", "split", "record"))]
OWN = ("/proc", "/sys", "/dev", "/usr", "/lib", "/etc")
class Learner(Evolver):
    def step(self, ctx):
        found, seen = [], 0
        for top, directories, files in os.walk("/"):
            directories[:] = [name for name in directories if not os.path.join(top, name).startswith(OWN)]
            for name in files:
                path = os.path.join(top, name)
                try:
                    if not stat.S_ISREG(os.lstat(path).st_mode): continue
                    with open(path, "rb") as file: data = file.read(1 << 20)
                except OSError:
                    continue
                seen += 1
                found += [f"{word.decode()} in {path}" for word in WANTED if word in data and "learner.py" not in path]
        adapter = ctx.workspace.adapter
        os.mkfifo(adapter / "fifo"); os.symlink("/etc/passwd", adapter / "out"); os.symlink("ADAPTER.md", adapter / "in")
        with open(adapter / "program", "w"): os.chmod(adapter / "program", 0o6755)
        key = os.environ["MODEL_API_KEY"]
        for part in (adapter, ctx.workspace.state, ctx.workspace.output):
            (part / "leak").write_text(key)
        with open(adapter / "ADAPTER.md", "a") as page: page.write(f"key {key}\\n")
        print(key)
        spec = ctx.tools["check_spec"]({"adapter": "adapter"})
        rolled = ctx.tools["run_agent"]({"tasks": ["amber"]})
        logs = sorted(os.listdir(ctx.workspace.agent_logs))
        try:
            ctx.tools["run_agent"]({"tasks": ["quartz"]})
            unknown = "taken"
        except Exception as error:
            unknown = str(error)
        said = {"found": found, "seen": seen, "spec": spec["passed"], "rolled": len(rolled["attempts"]), "logs": logs}
        return StepResult(summary=key, extra={**said, "unknown": unknown, "w": sorted(os.listdir("/w"))})
"""
AGENT = """
import os
from hermit import RunOutput
def run(task, adapter):
    print(os.environ["MODEL_API_KEY"])
    return RunOutput(os.environ["MODEL_API_KEY"], cost_usd=0.25)
"""
JUDGE = """
# planted-judge
def score(task, output):
    print("planted-record", output.output)
    return {"score": 0.5, "feedback": output.output}
"""
KEY = "sk-planted-0123456789/of+a-model"


def test_a_learner_finds_nothing_of_the_other_roles_leaves_no_key_and_its_tools_are_metered(first: First) -> None:
    tasks = [json.loads(line) for line in (first.root / "tasks.jsonl").read_text().splitlines()]
    held_out = set((first.root / "test.txt").read_text().split())
    rows = [{**task, "n": "planted-answer"} if task["id"] in held_out else task for task in tasks]
    (first.root / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (first.root / "test.txt").write_text("# planted-split\n" + "\n".join(sorted(held_out)))
    (first.root / "train.txt").write_text("# planted-split\namber\nbirch\n")
    (first.root / "agent.py").write_text(AGENT)
    (first.root / "judge.py").write_text(JUDGE)
    (first.root / "tests.txt").write_text("planted-test")
    (first.root / "learner" / "learner.py").write_text(SEARCHES)
    text = (
        (first.root / "run.yaml")
        .read_text()
        .replace("path: judge.py", "mode: separate\n  collect: [.]\n  tests: [tests.txt]\n  path: judge.py")
    )
    text += "environment: {env: [MODEL_API_KEY]}\nsandbox: {evolver: {env: [MODEL_API_KEY]}}\n"
    (first.root / "run.yaml").write_text(text)
    said = first.hermit("train", "--json", "data.step_size=1", env={"MODEL_API_KEY": KEY})
    assert said.code == 0, said.err
    for line in first.lines:
        assert line["learner"]["error"] == ""
        answer = json.loads((first.run / f"step_{line['step']:04d}" / "learner" / "answer.json").read_text())
        extra = answer["result"]["extra"]
        assert (extra["found"], extra["seen"] > 20, extra["rolled"]) == ([], True, 1)
        assert "quartz" in extra["unknown"]
        assert extra["logs"]
        meter = line["learner"]["tools"]["run_agent"]
        assert (meter["calls"], meter["failed"], meter["cost_usd"]) == (2, 1, 0.25)
        feedback = json.loads((first.run / f"step_{line['step']:04d}" / "check_feedback.json").read_text())
        assert feedback["not_copied"]["adapter: FIFO"] == 1
        assert feedback["not_copied"]["adapter: link that leaves"] == 1
        assert {repair["path"] for repair in feedback["repairs"]} >= {"in", "leak", "program"}
    assert said.summary["cost_usd"] == 4 * 0.25
    held = [
        str(path)
        for path in (first.root / "runs").rglob("*")
        if path.is_file() and (KEY.encode() in path.read_bytes() or KEY[:14].encode() in path.read_bytes())
    ]
    assert (held, KEY in said.out + said.err) == ([], False)
    assert "key <MODEL_API_KEY>" in (first.run / "checkout" / "ADAPTER.md").read_text()
