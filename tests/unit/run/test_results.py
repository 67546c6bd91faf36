"""What was added to the results is on the disk before it counts, and a full disk takes nothing that was made."""

from __future__ import annotations

import errno
import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from hermit.domain.attempt import Status
from hermit.errors import HermitError
from hermit.run import paths, results
from hermit.run.report import Row
from hermit.run.results import Results, put_in_order

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROWS = [Row(id=name, repeat=0, status=Status.OK).as_json() for name in "abc"]


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What is done to which file, in order."""
    seen: list[tuple[str, str]] = []

    def watched(name: str) -> Callable[..., Any]:
        real = getattr(os, name)

        def call(first: Any, *more: Any, **named: Any) -> Any:
            path = os.readlink(f"/proc/self/fd/{first}") if isinstance(first, int) else str(first)
            seen.append((name, os.path.basename(path)))
            return real(first, *more, **named)

        return call

    for name in ("write", "fsync", "replace", "mkdir"):
        monkeypatch.setattr(os, name, watched(name))
    return seen


def test_a_row_is_on_the_disk_before_the_next_line_runs_and_the_names_above_it_before_any_row(
    tmp_path: Path, done: list[tuple[str, str]]
) -> None:
    with Results(tmp_path / "run" / "eval" / "results.jsonl") as opened:
        assert done[0][0] == "mkdir"
        assert [one for one in done if one[0] == "fsync"] == [
            ("fsync", tmp_path.name),
            ("fsync", "run"),
            ("fsync", "eval"),
        ]
        done.clear()
        opened.add(ROWS[0])
        assert done == [("write", "results.jsonl"), ("fsync", "results.jsonl")]


def test_a_file_that_is_to_last_is_flushed_before_it_is_at_its_place_and_its_name_after(
    tmp_path: Path, done: list[tuple[str, str]]
) -> None:
    paths.write_atomically(tmp_path / "summary.json", b"{}")
    assert [name for name, _ in done if name in ("fsync", "replace")] == ["fsync", "replace", "fsync"]
    assert done[-1] == ("fsync", tmp_path.name)
    done.clear()
    paths.write_atomically(tmp_path / "record.json", b"{}", lasting=False)
    assert "fsync" not in {name for name, _ in done}


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EDQUOT])
def test_a_row_that_the_disk_did_not_take_is_an_error_and_not_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    path = tmp_path / "results.jsonl"
    with Results(path) as opened:
        opened.add(ROWS[0])

        def refuse(_: int) -> None:
            raise OSError(number, os.strerror(number))

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", refuse)
            with pytest.raises(HermitError) as caught:
                opened.add(ROWS[1])
        assert "run the same command again" in caught.value.cure
        opened.add(ROWS[2])
    assert [json.loads(line)["id"] for line in path.read_text().splitlines()] == ["a", "c"]


def test_half_a_row_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, real = tmp_path / "results.jsonl", os.write
    with Results(path) as opened:
        opened.add(ROWS[0])
        room = [20]

        def write(descriptor: int, data: memoryview) -> int:
            if not room[0]:
                raise OSError(errno.ENOSPC, "No space left on device")
            size = min(len(data), room[0])
            room[0] -= size
            return real(descriptor, data[:size])

        with monkeypatch.context() as patch:
            patch.setattr(os, "write", write)
            with pytest.raises(HermitError, match="No space left"):
                opened.add(ROWS[1])
    assert [json.loads(line)["id"] for line in path.read_text().splitlines()] == ["a"]


def test_a_file_system_that_cannot_flush_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: int) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "fsync", refuse)
    with Results(tmp_path / "results.jsonl") as opened:
        opened.add(ROWS[0])


def test_the_file_holds_room_for_rows_while_it_is_open_and_gives_it_back(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    with Results(path) as opened:
        opened.add(ROWS[0])
        assert path.stat().st_blocks * 512 >= results.HELD
        assert path.stat().st_size < 2000
        held = opened._held
        for _ in range(40):
            opened.add({**ROWS[0], "output": "x" * 20_000})
            opened.hold()
        assert opened._held > held
    assert path.stat().st_blocks * 512 < path.stat().st_size + 8192


def test_a_disk_with_little_room_is_refused_before_rows_and_between_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Little:
        f_blocks, f_frsize = 1000, 4096
        f_bavail = results.SPARE // 4096 - 1

    path = tmp_path / "results.jsonl"
    with Results(path) as opened:
        opened.add(ROWS[0])
        with monkeypatch.context() as patch:
            patch.setattr(os, "fstatvfs", lambda _: Little)
            with pytest.raises(HermitError, match="No space left"):
                opened.hold()
            with pytest.raises(HermitError, match="No space left"):
                Results(path)
        opened.add(ROWS[1])
    assert len(path.read_text().splitlines()) == 2


def test_a_file_system_that_holds_no_room_is_written_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "hold_room", lambda *_: 0)
    with Results(tmp_path / "results.jsonl") as opened:
        opened.add(ROWS[0])
        opened.hold()
    assert len((tmp_path / "results.jsonl").read_text().splitlines()) == 1


def added(path: Path, order: str) -> list[tuple[str, int]]:
    with Results(path) as opened:
        for name in order:
            opened.add({**ROWS["abc".index(name)], "output": name * (1 + "abc".index(name))})
    return [(name, 0) for name in order]


def test_rows_are_brought_into_the_order_of_the_split_byte_for_byte(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    rows = added(path, "cab")
    before = path.read_bytes().splitlines()
    put_in_order(path, rows=rows, order=[("a", 0), ("b", 0), ("x", 0), ("c", 0)])
    assert path.read_bytes().splitlines() == [before[1], before[2], before[0]]


def test_rows_that_are_in_order_are_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    rows, inode = added(path, "abc"), path.stat().st_ino
    put_in_order(path, rows=rows, order=rows)
    assert path.stat().st_ino == inode


def test_where_there_is_no_room_to_order_them_the_rows_stay_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "results.jsonl"
    rows, before = added(path, "cab"), path.read_bytes()

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(HermitError, match="No space left"):
        put_in_order(path, rows=rows, order=sorted(rows))
    assert (path.read_bytes(), os.listdir(tmp_path)) == (before, ["results.jsonl"])
