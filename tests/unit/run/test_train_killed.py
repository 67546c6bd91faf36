"""A training run that is killed at any write, or whose power goes there, goes on and comes to what it would have come to."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.unit.run.conftest import School

DRIVER = Path(__file__).with_name("training_killed.py")
# All of them take five minutes; 1 tries them.
EACH = 16
LEARNER = """
    def setup(self, ctx):
        called("setup")
        (ctx.workspace.state / "seen").write_text("setup")
    def bootstrap(self, ctx):
        called("bootstrap")
        add(ctx, "rule of " + (ctx.workspace.state / "seen").read_text())
        return StepResult(summary="prepared")
    def step(self, ctx):
        number = ctx.progress.step
        called(f"step {number}")
        print("step", number)
        told = sorted(str(path.relative_to("/")) for path in ctx.workspace.learning_material.glob("*/*"))
        (ctx.workspace.output / f"material-{number}").write_text("\\n".join(told)[-2000:].replace(str(os.getcwd())[1:], ""))
        add(ctx, f"rule {number} after {ctx.session}")
        if number == 2:
            ctx.tools["run_agent"]({"tasks": ["d"]})
            os.mkfifo(ctx.workspace.adapter / "fifo")
        (ctx.workspace.adapter / "not-kept").write_text("")
        (ctx.workspace.state / "seen").write_text(f"step {number}")
        return StepResult(summary=f"rule {number}", session=f"session {number}")
    def finalize(self, ctx):
        called("finalize")
        add(ctx, "rule of the end after " + (ctx.workspace.state / "seen").read_text())
        return FinalResult(summary="ended")
"""


def test_a_training_run_killed_at_any_write_comes_to_the_same_tree_and_no_call_that_was_kept_is_made_again(
    school: School,
) -> None:
    school.learns(LEARNER)
    (school.root / "data" / "train.txt").write_text("a\nb\nd\n")
    text = (school.root / "run.yaml").read_text().replace("step_size: 2", "step_size: 2, shuffle_seed: 0")
    text = text.replace("name: ./learner}", "name: ./learner, resume: true}").replace(
        "run_name: one}", "run_name: one}"
    )
    (school.root / "run.yaml").write_text(text)
    words = [sys.executable, str(DRIVER), str(school.root), str(EACH)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    said: dict[str, Any] = json.loads(done.stdout)
    assert said["wrong"] == []
    assert said["changes"] > 100
    assert said["left"] > 50
