"""A copy takes so much and no more, and the refusal names the budget."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from hermit.handoff import budget
from hermit.handoff.remove import remove

if TYPE_CHECKING:
    from pathlib import Path


def nested(root: Path, count: int) -> None:
    """So many directories below each other; by descriptor, for no path could name the last ones."""
    here = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(count):
        os.mkdir("d", dir_fd=here)
        there = os.open("d", os.O_RDONLY | os.O_DIRECTORY, dir_fd=here)
        os.close(here)
        here = there
    os.close(here)


def test_a_tree_too_deep_is_refused_and_not_followed(tree: Any) -> None:
    nested(tree.work, 5000)
    try:
        with pytest.raises(budget.TooMuch, match="directories more than 128 deep"):
            tree.copy()
        remove(str(tree.work))
        assert not tree.work.exists()
    finally:  # whatever fails: nobody who recurses could remove it
        subprocess.run(["rm", "-rf", str(tree.work), str(tree.into)], check=True)


def test_a_tree_as_deep_as_allowed_is_copied(tree: Any) -> None:
    nested(tree.work, budget.DEFAULT.depth)
    assert tree.copy().entries == budget.DEFAULT.depth


REFUSED = {
    "entries": lambda work: [(work / name).touch() for name in "abcde"],
    "bytes": lambda work: (work / "f").write_bytes(bytes(1001)),
    "apparent_bytes": lambda work: (work / "f").write_bytes(b"") or os.truncate(work / "f", 2001),
    "depth": lambda work: (work / "a" / "b" / "c" / "d").mkdir(parents=True),
    "name_bytes": lambda work: (work / "\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4").touch(),
    "paths_bytes": lambda work: [(work / f"{number}ccccccccc").symlink_to("d" * 90) for number in range(3)],
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_more_than_a_budget_is_refused_by_its_name(tree: Any, name: str) -> None:
    limits = budget.Budget(entries=4, bytes=1000, apparent_bytes=2000, depth=3, name_bytes=10, paths_bytes=250)
    REFUSED[name](tree.work)
    with pytest.raises(budget.TooMuch, match=f"budget: {name}") as caught:
        tree.copy(limits=limits)
    assert caught.value.budget == name


@pytest.mark.parametrize("name", REFUSED)
def test_no_more_than_a_budget_is_written_before_it_is_refused(tree: Any, name: str) -> None:
    REFUSED[name](tree.work)
    tight = {"entries": 4, "bytes": 1000, "apparent_bytes": 2000, "depth": 3, "name_bytes": 10, "paths_bytes": 250}
    with pytest.raises(budget.TooMuch):
        tree.copy(limits=budget.Budget(**{name: tight[name]}))
    assert len(tree.copied()) <= 4
    assert sum(path.lstat().st_size for path in tree.into.rglob("*") if not path.is_dir()) <= 250


def test_a_directory_of_more_entries_than_a_copy_takes_is_not_read_to_its_end(
    tree: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(50):
        (tree.work / str(number)).touch()
    seen = []
    listed = os.scandir

    class Counted:
        def __init__(self, directory: Any) -> None:
            self.entries = listed(directory)

        def __enter__(self) -> Any:
            return (seen.append(entry.name) or entry for entry in self.entries)

        def __exit__(self, *_: object) -> None:
            self.entries.close()

    monkeypatch.setattr(os, "scandir", Counted)
    with pytest.raises(budget.TooMuch, match="more than 10 entries"):
        tree.copy(limits=budget.Budget(entries=10))
    monkeypatch.undo()
    assert len(seen) == 11
    assert tree.copied() == []


def test_a_sparse_file_of_100_gigabytes_is_refused_before_anything_of_it_is_written(tree: Any) -> None:
    with (tree.work / "sparse").open("wb") as file:
        file.truncate(100 << 30)
    with pytest.raises(budget.TooMuch, match="longer than 32 GiB together, holes included"):
        tree.copy()
    assert tree.copied() == []


def test_holes_are_kept_as_holes(tree: Any) -> None:
    with (tree.work / "sparse").open("wb") as file:
        file.truncate(1 << 30)
        file.seek(500 << 20)
        file.write(b"here")
    found = tree.copy()
    status = (tree.into / "sparse").stat()
    assert status.st_size == 1 << 30
    assert status.st_blocks * 512 < 4 << 20
    assert found.apparent_bytes == 1 << 30
    assert found.bytes < 4 << 20
    with (tree.into / "sparse").open("rb") as file:
        file.seek(500 << 20)
        assert file.read(5) == b"here\0"
