"""A template's tool gets a strict sandbox; a task's tool gets what the task declares, and never what scores it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hermit.domain.network import Network
from hermit.domain.sandbox import Enforce
from hermit.roles import secrets, tool
from hermit.roles.tool import Tool

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TOOL = Tool(file="/templates/base/tools/measure.py", name="measure", timeout_s=7.0)


def test_a_templates_tool_reads_its_directory_and_the_template_and_writes_the_adapter_alone() -> None:
    made = tool.of_template(TOOL, template="/templates/base", adapter="/run/adapter", enforce=Enforce.REQUIRED)
    assert made.role == "tool"
    assert made.read == ("/templates/base", "/templates/base/tools")
    assert made.write == ("/run/adapter",)
    assert (made.network, made.allowed_hosts, made.env, made.env_allow, made.framework) == (
        Network.ISOLATED,
        (),
        (),
        (),
        False,
    )
    assert made.limits.wall_s == 7.0
    assert made.recorded


@pytest.fixture
def loaded(config: Callable[..., Any]) -> Any:
    return config(
        "environment.read=[books]",
        "environment.write=[state]",
        "environment.env=[TOOL_URL]",
        "environment.network=allowlist",
        "environment.allowed_hosts=[api.example.com]",
        "environment.resources={pids: 9}",
    )


def test_a_tasks_tool_gets_the_environment_its_own_file_and_the_adapter_to_read(loaded: Any, tmp_path: Path) -> None:
    made = tool.of_task(loaded, TOOL, adapter="/run/adapter", secrets=(), hidden=("bench.scoring",))
    assert set(made.read) == {f"{tmp_path}/books", TOOL.file, "/run/adapter"}
    assert (made.write, made.binds) == ((f"{tmp_path}/state",), ())
    assert (made.env_allow, made.allowed_hosts, made.limits.pids) == (("TOOL_URL",), ("api.example.com",), 9)
    assert (made.limits.wall_s, made.hide, made.role) == (7.0, ("bench.scoring",), "tool")
    assert {name for name, _ in made.env} == {"HA_SANDBOX_HIDE"}


def test_a_tasks_tool_proves_the_secrets_absent(loaded: Any, tmp_path: Path) -> None:
    kept = secrets.of_run(loaded)
    made = tool.of_task(loaded, TOOL, adapter=None, secrets=kept)
    assert {f"{tmp_path}/data/tasks.jsonl", f"{tmp_path}/judge.py"} <= set(made.probes)
    assert not set(made.read) & set(made.probes)
