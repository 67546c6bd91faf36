"""The learner's sandbox: its workspace under fixed names, its models and tools, and nothing that only others may see."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hermit.domain.bind import Bind
from hermit.domain.network import Forward, Network
from hermit.domain.pathmap import Layout
from hermit.domain.sandbox import Enforce
from hermit.errors import ConfigError
from hermit.roles import evolver, models, secrets

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PLACES = evolver.Places(
    base="/x/desk",
    parts=tuple((name, f"/x/desk/{name}") for name in (*evolver.WRITABLE, *evolver.READABLE)),
    validation="/x/desk/validation",
    environment=(("sim", "/data/sim"),),
)


def made(config: Any, **more: Any) -> Any:
    return evolver.sandbox(config, PLACES, **{"secrets": (), "socket": "/x/tools.sock", **more})


def test_the_workspace_has_fixed_names_of_which_the_learners_are_writable(config: Callable[..., Any]) -> None:
    sandbox = made(config())
    shown = {bind.target: (bind.source, bind.writable) for bind in sandbox.binds}
    assert {target for target, (_, writable) in shown.items() if writable} == {
        "/w/adapter", "/w/state", "/w/scratch", "/w/output", "/w/home",
    }  # fmt: skip
    assert {target for target, (_, writable) in shown.items() if not writable} == {
        "/w/material", "/w/task-info", "/w/history", "/w/method", "/w/root", "/w/agent-logs", "/w/validation", "/w/environment/sim",
    }  # fmt: skip
    assert shown["/w/environment/sim"] == ("/data/sim", False)
    assert (sandbox.role, sandbox.cwd, sandbox.layout) == ("evolver", "/w", Layout("/x/desk", "/w"))
    assert (sandbox.read, sandbox.write, sandbox.framework, sandbox.packages) == ((), (), False, ())


def test_the_network_reaches_the_models_the_tools_and_the_hosts_of_the_config(config: Callable[..., Any]) -> None:
    loaded = config(
        "sandbox.evolver.allowed_hosts=[docs.example.org]",
        "environment.allowed_hosts=[a.example.org]",
        "environment.network=allowlist",
    )
    known = models.of_learner(loaded, {"models": ["openai/a", "vllm/b"]}, environ={})
    sandbox = made(loaded, models=known)
    assert sandbox.network is Network.ISOLATED
    assert sandbox.allowed_hosts == ("api.openai.com", "docs.example.org")
    assert sandbox.forwards == (Forward(7321, "/x/tools.sock"), Forward(8000))


def test_the_variables_are_those_of_the_config_and_the_models_keys(config: Callable[..., Any]) -> None:
    loaded = config("sandbox.evolver.env=['MWM_*']", "environment.env=[TASK_KEY]")
    known = models.of_learner(loaded, {"model": "openai/a"}, environ={})
    sandbox = made(loaded, models=known, hidden=("bench.scoring",))
    assert sandbox.env_allow == ("MWM_*", "OPENAI_API_KEY")
    assert dict(sandbox.env) == {
        "HOME": "/w/home",
        "HERMIT_TOOL_URL": "http://127.0.0.1:7321",
        "OPENAI_BASE_URL": "https://api.openai.com/v1",
        "HA_SANDBOX_HIDE": "bench.scoring",
    }
    assert evolver.passes(loaded, known, "OPENAI_API_KEY")
    assert not evolver.passes(loaded, known, "TASK_KEY")


def test_every_secret_is_proven_absent_the_judge_and_its_tests_among_them(
    config: Callable[..., Any], tmp_path: Path
) -> None:
    loaded = config("data.val=data/val.txt")
    sandbox = made(loaded, secrets=secrets.of_run(loaded, config_file=f"{tmp_path}/run.yaml"))
    for name in (
        "data/tasks.jsonl",
        "data/train.txt",
        "data/val.txt",
        "data/test.txt",
        "judge.py",
        "tests",
        "runs",
        "run.yaml",
    ):
        assert f"{tmp_path}/{name}" in sandbox.probes, name


def test_the_bounds_and_the_enforcement_are_the_runs(config: Callable[..., Any]) -> None:
    sandbox = made(config("trainer.call_timeout_min=2.5", "sandbox.enforce=best_effort"), framework=True)
    assert (sandbox.limits.wall_s, sandbox.enforce, sandbox.framework) == (150.0, Enforce.BEST_EFFORT, True)
    assert made(config("trainer.call_timeout_min=null")).limits.wall_s is None


def test_where_nothing_is_confined_each_path_stays_in_its_place(config: Callable[..., Any]) -> None:
    sandbox = made(config(), socket="", renamed=False, tool_url="http://127.0.0.1:5/word")
    assert (sandbox.binds, sandbox.forwards, sandbox.cwd) == ((), (), "/x/desk")
    assert dict(sandbox.env)["HOME"] == "/x/desk/home"
    assert "/x/desk/adapter" in sandbox.write
    assert "/data/sim" in sandbox.read
    context = evolver.context(sandbox, PLACES, params={})
    assert context["workspace"]["learning_material"] == "/x/desk/material"
    assert context["tool_url"] == "http://127.0.0.1:5/word"


def test_what_a_call_is_told_names_no_path_of_the_host(config: Callable[..., Any]) -> None:
    sandbox = made(config())
    params = {"files": ["/x/desk/method/p.md"], "deep": {"at": "see /data/sim/a, /x/desk/state."}, "n": 1, "none": None}
    context = evolver.context(
        sandbox,
        PLACES,
        params=params,
        message="read /x/desk/material/a in /x/desk; /data/sim",
        progress={"epoch": 1},
        session=[1],
    )
    command = evolver.command(
        sandbox, phase="step", callable_name="/x/desk/method/own.py:Own", context=context, code=b"code"
    )
    assert context["params"] == {
        "files": ["/w/method/p.md"],
        "deep": {"at": "see /w/environment/sim/a, /w/state."},
        "n": 1,
        "none": None,
    }
    assert context["message"] == "read material/a in /w; environment/sim"
    job, _, code = command.job.partition(b"\n")
    assert (json.loads(job)["callable"], code) == ("/w/method/own.py:Own", b"code")
    assert b"/x/desk" not in job
    assert b"/data" not in job
    assert context["access"] == {"validation": "/w/validation", "environment": {"sim": "/w/environment/sim"}}
    inner = context["sandbox"]
    assert (inner["root"], inner["ports"]) == ("/w", [7321])
    assert "/w/adapter" in inner["write"]
    assert "/w/material" in inner["read"]


def test_a_path_that_a_learner_names_is_one_of_the_host_or_nothing(config: Callable[..., Any]) -> None:
    sandbox = made(config())
    assert sandbox.outside("adapter/a.md") == "/x/desk/adapter/a.md"
    assert sandbox.outside("/w/environment/sim/x") == "/data/sim/x"
    assert [sandbox.outside(path) for path in ("/data/sim", "..", ".", "/etc/passwd", "adapter/../../etc")] == [
        None
    ] * 5
    assert sandbox.relative("/x/desk/material/a") == "material/a"


def test_two_paths_of_one_name_cannot_both_be_shown() -> None:
    assert evolver.names(["/a/sim", "/b/books"]) == (("sim", "/a/sim"), ("books", "/b/books"))
    for paths in (["/a/sim", "/b/sim"], ["/"]):
        with pytest.raises(ConfigError) as refused:
            evolver.names(paths)
        assert refused.value.where == "evolver_access.environment"


def test_a_workspace_has_all_of_its_parts() -> None:
    with pytest.raises(ValueError, match="a workspace has exactly"):
        evolver.Places(base="/x", parts=(("adapter", "/x/adapter"),))


def test_a_class_is_asked_what_it_is_where_nothing_but_its_directory_is_shown() -> None:
    sandbox = evolver.describing("/x/desk/method", enforce=Enforce.REQUIRED)
    assert sandbox.mounts == (Bind("/x/desk/method", "/x/desk/method"),)
    assert (sandbox.role, sandbox.env, sandbox.env_allow, sandbox.network) == ("check", (), (), Network.ISOLATED)
    assert not sandbox.allowed_hosts
