"""The control group that bounds the processes of one sandbox."""

from __future__ import annotations

import os

import pytest

from hermit.bwrap import cgroup
from hermit.bwrap.cgroup import PidsGroup, sweep


@pytest.fixture
def hierarchy(tmp_path, monkeypatch):
    """A made-up hierarchy in which this process, as root, has a place."""
    own = tmp_path / "pids" / "own"
    own.mkdir(parents=True)
    monkeypatch.setattr(cgroup, "ROOT", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(cgroup, "_parents", lambda: [str(own)])
    return own


def test_no_bound_needs_no_group():
    with PidsGroup.make(None) as group:
        assert not group.holds


def test_a_user_who_is_not_root_needs_no_group_because_the_kernel_counts_them(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with PidsGroup.make(5) as group:
        assert not group.holds
        assert "rlimit" in group.held_by


def test_a_group_has_the_bound_and_says_what_holds_it(hierarchy):
    group = PidsGroup.make(7)
    assert group.held_by == "cgroup pids"
    (made,) = hierarchy.iterdir()
    assert (made / "pids.max").read_text() == "7"


def test_the_starting_thread_enters_the_group_and_leaves_it_again_even_when_the_start_fails(hierarchy):
    group = PidsGroup.make(7)
    (made,) = hierarchy.iterdir()

    def start():
        assert (made / "tasks").read_text() == "0"
        assert not (hierarchy / "tasks").exists()
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"), group.entered():
        start()
    assert (hierarchy / "tasks").read_text() == "0"


def test_a_group_is_removed_at_the_end(hierarchy):
    with PidsGroup.make(7) as group:
        os.unlink(os.path.join(group.path, "pids.max"))  # a real group's files go with it
        assert os.path.isdir(group.path)
    assert not os.path.exists(group.path)


def test_two_groups_never_share_a_directory(hierarchy):
    assert PidsGroup.make(7).path != PidsGroup.make(7).path


@pytest.mark.parametrize("place", ["missing", "file"])
def test_root_without_a_place_for_a_group_is_told_that_nothing_holds_the_bound(hierarchy, monkeypatch, place):
    (hierarchy / "file").touch()
    monkeypatch.setattr(cgroup, "_parents", lambda: [str(hierarchy / place)])
    group = PidsGroup.make(7)
    assert not group.holds
    assert group.held_by.startswith("nothing")


def test_a_group_whose_bound_cannot_be_written_is_not_used_and_not_left(hierarchy, monkeypatch):
    def refuse(path, value):
        raise OSError("read-only")

    monkeypatch.setattr(cgroup, "_write", refuse)
    group = PidsGroup.make(7)
    assert not group.holds
    assert list(hierarchy.iterdir()) == []


def test_a_group_that_a_killed_host_left_behind_is_removed_by_the_next_start(hierarchy):
    gone, living = hierarchy / "hermit-4194305-1", hierarchy / f"hermit-{os.getppid()}-1"
    gone.mkdir()
    living.mkdir()
    sweep()
    assert not gone.exists()
    assert living.exists()
