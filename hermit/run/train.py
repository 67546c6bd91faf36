"""`hermit train`: rollouts with the adapter as it is, what the learner makes of them, and the next version. Read this first.

A step makes an attempt at each task of its batch with the adapter of the step before, shows the learner what came of them, and
lets it change a working copy. What it left is copied out, checked, repaired or taken back, and becomes the next version in the
tree. A step's score is that of the adapter it began with.

A step is kept piece by piece, each durable before the next begins: a row for each attempt, what the learner's call left, the
version, the line in ``steps.jsonl``. A process that is killed at any moment goes on with the first piece that is not there.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from hermit.adapter import difference
from hermit.adapter.tree import ROOT, ROOT_WHEN, Tree
from hermit.agent.result import Failure
from hermit.errors import ConfigError, SandboxError
from hermit.evolver.base import Progress
from hermit.run import card, handover, material, steps
from hermit.run.adapter_check import Strict, check_spec, settled
from hermit.run.learner import Ask
from hermit.run.paths import write_json
from hermit.run.spending import Spending

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermit.adapter.files import Files
    from hermit.run.adapter_check import Settled
    from hermit.run.handover import Answer
    from hermit.run.paths import StepPaths
    from hermit.run.schedule import Batch
    from hermit.run.studio import Studio
    from hermit.run.training import TrainPlan

# So many calls of the learner in a row that failed end the run: each step pays for its rollouts.
MOST_FAILURES = 3


@dataclass
class Training:
    """A training run, and where it stands.

    Args:
        plan: What to do.
        studio: Where it is done.
        tree: Where the versions are.
        show: Is told of each finished step.
        commit: The version the next step begins with.
        files: What that holds.
        lines: What is told of the steps so far.
        session: What the learner's last call wants the next one to know.
        spending: What has been used up.
    """

    plan: TrainPlan
    studio: Studio
    tree: Tree
    show: Callable[[dict[str, Any]], None]
    commit: str = ""
    files: Files = None  # type: ignore[assignment]  # `begin` sets it
    lines: list[dict[str, Any]] = field(default_factory=list)
    session: Any = None
    spending: Spending = field(default_factory=Spending)

    def run(self) -> dict[str, Any]:
        """Begins or goes on, makes every step that is ahead, and ends the run; returns the summary."""
        self.begin()
        if self.ahead(0) and self.studio.bootstraps:
            self.bootstrap()
        stopped = ""
        for batch in self.plan.batches:
            if not self.ahead(batch.step):
                continue
            stopped = self.reason_to_stop()
            if stopped:
                break
            self.step(batch)
        return self.finalize(stopped)

    def begin(self) -> None:
        """Stands where the last finished step ended, or at the first version."""
        self.lines = steps.read(self.plan.paths.steps)
        for line in self.lines:
            self.spend(line)
        if self.lines:
            last = self.lines[-1]
            self.commit = last["commit"]
            answer = handover.kept(self.plan.paths.step(last["step"]))
            self.session = answer.session if answer is not None else None
            self.studio.restore(self.plan.paths.step(last["step"]))
        else:
            self.commit = self.first_version()
        # A version that a step had made before it was finished is made again, and is the same.
        self.tree.begin(self.plan.name, self.commit)
        self.files = self.tree.version(self.commit).files

    def first_version(self) -> str:
        """The template, or what ``start_from`` names; that has to keep the template's rules."""
        root = self.tree.find(ROOT)
        start = self.plan.start
        if start is None or start.files == self.plan.template.files:
            return root
        report = check_spec(start, self.plan.template, where=self.strict)
        if not report.passed:
            told = "; ".join(f"{each.path}: {each.reason}" for check in report.failed for each in check.problems[:5])
            raise ConfigError(
                f"it breaks the template's rules: {told}", where="start_from", cure="correct it, or leave it out"
            )
        self.tree.begin(self.plan.name, root)
        said = "The version that start_from names"
        return self.tree.commit(
            start.files, run=self.plan.name, message=said, when=ROOT_WHEN, scrub=self.studio.scrub
        ).commit

    @property
    def strict(self) -> Strict:
        """Where the code of an adapter is run."""
        return self.studio.strict

    def ahead(self, step: int) -> bool:
        """Whether a step has not been finished."""
        return all(line["step"] != step for line in self.lines)

    def reason_to_stop(self) -> str:
        """Why no other step is made; empty where one is."""
        last = [line["learner"]["status"] for line in self.lines]
        if last and last[-1] == "stop" and self.plan.config.trainer.allow_early_stop:
            return "the learner ended the training"
        if last and last[-1] == "out_of_budget":
            return "the learner's own budget is used up"
        if last[-MOST_FAILURES:] == ["failed"] * MOST_FAILURES:
            return f"the learner failed {MOST_FAILURES} times in a row"
        return self.spending.reached(self.plan.config.trainer.budget, running_s=0.0)

    def bootstrap(self) -> None:
        """Lets the learner prepare itself, and change the adapter before the first attempt: step 0."""
        began = time.monotonic()
        place = self.plan.paths.step(0)
        answer = handover.kept(place)
        if answer is None:
            ready = self.studio.call(Ask("setup"), place, self) if "setup" in self.studio.phases else None
            if ready is not None and ready.failure is not None:
                raise SandboxError(f"the learner cannot be set up: {ready.error}", cause="setup")
            answer = self.call(Ask("bootstrap", progress=Progress(epoch=1, step=0)), place)
        self.advance(place, answer, head={"step": 0, "epoch": 0, "ends_epoch": False}, began=began)

    def step(self, batch: Batch) -> None:
        """One step: attempts, material, the learner's call, the next version."""
        began = time.monotonic()
        place = self.plan.paths.step(batch.step)
        rows = self.studio.attempts(batch.tasks, place, self.files)
        shown = material.Step(batch.step, batch.epoch, self.commit, batch.tasks, rows)
        summary = shown.summary()
        if summary["mean_score"] is None:
            raise SandboxError(f"no attempt of step {batch.step} has a score: {rows[0]['error']}", cause="step")
        answer = handover.kept(place)
        if answer is None:
            material.write(self.plan.paths, shown, redactor=self.studio.redactor)
            progress = Progress(epoch=batch.epoch, step=batch.step, is_epoch_end=batch.ends_epoch)
            answer = self.call(Ask("step", progress=progress, session=self.session), place)
        head = {
            "step": batch.step,
            "epoch": batch.epoch,
            "ends_epoch": batch.ends_epoch,
            "tasks": [task.id for task in batch.tasks],
            "mean_score": summary["mean_score"],
            "statuses": summary["statuses"],
            "rollouts": cost_of(rows),
        }
        self.advance(place, answer, head=head, began=began)

    def call(self, ask: Ask, place: StepPaths) -> Answer:
        """The learner's call, with what it left kept before anything is made of it."""
        self.studio.prepare(self.files, self.history())
        answer = self.studio.call(ask, place, self)
        return handover.keep(self.studio.desk, place, answer, redactor=self.studio.redactor)

    def advance(self, place: StepPaths, answer: Answer, *, head: dict[str, Any], began: float) -> None:
        """Makes the next version of what a call left, and finishes the step."""
        before, found = self.commit, self.checked(place, answer)
        if found is not None:
            feedback = found.as_json()
            write_json(place.check, feedback)
            if head["step"]:
                material.add_check(self.plan.paths, head["step"], feedback)
            self.take(found, answer, step=head["step"], place=place)
        learner = {"status": answer.status, "error": answer.error, "usage": dict(answer.usage)}
        learner |= {name: getattr(answer.result, name, "") for name in ("summary", "rationale")}
        line = {
            **head,
            "adapter": before,
            "commit": self.commit,
            "changed": self.commit != before,
            "outcome": found.outcome if found is not None else "not taken",
            "learner": {**learner, "wall_s": answer.wall_s, "tools": answer.meters},
            "wall_s": round(time.monotonic() - began, 3),
        }
        self.checkpoint(line)
        steps.add(self.plan.paths.steps, self.lines, line)
        self.spend(line)
        self.session = answer.session
        if head["step"] and not self.ahead(head["step"] - 1):
            handover.forget(self.plan.paths.step(head["step"] - 1))
        card.write(self.plan, self.tree, self.lines)
        self.show(line)

    def checked(self, place: StepPaths, answer: Answer) -> Settled | None:
        """What becomes of what a call left; ``None`` where it failed, and nothing is taken of it."""
        if answer.status == "failed" or (answer.phase == "bootstrap" and answer.result is None):
            return None
        reading = handover.adapter(place)
        return settled(reading, self.plan.template, before=self.files, where=self.strict)

    def take(self, found: Settled, answer: Answer, *, step: int, place: StepPaths) -> None:
        """Makes a version of the files, where they are others than before."""
        if found.files == self.files:
            return
        said = getattr(answer.result, "summary", "").strip() or "No summary"
        message = f"Step {step}: {said}\n\n{getattr(answer.result, 'rationale', '')}"
        version = self.tree.commit(
            found.files, run=self.plan.name, message=message, when=ROOT_WHEN + step + 1, scrub=self.studio.scrub
        )
        place.change.write_text(difference.unified(self.files, version.files), encoding="utf-8")
        self.commit, self.files = version.commit, version.files

    def checkpoint(self, line: dict[str, Any]) -> None:
        """Tags the version, as often as ``trainer.save_freq`` says."""
        often = self.plan.config.trainer.save_freq
        by_step = often.steps is not None and line["step"] > 0 and line["step"] % often.steps == 0
        by_epoch = often.epochs is not None and line["ends_epoch"] and line["epoch"] % often.epochs == 0
        if by_step or by_epoch:
            line["checkpoint"] = self.tree.tag(self.plan.name, place_name(line["step"]), commit=self.commit)

    def finalize(self, stopped: str) -> dict[str, Any]:
        """Lets the learner end the run, tags the last version, and leaves the summary."""
        place = self.plan.paths.final
        answer = handover.kept(place)
        if answer is None and "finalize" in self.studio.phases and self.lines:
            answer = self.call(Ask("finalize", session=self.session), place)
        if answer is not None:
            found = self.checked(place, answer)
            if found is not None:
                write_json(place.check, found.as_json())
                self.take(found, answer, step=len(self.plan.batches) + 1, place=place)
            self.spending.add(cost_usd=answer.usage.get("cost_usd"), tokens={"total": answer.usage.get("tokens", 0)})
        self.tree.tag(self.plan.name, "final", commit=self.commit)
        card.write(self.plan, self.tree, self.lines)
        summary = steps.summary(self.plan, self.lines, commit=self.commit, stopped=stopped, spending=self.spending)
        write_json(self.plan.paths.summary, self.studio.redactor.value(summary, where="summary.json"))
        return summary

    def spend(self, line: dict[str, Any]) -> None:
        """Counts what a step used."""
        for part in (line.get("rollouts"), *line["learner"]["tools"].values()):
            if part:
                self.spending.usd += part["cost_usd"]
                self.spending.unknown_cost += part["unknown_cost"]
                self.spending.tokens += part.get("tokens", 0)
        usage = line["learner"]["usage"]
        self.spending.add(cost_usd=usage.get("cost_usd"), tokens={"total": usage.get("tokens", 0)})
        self.spending.wall_s += line["wall_s"]
