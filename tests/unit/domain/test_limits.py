"""Limits."""

from __future__ import annotations

import pytest

from hermit.domain.limits import Limits

NAMES = ("memory_mb", "file_mb", "cpu_s", "pids", "wall_s", "tmp_mb", "output_bytes")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [0, -1, True, "1", float("inf"), float("nan"), [1], 10**400])
def test_a_bound_that_is_not_a_positive_number_is_refused(name, value):
    with pytest.raises(ValueError, match=f"limits.{name} must be a number above 0"):
        Limits(**{name: value})


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"wall_s"}))
def test_only_the_wall_clock_counts_fractions(name):
    assert Limits(wall_s=0.5).wall_s == 0.5
    with pytest.raises(ValueError, match=name):
        Limits(**{name: 1.5})


@pytest.mark.parametrize("name", ["tmp_mb", "output_bytes"])
def test_memory_that_a_command_can_fill_always_has_a_bound(name):
    with pytest.raises(ValueError, match=name):
        Limits(**{name: None})


def test_processes_are_bounded_unless_somebody_says_otherwise():
    assert Limits().pids == 512
    assert Limits(pids=None).pids is None
