"""Which bubblewrap is here is asked of it, and its hole is found by trying, not by its number."""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

import pytest

from hermit.run.doctor import bubblewrap
from hermit.run.doctor.finding import Level

if TYPE_CHECKING:
    from pathlib import Path


def program(directory: Path, text: str) -> dict[str, str]:
    """A machine whose bubblewrap is this shell script."""
    path = directory / "bwrap"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return {"PATH": str(directory)}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("echo coreutils 9", "is not bubblewrap"),
        ("echo broken >&2; exit 1", "it says 'broken'"),
        ("exit 0", "is not bubblewrap"),
    ],
)
def test_a_program_of_the_name_that_is_none_is_told_with_the_command(tmp_path: Path, text: str, words: str) -> None:
    (found,) = bubblewrap.probes(program(tmp_path, text), starts=True)
    assert (found.level, words in found.found, found.cure) == (Level.BEST_EFFORT, True, bubblewrap.INSTALL)


def test_a_machine_without_one_is_told_the_command(tmp_path: Path) -> None:
    (found,) = bubblewrap.probes({"PATH": str(tmp_path)}, starts=True)
    assert (found.level, found.cure) == (Level.BEST_EFFORT, bubblewrap.INSTALL)


VERSION = '[ "$1" = --version ] && echo bubblewrap 99.9 && exit'
# One that follows the link makes the mount point where it leads: here the last bind's source names the place.
FOLLOWS = VERSION + '\nfor word; do case $word in */work) mkdir "${word%work}beside/point";; esac; done'


@pytest.mark.parametrize(("text", "level"), [(VERSION, Level.FIT), (FOLLOWS, Level.WITHOUT)])
def test_a_hole_is_seen_by_what_is_left_whatever_the_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, level: Level
) -> None:
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    environ = program(tmp_path, text)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    version, hole = bubblewrap.probes(environ, starts=True)
    assert (version.ok, "99.9" in version.found) == (True, True)
    assert hole.level is level
    assert list((tmp_path / "scratch").iterdir()) == []


def test_no_hole_is_looked_for_where_nothing_starts(tmp_path: Path) -> None:
    assert [finding.id for finding in bubblewrap.probes(program(tmp_path, FOLLOWS), starts=False)] == ["bubblewrap"]


@pytest.mark.bwrap
def test_the_bubblewrap_of_this_machine_has_the_hole_up_to_the_version_that_mends_it() -> None:
    version, hole = bubblewrap.probes(os.environ, starts=True)
    number = tuple(int(part) for part in version.found.split(" ")[0].split(".")[:2])
    assert number >= (0, 12) or hole.level is Level.WITHOUT or "not followed" in hole.found
    assert number < (0, 12) or hole.ok
