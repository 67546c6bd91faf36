"""The task sandbox shows what the task declares, and nothing that scores it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hermit.config.tasks import Task
from hermit.domain.network import Network
from hermit.domain.sandbox import Enforce
from hermit.roles import secrets, task

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hermit.domain.sandbox import Sandbox

WORK = "/scratch/one/work"


@pytest.fixture
def made(config: Callable[..., Any]) -> Callable[..., Sandbox]:
    """The task sandbox of a config with these overrides."""

    def make(*overrides: str, adapter: str | None = None) -> Sandbox:
        loaded = config(*overrides)
        return task.sandbox(loaded, work=WORK, adapter=adapter, secrets=secrets.of_run(loaded))

    return make


def test_the_agents_file_and_nothing_else_is_shown_read_only_by_default(
    made: Callable[..., Sandbox], tmp_path: Path
) -> None:
    assert made().read == (f"{tmp_path}/agent.py",)


def test_declared_paths_and_the_adapter_are_shown_read_only(made: Callable[..., Sandbox], tmp_path: Path) -> None:
    sandbox = made("environment.read=[books, /srv/data]", adapter="/scratch/adapter")
    assert sandbox.read == tuple(sorted(["/scratch/adapter", "/srv/data", f"{tmp_path}/agent.py", f"{tmp_path}/books"]))


def test_only_the_work_directory_and_declared_paths_are_writable(made: Callable[..., Sandbox], tmp_path: Path) -> None:
    assert made().write == (WORK,)
    assert made("environment.write=[state]").write == (f"{tmp_path}/state", WORK)


def test_the_data_the_judge_its_tests_and_the_run_are_probed(made: Callable[..., Sandbox], tmp_path: Path) -> None:
    wanted = {f"{tmp_path}/{name}" for name in ("data/tasks.jsonl", "data/train.txt", "data/test.txt")}
    wanted |= {f"{tmp_path}/judge.py", f"{tmp_path}/tests", f"{tmp_path}/runs"}
    assert set(made().probes) == wanted


def test_a_secret_named_by_a_link_is_probed_by_both_its_names(made: Callable[..., Sandbox], tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "tests").symlink_to("elsewhere")
    assert {f"{tmp_path}/tests", f"{tmp_path}/elsewhere"} <= set(made().probes)


def test_it_starts_in_the_work_directory_and_names_it_in_a_variable(made: Callable[..., Sandbox]) -> None:
    sandbox = made()
    assert (sandbox.role, sandbox.cwd, sandbox.env) == ("task", WORK, (("HERMIT_WORK", WORK),))


def test_only_named_variables_pass(made: Callable[..., Sandbox], config: Callable[..., Any]) -> None:
    sandbox = made("environment.env=[MODEL_KEY, MWM_*]")
    assert [name for name in ("MODEL_KEY", "MWM_A", "HOME", "MODEL_KEY2") if sandbox.passes(name)] == [
        "MODEL_KEY",
        "MWM_A",
    ]
    assert not made().passes("HOME")
    assert task.passes(config("environment.env=[MWM_*]"), "MWM_A")
    assert not task.passes(config("environment.env=[MWM_*]"), "AMWM_A")


def test_the_network_is_closed_unless_it_is_declared_public(made: Callable[..., Sandbox]) -> None:
    assert made().network is Network.ISOLATED
    assert made("environment.network=public").network is Network.OPEN


def test_the_limits_are_the_resources_with_the_agents_clock(made: Callable[..., Sandbox]) -> None:
    limits = made("environment.resources={memory_mb: 64, file_mb: 3, cpu_s: 7, pids: 9}").limits
    assert (limits.memory_mb, limits.file_mb, limits.cpu_s, limits.pids, limits.wall_s) == (64, 3, 7, 9, 30.0)
    assert made("agent.timeout_min=null").limits.wall_s is None
    assert made().limits.pids == 512


def test_enforcing_is_required_unless_the_config_says_best_effort(made: Callable[..., Sandbox]) -> None:
    assert made().enforce is Enforce.REQUIRED
    assert made("sandbox.enforce=best_effort").enforce is Enforce.BEST_EFFORT


def test_the_job_holds_the_row_the_parameters_and_the_adapter(config: Callable[..., Any], tmp_path: Path) -> None:
    loaded = config()
    row = Task("a", {"id": "a", "x": 1}, 1)
    command = task.command(loaded, row, adapter="/scratch/adapter", base=str(tmp_path), code=b"CODE\n1")
    job, _, code = command.job.partition(b"\n")
    assert code == b"CODE\n1"
    assert json.loads(job) == {
        "callable": f"{tmp_path}/agent.py:run",
        "task": {"id": "a", "x": 1},
        "adapter": "/scratch/adapter",
        "params": {"model": "m"},
        "base": str(tmp_path),
    }


def test_a_callable_of_a_package_is_no_file(config: Callable[..., Any]) -> None:
    assert task.file_of("package.module:Name") is None
    assert task.file_of("/a:b/agent.py:Name") == "/a:b/agent.py"
    assert task.declared(config("agent.name=package.module:Name")) == ()


def test_every_declared_path_is_named_with_its_key(config: Callable[..., Any], tmp_path: Path) -> None:
    loaded = config("environment.read=[r]", "environment.write=[w]")
    assert task.declared(loaded) == (
        ("environment.read", f"{tmp_path}/r"),
        ("environment.write", f"{tmp_path}/w"),
        ("agent.name", f"{tmp_path}/agent.py"),
    )


def test_an_agent_is_told_when_it_is_stopped(config: Callable[..., Any]) -> None:
    loaded = config()
    when = task.Deadline(clock_s=1_700_000_000.5, monotonic_s=12.25)
    told = task.sandbox(loaded, work=WORK, adapter=None, secrets=(), deadline=when).env
    assert {("HA_DEADLINE", "1700000000.500"), ("HA_DEADLINE_MONOTONIC", "12.250")} <= set(told)
