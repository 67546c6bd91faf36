"""A whole run in a directory of its own: tasks, a split, an agent, a judge and a config that names them."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from hermit import sandbox as sandboxes
from hermit.config.load import load
from hermit.evolver import Progress, loader
from hermit.handoff import redact
from hermit.roles import evolver as evolver_role
from hermit.roles import models as model_role
from hermit.roles import secrets as run_secrets
from hermit.run import evaluate, learner_tools, train, training
from hermit.run import plan as plans
from hermit.run.learner import Ask, Called, Learner, laid
from hermit.run.served import Returned, Served
from hermit.run.train_paths import TrainPaths

from .forked import Forked

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hermit.config.schema import RunConfig
    from hermit.run.training import TrainPlan

CONFIG = """
data: {tasks: data/tasks.jsonl, test: data/test.txt}
agent: {name: "agent.py:run", concurrency: 2}
judge: {path: judge.py}
trainer: {run_name: one}
"""
AGENT = "from hermit import RunOutput\ndef run(task, adapter): return RunOutput(task['n'], cost_usd=0.5)\n"
JUDGE = "def score(task, output): return output.output / 2\n"


@dataclass(frozen=True)
class Run:
    """The directory of a run's config, and what it makes of it."""

    root: Path

    @property
    def scratch(self) -> Path:
        """Where the attempts of the run work."""
        return self.root.parent / "scratch"

    @property
    def evaluation(self) -> Path:
        return self.root / "runs" / "one" / "eval" / "none"

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.evaluation / "results.jsonl").read_text().splitlines()]

    def config(self, *overrides: str) -> RunConfig:
        return load(self.root / "run.yaml", overrides, environ=dict(os.environ))

    def plan(self, *overrides: str, adapter: str = "none") -> plans.EvalPlan:
        return plans.evaluation(self.config(*overrides), config_file=self.root / "run.yaml", adapter=adapter)

    def evaluate(self, *overrides: str, fresh: bool = False, shown: list[Any] | None = None) -> dict[str, Any]:
        """Makes the whole run without a sandbox."""
        place = sandboxes.unconfined("a test of the run")
        seen: list[Any] = [] if shown is None else shown
        return evaluate.evaluate(self.plan(*overrides), place, fresh=fresh, show=seen.append)

    def files(self) -> set[str]:
        """Every file and directory there is."""
        return {str(path.relative_to(self.root)) for path in self.root.rglob("*") if "__pycache__" not in path.parts}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    root = tmp_path / "set"
    (root / "data").mkdir(parents=True)
    rows = [{"id": f"t/{number}", "n": number} for number in range(4)]
    (root / "data" / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (root / "data" / "test.txt").write_text("t/0\nt/1\nt/2\n")
    (root / "agent.py").write_text(AGENT)
    (root / "judge.py").write_text(JUDGE)
    (root / "run.yaml").write_text(CONFIG)
    made = Run(root)
    made.scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(made.scratch))
    yield made
    # Not by shutil: an agent may have left a tree that only a program that does not recurse can remove.
    subprocess.run(["/bin/chmod", "-R", "u+rwx", str(made.scratch)], check=True)
    subprocess.run(["/bin/rm", "-rf", str(made.scratch)], check=True)


@dataclass
class Studio:
    """A run with a learner: its config and method, and everything the trainer would prepare for a call."""

    run: Run
    desk_root: Path
    overrides: list[str]
    rows: list[dict[str, Any]]
    records: list[Any]

    @property
    def method(self) -> Path:
        return self.run.root / "method"

    def write(self, code: str, *, said: str = "class: learner.py:Learner\n") -> None:
        """Writes the method: its class in a file, and what it says of itself."""
        self.method.mkdir(exist_ok=True)
        (self.method / "evolver.yaml").write_text(said)
        (self.method / "learner.py").write_text(code)

    def learner(
        self, *overrides: str, place: sandboxes.Place | None = None, environ: dict[str, str] | None = None
    ) -> Learner:
        """The learner of the run, with a desk of its own."""
        variables = dict(os.environ) if environ is None else environ
        config = self.run.config("evolver.name=./method", *self.overrides, *overrides)
        method = loader.load(config)
        models = model_role.of_learner(config, method.params, environ=variables)
        keys = redact.keys_of(variables, passes=lambda name: evolver_role.passes(config, models, name))
        template = self.run.root / "template"
        template.mkdir(exist_ok=True)
        (template / "ADAPTER.md").write_text("root")
        self.desk_root.mkdir()
        return Learner(
            config=config,
            method=method,
            desk=laid(self.desk_root, method, template=template),
            place=place or sandboxes.unconfined("a test of learners"),
            secrets=run_secrets.of_run(config, config_file=str(self.run.root / "run.yaml")),
            redactor=redact.Redactor(keys),
            keep=self.records.append,
            log=self.rows.append,
            models=models,
        )

    def step(self, learner: Learner, *tools: Served, message: str = "", session: Any = None, **more: Any) -> Called:
        """Makes one step."""
        ask = Ask("step", message, Progress(epoch=1, step=3), session)
        return learner.call(ask, learner.traits(), tools=tools or (CHECK_SPEC,), **more)


def _checked(argument: dict[str, Any], _cancel: int) -> Returned:
    """Stands for the trainer's own check: says what lies in the copy it was given."""
    return Returned({"passed": True, "files": sorted(os.listdir(argument["adapter"]))})


CHECK_SPEC = learner_tools.check_spec(_checked)


@pytest.fixture
def studio(run: Run, tmp_path: Path) -> Studio:
    return Studio(run, tmp_path / "desk", [], [], [])


TRAINING = """
data: {tasks: data/tasks.jsonl, train: data/train.txt, test: data/test.txt, step_size: 2, shuffle: false}
agent: {name: "agent.py:run", concurrency: 2}
judge: {path: judge.py}
template: prompt-only
evolver: {name: ./learner}
trainer: {run_name: one}
"""
# The score of a task is how many lines the adapter has beyond the template's.
READS = """
import os
from hermit import RunOutput
def run(task, adapter):
    with open(os.path.dirname(__file__) + "/calls", "a") as calls:
        calls.write(f"attempt {task['id']}\\n")
    lines = open(adapter / "ADAPTER.md").read().splitlines()
    return RunOutput(sum(line.startswith("rule") for line in lines), cost_usd=0.5, tokens={"total": 10})
"""
SCORES = "def score(task, output): return {'score': output.output / 10, 'feedback': f'{output.output} rules'}\n"
LEARNS = """
import os
from hermit.evolver import Evolver, FinalResult, StepResult
BASE = {base!r}
def called(words):
    with open(BASE + "/calls", "a") as calls:
        calls.write(words + "\\n")
def add(ctx, words):
    with open(ctx.workspace.adapter / "ADAPTER.md", "a") as page:
        page.write(words + "\\n")
class Learner(Evolver):
"""
STEP = """
    def step(self, ctx):
        called(f"step {ctx.progress.step}")
        add(ctx, f"rule {ctx.progress.step}")
        return StepResult(summary=f"rule {ctx.progress.step}")
"""


@dataclass
class School:
    """A training run in a directory of its own, without a sandbox."""

    root: Path

    def learns(self, *calls: str, said: str = "class: learner.py:Learner\n") -> None:
        """Writes the learner: what its class says, by methods."""
        (self.root / "learner").mkdir(exist_ok=True)
        (self.root / "learner" / "evolver.yaml").write_text(said)
        code = LEARNS.replace("{base!r}", repr(str(self.root))) + "".join(calls or (STEP,))
        (self.root / "learner" / "learner.py").write_text(code)

    @property
    def paths(self) -> TrainPaths:
        return TrainPaths(self.root / "runs" / "one")

    def config(self, *overrides: str) -> RunConfig:
        return load(self.root / "run.yaml", overrides, environ=dict(os.environ))

    def plan(self, *overrides: str) -> TrainPlan:
        return training.training(self.config(*overrides), config_file=self.root / "run.yaml")

    def train(self, *overrides: str, place: sandboxes.Place | None = None) -> dict[str, Any]:
        """Makes the run, or goes on with it."""
        where = place or sandboxes.Place(Forked())
        return train.train(self.plan(*overrides), where, attempts=lambda _: None, show=lambda _: None)

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.paths.steps.read_text().splitlines()]

    @property
    def calls(self) -> list[str]:
        """What agent and learner were called for, in order."""
        return (self.root / "calls").read_text().splitlines() if (self.root / "calls").exists() else []

    def feedback(self, step: int) -> dict[str, Any]:
        """What the learner is told of the checks of a step."""
        return self.read(f"learning_material/step_{step:04d}/check_feedback.json")

    def read(self, name: str) -> Any:
        return json.loads((self.paths.root / name).read_bytes())

    def text(self, name: str) -> str:
        return (self.paths.root / name).read_text()

    def git(self, *words: str) -> list[str]:
        """What Git says of the tree, line by line."""
        tree = self.root / "runs" / "trees" / "prompt-only"
        done = subprocess.run(["git", f"--git-dir={tree}", *words], capture_output=True, text=True, check=True)
        return done.stdout.splitlines()


@pytest.fixture
def school(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[School]:
    root = tmp_path / "set"
    (root / "data").mkdir(parents=True)
    rows = [{"id": name, "n": number} for number, name in enumerate("abcdefgh")]
    (root / "data" / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (root / "data" / "train.txt").write_text("a\nb\nc\nd\n")
    (root / "data" / "test.txt").write_text("g\nh\n")
    (root / "agent.py").write_text(READS)
    (root / "judge.py").write_text(SCORES)
    (root / "run.yaml").write_text(TRAINING)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    made = School(root)
    made.learns()
    yield made
    assert os.listdir(scratch) == [], "a training run leaves nothing in its scratch"
