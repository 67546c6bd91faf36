"""A word chooses one adapter, wherever the same command runs, or is refused with what to write instead."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hermit.adapter import template as templates
from hermit.adapter import tree as trees
from hermit.adapter.files import File
from hermit.adapter.tree import ROOT_WHEN, Tree
from hermit.cli.eval import inside_arguments
from hermit.errors import ConfigError
from hermit.run import place

if TYPE_CHECKING:
    from collections.abc import Callable

TEMPLATE = "template=prompt-only"


@pytest.fixture
def trained(run: Any) -> Any:
    """What a run of the name ``one`` has left: a version, a checkpoint and its end."""
    template = templates.named("prompt-only")
    tree = Tree.opened(str(run.root / "runs" / "trees" / "prompt-only"), template, scrub=lambda data, _: data)
    for step in (1, 2):
        files = template.files.with_files({"ADAPTER.md": File(b"step %d" % step)})
        version = tree.commit(files, run="one", message="x", when=ROOT_WHEN + step, scrub=lambda data, _: data)
        tree.tag("one", f"step-{step}", commit=version.commit)
    tree.tag("one", "final", commit=version.commit)
    return tree


def refused(run: Any, adapter: str, *overrides: str) -> str:
    """The message a word is refused with; nothing was created."""
    before = run.files()
    with pytest.raises(ConfigError) as caught:
        run.plan(*overrides, adapter=adapter)
    assert caught.value.cure
    assert run.files() == before
    return str(caught.value)


def put(plan: Any, into: Path) -> str:
    """The page of the adapter that a plan would show to an agent."""
    plan.adapter.put(str(into))
    return (into / "ADAPTER.md").read_text()


def test_the_root_is_the_template_before_there_is_a_tree_and_the_same_after(run: Any, tmp_path: Path) -> None:
    before = run.plan(TEMPLATE, adapter="root")
    assert not (run.root / "runs").exists()
    assert put(before, tmp_path / "a").startswith("Read the whole task")
    assert before.paths.selector == "root"
    template = templates.named("prompt-only")
    Tree.opened(str(run.root / "runs" / "trees" / "prompt-only"), template, scrub=lambda data, _: data)
    after = run.plan(TEMPLATE, adapter="root")
    assert (after.adapter.commit, after.lock) == (before.adapter.commit, before.lock)
    assert run.plan(TEMPLATE, adapter="refs/tags/root").paths.selector == "root"


def test_each_word_chooses_its_version(run: Any, trained: Tree, tmp_path: Path) -> None:
    tip = trained.find("one/final")
    found = {}
    for number, word in enumerate(("final", "one/step-1", "refs/tags/one/step-2", tip, tip[:9])):
        plan = run.plan(TEMPLATE, adapter=word)
        found[word] = (plan.paths.selector, put(plan, tmp_path / str(number)), plan.adapter.commit)
    assert found == {
        "final": ("final", "step 2", tip),
        "one/step-1": ("one%2Fstep-1", "step 1", trained.find("one/step-1")),
        "refs/tags/one/step-2": ("one%2Fstep-2", "step 2", tip),
        tip: (tip[:12], "step 2", tip),
        tip[:9]: (tip[:12], "step 2", tip),
    }
    assert put(run.plan(TEMPLATE, adapter="root"), tmp_path / "root").startswith("Read the whole task")


def test_final_is_that_of_the_run_of_this_name(run: Any, trained: Tree) -> None:
    words = refused(run, "final", TEMPLATE, "trainer.run_name=two")
    assert "the tree has no version 'two/final'" in words
    assert "one/final" in words


def test_a_tree_elsewhere_needs_no_template(run: Any, trained: Tree, tmp_path: Path) -> None:
    os.rename(trained.directory, tmp_path / "moved")
    plan = run.plan(f"trainer.tree_dir={tmp_path}/moved", adapter="final")
    assert put(plan, tmp_path / "a") == "step 2"


@pytest.mark.parametrize("word", ["final", "one/step-1", "0123abcdef"])
def test_a_version_is_refused_where_there_is_no_tree(run: Any, word: str) -> None:
    assert "there is no tree at" in refused(run, word, TEMPLATE)
    assert "neither a template nor a tree" in refused(run, word)


def test_a_word_that_means_two_adapters_is_refused_until_it_means_one(
    run: Any, trained: Tree, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one" / "step-1").mkdir(parents=True)
    (tmp_path / "one" / "step-1" / "ADAPTER.md").write_text("mine")
    words = refused(run, "one/step-1", TEMPLATE)
    assert "is a directory, and a version of the tree" in words
    assert put(run.plan(TEMPLATE, adapter="./one/step-1"), tmp_path / "a") == "mine"
    assert put(run.plan(TEMPLATE, adapter="refs/tags/one/step-1"), tmp_path / "b") == "step 1"
    assert put(run.plan(adapter="one/step-1"), tmp_path / "c") == "mine"


def test_a_template_that_changed_under_its_tree_is_refused(run: Any, trained: Tree) -> None:
    mine = run.root / "mine"
    mine.mkdir()
    templates.named("prompt-only").files.with_files({"README.md": File(b"changed")}).write(str(mine))
    assert "its root is not the template prompt-only 1 as it is now" in refused(run, "root", "template=./mine")


def test_a_tree_that_somebody_has_changed_is_refused_before_git_is_asked(run: Any, trained: Tree) -> None:
    hooks = Path(trained.directory, "hooks")
    hooks.mkdir()
    assert "it is no tree of Hermit's: it holds hooks" in refused(run, "final", TEMPLATE)


def test_a_template_that_is_not_here_is_refused_with_its_key(run: Any) -> None:
    assert refused(run, "root", "template=absent").startswith("template: there is no template 'absent'")


def test_results_say_which_version_they_are_of(run: Any, trained: Tree) -> None:
    from hermit import sandbox as sandboxes
    from hermit.run import evaluate

    plan = run.plan(TEMPLATE, adapter="final")
    evaluate.evaluate(plan, sandboxes.unconfined("a test"), fresh=False, show=lambda _: None)
    summary = json.loads((run.root / "runs/one/eval/final/summary.json").read_text())
    assert (summary["adapter"], summary["commit"]) == ("final", trained.find("one/final"))
    assert run.plan(TEMPLATE, adapter="one/step-1").lock["digest"] != plan.lock["digest"]


def test_the_same_command_inside_an_image_finds_the_same_version(run: Any, trained: Tree) -> None:
    plan = run.plan(TEMPLATE, adapter="final")
    words = inside_arguments(plan, (TEMPLATE,), fresh=False, as_json=False)
    assert words[words.index("--adapter") + 1] == "final"
    assert any(Path(trained.directory).is_relative_to(path) for path in place.named_paths(plan))
    mine = run.root.parent / "mine"
    mine.mkdir()
    templates.named("prompt-only").files.write(str(mine))
    plan = run.plan(f"template={mine}", f"trainer.output_dir={run.root.parent}/other", adapter="root")
    assert str(mine) in place.named_paths(plan)
    plan = run.plan(adapter=str(mine))
    assert inside_arguments(plan, (), fresh=False, as_json=False)[5:7] == ["--adapter", str(mine)]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_tree_of_another_user_that_cannot_be_written_is_read(run: Any, trained: Tree, tmp_path: Path) -> None:
    """As the tree is inside an image: another user's, and read-only."""
    subprocess.run(["chown", "-R", "12345:12345", trained.directory], check=True)
    plan: Callable[..., Any] = run.plan
    before = {path: path.stat().st_mtime_ns for path in Path(trained.directory).rglob("*")}
    assert put(plan(TEMPLATE, adapter="final"), tmp_path / "a") == "step 2"
    assert {path: path.stat().st_mtime_ns for path in Path(trained.directory).rglob("*")} == before
    assert trees.is_there(trained.directory)
