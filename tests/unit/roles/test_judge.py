"""The judge's sandbox: what scores an attempt is shown there and nowhere else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hermit.config.tasks import Task
from hermit.domain.bind import Bind
from hermit.domain.trial import RunOutput
from hermit.roles import judge, secrets, task, tool

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hermit.domain.sandbox import Sandbox
    from hermit.roles.secrets import Secret

WORK = "/scratch/one/work"


@pytest.fixture
def loaded(config: Callable[..., Any]) -> Any:
    return config("environment.read=[books]", "environment.write=[state]", "environment.env=[KEY]")


@pytest.fixture
def run_secrets(loaded: Any) -> tuple[Secret, ...]:
    return secrets.of_run(loaded)


@pytest.fixture
def agents(loaded: Any, run_secrets: tuple[Secret, ...]) -> Sandbox:
    return task.sandbox(loaded, work=WORK, adapter=None, secrets=run_secrets)


@pytest.fixture(params=["shared", "separate"])
def judging(request: pytest.FixtureRequest, loaded: Any, agents: Sandbox, run_secrets: tuple[Secret, ...]) -> Sandbox:
    """The judge's sandbox in both modes that have one."""
    if request.param == "shared":
        return judge.shared(loaded, agents, run_secrets)
    return judge.separate(loaded, agents, collected="/scratch/one/collected", work=WORK, secrets=run_secrets)


def test_the_judges_file_and_tests_are_shown_read_only(judging: Sandbox, loaded: Any, tmp_path: Path) -> None:
    declared = {str(path) for path in loaded.environment.read}
    assert set(judging.read) == {*declared, f"{tmp_path}/judge.py", f"{tmp_path}/tests"}


def test_the_agents_own_file_is_not_shown_to_its_judge(judging: Sandbox, agents: Sandbox, tmp_path: Path) -> None:
    assert f"{tmp_path}/agent.py" in agents.read
    assert f"{tmp_path}/agent.py" not in judging.read


def test_the_data_the_splits_and_the_run_stay_hidden_from_the_judge(judging: Sandbox, tmp_path: Path) -> None:
    names = ("data/tasks.jsonl", "data/train.txt", "data/test.txt")
    assert set(judging.probes) == {*(f"{tmp_path}/{name}" for name in names), f"{tmp_path}/runs"}


def test_the_judge_starts_where_the_agent_could_leave_nothing_to_import(judging: Sandbox) -> None:
    assert judging.role == "judge"
    assert judging.cwd == "/tmp"
    assert dict(judging.env) == {"HERMIT_WORK": WORK}


def test_the_judge_has_a_clock_of_its_own(judging: Sandbox, agents: Sandbox) -> None:
    assert judging.limits.wall_s == 120.0
    assert agents.limits.wall_s == 30.0


def test_a_shared_judge_sees_what_the_agent_could_write(
    loaded: Any, agents: Sandbox, run_secrets: tuple[Secret, ...], tmp_path: Path
) -> None:
    sandbox = judge.shared(loaded, agents, run_secrets)
    assert (sandbox.write, sandbox.binds) == ((f"{tmp_path}/state", WORK), ())


def test_a_separate_judge_sees_the_copy_in_place_of_the_work_and_nothing_else_the_agent_wrote(
    loaded: Any, agents: Sandbox, run_secrets: tuple[Secret, ...]
) -> None:
    sandbox = judge.separate(loaded, agents, collected="/scratch/one/collected", work=WORK, secrets=run_secrets)
    assert sandbox.write == ()
    assert sandbox.binds == (Bind("/scratch/one/collected", WORK, writable=True),)
    assert [bind.source for bind in sandbox.mounts if bind.writable] == ["/scratch/one/collected"]


def test_a_judge_on_the_host_gets_the_work_and_its_clock(loaded: Any) -> None:
    sandbox = judge.on_host(loaded, work=WORK)
    assert (sandbox.role, dict(sandbox.env), sandbox.limits.wall_s) == ("judge", {"HERMIT_WORK": WORK}, 120.0)


def test_the_job_holds_the_row_and_what_the_agent_handed_back(loaded: Any, tmp_path: Path) -> None:
    command = judge.command(loaded, Task("a", {"id": "a"}, 1), RunOutput(output="42"), code=b"CODE\n1")
    head, _, code = command.job.partition(b"\n")
    job = json.loads(head)
    assert code == b"CODE\n1"
    assert job["callable"] == f"{tmp_path}/judge.py:score"
    assert job["task"] == {"id": "a"}
    assert job["output"]["output"] == "42"


def test_a_judge_and_a_tool_are_told_no_deadline_of_the_agents(loaded: Any, run_secrets: tuple[Secret, ...]) -> None:
    when = task.Deadline(clock_s=1.0, monotonic_s=2.0)
    agents = task.sandbox(loaded, work=WORK, adapter=None, secrets=run_secrets, deadline=when)
    separate = judge.separate(loaded, agents, collected="/c", work=WORK, secrets=run_secrets)
    for sandbox in (judge.shared(loaded, agents, run_secrets), separate):
        assert [name for name, _ in sandbox.env] == ["HERMIT_WORK"]
    assert set(task.OF_A_CALL) <= set(tool.NOT_A_TOOLS)
