"""What somebody else filled is removed whole: nothing beside it, nothing left of it, whatever it is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from hermit import untrusted
from hermit.handoff import remove as removal
from hermit.handoff.remove import remove

if TYPE_CHECKING:
    from pathlib import Path


def test_a_link_is_removed_and_what_it_leads_to_is_not(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("mine")
    gone = tmp_path / "gone"
    gone.mkdir()
    (gone / "link").symlink_to(kept)
    remove(str(gone))
    assert not gone.exists()
    assert (kept / "file").read_text() == "mine"


def test_a_directory_that_is_a_link_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    with pytest.raises(untrusted.Refused, match="link"):
        remove(str(tmp_path / "link"))
    assert (tmp_path / "kept").is_dir()


def test_a_directory_that_is_not_there_is_no_error(tmp_path: Path) -> None:
    remove(str(tmp_path / "absent"))


def test_a_directory_of_many_files_and_directories_is_removed_some_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "AT_ONCE", 7)
    gone = tmp_path / "gone"
    for number in range(30):
        (gone / f"d{number}" / "inner").mkdir(parents=True)
        (gone / f"f{number}").touch()
        (gone / "d0" / f"f{number}").touch()
        os.mkfifo(gone / "d0" / f"p{number}")
    remove(str(gone))
    assert not gone.exists()
