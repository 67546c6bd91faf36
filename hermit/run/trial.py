"""One attempt at one task, from the agent's sandbox to the judge's word. Read this first.

The agent runs in the task sandbox and hands back its output. When every process of that sandbox is gone, what the judge
may see of the work is collected, and the judge scores it where the config says. An agent or a judge that fails is a
status with a reason; a sandbox that fails is ours, and has no score.
"""

from __future__ import annotations

import errno
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hermit.agent.result import Failure
from hermit.domain import codec
from hermit.errors import SandboxError
from hermit.handoff import sanitize
from hermit.handoff.collect import Collection, collect
from hermit.roles import judge as judge_role
from hermit.roles import task as task_role
from hermit.run.bench import lend
from hermit.run.report import Row, Status

# How often an attempt is made whose container ends under it.
TRIES = 3
FULL = (errno.ENOSPC, errno.EDQUOT)

if TYPE_CHECKING:
    from hermit.domain.sandbox import Sandbox
    from hermit.domain.trial import JudgeResult, RunOutput
    from hermit.run.bench import Bench, Workspace
    from hermit.run.plan import Attempt


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
    row = Row(id=task_id, repeat=repeat, status=Status.OK, confined=bench.place.confined, judged=judge_mode(bench))
    phase = "agent"
    try:
        with bench.workspace(attempt) as workspace:
            trial = Trial(bench, workspace)
            try:
                return trial.run(row), False
            finally:
                phase = trial.phase
                records.extend(workspace.records)
    except SandboxError as error:
        words = error.what if not error.where else f"{error.where}: {error.what}"
        return replace(row, status=Status.SANDBOX_ERROR, phase=phase, cause=error.cause, error=words), error.again
    except OSError as error:
        if error.errno not in FULL:
            raise
        return replace(row, status=Status.SANDBOX_ERROR, phase=phase, cause="disk full", error=str(error)), False


def judge_mode(bench: Bench) -> str:
    """Where the judge runs: where the config says, and on the host where nothing is confined."""
    return bench.plan.config.judge.mode if bench.place.confined else "host"


@dataclass
class Trial:
    """The steps of one attempt, and which of them it is in."""

    bench: Bench
    workspace: Workspace
    phase: str = "agent"

    def run(self, row: Row) -> Row:
        """Acts, collects, judges."""
        sandbox = self.task_sandbox()
        output = self.act(sandbox)
        if isinstance(output, Failure):
            status = Status.TIMEOUT if output.cause == "timeout" else Status.AGENT_ERROR
            return failed(row, output, status=status, phase="agent")
        row = replace(row, output=output)
        self.phase = "collect"
        collection = self.collect(row.judged)
        if isinstance(collection, Failure):
            return failed(row, collection, status=Status.AGENT_ERROR, phase="collect")
        row = replace(row, missing=collection.missing, dropped=collection.dropped)
        self.phase = "judge"
        result = self.judge(row.judged, sandbox, output)
        if isinstance(result, Failure):
            return failed(row, result, status=Status.JUDGE_ERROR, phase="judge")
        return replace(row, judge=result)

    def task_sandbox(self) -> Sandbox:
        """The sandbox the agent gets."""
        plan = self.bench.plan
        return task_role.sandbox(
            plan.config,
            work=str(self.workspace.work),
            adapter=self.bench.adapter,
            secrets=plan.secrets,
            hidden=plan.hidden,
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
        value = self.workspace.run(self.bench.place, sandbox, command)
        if isinstance(value, Failure):
            return value
        try:
            return codec.run_output(value)
        except TypeError as error:
            return Failure("result", str(error))

    def collect(self, judged: str) -> Collection | Failure:
        """What a separate judge gets, copied out of the work; the work itself stays as the agent left it."""
        if judged != "separate":
            return Collection((), 0, 0, ())
        wanted = self.bench.plan.config.judge.collect
        try:
            collection = collect(str(self.workspace.work), wanted, into=str(self.workspace.collected))
            lend(self.workspace.collected, self.bench.judge_place)
        except sanitize.TooMuch as error:
            return Failure("collect", f"there is more in judge.collect than a copy may take: {error}")
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
            value = self.workspace.run(bench.host, judge_role.on_host(config, work=work), command)
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


def failed(row: Row, failure: Failure, *, status: Status, phase: str) -> Row:
    """The row of an attempt that failed in a phase."""
    return replace(row, status=status, phase=phase, cause=failure.cause, error=failure.error)
