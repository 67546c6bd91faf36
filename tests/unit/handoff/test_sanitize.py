"""A copy of somebody else's files: no link leads it elsewhere, and nothing but files, directories and links comes with it."""

from __future__ import annotations

import os
import socket
import stat
from typing import TYPE_CHECKING, Any

import pytest

from hermit.handoff import sanitize
from hermit.handoff.collect import collect

if TYPE_CHECKING:
    from pathlib import Path

NOBODY = 65534


def dropped(collection: Any) -> dict[str, int]:
    return dict(collection.dropped)


def as_nobody(action: Any) -> int:
    """The exit code of ``action`` in a fork that root's power has left: 0 where it returned true."""
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            code = 0 if action() else 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_an_honest_tree_is_copied_whole_with_its_executable_bits(tree: Any) -> None:
    (tree.work / "a" / "b").mkdir(parents=True)
    (tree.work / "a" / "b" / "data").write_bytes(b"\x00\xff" * 70000)
    (tree.work / "tool").write_text("#!/bin/sh\n")
    (tree.work / "tool").chmod(0o755)
    assert tree.copy().missing == ()
    assert tree.copied() == ["a", "a/b", "a/b/data", "tool"]
    assert (tree.into / "a" / "b" / "data").read_bytes() == b"\x00\xff" * 70000
    assert stat.S_IMODE((tree.into / "tool").stat().st_mode) == 0o700
    assert stat.S_IMODE((tree.into / "a" / "b" / "data").stat().st_mode) == 0o600


def test_the_original_is_untouched_by_its_copy(tree: Any) -> None:
    (tree.work / "d").mkdir()
    (tree.work / "d" / "f").write_text("work")
    (tree.work / "l").symlink_to("d/f")
    before = tree.snapshot()
    tree.copy()
    (tree.into / "d" / "f").write_text("spoiled")
    assert tree.snapshot() == before


@pytest.mark.parametrize("text", ["d/f", "./d/f", "nowhere", "loop", "d", "..hidden"])
def test_a_link_that_stays_is_copied_as_a_link(tree: Any, text: str) -> None:
    (tree.work / "d").mkdir()
    (tree.work / "d" / "f").write_text("work")
    (tree.work / "loop").symlink_to(text)
    assert dropped(tree.copy()) == {}
    assert os.readlink(tree.into / "loop") == text


@pytest.mark.parametrize(
    "text", ["/etc/passwd", "..", "../outside", "d/../../outside", "./../outside", "../work/d", "d/../..", "//etc", "/"]
)
def test_a_link_that_leaves_is_dropped_and_counted(tree: Any, text: str) -> None:
    (tree.work / "d").mkdir()
    (tree.work / "link").symlink_to(text)
    assert dropped(tree.copy()) == {"link that leaves": 1}
    assert tree.copied() == ["d"]


def test_a_link_in_a_directory_may_climb_to_the_root_of_the_tree_and_no_further(tree: Any) -> None:
    (tree.work / "a" / "b").mkdir(parents=True)
    (tree.work / "a" / "b" / "up").symlink_to("../..")
    (tree.work / "a" / "b" / "out").symlink_to("../../..")
    assert dropped(tree.copy()) == {"link that leaves": 1}
    assert tree.copied() == ["a", "a/b", "a/b/up"]


def test_links_that_leave_only_together_lead_nowhere_in_the_copy(tree: Any) -> None:
    (tree.work.parent / "secret").write_text("not the agent's")
    (tree.into.parent / "secret").write_text("not the agent's")
    (tree.work / "a" / "b").mkdir(parents=True)
    (tree.work / "a" / "b" / "root").symlink_to("../..")
    (tree.work / "answer").symlink_to("a/b/root/../secret")
    tree.copy()
    inside = os.path.realpath(tree.into)
    for name in tree.copied():
        assert os.path.realpath(tree.into / name).startswith(inside), name


def test_a_loop_and_a_chain_of_links_are_copied_without_being_followed(tree: Any) -> None:
    (tree.work / "one").symlink_to("two")
    (tree.work / "two").symlink_to("one")
    (tree.work / "d").mkdir()
    (tree.work / "d" / "self").symlink_to(".")
    assert tree.copy().entries == 4
    assert tree.copied() == ["d", "d/self", "one", "two"]


def test_fifos_sockets_and_devices_are_dropped_and_nothing_waits_for_them(tree: Any) -> None:
    os.mkfifo(tree.work / "fifo")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tree.work / "socket"))
        wanted = 2
        if os.geteuid() == 0:
            os.mknod(tree.work / "full", stat.S_IFCHR | 0o666, os.makedev(1, 7))
            wanted = 3
        assert dropped(tree.copy()) == {"special file": wanted}
    assert tree.copied() == []


def test_setuid_setgid_and_sticky_bits_stay_behind(tree: Any) -> None:
    (tree.work / "suid").write_text("x")
    (tree.work / "suid").chmod(0o6755)
    (tree.work / "d").mkdir()
    (tree.work / "d").chmod(0o3777)
    tree.copy()
    assert stat.S_IMODE((tree.into / "suid").stat().st_mode) == 0o700
    assert stat.S_IMODE((tree.into / "d").stat().st_mode) == 0o700


def test_a_hard_link_becomes_a_file_of_its_own(tree: Any) -> None:
    (tree.work / "one").write_text("same")
    os.link(tree.work / "one", tree.work / "two")
    tree.copy()
    assert (tree.into / "one").stat().st_nlink == 1
    assert (tree.into / "two").read_text() == "same"


def test_what_may_not_be_read_is_dropped_and_the_rest_is_copied() -> None:
    # pytest's own directories are closed to the user this test becomes.
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as root:
        Path(root).chmod(0o777)

        def closed_are_dropped() -> bool:
            work, into = Path(root, "work"), Path(root, "into")
            (work / "closed").mkdir(parents=True)
            (work / "closed" / "inner").write_text("x")
            (work / "file").write_text("x")
            (work / "open").write_text("x")
            into.mkdir()
            (work / "closed").chmod(0)
            (work / "file").chmod(0)
            found = collect(str(work), ["."], into=str(into))
            (work / "closed").chmod(0o700)
            return dict(found.dropped) == {"unreadable": 2} and sorted(os.listdir(into)) == ["open"]

        assert as_nobody(closed_are_dropped) == 0


@pytest.mark.parametrize(
    "name",
    [b"line\nbreak", b"-rf", b"n" * 255, b"\xff\xfe not utf-8", b"*", b" ", b"\x1b[31m", b"...", b"$(id)", b"~", b"\\"],
)
def test_any_name_is_carried_over_byte_for_byte(tree: Any, name: bytes) -> None:
    with open(os.path.join(os.fsencode(tree.work), name), "wb") as file:
        file.write(name)
    tree.copy()
    assert os.listdir(os.fsencode(tree.into)) == [name]
    with open(os.path.join(os.fsencode(tree.into), name), "rb") as file:
        assert file.read() == name


def test_a_tree_too_deep_is_refused_and_not_followed(tree: Any) -> None:
    inner = tree.work
    for _ in range(sanitize.MOST_DEPTH + 2):
        inner = inner / "d"
        inner.mkdir()
    with pytest.raises(sanitize.TooMuch, match="deep"):
        tree.copy()


def test_a_tree_as_deep_as_allowed_is_copied(tree: Any) -> None:
    inner = tree.work
    for _ in range(sanitize.MOST_DEPTH):
        inner = inner / "d"
        inner.mkdir()
    assert tree.copy().entries == sanitize.MOST_DEPTH


def test_too_many_entries_are_refused(tree: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sanitize, "MOST_ENTRIES", 3)
    for name in "abcd":
        (tree.work / name).touch()
    with pytest.raises(sanitize.TooMuch, match="more than 3 files"):
        tree.copy()


def test_a_sparse_file_counts_by_its_length_and_is_refused_before_it_is_written(tree: Any) -> None:
    with (tree.work / "sparse").open("wb") as file:
        file.truncate(sanitize.MOST_BYTES + 1)
    with pytest.raises(sanitize.TooMuch, match="GiB"):
        tree.copy()
    assert sum(path.stat().st_blocks for path in tree.into.iterdir()) == 0


def test_a_small_sparse_file_keeps_its_length_and_content(tree: Any) -> None:
    with (tree.work / "sparse").open("wb") as file:
        file.truncate(3_000_000)
        file.seek(2_000_000)
        file.write(b"here")
    tree.copy()
    assert (tree.into / "sparse").read_bytes() == (tree.work / "sparse").read_bytes()


def test_a_file_that_grows_during_the_copy_is_not_followed(tree: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    grown = tree.work / "log"
    grown.write_bytes(b"x" * 100)
    ahead = os.copy_file_range

    def growing(source: int, target: int, count: int) -> int:
        with grown.open("ab") as file:
            file.write(b"y" * 1000)
        return ahead(source, target, count)

    monkeypatch.setattr(os, "copy_file_range", growing)
    tree.copy()
    assert (tree.into / "log").read_bytes() == b"x" * 100


def test_a_file_that_shrinks_during_the_copy_ends_it(tree: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tree.work / "log").write_bytes(b"x" * 100)
    ahead = os.copy_file_range

    def shrinking(source: int, target: int, count: int) -> int:
        (tree.work / "log").write_bytes(b"x" * 10)
        return ahead(source, target, count)

    monkeypatch.setattr(os, "copy_file_range", shrinking)
    tree.copy()
    assert (tree.into / "log").read_bytes() == b"x" * 10


def test_the_content_is_the_same_where_the_kernel_cannot_copy(tree: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(source: int, target: int, count: int) -> int:
        raise OSError(18, os.strerror(18))

    content = os.urandom(2 * sanitize.CHUNK + 17)
    (tree.work / "data").write_bytes(content)
    monkeypatch.setattr(os, "copy_file_range", refusing)
    tree.copy()
    assert (tree.into / "data").read_bytes() == content


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
    look = os.stat

    def exchanging(path: Any, *rest: Any, **named: Any) -> os.stat_result:
        seen = look(path, *rest, **named)
        if path == "victim" and not victim.is_symlink():
            victim.rename(tmp_path / "moved")
            victim.symlink_to(outside if kind == "directory" else outside / "secret")
        return seen

    monkeypatch.setattr(os, "stat", exchanging)
    found = tree.copy()
    monkeypatch.undo()
    assert dropped(found) == {"exchanged during the copy": 1}
    assert tree.copied() == []


def test_a_file_exchanged_for_a_fifo_during_the_copy_holds_nobody_up(
    tree: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim = tree.work / "victim"
    victim.write_text("mine")
    look = os.stat

    def exchanging(path: Any, *rest: Any, **named: Any) -> os.stat_result:
        seen = look(path, *rest, **named)
        if path == "victim" and stat.S_ISREG(seen.st_mode):
            victim.unlink()
            os.mkfifo(victim)
        return seen

    monkeypatch.setattr(os, "stat", exchanging)
    found = tree.copy()
    monkeypatch.undo()
    assert dropped(found) == {"special file": 1}
    assert tree.copied() == []


def test_a_directory_whose_entries_vanish_during_the_copy_is_copied_without_them(
    tree: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree.work / "a").write_text("a")
    (tree.work / "b").write_text("b")
    look = os.stat

    def vanishing(path: Any, *rest: Any, **named: Any) -> os.stat_result:
        if path == "b":
            (tree.work / "b").unlink(missing_ok=True)
        return look(path, *rest, **named)

    monkeypatch.setattr(os, "stat", vanishing)
    tree.copy()
    monkeypatch.undo()
    assert tree.copied() == ["a"]


def test_the_copy_overwrites_nothing_that_is_there(tree: Any) -> None:
    (tree.work / "f").write_text("new")
    # A file of the test's own: with the protection off the copy would go through the link.
    victim = tree.work.parent / "victim"
    victim.write_text("old")
    (tree.into / "f").symlink_to(victim)
    with pytest.raises(FileExistsError):
        tree.copy()
    assert victim.read_text() == "old"
