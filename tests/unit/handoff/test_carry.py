"""A copy that is made inside a sandbox: what comes out is checked, whoever made it, and is the tree as it was."""

from __future__ import annotations

import contextlib
import os
import stat
import threading
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest
from blake3 import blake3

from hermit import sandbox as sandboxes
from hermit import untrusted
from hermit.errors import Interrupted, SandboxError
from hermit.handoff import archive, budget, sanitize
from hermit.handoff import carry as carrying
from hermit.handoff.carry import Stream, carry, unpack
from hermit.handoff.sanitize import Copy, Malformed
from hermit.handoff.walk import SMALL, write_all

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOWHERE = sandboxes.unconfined("a test of what comes out")


@contextlib.contextmanager
def piped(data: bytes) -> Iterator[Stream]:
    """A stream that brings these bytes and ends."""
    reader, writer = os.pipe()

    def write() -> None:
        with contextlib.suppress(BrokenPipeError):
            write_all(writer, data)
        os.close(writer)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield Stream(reader)
    finally:
        os.close(reader)
        thread.join()


def made(
    tree: Any,
    *frames: bytes,
    limits: budget.Budget = budget.DEFAULT,
    first: bytes = archive.FIRST,
    end: bytes = b"Z",
) -> budget.Copied:
    """What comes of these frames."""
    into = os.open(tree.into, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with piped(first + b"".join(frames) + end) as stream, Copy(into, limits=limits) as copy:
            unpack(stream, copy)
            return copy.copied
    finally:
        os.close(into)


def small(name: bytes, data: bytes = b"x") -> bytes:
    return b"S" + sized(name) + b"\0" + len(data).to_bytes(4, "big") + data


def sized(name: bytes) -> bytes:
    return len(name).to_bytes(2, "big") + name


def piece(offset: int, data: bytes) -> bytes:
    return b"P" + offset.to_bytes(8, "big") + len(data).to_bytes(4, "big") + data


def begun(name: bytes, length: int) -> bytes:
    return b"F" + sized(name) + b"\0" + length.to_bytes(8, "big")


def ended(length: int) -> bytes:
    return b"E" + length.to_bytes(8, "big")


def directory(name: bytes) -> bytes:
    return b"D" + sized(name)


def link(name: bytes, text: bytes) -> bytes:
    return b"L" + sized(name) + sized(text)


def filled(work: Path) -> None:
    """A tree with everything in it that comes along, and something that does not."""
    (work / "d" / "e").mkdir(parents=True)
    (work / "d" / "e" / "big").write_bytes(os.urandom(3 * archive.CHUNK + 17))
    (work / "d" / "tool").write_text("#!/bin/sh\n")
    (work / "d" / "tool").chmod(0o700)
    (work / "to").symlink_to("d/tool")
    (work / "out").symlink_to("/etc/passwd")
    os.mkfifo(work / "fifo")
    with (work / "sparse").open("wb") as file:
        file.truncate(30 << 20)
        file.seek(10 << 20)
        file.write(b"here")
    with open(os.path.join(os.fsencode(work), b"\xff\n"), "wb") as file:
        file.write(b"odd")


def test_what_comes_out_is_the_tree_and_its_manifest_is_that_of_a_copy_on_the_host(tree: Any, tmp_path: Path) -> None:
    filled(tree.work)
    here = tree.copy(manifest=True)
    wanted, names = tree.manifest.read_bytes(), tree.copied()
    there = tmp_path / "there"
    there.mkdir()
    with (tmp_path / "other.jsonl").open("w+b") as manifest:
        found = carry(NOWHERE, str(tree.work), into=str(there), manifest=manifest, keep=lambda _: None)
        manifest.seek(0)
        assert manifest.read() == wanted
    assert (found.digest, found.entries, found.bytes, found.apparent_bytes) == (
        here.digest,
        here.entries,
        here.bytes,
        here.apparent_bytes,
    )
    assert dict(found.dropped) == dict(here.dropped) == {"FIFO": 1, "link that leaves": 1}
    assert (there / "sparse").stat().st_blocks * 512 < 4 << 20
    assert blake3(wanted).hexdigest() == found.digest
    assert len(names) == found.entries


@pytest.mark.bwrap
def test_a_tree_comes_out_of_a_sandbox_that_shows_it_read_only_and_nothing_of_hermit(tree: Any, place: Any) -> None:
    filled(tree.work)
    records: list[Any] = []
    found = carry(place, str(tree.work), into=str(tree.into), keep=records.append)
    assert found.entries == len(tree.copied())
    assert (tree.into / "d" / "e" / "big").read_bytes() == (tree.work / "d" / "e" / "big").read_bytes()
    (record,) = records
    assert record.confined
    assert record.empty
    assert [bind.writable for bind in record.binds if bind.source == str(tree.work)] == [False]
    assert not [bind for bind in record.binds if bind.writable]


def test_a_tree_that_is_a_link_to_the_machines_own_files_is_refused(tree: Any, tmp_path: Path) -> None:
    (tmp_path / "named").symlink_to("/etc")
    with pytest.raises(untrusted.Refused, match="link"):
        carry(NOWHERE, str(tmp_path / "named"), into=str(tree.into), keep=lambda _: None)
    assert tree.copied() == []


def test_too_much_is_refused_inside_by_the_name_of_its_budget(tree: Any) -> None:
    for name in "abcd":
        (tree.work / name).touch()
    with pytest.raises(budget.TooMuch, match="more than 3") as caught:
        carry(NOWHERE, str(tree.work), into=str(tree.into), limits=budget.Budget(entries=3), keep=lambda _: None)
    assert caught.value.budget == "entries"


def test_the_directory_that_gets_a_copy_keeps_its_own_mode(tree: Any) -> None:
    tree.work.chmod(0o3777)
    tree.into.chmod(0o750)
    carry(NOWHERE, str(tree.work), into=str(tree.into), keep=lambda _: None)
    tree.copy()
    assert stat.S_IMODE(tree.into.stat().st_mode) == 0o750


def test_a_large_file_is_streamed_and_never_held_in_memory(tree: Any) -> None:
    (tree.work / "large").write_bytes(bytes(64 << 20))
    tracemalloc.start()
    try:
        found = carry(NOWHERE, str(tree.work), into=str(tree.into), keep=lambda _: None)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.bytes == 64 << 20
    assert peak < 8 << 20


def test_a_run_that_is_given_up_ends_the_copy(tree: Any) -> None:
    reader, writer = os.pipe()
    os.close(writer)
    try:
        with pytest.raises(Interrupted):
            carry(NOWHERE, str(tree.work), into=str(tree.into), keep=lambda _: None, cancel=reader)
    finally:
        os.close(reader)


def test_a_copy_that_fails_leaves_no_descriptor_and_no_thread(
    tree: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(tree.work)
    before = os.listdir("/proc/self/fd"), threading.active_count()
    with pytest.raises(OSError, match="missing"):
        carry(NOWHERE, str(tmp_path / "absent"), into=str(tree.into), keep=lambda _: None)
    with pytest.raises(budget.TooMuch):
        carry(NOWHERE, str(tree.work), into=str(tree.into), limits=budget.Budget(bytes=1 << 20), keep=lambda _: None)
    monkeypatch.setattr(carrying, "WORKER", "hermit.handoff.archive:absent")
    with pytest.raises(SandboxError, match="it ends in the middle"):
        carry(NOWHERE, str(tree.work), into=str(tree.into), keep=lambda _: None)
    assert (os.listdir("/proc/self/fd"), threading.active_count()) == before


LONG = b"y" * (SMALL + 1)
SENSELESS = {
    "a name that leaves": (small(b"../out"),),
    "a directory above": (directory(b".."), small(b"out"), b"U"),
    "the directory itself": (directory(b"."), b"U"),
    "a name with a slash": (small(b"d/out"),),
    "an absolute name": (small(b"/tmp/out"),),
    "a name with a zero byte": (small(b"a\0b"),),
    "no name": (small(b""),),
    "a file that is there twice": (small(b"a"), small(b"a")),
    "a directory that is there twice": (directory(b"d"), b"U", directory(b"d"), b"U"),
    "a link, then a directory of its name": (link(b"d", b"e"), directory(b"d"), small(b"f"), b"U"),
    "a link, then a file through it": (link(b"f", b"g"), small(b"f")),
    "a link that is there twice": (link(b"f", b"g"), link(b"f", b"g")),
    "one end too many": (b"U",),
    "a directory that never ends": (directory(b"d"),),
    "a frame nobody knows": (b"?",),
    "a small file that is not small": (small(b"a", LONG),),
    "a piece of nothing": (begun(b"a", 9), piece(0, b""), ended(0)),
    "a piece of more than a piece holds": (begun(b"a", 9), b"P" + bytes(8) + b"\xff\xff\xff\xff"),
    "a piece beyond the end": (begun(b"a", 9), piece(5, b"12345"), ended(9)),
    "a piece before the last one": (begun(b"a", 9), piece(5, b"12"), piece(6, b"3"), ended(9)),
    "a file that ends later than it was said to": (begun(b"a", 9), piece(0, b"1"), ended(10)),
    "something else in a file": (begun(b"a", 9), directory(b"d")),
    "a link without a text": (link(b"l", b""),),
    "a link with a text too long": (link(b"l", b"t" * 4096),),
    "a link with a zero byte in its text": (link(b"l", b"a\0b"),),
    "a reason nobody knows": (b"N" + sized(b"because") + bytes(8),),
    "a budget nobody knows": (b"T" + sized(b"money"),),
}


@pytest.mark.parametrize("name", SENSELESS)
def test_a_stream_that_makes_no_sense_is_refused_and_leads_nowhere(tree: Any, name: str) -> None:
    with pytest.raises(Malformed):
        made(tree, *SENSELESS[name])
    assert [path.name for path in tree.into.parent.iterdir() if path.name not in ("work", "into")] == []
    assert not any(path.is_symlink() and os.path.lexists(tree.into / os.readlink(path)) for path in tree.into.iterdir())


def test_a_stream_has_nothing_after_its_end(tree: Any) -> None:
    with pytest.raises(Malformed, match="more after its end"):
        made(tree, end=b"Zx")


def test_a_stream_of_another_kind_is_refused(tree: Any) -> None:
    with pytest.raises(Malformed, match="no archive of ours"):
        made(tree, first=b"hermit-archive-2\n")


def test_a_stream_that_is_torn_anywhere_is_refused(tree: Any, tmp_path: Path) -> None:
    whole = directory(b"d") + small(b"a") + link(b"l", b"a") + begun(b"b", 9) + piece(2, b"123") + ended(9) + b"U"
    for cut in range(len(whole)):
        tree.into.rename(tmp_path / f"torn-{cut}")
        tree.into.mkdir()
        with pytest.raises(Malformed):
            made(tree, whole[:cut], end=b"")
    tree.into.rename(tmp_path / "torn")
    tree.into.mkdir()
    assert made(tree, whole).entries == 4
    assert (tree.into / "d" / "b").read_bytes() == b"\0\x00123\0\0\0\0"


def test_a_file_that_shrank_while_it_was_said_has_the_digest_of_what_is_left(
    tree: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead = sanitize._Digest.reach

    def reached(self: Any, written: int) -> None:
        ahead(self, written)
        self.wait()  # the thread that digests is never late

    monkeypatch.setattr(sanitize, "MOVED", 2)
    monkeypatch.setattr(sanitize._Digest, "reach", reached)
    into = os.open(tree.into, os.O_RDONLY | os.O_DIRECTORY)
    frames = begun(b"a", 9) + piece(0, b"123456") + ended(3)
    with (
        untrusted.closing(into),
        tree.manifest.open("wb") as manifest,
        piped(archive.FIRST + frames + b"Z") as stream,
        Copy(into, manifest=manifest) as copy,
    ):
        unpack(stream, copy)
        copy.finish()
    assert (tree.into / "a").read_bytes() == b"123"
    assert tree.lines()[0]["blake3"] == blake3(b"123").hexdigest()


def test_a_link_that_leaves_is_dropped_outside_whatever_was_said_inside(tree: Any) -> None:
    found = made(tree, directory(b"d"), link(b"out", b"../../etc"), link(b"up", b"../a"), b"U", link(b"abs", b"/etc"))
    assert dict(found.dropped) == {"link that leaves": 2}
    assert tree.copied() == ["d", "d/up"]


FLOODS = {
    "entries": (9, [small(str(number).encode()) for number in range(20)]),
    "bytes": (1 << 20, [begun(b"a", 1 << 40), *(piece(number << 20, bytes(1 << 20)) for number in range(5))]),
    "apparent_bytes": (1 << 50, [begun(b"a", 1 << 60)]),
    "depth": (9, [directory(b"d")] * 20),
    "name_bytes": (99, [small(b"n" * 60000)]),
    "paths_bytes": (9000, [link(str(number).encode(), b"t" * 4000) for number in range(20)]),
}


@pytest.mark.parametrize("name", FLOODS)
def test_a_budget_is_kept_outside_whatever_was_said_inside(tree: Any, name: str) -> None:
    most, frames = FLOODS[name]
    with pytest.raises(budget.TooMuch) as caught:
        made(tree, *frames, limits=budget.Budget(**{"apparent_bytes": 1 << 62, name: most}))
    assert caught.value.budget == name
