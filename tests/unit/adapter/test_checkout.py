"""A checkout shows a version to a person, byte for byte, and nothing in it leads Hermit elsewhere."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from hermit import untrusted
from hermit.adapter.checkout import check_out
from hermit.adapter.files import File
from hermit.adapter.tree import ROOT_WHEN, Tree

if TYPE_CHECKING:
    from pathlib import Path


def version(made: Tree, files: Any, step: int = 1) -> Any:
    """The next version of the run."""
    return made.commit(files, run="one", message="x", when=ROOT_WHEN + step, scrub=lambda data, _: data)


def said(at: Path, *words: str) -> str:
    """What a person's own Git says there."""
    return subprocess.run(["git", *words], cwd=at, check=True, capture_output=True, text=True).stdout


def test_a_checkout_is_a_work_tree_of_the_runs_branch(small: Any, made: Tree, tmp_path: Path) -> None:
    at = tmp_path / "checkout"
    first = version(made, small.files.with_files({"skills/a/text": File(b"a\r\n$Id$\n", executable=True)}))
    check_out(made, "one", at=str(at), version=first)
    assert said(at, "status", "--porcelain", "--branch") == "## one\n"
    assert (at / "skills/a/text").read_bytes() == b"a\r\n$Id$\n"
    assert (at / "skills/a/text").stat().st_mode & 0o777 == 0o755
    (at / "CARD.md").write_text("about it")
    second = version(made, small.files, step=2)
    check_out(made, "one", at=str(at), version=second)
    assert said(at, "status", "--porcelain") == ""
    assert said(at, "log", "--format=%H").split() == list(made.history(second.commit))
    assert not (at / "skills/a").exists()
    assert (at / "CARD.md").read_text() == "about it"
    assert Tree(made.directory).tip("one") == second.commit


def test_what_a_person_changed_there_becomes_the_version_again(small: Any, made: Tree, tmp_path: Path) -> None:
    at = tmp_path / "checkout"
    one = version(made, small.files)
    check_out(made, "one", at=str(at), version=one)
    (at / "ADAPTER.md").write_text("mine")
    (at / "more.txt").write_text("mine")
    (at / "README.md").unlink()
    check_out(made, "one", at=str(at), version=one)
    assert said(at, "status", "--porcelain") == ""


def test_a_link_in_a_checkout_is_not_followed(small: Any, made: Tree, tmp_path: Path) -> None:
    at, victim = tmp_path / "checkout", tmp_path / "victim"
    victim.mkdir()
    at.mkdir()
    (at / "skills").symlink_to(victim)
    (at / "ADAPTER.md").symlink_to(victim / "file")
    with pytest.raises(untrusted.Refused):
        check_out(made, "one", at=str(at), version=version(made, small.files))
    assert list(victim.iterdir()) == []
