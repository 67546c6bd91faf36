"""What a separate judge gets is what it named, at the same place, and it is told what was not there."""

from __future__ import annotations

from typing import Any

import pytest

from hermit import untrusted


def test_a_path_is_copied_to_the_same_place_below_the_copy(tree: Any) -> None:
    (tree.work / "out" / "deep").mkdir(parents=True)
    (tree.work / "out" / "deep" / "answer").write_text("42")
    (tree.work / "out" / "other").write_text("not asked for")
    found = tree.copy("out/deep/answer")
    assert tree.copied() == ["out", "out/deep", "out/deep/answer"]
    assert (found.missing, found.entries, found.bytes) == ((), 1, 2)


def test_nothing_that_was_not_named_comes_with_it(tree: Any) -> None:
    (tree.work / "answer").write_text("42")
    (tree.work / "conftest.py").write_text("raise SystemExit")
    tree.copy("answer")
    assert tree.copied() == ["answer"]


@pytest.mark.parametrize("path", ["absent", "absent/deeper", "d/absent", "file/below"])
def test_a_missing_path_is_named_as_missing(tree: Any, path: str) -> None:
    (tree.work / "d").mkdir()
    (tree.work / "file").write_text("x")
    (tree.work / "there").write_text("x")
    found = tree.copy("there", path)
    assert found.missing == (path,)
    assert (tree.into / "there").exists()


def test_a_parent_that_is_a_link_leads_nowhere(tree: Any) -> None:
    (tree.work.parent / "outside").mkdir()
    (tree.work.parent / "outside" / "secret").write_text("secret")
    (tree.work / "out").symlink_to("../outside")
    (tree.work / "real").mkdir()
    (tree.work / "real" / "secret").write_text("mine")
    (tree.work / "inner").symlink_to("real")
    found = tree.copy("out/secret", "inner/secret")
    assert found.missing == ("inner/secret", "out/secret")
    assert "secret" not in " ".join(tree.copied())


def test_a_named_path_that_is_a_link_out_is_dropped(tree: Any) -> None:
    (tree.work.parent / "secret").write_text("mine")
    (tree.work / "answer").symlink_to(tree.work.parent / "secret")
    found = tree.copy("answer")
    assert tree.copied() == []
    assert dict(found.dropped) == {"link that leaves": 1}


def test_the_whole_work_directory_can_be_named(tree: Any) -> None:
    (tree.work / "a").write_text("a")
    (tree.work / ".hidden").write_text("h")
    assert tree.copy(".").missing == ()
    assert tree.copied() == [".hidden", "a"]


@pytest.mark.parametrize("paths", [("a", "a/b"), ("a/b", "a", "a/"), (".", "a"), ("a", "./a", "a//b")])
def test_a_path_that_comes_with_another_is_copied_once(tree: Any, paths: tuple[str, ...]) -> None:
    (tree.work / "a").mkdir()
    (tree.work / "a" / "b").write_text("b")
    found = tree.copy(*paths)
    assert tree.copied() == ["a", "a/b"]
    assert (found.missing, found.entries) == ((), 2)


def test_a_path_whose_name_begins_like_another_is_no_part_of_it(tree: Any) -> None:
    (tree.work / "a").mkdir()
    (tree.work / "ab").write_text("b")
    tree.copy("a", "ab")
    assert tree.copied() == ["a", "ab"]


def test_paths_that_share_a_parent_share_it_in_the_copy(tree: Any) -> None:
    (tree.work / "d").mkdir()
    for name in "xyz":
        (tree.work / "d" / name).write_text(name)
    tree.copy("d/x", "d/z")
    assert tree.copied() == ["d", "d/x", "d/z"]


def test_a_link_is_judged_from_where_it_lies_not_from_the_root(tree: Any) -> None:
    (tree.work / "d").mkdir()
    (tree.work / "d" / "up").symlink_to("../answer")
    (tree.work / "answer").write_text("42")
    assert tree.copy("d/up", "answer").dropped == ()
    assert (tree.into / "d" / "up").read_text() == "42"


def test_a_work_directory_that_was_exchanged_for_a_link_is_not_entered(tree: Any) -> None:
    tree.work.rmdir()
    tree.work.symlink_to("/etc")
    with pytest.raises(untrusted.Refused, match="link"):
        tree.copy("passwd")
