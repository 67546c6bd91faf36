"""The bounds a command sets on itself, and what is seen of its scratch."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest

MIB = 1 << 20


@pytest.fixture
def limits(inside):
    """The relay's module."""
    return inside("limits")


@pytest.fixture
def bounds(limits, monkeypatch):
    """What would be set, without setting it on the tests."""
    found = {}
    monkeypatch.setattr(limits.resource, "getrlimit", lambda kind: (0, hard.get(kind, limits.resource.RLIM_INFINITY)))
    monkeypatch.setattr(limits.resource, "setrlimit", lambda kind, pair: found.update({kind: pair}))
    hard = {}
    return SimpleNamespace(limits=limits, found=found, hard=hard)


@pytest.mark.parametrize(
    ("name", "value", "kind", "bound"),
    [
        ("memory_mb", 200, "RLIMIT_DATA", 200 * MIB),
        ("file_mb", 2, "RLIMIT_FSIZE", 2 * MIB),
        ("open_files", 64, "RLIMIT_NOFILE", 64),
        ("pids", 20, "RLIMIT_NPROC", 20),
    ],
)
def test_each_bound_is_set_soft_and_hard_and_alone(bounds, name, value, kind, bound):
    limits = bounds.limits
    limits.apply({name: value})
    number = getattr(limits.resource, kind)
    assert bounds.found == {limits.resource.RLIMIT_CORE: (0, 0), number: (bound, bound)}


def test_processor_time_ends_a_process_by_the_signal_that_says_so_and_a_second_later_by_force(bounds):
    limits = bounds.limits
    limits.apply({"cpu_s": 3})
    assert bounds.found[limits.resource.RLIMIT_CPU] == (3, 4)
    bounds.hard[limits.resource.RLIMIT_CPU] = 2
    limits.apply({"cpu_s": 3})
    assert bounds.found[limits.resource.RLIMIT_CPU] == (2, 2)


def test_a_bound_that_is_lower_already_stays(limits, bounds):
    bounds.hard[limits.resource.RLIMIT_NOFILE] = 16
    limits.apply({"open_files": 1024})
    assert bounds.found[limits.resource.RLIMIT_NOFILE] == (16, 16)


@pytest.mark.parametrize(
    ("changes", "is_full"),
    [({}, False), ({"f_bavail": 0}, True), ({"f_favail": 0}, True)],
)
def test_scratch_is_full_without_room_for_a_block_or_for_a_file(limits, monkeypatch, changes, is_full):
    facts = {"f_blocks": 512, "f_frsize": 4096, "f_bavail": 1, "f_favail": 1, **changes}
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(**facts))
    assert limits.full(2) == (["/tmp", "/dev/shm"] if is_full else [])


def test_a_full_disk_of_the_host_is_not_the_sandboxs_scratch(limits, monkeypatch):
    disk = SimpleNamespace(f_blocks=512, f_frsize=4096, f_bavail=0, f_favail=0)
    monkeypatch.setattr(os, "statvfs", lambda _: disk)
    assert limits.full(3) == []


def test_a_directory_that_is_not_there_is_not_full(limits, tmp_path):
    assert limits.is_full(str(tmp_path / "none"), 0) is False
