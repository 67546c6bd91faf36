"""The method of a learner: what its file may say, each mistake with its place, and that none of its code runs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from hermit.config.load import load
from hermit.errors import ConfigError
from hermit.evolver import loader

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MINIMAL = "data: {tasks: t.jsonl}\nagent: {name: 'a.py:run'}\njudge: {path: j.py}\n"


@pytest.fixture
def method(tmp_path: Path) -> Callable[..., loader.Method]:
    """The method of an evolver.yaml."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "own.py").write_text("raise SystemExit('it ran on the host')\nclass Own: pass\n")

    def made(text: str | None, *overrides: str, name: str = "./mine") -> loader.Method:
        (tmp_path / "run.yaml").write_text(MINIMAL)
        if text is not None:
            (tmp_path / "mine" / "evolver.yaml").write_text(text)
        return loader.load(load(tmp_path / "run.yaml", [f"evolver.name={name}", *overrides], environ=dict(os.environ)))

    return made


def test_a_method_is_its_directory_and_what_its_file_says(method: Callable[..., Any], tmp_path: Path) -> None:
    text = "class: own.py:Own\nneeds: {validation_data: true}\nparams: {a: {b: 1, c: 2}, l: [1, 2]}\ndescription: It learns.\n"
    made = method(text, "evolver.params={a: {b: 9}, l: [3], d: 4}")
    assert made.callable_name == f"{tmp_path}/mine/own.py:Own"
    assert made.at(tmp_path / "copy") == f"{tmp_path}/copy/own.py:Own"
    assert (made.validation_data, made.environment) == (True, False)
    assert made.params == {"a": {"b": 9, "c": 2}, "l": [3], "d": 4}
    assert (made.name, made.description, bool(made.code)) == ("mine", "It learns.", True)


def test_needs_can_be_a_list_too_and_a_class_a_module(method: Callable[..., Any], tmp_path: Path) -> None:
    made = method("class: package.module:Own\nneeds: [environment]\nparams:\n")
    assert (made.environment, made.validation_data) == (True, False)
    assert (made.code, made.at(tmp_path)) == (b"", "package.module:Own")


@pytest.mark.parametrize("name", ["command", "agent"])
def test_a_method_that_comes_with_hermit_is_found_by_its_name(method: Callable[..., Any], name: str) -> None:
    made = method(None, name=name)
    assert made.callable_name.startswith("hermit.evolver:")
    assert made.description.endswith(".")
    assert name in loader.shipped()


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("class: own.py:Own\nklass: x\n", 2, "klass is not a known key; the nearest is class"),
        ("class: own.py:Own\nneed: {}\n", 2, "need is not a known key; the nearest is needs"),
        ("description: x\n", 1, "class is required and missing"),
        ("class: 7\n", 1, "class: expected text, found 7"),
        ("class:\n", 1, "class: expected text, found nothing"),
        ("class: own.py:Own\nparams: [1]\n", 2, "params: expected a mapping, found a list"),
        ("class: own.py:Own\nneeds: {validation: true}\n", 2, "needs.validation is not a known need; the nearest is validation_data"),
        ("class: own.py:Own\nneeds: {environment: some}\n", 2, "needs.environment: expected true or false"),
        ("class: own.py:Own\nneeds: yes\n", 2, "needs: expected a mapping or a list, found true"),
        ("class: own.py:Own\nneeds: [books]\n", 2, "needs.books is not a known need"),
        ("class: own.py\n", 1, "names no class"),
        ("class: 'own.py:'\n", 1, "names no class"),
        ("class: 'own.py:a b'\n", 1, "names no class"),
        ("class: 'a b:Own'\n", 1, "names no class"),
        ("class: ../other.py:Own\n", 1, "leads out of"),
        ("class: /etc/x.py:Own\n", 1, "leads out of"),
        ("class: link.py:Own\n", 1, "leads out of"),
        ("class: sub/../own.py:Own\n", 1, "leads out of"),
        ("class: absent.py:Own\n", 1, "cannot be read"),
        ("class: broken.py:Own\n", 1, "is not Python"),
        ("class: own.py:Other\n", 1, "defines no Other"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_place(
    method: Callable[..., Any], tmp_path: Path, text: str, line: int, words: str
) -> None:
    (tmp_path / "mine" / "broken.py").write_text("def (")
    (tmp_path / "other.py").write_text("class Own: pass\n")
    (tmp_path / "mine" / "link.py").symlink_to(tmp_path / "other.py")
    with pytest.raises(ConfigError) as refused:
        method(text)
    assert words in refused.value.what
    assert refused.value.where == f"{tmp_path}/mine/evolver.yaml:{line}"
    assert refused.value.cure


def test_all_that_is_wrong_is_told_at_once(method: Callable[..., Any]) -> None:
    with pytest.raises(ConfigError) as refused:
        method("class: 7\nparam: {}\nneeds: [x]\n")
    assert refused.value.what.startswith("3 settings are wrong")
    assert "class, needs, params, description" in refused.value.cure


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("null", "a training run needs a learner"),
        ("comand", "no learner of the name comand comes with Hermit; the nearest is command"),
        ("./absent", "is no directory"),
        ("./mine", "holds no evolver.yaml"),
    ],
)
def test_a_method_that_is_not_there_is_told(method: Callable[..., Any], name: str, words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        method(None, name=name)
    assert (refused.value.where, words in refused.value.what) == ("evolver.name", True), refused.value.what
    assert refused.value.cure


def test_what_a_method_needs_and_the_config_does_not_give_is_refused(
    method: Callable[..., Any], tmp_path: Path
) -> None:
    made = method("class: own.py:Own\nneeds: [environment, validation_data]\n")

    def refused(*overrides: str) -> str:
        with pytest.raises(ConfigError) as caught:
            made.refuse_unmet(load(tmp_path / "run.yaml", overrides, environ={}))
        return caught.value.where

    assert refused() == "data.val"
    assert refused("data.val=v.txt") == "evolver_access.environment"
    made.refuse_unmet(load(tmp_path / "run.yaml", ["data.val=v.txt", "evolver_access.environment=[x]"], environ={}))
