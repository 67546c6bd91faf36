"""Where sandboxes start, and why: the choice is said in words, and a place that was asked for is never exchanged."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import hermit
from hermit.errors import ExitCode, PlaceError
from hermit.run import place
from hermit.unconfined import Unconfined

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

VERSION = json.dumps(
    {
        "Client": {"Version": "28.0", "Os": "linux", "Arch": "amd64"},
        "Server": {"Version": "27.0", "Os": "linux", "Arch": "amd64"},
    }
)
CLIENT = """#!/bin/sh
case "$1 $2" in
    "version --format") {version} ;;
    "info --format") {info} ;;
    "image inspect") case "$4" in
        *Labels*) {label} ;;
        *) {image} ;;
    esac ;;
    *) exit 9 ;;
esac
"""


@pytest.fixture
def engine(tmp_path: Path) -> Callable[..., dict[str, str]]:
    """Makes an engine up; gives the variables of a machine that has it."""

    def make(
        *,
        version: str = f"echo '{VERSION}'",
        info: str = "exit 9",
        image: str = "echo sha256:1",
        label: str = f'echo \'{{"{place.VERSION_LABEL}": "{hermit.__version__}"}}\'',
    ) -> dict[str, str]:
        (tmp_path / "bin").mkdir(exist_ok=True)
        client = tmp_path / "bin" / "docker"
        client.write_text(CLIENT.format(version=version, info=info, image=image, label=label))
        client.chmod(0o755)
        return {"PATH": str(tmp_path / "bin")}

    return make


NONE = "echo 'Error: No such image: hermit' >&2; exit 1"
DOWN = "echo 'Cannot connect to the Docker daemon. Is the docker daemon running?' >&2; exit 1"


def test_an_engine_that_maps_its_caller_to_root_is_no_place_and_auto_says_why(
    run: Any, engine: Callable[..., dict[str, str]]
) -> None:
    variables = engine(info='echo \'{"SecurityOptions": ["name=seccomp", "name=rootless"]}\'')
    assert "the root of its containers" in place.choose(run.config(), runtime="auto", environ=variables).sentence
    for wanted in ("image", "whole"):
        with pytest.raises(PlaceError, match="the root of its containers"):
            place.choose(run.config(), runtime=wanted, environ=variables)


def test_local_is_this_machine_also_where_an_engine_answers(run: Any, engine: Callable[..., dict[str, str]]) -> None:
    found = place.choose(run.config(), runtime="local", environ=engine())
    assert (found.engine, found.sentence) == (None, "on this machine, because the runtime is local")


def test_auto_is_the_image_where_an_engine_answers_and_has_it(run: Any, engine: Callable[..., dict[str, str]]) -> None:
    found = place.choose(run.config(), runtime="auto", environ=engine())
    assert found.engine is not None
    assert found.image == "hermit"
    assert found.sentence.startswith("in the image hermit, by docker 27.0, because ")


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ({"version": DOWN}, "daemon"),
        ({"version": "echo nonsense"}, "version"),
        ({"image": NONE}, "the image hermit is not here"),
        ({"label": "echo '{}'"}, "of no version"),
        ({"label": "echo null"}, "of no version"),
        ({"label": f'echo \'{{"{place.VERSION_LABEL}": "0.0.9"}}\''}, "holds Hermit 0.0.9"),
    ],
)
def test_auto_is_this_machine_otherwise_and_image_is_refused(
    run: Any, engine: Callable[..., dict[str, str]], broken: dict[str, str], why: str
) -> None:
    variables = engine(**broken)
    found = place.choose(run.config(), runtime="auto", environ=variables)
    assert found.engine is None
    assert found.sentence.startswith("on this machine, because ")
    assert why in found.sentence
    with pytest.raises(PlaceError, match=why) as caught:
        place.choose(run.config(), runtime="image", environ=variables)
    assert caught.value.exit_code is ExitCode.PLACE
    assert caught.value.cure


def test_no_engine_at_all_is_said(run: Any, tmp_path: Path) -> None:
    variables = {"PATH": str(tmp_path)}
    assert "no container engine is installed" in place.choose(run.config(), runtime=None, environ=variables).sentence
    with pytest.raises(PlaceError, match="no container engine"):
        place.choose(run.config(), runtime="image", environ=variables)


def test_the_config_decides_unless_the_command_line_does(run: Any, engine: Callable[..., dict[str, str]]) -> None:
    config = run.config("container.runtime=local", "container.image=mine")
    assert place.choose(config, runtime=None, environ=engine()).engine is None
    assert place.choose(config, runtime="image", environ=engine()).image == "mine"


def test_a_run_that_switched_the_sandbox_off_has_an_unconfined_place(run: Any) -> None:
    assert not place.here(run.config("sandbox.enabled=false")).confined


@pytest.mark.parametrize(
    "stub",
    [
        None,
        "#!/bin/sh\nexit 0\n",
        "#!/bin/sh\necho bubblewrap 9.9\n",
        "#!/bin/sh\necho not that program\n",
        "#!/bin/sh\necho bubblewrap 9.9; kill -9 $$\n",
        "not a program",
    ],
)
def test_a_bubblewrap_that_is_missing_or_lies_is_refused_or_recorded_and_never_trusted(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stub: str | None
) -> None:
    (tmp_path / "only").mkdir()
    if stub is not None:
        (tmp_path / "only" / "bwrap").write_text(stub)
        (tmp_path / "only" / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "only"))
    with pytest.raises(PlaceError) as caught:
        place.here(run.config())
    assert caught.value.what
    found = place.here(run.config("sandbox.enforce=best_effort"))
    assert not found.confined
    assert isinstance(found.backend, Unconfined)
    assert found.backend.reason == caught.value.what


def test_the_image_is_shown_everything_the_config_names_once(run: Any) -> None:
    (run.root / "tests").mkdir()
    outside = run.root.parent / "elsewhere"
    outside.mkdir()
    plan = run.plan("judge.tests=[tests]", f"environment.read=[{outside}]")
    assert place.named_paths(plan) == sorted([str(run.root), str(outside)])


def test_an_agent_that_needs_the_machines_own_network_is_put_in_no_container(
    run: Any, engine: Callable[..., dict[str, str]]
) -> None:
    config = run.config("environment.network=public")
    assert place.choose(config, runtime="auto", environ=engine()).engine is None
    for wanted in ("image", "whole"):
        with pytest.raises(PlaceError, match="has no network"):
            place.choose(config, runtime=wanted, environ=engine())


def test_a_judge_that_needs_the_machines_own_network_is_put_in_no_container(
    run: Any, engine: Callable[..., dict[str, str]]
) -> None:
    settings = ("judge.network=public", "judge.mode=shared")
    assert place.choose(run.config(*settings), runtime="auto", environ=engine()).engine is None
    with pytest.raises(PlaceError, match=r"judge\.network is public"):
        place.choose(run.config(*settings), runtime="image", environ=engine())
    on_host = run.config("judge.network=public", "judge.mode=host")
    assert place.choose(on_host, runtime="auto", environ=engine()).kind == "image", "a judge on the host has the host's"


def test_an_agent_with_a_list_of_hosts_runs_in_the_image_and_not_whole_in_it(
    run: Any, engine: Callable[..., dict[str, str]]
) -> None:
    config = run.config("environment.network=allowlist", "environment.allowed_hosts=[api.example.com]")
    assert place.choose(config, runtime="auto", environ=engine()).kind == "image"
    with pytest.raises(PlaceError, match="has no network") as caught:
        place.choose(config, runtime="whole", environ=engine())
    assert "--runtime local or image" in caught.value.cure


def test_a_run_that_confines_nothing_is_put_in_no_container_but_whole(
    run: Any, engine: Callable[..., dict[str, str]]
) -> None:
    config = run.config("sandbox.enabled=false")
    assert "sandbox.enabled is false" in place.choose(config, runtime="auto", environ=engine()).sentence
    with pytest.raises(PlaceError, match=r"sandbox\.enabled is false"):
        place.choose(config, runtime="image", environ=engine())
    assert place.choose(config, runtime="whole", environ=engine()).kind == "whole"


def test_whole_is_only_where_it_was_asked_for(run: Any, engine: Callable[..., dict[str, str]]) -> None:
    assert place.choose(run.config(), runtime="auto", environ=engine()).kind == "image"
    found = place.choose(run.config(), runtime="whole", environ=engine())
    assert (found.kind, "with the whole command" in found.sentence) == ("whole", True)
    with pytest.raises(PlaceError, match="is not here"):
        place.choose(run.config(), runtime="whole", environ=engine(image=NONE))


@pytest.fixture
def shapes(run: Any, engine: Callable[..., dict[str, str]]) -> Callable[..., dict[str, Any]]:
    """Makes what the containers of a run are, by who works in them."""

    def make(*settings: str) -> dict[str, Any]:
        for name in ("tests", "shown", "kept"):
            (run.root / name).mkdir(exist_ok=True)
        declared = ("judge.tests=[tests]", "environment.read=[shown]", "environment.write=[kept]")
        plan = run.plan(*declared, *settings)
        where = place.in_images(place.choose(plan.config, runtime="image", environ=engine()))
        task, judge = run.root / "x-task", run.root / "x-judge"
        return {"task": place.task_shape(where, plan, task), "judge": place.judge_shape(where, plan, judge, work=task)}

    return make


def test_each_container_is_shown_what_its_sandboxes_may_see_and_nothing_else(
    run: Any, shapes: Callable[..., dict[str, Any]]
) -> None:
    found, root = shapes(), str(run.root)
    assert found["task"].read == (f"{root}/shown", f"{root}/agent.py")
    assert (found["task"].write, found["task"].exchange) == ((f"{root}/kept",), f"{root}/x-task")
    assert found["judge"].read == (f"{root}/shown", f"{root}/judge.py", f"{root}/tests")
    assert (found["judge"].write, found["judge"].exchange) == ((), f"{root}/x-judge")


def test_a_judge_in_place_is_shown_the_agents_work_too(run: Any, shapes: Callable[..., dict[str, Any]]) -> None:
    assert shapes("judge.mode=shared")["judge"].write == (f"{run.root}/x-task", f"{run.root}/kept")


def test_a_container_is_bounded_for_as_many_sandboxes_as_run_at_once(shapes: Callable[..., dict[str, Any]]) -> None:
    settings = ("environment.resources.memory_mb=100", "environment.resources.disk_mb=10", "agent.concurrency=3")
    found = shapes(*settings)["task"]
    assert (found.memory_mb, found.pids) == (3 * 110 + place.OWN_MB, 3 * (512 + place.OWN_PIDS_EACH) + place.OWN_PIDS)
    assert shapes("agent.concurrency=100000")["task"].memory_mb < 1 << 30


def test_only_declared_variables_pass_into_the_image(
    run: Any, engine: Callable[..., dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    passed: dict[str, Any] = {}
    monkeypatch.setattr(place.whole, "run", lambda *_, **named: passed.update(named) or 0)
    plan = run.plan("environment.env=[MWM_*]")
    choice = place.choose(plan.config, runtime="whole", environ=engine())
    environ = {"MWM_URL": "1", "API_KEY": "2", "HOME": "/root"}
    assert place.in_image(plan, choice, ["eval"], environ=environ) == 0
    assert passed["env"] == ["MWM_URL"]


@pytest.mark.parametrize("pull", ["never", "missing", "always"])
def test_an_image_is_provided_by_the_policy_of_the_config_before_it_is_looked_at(
    run: Any, engine: Callable[..., dict[str, str]], monkeypatch: pytest.MonkeyPatch, pull: str
) -> None:
    asked = []

    def provide(_: Any, image: str, **named: Any) -> None:
        asked.append((image, named["pull"].value))
        raise PlaceError("the registry does not answer", where=image)

    monkeypatch.setattr(place.registry, "provide", provide)
    with pytest.raises(PlaceError, match="the registry does not answer"):
        place.choose(run.config(f"container.pull={pull}"), runtime="image", environ=engine())
    assert asked == [("hermit", pull)]
