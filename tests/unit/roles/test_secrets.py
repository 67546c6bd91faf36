"""No declared path may show a secret: none that is one, holds one or lies inside one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hermit.errors import ConfigError
from hermit.roles.secrets import Secret, of_run, probes, refuse_declared

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def refused(path: Path | str, secret: Path | str) -> str:
    """The refusal of declaring this path beside this secret."""
    with pytest.raises(ConfigError) as caught:
        refuse_declared([("environment.read", str(path))], [Secret(str(secret), "data.tasks")])
    return str(caught.value)


@pytest.mark.parametrize(
    ("declared", "secret", "relation"),
    [
        ("a/b", "a/b", "is"),
        ("a", "a/b", "holds"),
        ("a", "a/b/c/d", "holds"),
        ("a/b/c", "a/b", "lies inside"),
        ("a/./b", "a//b", "is"),
        ("a/x/../b", "a/b", "is"),
    ],
)
def test_a_path_that_would_show_a_secret_is_refused(tmp_path: Path, declared: str, secret: str, relation: str) -> None:
    words = refused(f"{tmp_path}/{declared}", f"{tmp_path}/{secret}")
    assert f" {relation} " in words
    assert words.startswith("environment.read: ")
    assert "data.tasks" in words
    assert "  -> " in words


def test_the_root_of_the_machine_is_refused(tmp_path: Path) -> None:
    assert " holds " in refused("/", tmp_path / "tasks.jsonl")


@pytest.mark.parametrize(("declared", "secret"), [("a/bc", "a/b"), ("a/b", "a/bc"), ("a/b c", "a/b"), ("x", "y")])
def test_a_path_whose_name_begins_like_a_secret_is_allowed(tmp_path: Path, declared: str, secret: str) -> None:
    refuse_declared([("environment.read", f"{tmp_path}/{declared}")], [Secret(f"{tmp_path}/{secret}", "data.tasks")])


def test_a_link_to_a_secret_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "tasks").touch()
    (tmp_path / "innocent").symlink_to("data")
    assert " holds " in refused(tmp_path / "innocent", tmp_path / "data" / "tasks")


def test_a_secret_named_by_a_link_is_refused_by_where_it_lies(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "tasks").touch()
    (tmp_path / "tasks").symlink_to("real/tasks")
    assert " holds " in refused(tmp_path / "real", tmp_path / "tasks")


def test_a_secret_below_a_link_in_its_parents_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "alias").symlink_to("real")
    assert " lies inside " in refused(tmp_path / "alias" / "inner", tmp_path / "real")


def test_the_first_of_several_declared_paths_that_shows_a_secret_is_named(tmp_path: Path) -> None:
    pairs = [("environment.read", f"{tmp_path}/fine"), ("environment.write", f"{tmp_path}/runs")]
    with pytest.raises(ConfigError) as caught:
        refuse_declared(pairs, [Secret(f"{tmp_path}/runs", "trainer.output_dir")])
    assert caught.value.where == "environment.write"


def test_every_file_that_decides_a_score_is_a_secret_of_the_run(config: Callable[..., Any], tmp_path: Path) -> None:
    loaded = config("data.val=data/val.txt", "judge.tests=[t1, t2]")
    found = {
        (secret.key, secret.path.removeprefix(f"{tmp_path}/")) for secret in of_run(loaded, config_file="/x/run.yaml")
    }
    assert found == {
        ("data.tasks", "data/tasks.jsonl"),
        ("data.train", "data/train.txt"),
        ("data.val", "data/val.txt"),
        ("data.test", "data/test.txt"),
        ("judge.path", "judge.py"),
        ("judge.tests", "t1"),
        ("judge.tests", "t2"),
        ("trainer.output_dir", "runs"),
        ("the run config", "/x/run.yaml"),
    }


def test_a_judge_proves_everything_absent_but_what_is_its_own() -> None:
    secrets = [Secret("/data", "data.tasks"), Secret("/judge.py", "judge.path", judge=True)]
    assert probes(secrets, judge=True) == ("/data",)
    assert probes(secrets, judge=False) == ("/data", "/judge.py")


def test_a_link_on_the_way_to_a_secret_need_not_be_absent(tmp_path: Path) -> None:
    """Where /home is a link, everything that is shown lies below it."""
    (tmp_path / "var" / "home").mkdir(parents=True)
    (tmp_path / "home").symlink_to("var/home")
    (tmp_path / "var" / "home" / "tasks").touch()
    found = probes([Secret(f"{tmp_path}/home/tasks", "data.tasks")], judge=False)
    assert found == (f"{tmp_path}/home/tasks", f"{tmp_path}/var/home/tasks")
