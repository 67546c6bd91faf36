"""`hermit train`: rollouts with the adapter as it is, what the learner makes of them, and the next version. Read this first.

A step makes an attempt at each task of its batch with the adapter of the step before, shows the learner what came of them, and
lets it change a working copy. What it left is copied out, checked, repaired or taken back, and becomes the next version in the
tree. A step's score is that of the adapter it began with.

A step is kept piece by piece, each durable before the next begins: a row for each attempt, what the learner's call left, the
version, the line in ``steps.jsonl``. A process that is killed at any moment goes on with the first piece that is not there.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from hermit.adapter import difference
from hermit.adapter import files as adapter_files
from hermit.adapter.files import Files, Reading
from hermit.adapter.spec import examined
from hermit.adapter.tree import ROOT, ROOT_WHEN, Tree, scrubbed
from hermit.errors import ConfigError, ExitCode, HermitError, SandboxError
from hermit.evolver.base import Progress as Where
from hermit.run import bench as benches
from hermit.run import card, claim, handover, material, steps, studio
from hermit.run.adapter_check import Settled, check_spec, settled
from hermit.run.capacity import Admission, declared_mb
from hermit.run.learner import Ask
from hermit.run.paths import remove_unfinished, write_atomically, write_json
from hermit.run.spending import Spending, cost_of
from hermit.run.train_paths import step_name
from hermit.signals import GivenUp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hermit.run.evaluate import Progress
    from hermit.run.handover import Answer
    from hermit.run.place import InImage
    from hermit.run.schedule import Batch
    from hermit.run.studio import Studio
    from hermit.run.train_paths import StepPaths
    from hermit.run.training import TrainPlan
    from hermit.sandbox import Place

# So many calls of the learner in a row that failed end the run: each step pays for its attempts.
MOST_FAILURES = 3
ANOTHER = "give the run another trainer.run_name"


def train(
    plan: TrainPlan,
    place: Place | InImage,
    *,
    attempts: Callable[[Progress], None],
    show: Callable[[dict[str, Any]], None],
) -> dict[str, Any]:
    """Makes every step that is ahead, and returns the summary.

    Args:
        plan: What to do.
        place: Where sandboxes are started.
        attempts: Is told after each attempt.
        show: Is told after each step.

    Raises:
        ConfigError: The run's directory holds another run, or a finished one; another process works in it.
        SandboxError: A sandbox of the learner or of a check failed, or every attempt of a step did.
        HermitError: What was made cannot be kept.
        Interrupted: The run was given up; every finished piece is kept.
    """
    paths = plan.paths
    refuse_finished(plan)
    with (
        claim.held(paths.root, plan.rollouts.paths.records),
        benches.Stop() as stop,
        GivenUp(stop.set, _leave) as given_up,
    ):
        refuse_finished(plan)  # it may have ended meanwhile
        if not paths.begun_steps:  # nothing was made that another config could be taken to have made
            paths.lock.unlink(missing_ok=True)
        claim.match(paths.lock, plan.lock, made=paths.steps, start_over=ANOTHER)
        for directory in paths.begun:
            remove_unfinished(directory)
        admission = Admission(each_mb=declared_mb(plan.config), stop=stop.descriptor, tell=lambda _: None)
        with studio.opened(plan, place, stop=stop, admission=admission, show=attempts) as room:
            given_up.in_order = True
            tree = Tree.opened(plan.tree, plan.template, scrub=room.scrub)
            return Training(plan, room, tree, show).run()


def _leave() -> None:
    os._exit(ExitCode.INTERRUPTED)


def refuse_finished(plan: TrainPlan) -> None:
    """Refuses a run that has ended, and one that `trainer.resume_mode` does not let go on.

    Raises:
        ConfigError: It is one of these.
    """
    mode, begun = plan.config.trainer.resume_mode, plan.paths.steps.exists()
    where = str(plan.paths.root)
    if plan.paths.summary.exists():
        raise ConfigError(
            "this training run has ended", where=where, cure=f"{ANOTHER}, or evaluate it: --adapter final"
        )
    if mode == "never" and begun:
        raise ConfigError(
            "this training run has begun", where=where, cure=f"{ANOTHER}, or set trainer.resume_mode: auto"
        )
    if mode == "required" and not begun:
        raise ConfigError("there is no training run to go on with", where=where, cure="set trainer.resume_mode: auto")


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
    files: Files = field(default_factory=Files)
    lines: list[dict[str, Any]] = field(default_factory=list)
    session: Any = None
    spending: Spending = field(default_factory=Spending)

    def run(self) -> dict[str, Any]:
        """Begins or goes on, makes every step that is ahead, and ends the run."""
        self.begin()
        if self.ahead(0) and {"setup", "bootstrap"} & set(self.studio.phases):
            self.bootstrap()
        stopped = ""
        for batch in self.plan.batches:
            if self.ahead(batch.step):
                stopped = self.reason_to_stop()
                if stopped:
                    break
                self.step(batch)
        return self.finalize(stopped)

    def begin(self) -> None:
        """Stands where the last finished step ended, or at the first version."""
        self.lines = steps.read(self.plan.paths.steps)
        for line in self.lines:
            self.spending.add_step(line)
        if self.lines:
            last = self.plan.paths.step(self.lines[-1]["step"])
            self.commit = self.tree.find(self.lines[-1]["commit"])
            self.session = self.handed_on(handover.kept(last))
            handover.put_back(self.studio.desk, last)
            self.forget_earlier()
        else:
            self.commit = self.first_version()
        # A version that was made of a step that was not finished is made once more, and is the same.
        self.tree.begin(self.plan.name, self.commit)
        self.files = self.tree.version(self.commit).files

    def first_version(self) -> str:
        """The template, or what ``start_from`` names; that has to keep the template's rules."""
        root, start = self.tree.find(ROOT), self.plan.start
        if start is None or start.files == self.plan.template.files:
            return root
        report = check_spec(start, self.plan.template, where=self.studio.strict)
        if not report.passed:
            told = "; ".join(f"{each.path}: {each.reason}" for check in report.failed for each in check.problems[:5])
            cure = "correct it, or leave it out"
            raise ConfigError(f"it breaks the template's rules: {told}", where="start_from", cure=cure)
        self.tree.begin(self.plan.name, root)
        words = "The version that start_from names"
        name, scrub = self.plan.name, self.studio.scrub
        return self.tree.commit(start.files, run=name, message=words, when=ROOT_WHEN, scrub=scrub).commit

    def ahead(self, step: int) -> bool:
        """Whether a step has not been finished."""
        return all(line["step"] != step for line in self.lines)

    def handed_on(self, answer: Answer | None) -> Any:
        """What the next call is told of the last one, where ``evolver.resume`` lets the learner go on from it."""
        return answer.session if answer is not None and self.plan.config.evolver.resume else None

    def reason_to_stop(self) -> str:
        """Why no other step is made; empty where one is."""
        said = [line["learner"]["status"] for line in self.lines]
        if said[-1:] == ["stop"] and self.plan.config.trainer.allow_early_stop:
            return "the learner ended the training"
        if said[-1:] == ["out_of_budget"]:
            return "the learner's own budget is used up"
        if said[-MOST_FAILURES:] == ["failed"] * MOST_FAILURES:
            return f"the learner failed {MOST_FAILURES} times in a row"
        return self.spending.reached(self.plan.config.trainer.budget)

    # Steps

    def bootstrap(self) -> None:
        """Lets the learner prepare itself, and change the adapter before the first attempt: step 0."""
        began, place = time.monotonic(), self.plan.paths.step(0)
        answer = self.kept(place)
        if answer is None:
            self.set_up(place.setup)
            answer = self.call(Ask("bootstrap", progress=Where(epoch=1, step=0)), place)
        self.advance(place, answer, head={"step": 0, "epoch": 0, "ends_epoch": False}, began=began)

    def set_up(self, place: StepPaths) -> None:
        """Lets the learner prepare itself, once; what it changes of the adapter is nothing to anybody.

        Raises:
            HermitError: It cannot.
        """
        if "setup" not in self.studio.phases:
            return
        if self.kept(place) is not None:
            return
        self.studio.prepare(self.files, self.history())
        ready = self.studio.call(Ask("setup"), place)
        if ready.failure is not None:
            cure = "correct the learner, and run the same command again"
            raise HermitError(f"the learner cannot be set up: {ready.error}", where="evolver.name", cure=cure)
        self.studio.keep(place, ready)

    def step(self, batch: Batch) -> None:
        """One step: attempts, material, the learner's call, the next version."""
        began, place = time.monotonic(), self.plan.paths.step(batch.step)
        rows = self.studio.attempts(batch.tasks, place, self.files)
        seen = material.Step(batch.step, batch.epoch, self.commit, batch.tasks, rows)
        numbers = seen.summary()
        if numbers["mean_score"] is None:
            raise SandboxError(
                f"no attempt of step {batch.step} has a score: {rows[0]['error']}", cause=rows[0]["cause"]
            )
        answer = self.kept(place)
        if answer is None:
            material.write(self.plan.paths, seen, redactor=self.studio.redactor)
            where = Where(epoch=batch.epoch, step=batch.step, is_epoch_end=batch.ends_epoch)
            answer = self.call(Ask("step", progress=where, session=self.session), place)
        head = {
            "step": batch.step,
            "epoch": batch.epoch,
            "ends_epoch": batch.ends_epoch,
            "tasks": [task.id for task in batch.tasks],
            "mean_score": numbers["mean_score"],
            "statuses": numbers["statuses"],
            "rollouts": cost_of(rows),
        }
        self.advance(place, answer, head=head, began=began)

    def kept(self, place: StepPaths) -> Answer | None:
        """What a call of an earlier process left, which the next call finds on the desk; ``None`` where it is to be made."""
        answer = handover.kept(place)
        if answer is not None:
            handover.put_back(self.studio.desk, place)
        return answer

    def call(self, ask: Ask, place: StepPaths) -> Answer:
        """The learner's call, with what it left kept before anything is made of it."""
        self.studio.prepare(self.files, self.history())
        return self.studio.keep(place, self.studio.call(ask, place))

    def advance(self, place: StepPaths, answer: Answer, *, head: dict[str, Any], began: float) -> None:
        """Makes the next version of what a call left, and finishes the step."""
        before, found = self.commit, self.checked(place, answer)
        if found is not None:
            material.add_check(self.plan.paths, head["step"], self.told(found, answer, place))
            self.take(found.files, answer, step=head["step"], place=place)
        said = {name: getattr(answer.result, name, "") for name in ("summary", "rationale")}
        learner = {
            "status": answer.status,
            "error": answer.error,
            "usage": dict(answer.usage),
            "tools": dict(answer.meters),
        }
        line = {
            **head,
            "adapter": before,
            "commit": self.commit,
            "changed": self.commit != before,
            "outcome": outcome(answer, found),
            "learner": {**learner, **said, "wall_s": answer.wall_s},
            "wall_s": round(time.monotonic() - began, 3),
            "budget": self.plan.config.trainer.budget.model_dump(mode="json"),
        }
        line["checkpoint"] = self.checkpoint(line)
        steps.add(self.plan.paths.steps, self.lines, line)
        self.spending.add_step(line)
        self.session = self.handed_on(answer)
        self.forget_earlier()
        card.write(self.plan, self.tree, self.lines, commit=self.commit, redactor=self.studio.redactor)
        self.show(line)

    def forget_earlier(self) -> None:
        """Drops what lasts of every call but that of the last finished step."""
        for line in self.lines[:-1]:
            handover.forget(self.plan.paths.step(line["step"]))
        handover.forget(self.plan.paths.step(0).setup)

    def told(self, found: Settled, answer: Answer, place: StepPaths) -> dict[str, Any]:
        """What the learner is told of the checks, kept with the step."""
        said = {**found.as_json(), "not_copied": dict(answer.dropped)}
        feedback: dict[str, Any] = self.studio.redactor.value(said, where=place.check.name)
        write_json(place.check, feedback)
        return feedback

    def checked(self, place: StepPaths, answer: Answer) -> Settled | None:
        """What becomes of what a call left; ``None`` where it failed or changed nothing, and nothing is taken of it."""
        if answer.status == "failed" or (answer.phase == "bootstrap" and answer.result is None):
            return None
        template = self.plan.template
        left = place.left("adapter")
        if not left.is_dir():  # it was more than a copy may take: nothing is known of what it was
            reasons = [reason.removeprefix("adapter: ") for reason in answer.dropped if reason.startswith("adapter: ")]
            dropped = tuple(adapter_files.Dropped(".", reason) for reason in reasons)
            return Settled(self.files, "taken back", examined(Reading(self.files, dropped), template))
        reading = adapter_files.read(str(left), structure=template.manifest.structure)
        reading = replace(reading, files=scrubbed(reading.files, self.studio.scrub))  # a form may not outlive it
        return settled(reading, template, before=self.files, where=self.studio.strict)

    def take(self, files: Files, answer: Answer, *, step: int, place: StepPaths) -> None:
        """Makes a version of the files, where they are others than before."""
        if files == self.files:
            return
        said = str(getattr(answer.result, "summary", "")).strip() or "The learner says nothing of it"
        message = f"Step {step}: {said}\n\n{getattr(answer.result, 'rationale', '')}"
        name, scrub = self.plan.name, self.studio.scrub
        version = self.tree.commit(files, run=name, message=message, when=ROOT_WHEN + step + 1, scrub=scrub)
        write_atomically(place.change, difference.unified(self.files, version.files).encode("utf-8"))
        self.commit, self.files = version.commit, version.files

    def checkpoint(self, line: dict[str, Any]) -> str:
        """Tags the version, as often as ``trainer.save_freq`` says, and returns the tag; empty where it is not time."""
        often = self.plan.config.trainer.save_freq
        by_step = often.steps is not None and line["step"] > 0 and line["step"] % often.steps == 0
        by_epoch = often.epochs is not None and line["ends_epoch"] and line["epoch"] % often.epochs == 0
        if not (by_step or by_epoch):
            return ""
        return self.tree.tag(self.plan.name, step_name(line["step"]), commit=self.commit)

    def history(self) -> Iterator[tuple[dict[str, Any], str]]:
        """Each step so far, with what it changed."""
        for line in self.lines:
            told = {name: line.get(name) for name in ("step", "epoch", "adapter", "commit", "outcome", "mean_score")}
            told |= {name: line["learner"][name] for name in ("status", "error", "summary", "rationale")}
            change = self.plan.paths.step(line["step"]).change
            yield told, change.read_text(encoding="utf-8") if line["changed"] else ""

    # The end

    def finalize(self, stopped: str) -> dict[str, Any]:
        """Lets the learner end the run, tags the last version, and leaves the summary."""
        place, final = self.plan.paths.final, None
        answer = handover.kept(place)
        if answer is None and "finalize" in self.studio.phases and self.lines:
            answer = self.call(Ask("finalize", session=self.session), place)
        if answer is not None:
            found = self.checked(place, answer)
            if found is not None:
                self.told(found, answer, place)
                self.take(found.files, answer, step=len(self.plan.batches) + 1, place=place)
            self.spending.add_final(answer)
            final = steps.final(answer, outcome=outcome(answer, found))
            handover.forget(self.plan.paths.step(self.lines[-1]["step"]))
        self.tree.tag(self.plan.name, "final", commit=self.commit)
        card.write(self.plan, self.tree, self.lines, commit=self.commit, redactor=self.studio.redactor)
        summary = steps.summary(self.plan, self.lines, commit=self.commit, stopped=stopped, spending=self.spending)
        summary |= {"final": final, "scrubbed": self.studio.learner.scrubbed().as_json()}
        write_json(self.plan.paths.summary, self.studio.redactor.value(summary, where="summary.json"))
        return summary


def outcome(answer: Answer, found: Settled | None) -> str:
    """What became of what a call left: ``not taken`` where the call failed, ``nothing`` where it has no result."""
    if found is not None:
        return found.outcome
    return "not taken" if answer.status == "failed" else "nothing"
