"""A tree that changes while it is copied: nothing leads elsewhere, nobody waits, nothing goes on for ever."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

import pytest
from blake3 import blake3

from hermit.handoff import walk
from hermit.handoff.collect import collect

if TYPE_CHECKING:
    from pathlib import Path


def dropped(collection: Any) -> dict[str, int]:
    return dict(collection.dropped)


BIG = 3 * walk.SMALL


def moving(monkeypatch: pytest.MonkeyPatch, before: Any) -> None:
    """Has something happen before each move of a piece."""
    ahead = walk.Held.move

    def moved(self: Any, target: int, count: int) -> int:
        before()
        return ahead(self, target, min(count, walk.SMALL))

    monkeypatch.setattr(walk.Held, "move", moved)


def test_a_file_that_grows_for_ever_is_copied_as_long_as_it_was(tree: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    grown = tree.work / "log"
    grown.write_bytes(b"x" * BIG)

    def grow() -> None:
        with grown.open("ab") as file:
            file.write(b"y" * 1000)

    moving(monkeypatch, grow)
    tree.copy()
    assert (tree.into / "log").read_bytes() == b"x" * BIG


@pytest.mark.parametrize("sparse", [False, True])
def test_no_piece_of_a_file_goes_beyond_what_it_was_when_it_was_opened(tree: Any, sparse: bool) -> None:
    path = tree.work / "log"
    path.write_bytes(b"x" * BIG)
    if sparse:
        os.truncate(path, 2 * BIG)
        with path.open("r+b") as file:
            file.seek(2 * BIG - 10)
            file.write(b"x" * 10)
    with path.open("rb") as opened:
        held = walk.Held(opened.fileno(), os.fstat(opened.fileno()))
        with path.open("ab") as file:
            file.write(b"y" * BIG)
        pieces = list(held.pieces())
        assert max(offset + count for offset, count in pieces) == held.length == held.end()


def test_a_file_that_shrinks_during_the_copy_ends_it(tree: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tree.work / "log").write_bytes(b"x" * BIG)
    moving(monkeypatch, lambda: os.truncate(tree.work / "log", walk.SMALL + 10))
    found = tree.copy(manifest=True)
    content = (tree.into / "log").read_bytes()
    assert content == b"x" * (walk.SMALL + 10)
    assert tree.lines()[0]["blake3"] == blake3(content).hexdigest()
    assert found.entries == 1


def test_the_content_is_the_same_where_the_kernel_cannot_copy(tree: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(source: int, target: int, count: int, offset: int) -> int:
        raise OSError(18, os.strerror(18))

    content = os.urandom(2 * walk.CHUNK + 17)
    (tree.work / "data").write_bytes(content)
    monkeypatch.setattr(os, "copy_file_range", refusing)
    tree.copy()
    assert (tree.into / "data").read_bytes() == content


def exchanged(monkeypatch: pytest.MonkeyPatch, victim: Path, exchange: Any) -> None:
    """Has an entry exchanged at the last moment: after it was listed, before it is opened."""
    opens = os.open

    def opened(path: Any, *rest: Any, **named: Any) -> int:
        if path == victim.name and named.get("dir_fd") is not None:
            monkeypatch.setattr(os, "open", opens)
            exchange()
        return opens(path, *rest, **named)

    monkeypatch.setattr(os, "open", opened)


@pytest.mark.parametrize("kind", ["file", "directory"])
def test_a_path_exchanged_for_a_link_during_the_copy_is_not_followed(
    tree: Any, kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    victim = tree.work / "victim"
    if kind == "directory":
        victim.mkdir()
        (victim / "secret").write_text("mine")
    else:
        victim.write_text("mine")

    def exchange() -> None:
        victim.rename(tmp_path / "moved")
        victim.symlink_to(outside if kind == "directory" else outside / "secret")

    exchanged(monkeypatch, victim, exchange)
    assert dropped(tree.copy()) == {"exchanged during the copy": 1}
    assert tree.copied() == []


def test_a_file_exchanged_for_a_fifo_during_the_copy_holds_nobody_up(
    tree: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = tree.work / "victim"
    victim.write_text("mine")

    def exchange() -> None:
        victim.unlink()
        os.mkfifo(victim)

    exchanged(monkeypatch, victim, exchange)
    assert dropped(tree.copy()) == {"FIFO": 1}
    assert tree.copied() == []


def test_an_entry_that_vanishes_during_the_copy_is_counted_and_the_rest_is_copied(
    tree: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree.work / "a").write_text("a")
    (tree.work / "b").write_text("b")
    exchanged(monkeypatch, tree.work / "a", (tree.work / "a").unlink)
    assert dropped(tree.copy()) == {"exchanged during the copy": 1}
    assert tree.copied() == ["b"]


def test_nothing_of_outside_is_copied_while_a_directory_is_exchanged_for_a_link_again_and_again(
    tree: Any, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("secret")
    (tree.work / "d").mkdir()
    (tree.work / "d" / "file").write_text("mine")
    (tmp_path / "link").symlink_to(outside)
    pid = os.fork()
    if pid == 0:
        try:
            while True:  # until it is killed
                (tree.work / "d").rename(tmp_path / "kept")
                (tmp_path / "link").rename(tree.work / "d")
                (tree.work / "d").rename(tmp_path / "link")
                (tmp_path / "kept").rename(tree.work / "d")
        finally:
            os._exit(1)
    try:
        for number in range(300):
            for name, paths in (("all", ["."]), ("named", ["d/file"])):
                into = tmp_path / f"{name}-{number}"
                into.mkdir()
                collect(str(tree.work), paths, into=str(into))
                found = into / "d" / "file"
                assert not found.exists() or found.read_text() == "mine"
        assert os.waitpid(pid, os.WNOHANG) == (0, 0), "nothing was exchanged any more"
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
