"""No key stays in a tree that somebody else made, however it is made, and nothing outside it is touched."""

from __future__ import annotations

import gzip
import json
import os
import stat
from typing import TYPE_CHECKING

import pytest

from hermit.handoff import redact, scrub
from hermit.handoff.redact import Found, Key, Redactor
from hermit.handoff.remove import remove

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

VALUE = "sk-Zq7/planted+9x_Value=42"
MARK = b"<MODEL_API_KEY>"


@pytest.fixture
def make() -> Callable[..., Redactor]:
    """Makes a redactor."""

    def redactor(**keys: str) -> Redactor:
        given = keys or {"MODEL_API_KEY": VALUE}
        return Redactor(Key(name, value) for name, value in given.items())

    return redactor


def test_a_tree_is_scrubbed_in_contents_names_and_links(make: Callable[..., Redactor], tmp_path: Path) -> None:
    value = VALUE.replace("/", "-")
    root = tmp_path / "logs"
    deep = root / "a" / f"dir-{value}"
    deep.mkdir(parents=True)
    (deep / f"{value}.txt").write_text(f"once {value} twice {value}")
    (deep / "<MODEL_API_KEY>.txt").write_text("taken")
    (root / "plain").write_bytes(bytes(range(256)))
    (root / "run.sh").write_text(value)
    (root / "run.sh").chmod(0o700)
    (root / "way").symlink_to(f"a/{value}")
    before = (root / "plain").stat()
    found = Found()
    scrub.tree(make(MODEL_API_KEY=value), str(root), found=found)
    names = {str(path.relative_to(root)) for path in root.rglob("*")}
    moved = "a/dir-<MODEL_API_KEY>"
    assert names == {
        "a",
        moved,
        f"{moved}/<MODEL_API_KEY>.txt",
        f"{moved}/<MODEL_API_KEY>.txt.2",
        "plain",
        "run.sh",
        "way",
    }
    assert (root / moved / "<MODEL_API_KEY>.txt").read_text() == "taken"
    assert (root / moved / "<MODEL_API_KEY>.txt.2").read_text() == "once <MODEL_API_KEY> twice <MODEL_API_KEY>"
    assert os.readlink(root / "way") == "a/<MODEL_API_KEY>"
    assert stat.S_IMODE((root / "run.sh").stat().st_mode) == 0o700
    after = (root / "plain").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns), "what holds no key is not written"
    report = found.as_json()["scrubbed"]
    assert report["run.sh"] == {"MODEL_API_KEY": 1}
    assert report[f"{moved}/<MODEL_API_KEY>.txt"] == {"MODEL_API_KEY": 2}
    assert value not in json.dumps(report)


def test_no_link_of_a_tree_is_followed(make: Callable[..., Redactor], tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    outside = tmp_path / "elsewhere" / "file"
    outside.write_text(VALUE)
    root = tmp_path / "logs"
    root.mkdir()
    (root / "file").symlink_to(outside)
    (root / "directory").symlink_to(tmp_path / "elsewhere")
    scrub.tree(make(), str(root), found=Found())
    assert outside.read_text() == VALUE


def test_what_is_packed_is_reported_and_what_cannot_be_read_does_not_block(
    make: Callable[..., Redactor], tmp_path: Path
) -> None:
    root = tmp_path / "logs"
    root.mkdir()
    (root / "log.gz").write_bytes(gzip.compress(VALUE.encode()))
    (root / "plain").write_text(VALUE)
    os.mkfifo(root / "fifo")
    found = Found()
    scrub.tree(make(), str(root), found=found)
    assert found.as_json() == {
        "scrubbed": {"plain": {"MODEL_API_KEY": 1}},
        "not_searched": ["log.gz"],
        "unreadable": ["fifo: FIFO"],
    }


def test_a_large_file_is_scrubbed_in_pieces(make: Callable[..., Redactor], tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    file = tmp_path / "logs" / "large"
    unit = b"z" * (redact.PIECE - 11) + VALUE.encode()
    file.write_bytes(unit * 5)
    scrub.tree(make(), str(tmp_path / "logs"), found=Found())
    assert file.read_bytes() == (b"z" * (redact.PIECE - 11) + MARK) * 5


def test_one_key_over_the_border_of_two_pieces_of_a_file_is_found(
    make: Callable[..., Redactor], tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(b"z" * (redact.PIECE - 11) + VALUE.encode())
    scrub.tree(make(), str(tmp_path), found=Found())
    assert (tmp_path / "file").read_bytes() == b"z" * (redact.PIECE - 11) + MARK


def test_a_single_file_is_scrubbed_and_one_that_is_not_there_is_no_error(
    make: Callable[..., Redactor], tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_text(VALUE)
    file.chmod(0o666)
    scrub.tree(make(), str(file), found=Found())
    assert file.read_bytes() == MARK
    assert stat.S_IMODE(file.stat().st_mode) == 0o666
    scrub.tree(make(), str(tmp_path / "absent"), found=Found())


def test_a_tree_may_be_deeper_than_python_recurses_and_its_names_any_bytes(
    make: Callable[..., Redactor], tmp_path: Path
) -> None:
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir(b"d\xff", dir_fd=here)
        there = os.open(b"d\xff", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = there
    file = os.open("file", os.O_RDWR | os.O_CREAT, 0o600, dir_fd=here)
    os.write(file, VALUE.encode())
    os.close(file)
    found = Found()
    try:
        scrub.tree(make(), str(tmp_path), found=found)
        with open(os.open("file", os.O_RDONLY, dir_fd=here), "rb") as scrubbed:
            assert scrubbed.read() == MARK
        assert len(found.as_json()["scrubbed"]) == 1
        json.dumps(found.as_json())
    finally:
        os.close(here)
        remove(str(tmp_path))


def test_a_size_that_is_only_claimed_is_reported_and_not_read(
    make: Callable[..., Redactor], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scrub, "MOST_BYTES", 1 << 20)
    with (tmp_path / "holes").open("wb") as file:
        file.write(VALUE.encode())
        file.truncate((1 << 20) + 1)
    found = Found()
    scrub.tree(make(), str(tmp_path), found=found)
    assert found.as_json() == {"scrubbed": {}, "not_searched": [], "unreadable": ["holes: more than 0 GiB"]}


def test_a_program_that_would_run_as_its_owner_no_longer_does(make: Callable[..., Redactor], tmp_path: Path) -> None:
    (tmp_path / "run").write_text(VALUE)
    (tmp_path / "run").chmod(0o4755)
    scrub.tree(make(), str(tmp_path), found=Found())
    assert stat.S_IMODE((tmp_path / "run").stat().st_mode) == 0o755


def test_a_key_is_found_wherever_it_stands_and_nothing_is_changed(
    make: Callable[..., Redactor], tmp_path: Path
) -> None:
    name = VALUE.replace("/", "-")
    for number, plant in enumerate(
        (
            lambda root: (root / "deep" / "file").write_text(f"x{VALUE}"),
            lambda root: (root / "deep" / name).touch(),
            lambda root: (root / name).mkdir(),
            lambda root: (root / "link").symlink_to(f"/nowhere/{VALUE}"),
        )
    ):
        root = tmp_path / str(number)
        (root / "deep").mkdir(parents=True)
        (root / "plain").write_text("nothing")
        redactor = make(MODEL_API_KEY=VALUE, OTHER_KEY=name)
        assert scrub.needed(redactor, str(root)) is False
        plant(root)
        before = sorted(str(path) for path in root.rglob("*"))
        assert scrub.needed(redactor, str(root)) is True
        assert sorted(str(path) for path in root.rglob("*")) == before
    assert scrub.needed(make(), str(tmp_path / "0" / "deep" / "file")) is True
    assert scrub.needed(make(), str(tmp_path / "0" / "plain")) is False
    assert scrub.needed(Redactor([]), str(tmp_path / "0")) is False


def test_the_search_for_a_key_follows_no_link_and_waits_for_nothing(
    make: Callable[..., Redactor], tmp_path: Path
) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "outside").write_text(VALUE)
    (root / "link").symlink_to(tmp_path / "outside")
    (root / "up").symlink_to(tmp_path)
    os.mkfifo(root / "fifo")
    assert scrub.needed(make(), str(root)) is False
