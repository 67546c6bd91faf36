"""One attempt at one task, from the agent's sandbox to the judge's word. Read this first.

The agent runs in the task sandbox and hands back its output. When every process of that sandbox is gone, what the judge
may see of the work is collected, and the judge scores it where the config says. An agent or a judge that fails is a
status with a reason; a sandbox that fails is ours, and has no score.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hermit import untrusted
from hermit.agent.result import Failure
from hermit.domain import codec
from hermit.errors import SandboxError
from hermit.handoff import budget
from hermit.handoff.collect import Collection, collect
from hermit.roles import judge as judge_role
from hermit.roles import task as task_role
from hermit.run.report import Row, Status

if TYPE_CHECKING:
    from hermit.domain.sandbox import Sandbox
    from hermit.domain.trial import JudgeResult, RunOutput
    from hermit.run.bench import Bench, Workspace
    from hermit.run.plan import Attempt


def attempt(bench: Bench, attempt: Attempt) -> Row:
    """Makes one attempt.

    Raises:
        Interrupted: The run was given up meanwhile.
    """
    began = time.monotonic()
    task_id, repeat = attempt.key
    row = Row(id=task_id, repeat=repeat, status=Status.OK, confined=bench.place.confined, judged=judge_mode(bench))
    with bench.workspace(attempt) as workspace:
        trial = Trial(bench, workspace)
        try:
            row = trial.run(row)
        except SandboxError as error:
            words = error.what if not error.where else f"{error.where}: {error.what}"
            row = replace(row, status=Status.SANDBOX_ERROR, phase=trial.phase, cause=error.cause, error=words)
        return replace(row, wall_s=time.monotonic() - began, records=tuple(workspace.records))


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
        came = collection.as_json() if row.judged == "separate" else None
        row = replace(row, missing=collection.missing, dropped=collection.dropped, collected=came)
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
            return Collection()
        wanted = self.bench.plan.config.judge.collect
        try:
            with self.workspace.manifest() as manifest:
                into = str(self.workspace.collected)
                return collect(str(self.workspace.work), wanted, into=into, manifest=manifest)
        except budget.TooMuch as error:
            return Failure("collect", f"there is more in judge.collect than a copy may take: {error}")
        except untrusted.Refused as refused:  # the agent closed its own directory, say
            return Failure("collect", f"its work directory cannot be read: {refused.reason}")
        except OSError as error:
            raise SandboxError(f"the work could not be copied: {error}", cause="collect") from None

    def judge(self, judged: str, task_sandbox: Sandbox, output: RunOutput) -> JudgeResult | Failure:
        """The judge scores the attempt."""
        bench, config = self.bench, self.bench.plan.config
        command = judge_role.command(config, self.workspace.attempt.task, output, code=bench.plan.judge_code)
        work, secrets = str(self.workspace.work), bench.plan.secrets
        if judged == "host":
            value = self.workspace.run(bench.host, judge_role.on_host(config, work=work), command)
        elif judged == "shared":
            value = self.workspace.run(bench.place, judge_role.shared(config, task_sandbox, secrets), command)
        else:
            sandbox = judge_role.separate(
                config, task_sandbox, collected=str(self.workspace.collected), work=work, secrets=secrets
            )
            value = self.workspace.run(bench.place, sandbox, command)
        if isinstance(value, Failure):
            return value
        try:
            return codec.judge_result(value)
        except (TypeError, ValueError) as error:
            return Failure("result", str(error))


def failed(row: Row, failure: Failure, *, status: Status, phase: str) -> Row:
    """The row of an attempt that failed in a phase."""
    return replace(row, status=status, phase=phase, cause=failure.cause, error=failure.error)
