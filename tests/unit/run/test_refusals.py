"""What a config declares and no sandbox can show, or none should, is refused by name before anything is created."""

from __future__ import annotations

import os
import socket
import tempfile
from typing import TYPE_CHECKING, Any

import pytest

from hermit.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


def refused(run: Any, *overrides: str, adapter: str = "none") -> str:
    """The message these settings are refused with; nothing was created."""
    before = run.files()
    with pytest.raises(ConfigError) as caught:
        run.plan(*overrides, adapter=adapter)
    assert caught.value.cure
    assert run.files() == before
    return str(caught.value)


def test_a_variable_that_is_not_set_is_refused_by_its_name(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MODEL_KEY", raising=False)
    words = refused(run, "environment.env=[MODEL_KEY]")
    assert words.startswith("environment.env: the variable MODEL_KEY is not set")
    monkeypatch.setenv("MODEL_KEY", "")
    run.plan("environment.env=[MODEL_KEY]")


def test_a_pattern_may_stand_for_no_variable(run: Any) -> None:
    run.plan("environment.env=[SURELY_ABSENT_*]")


def test_a_file_in_the_middle_of_a_path_is_named(run: Any) -> None:
    words = refused(run, "environment.read=[agent.py/inner/deep]")
    assert words.startswith("environment.read: ")
    assert f"{run.root}/agent.py is a file and no directory" in words


def test_a_link_that_leads_nowhere_is_named_with_where_it_leads(run: Any) -> None:
    (run.root / "way").symlink_to("absent")
    assert f"{run.root}/way is a link that leads nowhere, to absent" in refused(run, "environment.read=[way]")


@pytest.mark.parametrize("key", ["environment.read", "environment.write", "judge.tests"])
@pytest.mark.parametrize("kind", ["socket", "FIFO"])
def test_a_socket_and_a_fifo_are_refused(run: Any, key: str, kind: str) -> None:
    path = str(run.root / "thing")
    with socket.socket(socket.AF_UNIX) as listener:
        if kind == "FIFO":
            os.mkfifo(path)
        else:
            listener.bind(path)
        words = refused(run, f"{key}=[thing]")
    assert words.startswith(f"{key}: {path} is a {kind}")


def test_a_device_is_refused(run: Any) -> None:
    assert "environment.read: /dev/null is a device" in refused(run, "environment.read=[/dev/null]")


@pytest.mark.parametrize("key", ["environment.read", "environment.write"])
def test_a_directory_in_which_a_service_listens_is_refused(run: Any, key: str) -> None:
    (run.root / "state" / "inner").mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(run.root / "state" / "inner" / "service"))
        run.plan(f"{key}=[state]")
        listener.listen()
        words = refused(run, f"{key}=[state]")
    assert f"{run.root}/state holds {run.root}/state/inner/service" in words
    run.plan(f"{key}=[state]")


@pytest.mark.parametrize("key", ["trainer.output_dir", "trainer.tree_dir", "task_info"])
def test_a_file_where_a_directory_is_meant_is_refused(run: Any, key: str) -> None:
    (run.root / "plain").write_text("a file")
    words = refused(run, f"{key}=plain")
    assert words.startswith(f"{key}: {run.root}/plain is a file, and a directory is meant")


@pytest.mark.parametrize("key", ["environment.read", "judge.tests", "judge.path"])
def test_a_path_that_leads_through_a_place_agents_write_to_is_refused(run: Any, key: str) -> None:
    (run.root / "state").mkdir()
    (run.root / "books").mkdir()
    (run.root / "state" / "books").symlink_to("../books")
    (run.root / "books" / "judge.py").write_text("def score(task, output): return 1\n")
    (run.root / "way").symlink_to("state/books")
    path = "way/judge.py" if key == "judge.path" else "[way]"
    words = refused(run, "environment.write=[state]", f"{key}={path}")
    assert words.startswith(("environment.write: ", f"{key}: "))
    assert f"leads through {run.root}/state/books" in words or f"({key})" in words


def test_a_judge_behind_a_link_that_agents_could_lead_elsewhere_is_refused(run: Any) -> None:
    (run.root / "state").mkdir()
    (run.root / "state" / "judge.py").symlink_to("../judge.py")
    words = refused(run, "environment.write=[state]", "judge.path=state/judge.py")
    assert f"{run.root}/state holds {run.root}/state/judge.py (judge.path)" in words


def test_a_link_beside_what_agents_write_to_is_no_way_through_it(run: Any) -> None:
    (run.root / "real").mkdir()
    (run.root / "state").symlink_to("real")
    (run.root / "books").mkdir()
    (run.root / "way").symlink_to("books")
    run.plan("environment.write=[state]", "environment.read=[way]")


@pytest.mark.parametrize("named", ["data/tasks.jsonl", "judge.py", "tests/deep/one", "run.yaml"])
def test_a_hard_link_of_a_secret_file_below_a_declared_path_is_refused(run: Any, named: str) -> None:
    (run.root / "tests" / "deep").mkdir(parents=True)
    (run.root / "tests" / "deep" / "one").touch()
    (run.root / "books" / "far").mkdir(parents=True)
    run.plan("environment.read=[books]", "judge.tests=[tests]")
    os.link(run.root / named, run.root / "books" / "far" / "innocent")
    words = refused(run, "environment.read=[books]", "judge.tests=[tests]")
    assert f"{run.root}/books/far/innocent is a hard link of a file of {run.root}/" in words


def test_a_file_that_is_itself_a_hard_link_of_a_secret_is_refused(run: Any) -> None:
    os.link(run.root / "data" / "tasks.jsonl", run.root / "innocent")
    words = refused(run, "environment.read=[innocent]")
    assert "is, by another name," in words


@pytest.mark.parametrize("path", ["runs", "runs/two", "runs/one/eval/other", "runs/trees/mine", "trees/mine"])
def test_nothing_hermit_wrote_for_any_run_is_shown(run: Any, path: str) -> None:
    (run.root / path).mkdir(parents=True)
    words = refused(run, f"environment.read=[{path}]", "trainer.tree_dir=trees")
    assert "trainer.output_dir" in words or "trainer.tree_dir" in words


def test_the_config_itself_is_a_secret(run: Any) -> None:
    assert "the run config" in refused(run, "environment.read=[run.yaml]")


def test_an_adapter_among_the_results_of_a_run_can_be_scored_for_it_is_shown_as_a_copy(run: Any) -> None:
    (run.root / "runs" / "one" / "checkout").mkdir(parents=True)
    run.plan(adapter=str(run.root / "runs" / "one" / "checkout"))
    assert " is " in refused(run, adapter=str(run.root / "runs"))


def test_results_that_would_hold_the_scratch_of_the_attempts_are_refused(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "out" / "scratch"
    scratch.mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    assert refused(run, f"trainer.output_dir={tmp_path}/out").startswith("trainer.output_dir: ")


@pytest.mark.parametrize(
    ("read", "write"), [("books", "books/state"), ("link", "state"), ("state/inner", "alias"), ("books", "way")]
)
def test_nothing_agents_write_to_is_shown_to_a_separate_judge(run: Any, read: str, write: str) -> None:
    for path in ("books/state", "state/inner"):
        (run.root / path).mkdir(parents=True)
    (run.root / "link").symlink_to("state")
    (run.root / "alias").symlink_to("state")
    (run.root / "way").symlink_to("books/state")
    settings = (f"environment.read=[{read}]", f"environment.write=[{write}]")
    words = refused(run, *settings, "judge.mode=separate", "judge.collect=[x]")
    assert words.startswith("environment")
    assert "environment.write, which a separate judge never sees" in words or "where every agent may write" in words


def test_a_directory_that_is_shown_whole_needs_a_place_for_the_logs_of_a_call(run: Any) -> None:
    (run.root / "mine").mkdir()
    (run.root / "mine" / "agent.py").write_text((run.root / "agent.py").read_text())
    settings = ("environment.read=[mine]", "agent.name=mine/agent.py:run")
    assert f"mkdir {run.root}/mine/.logs" in refused(run, *settings)
    (run.root / "mine" / ".logs").mkdir()
    run.plan(*settings)
    (run.root / "mine" / ".logs").rmdir()
    (run.root / "mine" / ".logs").symlink_to("/tmp")
    assert "is no directory" in refused(run, *settings)


def test_a_list_of_hosts_of_the_judge_is_checked_like_the_agents(run: Any) -> None:
    assert refused(run, "judge.network=allowlist").startswith("judge.allowed_hosts: ")
    assert "*.co.uk" in refused(run, "judge.network=allowlist", "judge.allowed_hosts=['*.co.uk']")
    assert "judge.network: allowlist" in refused(run, "judge.allowed_hosts=[api.example.com]")
