"""Where a training run works: the bench for its attempts, the learner with its desk, and what the learner may ask for."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import tempfile
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermit import sandbox as sandboxes
from hermit.adapter import files as adapter_files
from hermit.agent.result import Failure
from hermit.domain.sandbox import Enforce
from hermit.handoff.carry import carry
from hermit.handoff.collect import collect
from hermit.handoff.redact import Found
from hermit.handoff.remove import remove
from hermit.roles import tool as tool_role
from hermit.run import adapter_check, handover, learner_tools, material, tools
from hermit.run import bench as benches
from hermit.run.adapter_check import Strict
from hermit.run.bench import Borrowed, lend
from hermit.run.evaluate import Evaluation, rows_at
from hermit.run.learner import Ask, Desk, Learner, Traits, laid
from hermit.run.paths import flush, make_directory, write_atomically
from hermit.run.report import kept_rows
from hermit.run.served import Returned
from hermit.run.spending import cost_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from hermit.adapter.files import Files
    from hermit.config.tasks import Task
    from hermit.domain.record import Record
    from hermit.handoff.budget import Budget
    from hermit.handoff.collect import Collection
    from hermit.handoff.redact import Redactor
    from hermit.run.bench import Bench, Stop
    from hermit.run.capacity import Admission
    from hermit.run.evaluate import Progress
    from hermit.run.handover import Answer
    from hermit.run.paths import RunPaths
    from hermit.run.place import InImage
    from hermit.run.served import Served
    from hermit.run.train_paths import StepPaths
    from hermit.run.training import TrainPlan
    from hermit.sandbox import Place


@dataclass
class Studio:
    """Where a training run works.

    Args:
        plan: What is trained.
        bench: Where attempts are made.
        desk: The learner's workspace on the host.
        admission: Lets attempts begin while their memory is there.
        show: Is told of each attempt.
    """

    plan: TrainPlan
    bench: Bench
    desk: Desk
    admission: Admission
    show: Callable[[Progress], None]
    _place: StepPaths | None = field(default=None, init=False)
    _rollouts: int = field(default=0, init=False)
    _writing: threading.Lock = field(default_factory=threading.Lock, init=False)
    _attempting: threading.Lock = field(default_factory=threading.Lock, init=False)

    @property
    def redactor(self) -> Redactor:
        """What takes the keys out of everything that is kept."""
        return self.bench.redactor

    def scrub(self, data: bytes, where: str) -> bytes:
        """Takes the keys out of a file of an adapter."""
        return self.redactor.data(data, where=where)

    @property
    def strict(self) -> Strict:
        """Where the code of an adapter is run."""
        enforce = Enforce(self.plan.config.sandbox.enforce)
        return Strict(self.bench.place, enforce, scratch=str(self.bench.exchange), cancel=self.bench.stop.descriptor)

    @functools.cached_property
    def learner(self) -> Learner:
        """The learner."""
        return Learner(
            config=self.plan.config,
            method=self.plan.learner.method,
            desk=self.desk,
            place=self.bench.place,
            secrets=self.plan.rollouts.secrets,
            models=self.plan.learner.models,
            redactor=self.redactor,
            hidden=self.plan.rollouts.hidden,
            keep=self._keep,
            log=self._log,
        )

    @functools.cached_property
    def traits(self) -> Traits:
        """What the learner's class says of itself."""
        return self.learner.traits()

    @property
    def phases(self) -> tuple[str, ...]:
        """The calls that the learner's class defines."""
        return self.traits.phases

    # Attempts

    def attempts(
        self, tasks: Sequence[Task], place: RunPaths, files: Files, *, stop: Borrowed | None = None
    ) -> list[dict[str, Any]]:
        """The rows of an attempt at each task with an adapter, in the order of the tasks; those made before are not repeated."""
        make_directory(place.evaluation)
        with self._with_adapter(files, tasks, place) as own:
            bench = own if stop is None else replace(own, stop=stop)
            run = Evaluation.resumed(bench.plan, self.show)
            run.tell()
            if run.ahead():
                with contextlib.closing(rows_at(bench, run.ahead(), self.admission)) as rows:
                    run.keep(rows, bench.stop)
            run.conclude()
        return list(kept_rows(place.results))

    @contextlib.contextmanager
    def _with_adapter(self, files: Files, tasks: Sequence[Task], place: RunPaths) -> Iterator[Bench]:
        """The bench with a frozen adapter, which is gone afterwards."""
        directory = Path(tempfile.mkdtemp(prefix="adapter-", dir=self.bench.exchange))
        try:
            adapter = str(directory / "adapter")
            os.mkdir(adapter)
            files.write(adapter)
            lend(directory, self.bench.place)
            plan = replace(self.plan.rollouts, tasks=tuple(tasks), paths=place)
            yield replace(self.bench, plan=plan, adapter=adapter)
        finally:
            remove(str(directory))

    # The learner

    def prepare(self, files: Files, history: Iterable[tuple[dict[str, Any], str]]) -> None:
        """Lays out on the desk what the next call is shown."""
        handover.put_adapter(self.desk, files)
        handover.put_history(self.desk, history)
        if self.plan.paths.material.is_dir():
            handover.put_material(self.desk, self.plan.paths)

    def call(self, ask: Ask, place: StepPaths) -> Answer:
        """One call of the learner; what it printed is kept.

        Raises:
            SandboxError: Its sandbox failed.
            Interrupted: The run was given up.
        """
        self._place, self._rollouts = place, 0
        make_directory(place.evaluation)
        remove(str(place.rollouts))  # of a call that was cut off, and is now made anew
        for left in (place.tools, place.printed("out"), place.printed("err")):
            left.unlink(missing_ok=True)
        if ask.phase not in self.phases and ask.phase != "step":
            return handover.Answer(phase=ask.phase)
        called = self.learner.call(ask, self.traits, tools=self._tools(), cancel=self.bench.stop.descriptor)
        for stream, data in (("out", called.stdout), ("err", called.stderr)):
            if data:
                write_atomically(place.printed(stream), data)
        answer = handover.answer_of(ask.phase, called)
        if not self._rollouts:
            return answer
        # By the rows: what was stopped half-way, or says of some attempts alone what they cost, is in them too.
        files = sorted(place.rollouts.glob("*/results.jsonl"))
        spent = cost_of(row for file in files for row in kept_rows(file))
        return replace(answer, meters={**answer.meters, "run_agent": {**answer.meters.get("run_agent", {}), **spent}})

    def keep(self, place: StepPaths, answer: Answer) -> Answer:
        """Keeps what a call left; the next one finds what was kept, as it would in another process."""
        scratch = self.bench.scratch
        answer = handover.keep(self.desk, place, answer, copy=self._copy, redactor=self.redactor, scratch=scratch)
        if any(not reason.startswith("adapter: ") for reason in answer.dropped):
            handover.put_back(self.desk, place)
        return answer

    def _copy(self, source: str, into: str, limits: Budget) -> Collection:
        """Copies what a learner left: inside a sandbox that sees nothing else, where one can be had."""
        place = self.bench.place
        if not place.confined:
            return collect(source, ["."], into=into, limits=limits)
        return carry(place, source, into=into, limits=limits, keep=self._keep, cancel=self.bench.stop.descriptor)

    def _keep(self, record: Record) -> None:
        self.bench.keep_record(record, of=(self._place.selector if self._place else "learner", 0), found=Found())

    def _log(self, row: dict[str, Any]) -> None:
        """Leaves a line of a call of a tool."""
        assert self._place is not None  # noqa: S101 - a tool is called during a call
        line = json.dumps(self.redactor.value(row, where="tools.jsonl"))
        with self._writing, self._place.tools.open("a", encoding="ascii") as file:
            file.write(f"{line}\n")
            file.flush()
            flush(file.fileno())

    # What it may ask for

    def _tools(self) -> tuple[Served, ...]:
        return (
            learner_tools.check_spec(self._check_spec),
            learner_tools.run_agent(self._run_agent),
            *self._of_template(),
            *self._of_task(),
        )

    def _check_spec(self, argument: dict[str, Any], cancel: int) -> Returned:
        template = self.plan.template
        reading = adapter_files.read(argument["adapter"], structure=template.manifest.structure)
        report = adapter_check.check_spec(reading, template, where=replace(self.strict, cancel=cancel))
        return Returned(report.as_json())

    def _run_agent(self, argument: dict[str, Any], cancel: int) -> Returned | Failure:
        """Attempts at tasks of the training split with an adapter of the learner's; a call at a time."""
        known = {task.id: task for task in self.plan.rollouts.tasks}
        unknown = [name for name in argument["tasks"] if name not in known]
        if unknown:
            return Failure("argument", f"{unknown[0]!r:.80} is no task of the training split")
        reading = adapter_files.read(argument["adapter"], structure=self.plan.template.manifest.structure)
        assert self._place is not None  # noqa: S101 - a tool is called during a call
        tasks = [known[name] for name in dict.fromkeys(argument["tasks"])]
        with self._attempting:  # a call at a time: agent.concurrency bounds all attempts
            self._rollouts += 1
            place = self._place.rollout(self._rollouts)
            rows = self.attempts(tasks, place, reading.files, stop=Borrowed(cancel))
        told = [{"id": row["id"], **material.shown(row)} for row in rows]
        costs = [row["cost_usd"] for row in rows]
        cost = None if None in costs else sum(costs)
        logs = Path(argument["adapter"]).with_name("logs-shown")  # beside that copy, and gone with it
        logs.mkdir()
        for row in rows:
            kept = place.logs(row["id"], row["repeat"])
            material.copy_logs(kept, logs / kept.name)
        return Returned({"attempts": told}, cost_usd=cost, logs=str(logs))

    def _of_template(self) -> Iterator[Served]:
        root, adapter = self.desk.part("root"), self.desk.part("adapter")
        for name in self.plan.template.manifest.evolver_tools:
            tool = tools.declared(f"{root}/{name}", key="evolver_tools")
            enforce = Enforce(self.plan.config.sandbox.enforce)
            sandbox = tool_role.of_template(tool, template=str(root), adapter=str(adapter), enforce=enforce)
            yield learner_tools.declared(tool, place=self.bench.place, sandbox=sandbox, keep=self._keep)

    def _of_task(self) -> Iterator[Served]:
        for tool in self.plan.learner.tools:
            sandbox = tool_role.of_task(
                self.plan.config,
                tool,
                adapter=str(self.desk.part("adapter")),
                secrets=self.plan.rollouts.secrets,
                hidden=self.plan.rollouts.hidden,
            )
            yield learner_tools.declared(tool, place=self.bench.place, sandbox=sandbox, keep=self._keep)


@contextlib.contextmanager
def opened(
    plan: TrainPlan,
    where: Place | InImage,
    *,
    stop: Stop,
    admission: Admission,
    show: Callable[[Progress], None],
) -> Iterator[Studio]:
    """A studio for one run; the desk and the containers are gone afterwards, and what the learner left has no key in it.

    Raises:
        ConfigError: The method or the template cannot be copied; the learner's class cannot be used.
        PlaceError: The containers of the run cannot be started.
    """
    host = sandboxes.unconfined("the judge runs on the host")
    with benches.opened(plan.rollouts, where, host, stop=stop) as bench:
        directory = bench.exchange / "desk"
        directory.mkdir()
        written = bench.scratch / "template"
        written.mkdir()
        plan.template.files.write(str(written))
        desk = laid(directory, plan.learner.method, template=written)
        handover.put_task_info(desk, plan.config.task_info)
        handover.put_validation(desk, plan.validation)
        yield Studio(plan, bench, desk, admission, show)
