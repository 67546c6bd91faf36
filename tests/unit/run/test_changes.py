"""What one call left for the next is told apart from what was there, by what the kernel says of each entry."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from hermit.handoff.remove import remove
from hermit.run import changes

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def left(*roots: Path, by: Any) -> dict[str, Any]:
    """What this does to these directories, as it is recorded."""
    paths = [str(root) for root in roots]
    before = changes.noted(paths)
    by()
    return changes.between(before, changes.noted(paths))


def test_what_came_changed_and_went_is_counted_and_named(tmp_path: Path) -> None:
    for name in ("same", "changed", "gone", "deep/inner"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1")

    def act() -> None:
        (tmp_path / "changed").write_text("2")
        (tmp_path / "gone").unlink()
        (tmp_path / "deep" / "new").touch()

    found = left(tmp_path, by=act)
    assert (found["created"], found["changed"], found["removed"]) == (1, 1, 1)
    assert found["names"] == {
        "created": [f"{tmp_path}/deep/new"],
        "changed": [f"{tmp_path}/changed"],
        "removed": [f"{tmp_path}/gone"],
    }


def test_a_change_that_gives_size_and_time_back_is_seen(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("1")

    def act() -> None:
        status = file.stat()
        file.write_text("2")
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))

    assert left(tmp_path, by=act)["changed"] == 1


def test_a_mode_and_a_link_that_leads_elsewhere_are_changes(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "directory").mkdir()
    (tmp_path / "way").symlink_to("file")

    def act() -> None:
        (tmp_path / "file").chmod(0o755)
        (tmp_path / "directory").chmod(0o700 if (tmp_path / "directory").stat().st_mode & 0o077 else 0o755)
        (tmp_path / "way").unlink()
        (tmp_path / "way").symlink_to("/etc/passwd")

    assert left(tmp_path, by=act)["changed"] == 3


def test_no_link_is_followed_and_nothing_blocks(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "way").symlink_to("../outside")
    os.mkfifo(tmp_path / "state" / "fifo")
    found = left(tmp_path / "state", by=(tmp_path / "outside" / "new").touch)
    assert (found["created"], found["changed"], found["removed"]) == (0, 0, 0)


def test_names_may_be_any_bytes_and_stay_json(tmp_path: Path) -> None:
    name = os.path.join(os.fsencode(tmp_path), b"\xff\n\x1b[2J")
    found = left(tmp_path, by=lambda: os.close(os.open(name, os.O_CREAT)))
    assert found["created"] == 1
    assert json.loads(json.dumps(found)) == found


def test_a_file_and_a_path_that_went_are_noted_too(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("1")
    (tmp_path / "tree" / "inner").mkdir(parents=True)

    def act() -> None:
        (tmp_path / "file").write_text("22")
        (tmp_path / "tree" / "inner").rmdir()
        (tmp_path / "tree").rmdir()

    found = left(tmp_path / "file", tmp_path / "tree", by=act)
    assert (found["changed"], found["removed"]) == (1, 2)


def test_more_than_can_be_noted_is_said_and_not_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "MOST_ENTRIES", 3)
    for number in range(5):
        (tmp_path / str(number)).touch()
    found = left(tmp_path, by=lambda: None)
    assert found["compared"] is False
    assert "more than 3 entries" in found["reason"]


def test_the_names_that_are_kept_have_a_bound(tmp_path: Path) -> None:
    def act() -> None:
        for number in range(changes.MOST_NAMES + 5):
            (tmp_path / str(number)).touch()

    found = left(tmp_path, by=act)
    assert found["created"] == changes.MOST_NAMES + 5
    assert len(found["names"]["created"]) == changes.MOST_NAMES


def test_a_tree_that_is_too_deep_is_said_and_not_compared(tmp_path: Path) -> None:
    def act() -> None:
        here = os.open(tmp_path, os.O_RDONLY)
        for _ in range(2000):
            os.mkdir("d", dir_fd=here)
            there = os.open("d", os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = there
        os.close(here)

    try:
        found = left(tmp_path, by=act)
        assert found["compared"] is False
        assert "128 deep" in found["reason"]
    finally:
        remove(str(tmp_path))
