"""A directory that somebody else filled becomes files as a value: nothing is followed, waited for or believed."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Any

import pytest

from hermit import untrusted
from hermit.adapter import files as adapter_files
from hermit.adapter.files import File, Files, read

if TYPE_CHECKING:
    from pathlib import Path


def reasons(reading: Any) -> dict[str, str]:
    """What was left behind, by path."""
    return {each.path: each.reason for each in reading.dropped}


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    files = Files({"b/c": File(b"\0\xff", executable=True), "a": File(b""), "日/x y": File(b"1")})
    files.write(str(tmp_path))
    reading = read(str(tmp_path))
    assert reading == adapter_files.Reading(files)
    assert reading.files.paths == ("a", "b/c", "日/x y")
    assert reading.files.digest() == files.digest()
    assert len({files.digest(), files.with_files({"a": File(b"", executable=True)}).digest(), Files().digest()}) == 3


def test_links_and_special_files_are_left_and_told(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("x")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "out").symlink_to("/etc/passwd")
    (tmp_path / "way").symlink_to("/etc")
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "socket"))
        reading = read(str(tmp_path))
    assert reading.files.paths == ("real",)
    assert reasons(reading) == {
        "fifo": "it is a FIFO and no file",
        "link": "it is a link and no file",
        "out": "it is a link and no file",
        "socket": "it is a socket and no file",
        "way": "it is a link and no file",
    }


def test_names_that_are_none_are_left_and_told(tmp_path: Path) -> None:
    for name in (".git", "a\nb", "a.", "A.md", "a.md", "CARD.md"):
        (tmp_path / name).write_text("x")
    (tmp_path / os.fsdecode(b"\xff")).write_text("x")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / ".git").mkdir()
    (tmp_path / "sub" / ".git" / "config").write_text("[core]\nfsmonitor = touch /tmp/pwned\n")
    reading = read(str(tmp_path))
    assert reading.files.paths == ("A.md",)
    assert set(reasons(reading)) == {".git", "a\nb", "a.", "a.md", "CARD.md", r"\xff", "sub/.git"}


def test_a_set_bit_and_a_second_name_do_not_come_along(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "a").write_text("x")
    (inside / "a").chmod(0o4755)
    files = read(str(inside)).files
    assert files.by_path["a"].executable
    into = tmp_path / "into"
    into.mkdir()
    files.write(str(into))
    assert (into / "a").stat().st_mode & 0o7777 == 0o755


def test_what_no_rule_is_about_is_not_even_read(small: Any, directory: Path) -> None:
    (directory / "junk").mkdir()
    (directory / "junk" / "a").write_text("x")
    (directory / "notes.txt").write_text("x")
    (directory / "skills" / "a").mkdir()
    (directory / "skills" / "a" / "more.bin").write_bytes(b"\0")
    (directory / "junk").chmod(0)
    reading = read(str(directory), structure=small.manifest.structure)
    assert "skills/a/more.bin" in reading.files.paths
    assert reasons(reading) == {
        "junk": "it is under no rule of the structure, and nothing below it would be",
        "notes.txt": "it is under no rule of the structure",
    }
    (directory / "junk").chmod(0o755)


def test_too_much_is_left_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter_files, "MOST_FILES", 3)
    monkeypatch.setattr(adapter_files, "MOST_FILE", 100)
    monkeypatch.setattr(adapter_files, "MOST_BYTES", 150)
    monkeypatch.setattr(adapter_files, "MOST_ENTRIES", 8)
    monkeypatch.setattr(adapter_files, "MOST_TOLD", 4)
    for name, size in (("a", 101), ("b", 100), ("c", 51), ("d", 50), ("e", 0), ("f", 0)):
        (tmp_path / name).write_bytes(b"x" * size)
    (tmp_path / "wide").mkdir()
    for number in range(9):
        (tmp_path / "wide" / str(number)).write_text("")
    reading = read(str(tmp_path))
    assert reading.files.paths == ("b", "d", "e")
    assert set(reasons(reading)) == {"a", "c", "f", "wide"}
    (tmp_path / "g").write_text("")
    assert read(str(tmp_path)).more == (("it holds more than 8 entries", 1),)


def test_a_file_of_holes_is_not_read_whole(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1 << 40)
    assert set(reasons(read(str(tmp_path)))) == {"huge"}


def test_directories_that_go_on_for_ever_end(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["d"] * 40)
    deep.mkdir(parents=True)
    (deep / "a").write_text("x")
    reading = read(str(tmp_path))
    assert reading.files.paths == ()
    assert list(reasons(reading).values()) == ["it lies more than 16 deep"]


def test_a_link_in_the_place_of_the_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "to").symlink_to("/etc")
    with pytest.raises(untrusted.Refused, match=r"link|directory"):
        read(str(tmp_path / "to"))


def test_a_value_with_a_path_that_is_none_is_written_nowhere(tmp_path: Path) -> None:
    for path in ("../out", "/tmp/out", ".git/config", "a/../../out"):
        with pytest.raises(ValueError, match="no file of an adapter"):
            Files({path: File(b"x")}).write(str(tmp_path / "into"))
    with pytest.raises(ValueError, match="cannot be beside"):
        Files({"a": File(b""), "a/b": File(b"")}).write(str(tmp_path / "into"))
    assert list(tmp_path.iterdir()) == []


def test_writing_follows_nothing_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "victim")
    with pytest.raises(FileExistsError):
        Files({"a": File(b"x")}).write(str(tmp_path))
    assert not (tmp_path / "victim").exists()
