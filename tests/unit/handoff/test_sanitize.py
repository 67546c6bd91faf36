"""A copy of somebody else's files: no link leads it elsewhere, and nothing but files, directories and links comes with it."""

from __future__ import annotations

import os
import resource
import socket
import stat
import struct
import threading
from typing import TYPE_CHECKING, Any

import pytest
from blake3 import blake3

from hermit import untrusted
from hermit.handoff import budget, walk
from hermit.handoff.collect import collect
from hermit.handoff.remove import remove

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
        wanted = {"FIFO": 1, "socket": 1}
        if os.geteuid() == 0:
            os.mknod(tree.work / "full", stat.S_IFCHR | 0o666, os.makedev(1, 7))
            wanted["device"] = 1
        assert dropped(tree.copy()) == wanted
    assert tree.copied() == []


def test_setuid_setgid_and_sticky_bits_stay_behind(tree: Any) -> None:
    (tree.work / "suid").write_text("x")
    (tree.work / "suid").chmod(0o6755)
    (tree.work / "d").mkdir()
    (tree.work / "d").chmod(0o3777)
    assert dropped(tree.copy()) == {"setuid bit": 1, "setgid bit": 2, "sticky bit": 1}
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


def test_a_small_sparse_file_keeps_its_length_and_content(tree: Any) -> None:
    with (tree.work / "sparse").open("wb") as file:
        file.truncate(3_000_000)
        file.seek(2_000_000)
        file.write(b"here")
    tree.copy()
    assert (tree.into / "sparse").read_bytes() == (tree.work / "sparse").read_bytes()


BIG = 3 * walk.SMALL
# As the authors of BLAKE3 publish it: not what the library here says.
OF_NOTHING = "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"


def test_a_hard_link_to_a_file_outside_the_tree_is_dropped_and_one_inside_is_not(tree: Any, tmp_path: Path) -> None:
    (tmp_path / "host").write_text("the host's")
    os.link(tmp_path / "host", tree.work / "stolen")
    (tree.work / "one").write_text("mine")
    (tree.work / "deep").mkdir()
    os.link(tree.work / "one", tree.work / "deep" / "two")
    assert dropped(tree.copy()) == {"hard link from outside": 1}
    assert tree.copied() == ["deep", "deep/two", "one"]


def test_hard_links_are_looked_for_without_a_list_and_up_to_a_bound(tree: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        (tree.work / f"d{number}").mkdir()
        (tree.work / f"d{number}" / "f").write_text("x")
    os.link(tree.work / "d0" / "f", tree.work / "d19" / "g")
    before = os.listdir("/proc/self/fd")
    with untrusted.directory(str(tree.work)) as root:
        assert list(walk.names_of_files(root, depth=9).values()) == [2]
        assert list(walk.names_of_files(root, depth=0).values()) == []
        monkeypatch.setattr(walk, "MOST_LOOKED_AT", 3)
        assert list(walk.names_of_files(root, depth=9).values()) in ([], [1])
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_a_walk_may_hold_a_descriptor_of_each_directory_of_many_trees(tree: Any) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    inner = tree.work
    for _ in range(100):
        inner = inner / "d"
        inner.mkdir()
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(64, hard), hard))
        assert tree.copy().entries == 100
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_hard_link_whose_other_name_is_not_asked_for_is_copied(tree: Any) -> None:
    (tree.work / "one").write_text("mine")
    (tree.work / "deep").mkdir()
    os.link(tree.work / "one", tree.work / "deep" / "two")
    assert dropped(tree.copy("deep/two")) == {}
    assert tree.copied() == ["deep", "deep/two"]


def test_extended_attributes_stay_behind_and_are_counted(tree: Any) -> None:
    (tree.work / "f").write_text("x")
    (tree.work / "d").mkdir()
    try:
        os.setxattr(tree.work / "f", "user.note", b"planted")
        os.setxattr(tree.work / "d", "user.note", b"planted")
    except OSError:
        pytest.skip("this file system has no extended attributes")
    assert dropped(tree.copy()) == {"extended attribute": 2}
    assert os.listxattr(tree.into / "f") == []
    assert os.listxattr(tree.into / "d") == []


def test_file_capabilities_stay_behind_and_are_counted(tree: Any) -> None:
    (tree.work / "tool").write_text("x")
    try:
        # <linux/capability.h>: version 2, effective; CAP_NET_RAW permitted
        os.setxattr(tree.work / "tool", "security.capability", struct.pack("<5I", 0x02000001, 1 << 13, 0, 0, 0))
    except OSError:
        pytest.skip("nobody here may give a file capabilities")
    assert dropped(tree.copy()) == {"file capability": 1}
    assert "security.capability" not in os.listxattr(tree.into / "tool")


def test_names_that_differ_by_nothing_but_case_are_counted(tree: Any) -> None:
    for name in ("README", "Readme", "readme", "other"):
        (tree.work / name).touch()
    (tree.work / "d").mkdir()
    (tree.work / "d" / "README").touch()
    assert tree.copy().same_but_case == 2


def test_a_repository_and_its_hooks_are_copied_as_the_files_they_are(tree: Any) -> None:
    hook = tree.work / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(parents=True)
    hook.write_text("#!/bin/sh\ntouch /tmp/planted\n")
    hook.chmod(0o755)
    assert dropped(tree.copy()) == {}
    assert (tree.into / ".git" / "hooks" / "post-checkout").read_text() == hook.read_text()


def test_the_manifest_has_a_line_for_each_entry_and_the_digest_is_its_own(tree: Any) -> None:
    (tree.work / "d").mkdir()
    (tree.work / "d" / "big").write_bytes(b"z" * BIG)
    (tree.work / "tool").write_text("x")
    (tree.work / "tool").chmod(0o700)
    (tree.work / "to").symlink_to("d/big")
    with open(os.path.join(os.fsencode(tree.work), b"\xff\n"), "wb"):
        pass
    found = tree.copy(manifest=True)
    lines = {line.pop("path"): line for line in tree.lines()}
    digests = [blake3(data).hexdigest() for data in (b"z" * BIG, b"x")] + [OF_NOTHING]
    assert lines == {
        "d": {"kind": "directory"},
        "d/big": {"kind": "file", "bytes": BIG, "executable": False, "blake3": digests[0]},
        "to": {"kind": "link", "to": "d/big"},
        "tool": {"kind": "file", "bytes": 1, "executable": True, "blake3": digests[1]},
        "\udcff\n": {"kind": "file", "bytes": 0, "executable": False, "blake3": digests[2]},
    }
    assert found.digest == blake3(tree.manifest.read_bytes()).hexdigest()
    assert found.entries == len(lines)


def test_a_big_file_with_holes_has_the_digest_of_what_a_reader_sees(tree: Any) -> None:
    with (tree.work / "f").open("wb") as file:
        file.truncate(20 << 20)
        file.seek(9 << 20)
        file.write(b"x" * (3 << 20))
    tree.copy(manifest=True)
    assert tree.lines()[0]["blake3"] == blake3((tree.work / "f").read_bytes()).hexdigest()


def test_a_copy_leaves_no_descriptor_and_no_thread_whether_it_succeeds_or_not(tree: Any) -> None:
    (tree.work / "a" / "b" / "c" / "d").mkdir(parents=True)
    (tree.work / "big").write_bytes(b"z" * BIG)
    before = os.listdir("/proc/self/fd"), threading.active_count()
    tree.copy(manifest=True)
    with pytest.raises(FileExistsError):
        tree.copy(manifest=True)
    remove(str(tree.into))
    tree.into.mkdir()
    with pytest.raises(budget.TooMuch):
        tree.copy(limits=budget.Budget(depth=3))
    assert (os.listdir("/proc/self/fd"), threading.active_count()) == before


def test_the_copy_overwrites_nothing_that_is_there(tree: Any) -> None:
    (tree.work / "f").write_text("new")
    # A file of the test's own: with the protection off the copy would go through the link.
    victim = tree.work.parent / "victim"
    victim.write_text("old")
    (tree.into / "f").symlink_to(victim)
    with pytest.raises(FileExistsError):
        tree.copy()
    assert victim.read_text() == "old"
