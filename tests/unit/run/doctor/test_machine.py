"""Too little of something is unfit, little is said, enough is neither; each with its cure."""

from __future__ import annotations

import os
import resource
import tempfile
from typing import TYPE_CHECKING

import pytest

from hermit.bwrap import cgroup
from hermit.run.doctor import machine
from hermit.run.doctor.finding import Finding, Level

if TYPE_CHECKING:
    from pathlib import Path


def room(*, free_mb: int = 10_000, inodes: int = 10**6, most: int = 10**7) -> list[Finding]:
    status = os.statvfs_result((4096, 4096, 10**9, free_mb * 256, free_mb * 256, most, inodes, inodes, 0, 255))
    return list(machine.room("/scratch", status))


@pytest.mark.parametrize(("free_mb", "level"), [(63, Level.UNFIT), (64, Level.WITHOUT), (512, Level.FIT)])
def test_room_on_the_disk(free_mb: int, level: Level) -> None:
    disk, inodes = room(free_mb=free_mb)
    assert (disk.level, inodes.level) == (level, Level.FIT)
    assert "/scratch" in disk.cure


@pytest.mark.parametrize(("free", "level"), [(199, Level.UNFIT), (200, Level.WITHOUT), (20_000, Level.FIT)])
def test_files_that_can_be_made(free: int, level: Level) -> None:
    assert [finding.level for finding in room(inodes=free)] == [Level.FIT, level]


def test_a_file_system_that_counts_no_inodes_is_not_full() -> None:
    assert room(inodes=0, most=0)[1].ok


@pytest.mark.parametrize(
    ("probe", "levels"),
    [(machine.descriptors, (50, 100, 1024)), (machine.processes, (10, 200, 5000))],
)
def test_bounds_of_the_user(probe: object, levels: tuple[int, ...]) -> None:
    assert callable(probe)
    found = [probe(most).level for most in (*levels, resource.RLIM_INFINITY)]
    assert found == [Level.UNFIT, Level.WITHOUT, Level.FIT, Level.FIT]


def test_a_machine_without_a_place_to_work_is_unfit(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> str:
        raise FileNotFoundError

    monkeypatch.setattr(tempfile, "gettempdir", nowhere)
    (found,) = machine.scratch()
    assert (found.level, "TMPDIR" in found.cure) == (Level.UNFIT, True)


def test_control_groups_say_what_they_hold_and_leave_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup, "_parents", lambda _: [str(tmp_path)])
    (tmp_path / "x").touch()
    monkeypatch.setattr(cgroup, "_made", lambda *_: "")
    none = machine.control_groups()
    assert (none.level, bool(none.cure)) == (Level.WITHOUT, True)
    assert none.found.startswith("hold nothing; memory is bounded by a watchdog")


def test_control_groups_are_found_by_making_one() -> None:
    found = machine.control_groups()
    assert found.found.startswith("hold ")
    assert ("memory" in found.found.partition(";")[0]) is found.ok


@pytest.mark.parametrize(("now", "level"), [(1_000_000, Level.WITHOUT), (2_000_000, Level.FIT), (9e9, Level.FIT)])
def test_a_clock_before_the_installation_is_behind(now: float, level: Level) -> None:
    assert machine.clock(now, 1_999_000).level is level


def test_this_machine_has_a_finding_of_each_kind() -> None:
    ids = [finding.id for finding in machine.probes()]
    assert ids == ["disk_space", "inodes", "file_descriptors", "processes", "control_groups", "clock"]
