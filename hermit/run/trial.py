"""One attempt at one task, from the agent's sandbox to the judge's word. Read this first.

The agent runs in the task sandbox and hands back its output. When every process of that sandbox is gone, what the judge
may see of the work is collected, and the judge scores it where the config says. An agent or a judge that fails is a
status with a reason; a sandbox that fails is ours, and has no score.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hermit import sandbox as sandboxes
from hermit import untrusted
from hermit.agent.result import Failure
from hermit.domain import attempt as ways
from hermit.domain import codec
from hermit.domain.attempt import Phase, Status
from hermit.domain.trial import JudgeResult, RunOutput
from hermit.errors import SandboxError
from hermit.handoff import budget
from hermit.handoff.collect import Collection, collect
from hermit.roles import judge as judge_role
from hermit.roles import task as task_role
from hermit.run import changes
from hermit.run.bench import lend
from hermit.run.report import Row
from hermit.unconfined import Unconfined

# How often an attempt is made whose container ends under it.
TRIES = 3
FULL = (errno.ENOSPC, errno.EDQUOT)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermit.domain.sandbox import Sandbox
    from hermit.handoff.redact import Found, Redactor
    from hermit.run.bench import Bench, Workspace
    from hermit.run.plan import Attempt

RUNNER_HOST = "environment.runner is host"


def attempt(bench: Bench, attempt: Attempt) -> Row:
    """Makes one attempt; where the container ended under it, anew, a bounded number of times.

    Raises:
        Interrupted: The run was given up meanwhile.
    """
    began = time.monotonic()
    records: list[str] = []
    for left in reversed(range(TRIES)):
        row, lost = _tried(bench, attempt, records)
        if not (lost and left):
            break
    return replace(row, wall_s=time.monotonic() - began, records=tuple(records))


def _tried(bench: Bench, attempt: Attempt, records: list[str]) -> tuple[Row, bool]:
    """One attempt, and whether it was lost with its container."""
    task_id, repeat = attempt.key
    judged, judge_on_host = where_judged(bench)
    on_host = host_reason(bench)
    row = Row(
        id=task_id,
        repeat=repeat,
        status=Status.OK,
        confined=not on_host,
        judged=judged,
        on_host=on_host,
        judge_on_host=judge_on_host,
    )
    phase = Phase.PREPARE
    try:
        with bench.workspace(attempt) as workspace:
            trial = Trial(bench, workspace)
            ended, again = _ended(trial, row)
            records.extend(workspace.records)
            seen = replace(ended, alone=trial.alone, left=trial.left, evidence=tuple(workspace.evidence))
            phase = Phase.REPORT
            row = without_keys(seen, bench.redactor, workspace.found)
            workspace.keep_messages(row.output.messages if row.output else [])
            workspace.report_scrubbed()
            return row, again
    except OSError as error:  # around the steps: the workspace could not be made, or what was scrubbed not be told
        return broken(row, phase, error), False


def _ended(trial: Trial, row: Row) -> tuple[Row, bool]:
    """How the steps of an attempt ended, and whether its container was lost on the way."""
    try:
        return trial.run(row), False
    except SandboxError as error:
        return broken(row, trial.phase, error), error.again
    except OSError as error:
        return broken(row, trial.phase, error), False


def broken(row: Row, phase: Phase, error: SandboxError | OSError) -> Row:
    """The row of an attempt that its sandbox or this machine broke."""
    if isinstance(error, OSError):
        cause, words = "disk full" if error.errno in FULL else "host", str(error)
    else:
        cause, words = ways.ours(error.cause), error.what if not error.where else f"{error.where}: {error.what}"
    if phase is Phase.AGENT and cause in ways.BEFORE_READY:
        phase = Phase.START
    return replace(row, status=Status.SANDBOX_ERROR, phase=phase, cause=cause, error=words)


def without_keys(row: Row, redactor: Redactor, found: Found) -> Row:
    """The row as it is kept: what the agent, the judge and the errors say, without a key in it."""
    if not redactor:
        return row

    def scrubbed(part: str, value: Any) -> Any:
        return redactor.value(value, found=found, where=f"results.jsonl: {part}")

    words = None if row.error is None else redactor.text(row.error, found=found, where="results.jsonl: error", cut=True)
    return replace(
        row,
        output=None if row.output is None else RunOutput(**scrubbed("output", vars(row.output))),
        judge=None if row.judge is None else JudgeResult(**scrubbed("judge", vars(row.judge))),
        error=words,
        left=scrubbed("left", row.left),
        missing=tuple(scrubbed("missing", row.missing)),
    )


def host_reason(bench: Bench) -> str:
    """Why the agent runs on the host; empty where it runs in a sandbox."""
    if bench.plan.config.environment.runner == "host":
        return RUNNER_HOST
    backend = bench.place.backend if not bench.place.confined else None
    return backend.reason if isinstance(backend, Unconfined) else ""


def where_judged(bench: Bench) -> tuple[str, str]:
    """Where the judge runs, and why there where that is not what the config says."""
    mode, reason = bench.plan.config.judge.mode, host_reason(bench)
    if mode == "host" or not reason:
        return mode, ""
    return "host", f"judge.mode {mode} needs the sandbox of the agent, and {reason}"


@dataclass
class Trial:
    """The steps of one attempt, which of them it is in, and what was seen on the way."""

    bench: Bench
    workspace: Workspace
    phase: Phase = Phase.PREPARE
    alone: bool | None = None
    left: dict[str, Any] | None = None

    def run(self, row: Row) -> Row:
        """Acts, collects, judges."""
        sandbox = self.task_sandbox()
        self.phase = Phase.AGENT
        try:
            output = self.act(sandbox)
        finally:
            with self.during(Phase.REPORT):
                self.keep_logs()
        if isinstance(output, Failure):
            status = Status.TIMEOUT if output.cause == "timeout" else Status.AGENT_ERROR
            return failed(row, output, status=status, phase=Phase.AGENT)
        row = replace(row, output=output)
        self.refuse_survivors()
        self.phase = Phase.COLLECT
        collection = self.collect()
        if isinstance(collection, Failure):
            return failed(row, collection, status=Status.AGENT_ERROR, phase=Phase.COLLECT)
        came = collection.as_json() if self.bench.plan.config.judge.mode == "separate" else None
        row = replace(row, missing=collection.missing, dropped=collection.dropped, collected=came)
        if collection.missing:
            words = f"nothing came of {', '.join(collection.missing)}, which judge.collect names"
            return failed(row, Failure("missing", words), status=Status.AGENT_ERROR, phase=Phase.COLLECT)
        self.phase = Phase.JUDGE
        result = self.judge(row.judged, sandbox, output)
        if isinstance(result, Failure):
            return failed(row, result, status=Status.JUDGE_ERROR, phase=Phase.JUDGE)
        return replace(row, judge=result)

    @contextlib.contextmanager
    def during(self, phase: Phase) -> Iterator[None]:
        """Something that belongs to another phase: what fails in it is told as that phase's."""
        before, self.phase = self.phase, phase
        yield
        self.phase = before

    def task_sandbox(self) -> Sandbox:
        """The sandbox the agent gets."""
        plan = self.bench.plan
        return task_role.sandbox(
            plan.config,
            work=str(self.workspace.work),
            adapter=self.bench.adapter,
            secrets=plan.secrets,
            hidden=plan.hidden,
            logs=str(self.workspace.logs),
            renamed=not host_reason(self.bench),
            deadline=deadline(plan.config.agent.timeout_min),
        )

    def act(self, sandbox: Sandbox) -> RunOutput | Failure:
        """The agent attempts the task; its sandbox is empty when this returns."""
        plan = self.bench.plan
        command = task_role.command(
            plan.config,
            self.workspace.attempt.task,
            adapter=self.bench.adapter,
            base=str(plan.base),
            code=plan.agent_code,
        )
        place = self.bench.place if plan.config.environment.runner == "sandbox" else sandboxes.unconfined(RUNNER_HOST)
        shared = [str(path) for path in plan.config.environment.write]
        before = changes.noted(shared)
        try:
            value = self.workspace.run(place, sandbox, command)
        finally:
            self.left = changes.between(before, changes.noted(shared)) if shared else None
        if isinstance(value, Failure):
            return value
        try:
            return codec.run_output(value)
        except TypeError as error:
            return Failure("result", str(error))

    def keep_logs(self) -> None:
        """A copy of the logs of the call, beside the results."""
        if os.listdir(self.workspace.logs):
            self.workspace.keep_logs()

    def refuse_survivors(self) -> None:
        """Says whether every process of the agent has ended, which is what lets a judge start.

        Raises:
            SandboxError: It is not known that all of them have.
        """
        self.alone = self.workspace.ended
        if not self.alone:
            what = "it could not be shown that every process of the agent has ended, so no judge was started"
            raise SandboxError(what, cause="survivors")

    def collect(self) -> Collection | Failure:
        """What a separate judge gets, copied out of the work; the work itself stays as the agent left it."""
        config = self.bench.plan.config
        if config.judge.mode != "separate":
            return Collection()
        into = str(self.workspace.collected)
        try:
            with self.workspace.manifest() as manifest:
                collection = collect(str(self.workspace.work), config.judge.collect, into=into, manifest=manifest)
            lend(self.workspace.collected, self.bench.judge_place)
        except budget.TooMuch as error:
            return Failure("collect", f"there is more in judge.collect than a copy may take: {error}")
        except untrusted.Refused as refused:  # the agent closed its own directory, say
            return Failure("collect", f"its work directory cannot be read: {refused.reason}")
        except OSError as error:
            cause = "disk full" if error.errno in FULL else "collect"
            raise SandboxError(f"the work could not be copied: {error}", cause=cause) from None
        return collection

    def judge(self, judged: str, task_sandbox: Sandbox, output: RunOutput) -> JudgeResult | Failure:
        """The judge scores the attempt."""
        bench, config = self.bench, self.bench.plan.config
        command = judge_role.command(config, self.workspace.attempt.task, output, code=bench.plan.judge_code)
        work, secrets = str(self.workspace.work), bench.plan.secrets
        if judged == "host":
            # One that was to be separate gets what was collected here too, and nothing else.
            given = str(self.workspace.collected) if config.judge.mode == "separate" else work
            value = self.workspace.run(bench.host, judge_role.on_host(config, work=given), command)
        elif judged == "shared":
            value = self.workspace.run(bench.judge_place, judge_role.shared(config, task_sandbox, secrets), command)
        else:
            sandbox = judge_role.separate(
                config, task_sandbox, collected=str(self.workspace.collected), work=work, secrets=secrets
            )
            value = self.workspace.run(bench.judge_place, sandbox, command)
        if isinstance(value, Failure):
            return value
        try:
            return codec.judge_result(value)
        except (TypeError, ValueError) as error:
            return Failure("result", str(error))


def deadline(timeout_min: float | None) -> task_role.Deadline | None:
    """When a call that is started now is stopped; the host counts from the moment its sandbox is ready, a little later."""
    if timeout_min is None:
        return None
    seconds = timeout_min * 60
    return task_role.Deadline(time.time() + seconds, time.monotonic() + seconds)


def failed(row: Row, failure: Failure, *, status: Status, phase: Phase) -> Row:
    """The row of an attempt that failed in a phase."""
    return replace(row, status=status, phase=phase, cause=failure.cause, error=failure.error)
