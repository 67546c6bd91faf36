"""The examples of training, by their commands: what a learner changes pays on tasks that nobody trained on."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.bwrap

ROOT = Path(__file__).resolve().parents[2]
FIRST = ROOT / "examples" / "first_training"
HUMANEVAL = ROOT / "examples" / "humaneval"
# One for each habit of the agent, then the same habits together. What is held out has each of them too.
TRAIN = (1, 32, 35, 51, 8, 65, 30, 41)
HELD_OUT = (0, 9, 10, 13, 50, 60)

ANYWHERE = pytest.mark.parametrize(
    "runtime",
    [
        "local",
        pytest.param("image", marks=[pytest.mark.docker, pytest.mark.image, pytest.mark.serial]),
    ],
)


@dataclass(frozen=True)
class Lesson:
    """A training run of one config, with results in a directory of the test's own."""

    machine: Any
    output: Path
    config: Path
    more: Sequence[str] = ()
    runtime: str = "local"

    def hermit(self, command: str, *words: str) -> dict[str, Any]:
        """What a command's JSON says."""
        place = ("--config", str(self.config), "--runtime", self.runtime, "--json")
        own = (f"trainer.output_dir={self.output}", "trainer.run_name=one")
        said = self.machine.run("-m", "hermit", command, *place, *words, *self.more, *own)
        assert said.code == 0, said.err
        document: dict[str, Any] = said.summary
        return document

    def score(self, adapter: str) -> float:
        """The mean score with this version, where no attempt failed."""
        summary = self.hermit("eval", "--adapter", adapter)
        assert (summary["errors"], summary["unconfined"]) == (0, 0)
        return float(summary["mean_score"])

    def train(self) -> list[dict[str, Any]]:
        """The line of each step."""
        self.hermit("train")
        return [json.loads(line) for line in (self.output / "one" / "steps.jsonl").read_text().splitlines()]

    def learned(self, path: str) -> str:
        """What a file of the last version holds."""
        return (self.output / "one" / "checkout" / path).read_text()

    @property
    def learner_saw(self) -> set[str]:
        """Every path that any start of the learner was shown."""
        records = [json.loads(file.read_bytes()) for file in (self.output / "one" / "sandbox").glob("*-evolver-*")]
        assert records
        return {bind["source"] for record in records for bind in record["binds"] if "source" in bind}


@pytest.mark.docker
@pytest.mark.image
@pytest.mark.serial
def test_the_first_training_goes_from_nothing_to_everything_in_the_image(machine: Any, tmp_path: Path) -> None:
    lesson = Lesson(machine, tmp_path / "runs", FIRST / "run.yaml", runtime="image")
    assert lesson.score("root") == 0.0
    assert [line["mean_score"] for line in lesson.train()] == [0.0, 0.0, 0.0, 1.0]
    assert lesson.score("final") == 1.0


@ANYWHERE
def test_the_learner_of_humaneval_writes_a_skill_that_pays_on_problems_held_out(
    machine: Any, tmp_path: Path, runtime: str
) -> None:
    if not (HUMANEVAL / "data" / "train.txt").exists():
        pytest.fail("examples/humaneval/data is not there: `make setup` makes it", pytrace=False)
    for name, numbers in (("train", TRAIN), ("held-out", HELD_OUT)):
        (tmp_path / f"{name}.txt").write_text("".join(f"HumanEval/{number}\n" for number in numbers))
    splits = (f"data.train={tmp_path}/train.txt", f"data.test={tmp_path}/held-out.txt")
    more = (*splits, "data.step_size=4", "data.shuffle=false")
    lesson = Lesson(machine, tmp_path / "runs", HUMANEVAL / "train.yaml", more, runtime)
    before = lesson.score("root")
    first, second = lesson.train()
    after = lesson.score("final")
    assert (before, after) == (1 / 6, 1.0)
    assert first["mean_score"] < second["mean_score"] == 1.0
    skill = lesson.learned("skills/programs/SKILL.md")
    assert len(re.findall("^- ", skill, re.MULTILINE)) == 4
    assert "def " not in skill
    hidden = [str(HUMANEVAL / "data" / name) for name in ("reference", "tests", "tasks.jsonl")]
    assert not [path for path in lesson.learner_saw if path.startswith((*hidden, str(tmp_path / "held-out")))]


def test_a_shell_script_trains_as_well(machine: Any, tmp_path: Path) -> None:
    lesson = Lesson(machine, tmp_path / "runs", FIRST / "shell.yaml")
    steps = lesson.train()
    assert [line["mean_score"] for line in steps if line["step"]] == [0.0, 0.0, 0.0, 1.0]
    assert steps[1]["learner"]["summary"] == "Asked for it: Answer in capital letters."
    assert lesson.score("final") == 1.0


def test_the_reference_shows_the_shell_script_as_it_is_run() -> None:
    page = (ROOT / "docs" / "reference" / "evolvers.md").read_text()
    blocks = re.findall(r"```yaml\n(evolver:\n.*?)```", page, re.DOTALL)
    assert yaml.safe_load((FIRST / "shell.yaml").read_text())["evolver"] in [
        yaml.safe_load(b)["evolver"] for b in blocks
    ]


AGENT = '''
import json
from pathlib import Path
from hermit import Agent, RunOutput
class Scripted(Agent):
    """Does what its prompt says of each feedback."""
    def run(self, task, adapter):
        rules = dict(line[2:].split(": ", 1) for line in task["prompt"].splitlines() if line.startswith("* "))
        tasks = Path(task["workspace"]["learning_material"], "current", "tasks")
        said = {a["feedback"] for file in tasks.glob("*.json") for a in json.loads(file.read_text())["attempts"]}
        added = [rule for words, rule in rules.items() if any(words in feedback for feedback in said)]
        with open(adapter / "ADAPTER.md", "a") as page:
            page.writelines(f"- {rule}\\n" for rule in added)
        return RunOutput(f"added {added}", cost_usd=0.0)
'''
PROMPT = """\
Read the feedback of step {step}, and add to the page in {adapter}:

* not in capital letters: Answer in capital letters.
* no exclamation mark: Put an exclamation mark after the word.
* not between two bars: Put the answer between two bars.
"""
METHOD = "class: hermit.evolver:AgentEvolver\nparams: {agent: 'own.py:Scripted', prompts: {step: step.md}}\n"


def test_an_agent_with_a_prompt_trains_as_well(machine: Any, tmp_path: Path) -> None:
    method = tmp_path / "method"
    method.mkdir()
    for name, text in (("own.py", AGENT), ("step.md", PROMPT), ("evolver.yaml", METHOD)):
        (method / name).write_text(text)
    lesson = Lesson(machine, tmp_path / "runs", FIRST / "run.yaml", (f"evolver.name={method}",))
    assert [line["mean_score"] for line in lesson.train() if line["step"]] == [0.0, 0.0, 0.0, 1.0]
    assert lesson.score("final") == 1.0


def commands(page: Path) -> list[list[str]]:
    """The words of each `hermit` command that a page shows in a block of shell, without `hermit` itself."""
    blocks = re.findall(r"```sh\n(.*?)```", page.read_text(), re.DOTALL)
    lines = [shlex.split(line, comments=True) for block in blocks for line in block.splitlines()]
    return [words[1:] for words in lines if words[:1] == ["hermit"]]


def test_the_commands_of_the_first_training_do_what_its_page_says(machine: Any, tmp_path: Path) -> None:
    shutil.copytree(FIRST, tmp_path / "examples" / "first_training", ignore=shutil.ignore_patterns("runs"))
    shown = commands(FIRST / "README.md")
    assert [words[0] for words in shown] == ["eval", "train", "eval"]
    means = []
    for words in shown:
        whole = [str(tmp_path / word) if word.startswith("examples/") else word for word in words]
        said = machine.run("-m", "hermit", *whole, "--runtime", "local")
        assert said.code == 0, said.err
        means += re.findall(r"mean score +([0-9.]+),", said.out)
    assert means == ["0.0000", "1.0000"]
    run = tmp_path / "examples" / "first_training" / "runs" / "first_training"
    for name in ("steps.jsonl", "learning_material/README.md", "step_0001/change.diff", "checkout/CARD.md"):
        assert (run / name).is_file(), name
    steps = [json.loads(line) for line in (run / "steps.jsonl").read_text().splitlines()]
    assert [line["mean_score"] for line in steps] == [0.0, 0.0, 0.0, 1.0]


def test_the_demo_of_training_says_where_it_runs_and_what_it_came_to(tmp_path: Path) -> None:
    shutil.copytree(FIRST, tmp_path / "examples" / "first_training", ignore=shutil.ignore_patterns("runs"))
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "demo-train.sh", tmp_path / "scripts")
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("docker", "podman"):  # no engine answers
        (programs / name).write_text("#!/bin/sh\nexit 1\n")
        (programs / name).chmod(0o755)
    finished = tmp_path / "examples" / "first_training" / "runs" / "demo" / "first_training"
    finished.mkdir(parents=True)
    (finished / "summary.json").write_text("{}")  # of an earlier demo: this one begins anew
    env = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    script = str(tmp_path / "scripts" / "demo-train.sh")
    done = subprocess.run([script], capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr
    assert "no container engine answers, so the sandboxes start on this machine" in done.stdout
    assert done.stdout.splitlines()[-1] == "demo-train: on tasks held out: baseline 0.0, final 1.0"
