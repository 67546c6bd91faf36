"""Limits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hermit.domain.limits import WATCHDOG, Limits

COUNTS = ("cpus", "memory_mb", "file_mb", "open_files", "cpu_s", "pids", "disk_mb", "tmp_mb", "output_bytes")
NAMES = (*COUNTS, "wall_s")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [0, -1, True, "1", float("inf"), float("nan"), [1], 10**400])
def test_a_bound_that_is_not_a_positive_number_is_refused(name, value):
    with pytest.raises(ValueError, match=f"limits.{name} must be a number above 0"):
        Limits(**{name: value})


@pytest.mark.parametrize("name", COUNTS)
def test_only_the_wall_clock_counts_fractions(name):
    assert Limits(wall_s=0.5).wall_s == 0.5
    with pytest.raises(ValueError, match=name):
        Limits(**{name: 1.5})


@pytest.mark.parametrize("name", ["tmp_mb", "output_bytes"])
def test_memory_that_a_command_can_fill_always_has_a_bound(name):
    with pytest.raises(ValueError, match=name):
        Limits(**{name: None})


@pytest.mark.parametrize("name", ["memory_mb", "file_mb", "open_files", "pids"])
def test_what_one_command_can_take_from_all_others_is_bounded_unless_somebody_says_otherwise(name):
    assert getattr(Limits(), name) > 0
    assert getattr(Limits(**{name: None}), name) is None


def test_the_size_of_scratch_has_two_names_and_the_newer_one_wins():
    assert Limits().tmp_mb == 1024
    assert Limits(tmp_mb=8).tmp_mb == 8
    assert Limits(disk_mb=8).tmp_mb == 8
    assert Limits(disk_mb=8, tmp_mb=9).tmp_mb == 8
    assert replace(Limits(disk_mb=8), disk_mb=9).tmp_mb == 9


def test_nothing_is_without_a_bound_unless_somebody_says_so():
    limits = Limits()
    assert all(getattr(limits, name) is not None for name in NAMES if name not in ("cpus", "disk_mb"))
    assert {name for name, _, _ in limits.held(pids="a")} == set(NAMES) - {"tmp_mb", "cpus"}


def test_only_the_bounds_that_are_given_are_set_inside():
    none = Limits(memory_mb=None, file_mb=None, open_files=None, cpu_s=None)
    assert none.set_inside(pids=None) == {}
    given = Limits(memory_mb=1, file_mb=2, open_files=3, cpu_s=4)
    expected = {"memory_mb": 1, "file_mb": 2, "open_files": 3, "cpu_s": 4, "pids": 5}
    assert given.set_inside(pids=5) == expected


@pytest.mark.parametrize(("memory_mb", "each"), [(1, 2), (200, 250), (4096, 5120)])
def test_where_the_whole_is_bounded_one_process_meets_that_bound_before_its_own(memory_mb, each):
    assert Limits(memory_mb=memory_mb).set_inside(pids=None, whole=True)["memory_mb"] == each
    assert "memory_mb" not in Limits(memory_mb=None).set_inside(pids=None, whole=True)


def test_each_bound_is_told_with_what_holds_it_and_no_other():
    limits = Limits(memory_mb=7, disk_mb=8, cpu_s=None, wall_s=None)
    held = {name: (value, by) for name, value, by in limits.held(pids="a", memory=WATCHDOG)}
    assert held["memory_mb"] == (7, WATCHDOG)
    assert held["pids"] == (512, "a")
    assert held["disk_mb"] == (8, "size of the file system")
    assert held["open_files"][0] == 1024
    assert "cpu_s" not in held
    assert "wall_s" not in held


def test_without_anything_over_the_whole_each_process_is_bounded_and_the_record_says_so():
    held = {name: by for name, _, by in Limits().held(pids="a")}
    assert held["memory_mb"] == "rlimit data, each process"
