"""The control groups that bound the memory and the processes of one sandbox."""

from __future__ import annotations

import os

import pytest

from hermit.bwrap import cgroup
from hermit.bwrap.cgroup import Counted, Group, sweep
from hermit.domain.limits import WATCHDOG, Limits

MIB = 1 << 20
PIDS_ALONE = Limits(memory_mb=None)
LIMITS = Limits(memory_mb=100)


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Made-up hierarchies in which this process, as root, has a place."""
    own = {name: tmp_path / name / "own" for name in ("memory", "pids")}
    for place in own.values():
        place.mkdir(parents=True)
    monkeypatch.setattr(cgroup, "ROOT", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(cgroup, "_parents", lambda name: [str(own[name])])
    return own


@pytest.fixture
def hierarchy(places):
    """The one of processes."""
    return places["pids"]


def only(place):
    (made,) = place.iterdir()
    return made


def test_a_group_has_the_bounds_and_says_what_holds_them(places):
    group = Group.make(LIMITS, pids=7)
    memory, pids = only(places["memory"]), only(places["pids"])
    most = str((100 + cgroup.OWN_MB) * MIB)
    assert (memory / "memory.limit_in_bytes").read_text() == most
    assert (memory / "memory.memsw.limit_in_bytes").read_text() == most
    assert (pids / "pids.max").read_text() == "7"
    assert (group.memory, group.pids, group.pids_held_by) == (str(memory), str(pids), "cgroup pids")


def test_a_group_always_has_room_for_the_thread_that_starts_the_sandbox(places):
    Group.make(Limits(memory_mb=1), pids=None)
    assert int((only(places["memory"]) / "memory.limit_in_bytes").read_text()) > 32 * MIB


def test_no_bound_needs_no_group(places):
    with Group.make(Limits(memory_mb=None), pids=None) as group:
        assert (group.memory, group.pids) == ("", "")
        with group.entered():
            pass
        assert group.counted() == Counted()
        assert group.alarm() is None
    assert [list(place.iterdir()) for place in places.values()] == [[], []]


def test_a_user_who_may_make_groups_bounds_memory_by_one_and_processes_by_their_own_count(places, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    group = Group.make(LIMITS, pids=7)
    assert group.memory
    assert (group.pids, group.pids_held_by) == ("", cgroup.RLIMIT_PIDS)


def test_where_no_group_can_be_made_none_bounds_memory(places, monkeypatch):
    monkeypatch.setattr(cgroup, "_parents", lambda _: [])
    group = Group.make(LIMITS, pids=7)
    assert (group.memory, group.pids, group.pids_held_by) == ("", "", WATCHDOG)


def test_a_bound_on_memory_that_cannot_be_written_leaves_no_group(places, monkeypatch):
    def refuse(path, value):
        raise OSError("read-only")

    monkeypatch.setattr(cgroup, "_write", refuse)
    assert Group.make(LIMITS, pids=7).memory == ""
    assert [list(place.iterdir()) for place in places.values()] == [[], []]


def test_a_kernel_that_does_not_count_swap_still_bounds_memory(places, monkeypatch):
    write = cgroup._write

    def refuse_swap(path, value):
        if "memsw" in path:
            raise FileNotFoundError(path)
        write(path, value)

    monkeypatch.setattr(cgroup, "_write", refuse_swap)
    assert os.listdir(Group.make(LIMITS, pids=None).memory) == ["memory.limit_in_bytes"]


def test_the_starting_thread_enters_both_groups_and_leaves_them_even_when_the_start_fails(places):
    group = Group.make(LIMITS, pids=7)

    def start():
        for place in places.values():
            assert (only(place) / "tasks").read_text() == "0"
            assert not (place / "tasks").exists()
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"), group.entered():
        start()
    assert [(place / "tasks").read_text() for place in places.values()] == ["0", "0"]


def test_a_thread_that_cannot_enter_the_second_group_leaves_the_first(places):
    group = Group.make(LIMITS, pids=7)
    (only(places["pids"]) / "tasks").mkdir()
    with pytest.raises(OSError, match="tasks"), group.entered():
        pytest.fail("it is not in the group")
    assert (places["memory"] / "tasks").read_text() == "0"


def write_facts(group, *, peak, kills=0, forks=0):
    facts = {
        "memory.oom_control": f"oom_kill_disable 0\nunder_oom 0\noom_kill {kills}\n",
        "memory.max_usage_in_bytes": f"{peak}\n",
    }
    for name, text in facts.items():
        with open(os.path.join(group.memory, name), "w", encoding="ascii") as file:
            file.write(text)
    with open(os.path.join(group.pids, "pids.events"), "w", encoding="ascii") as file:
        file.write(f"max {forks}\n")


@pytest.mark.parametrize(("peak_mb", "at_bound"), [(132, True), (131, True), (100, False), (5, False)])
def test_what_a_group_counted_is_told_and_whether_it_was_full(places, peak_mb, at_bound):
    group = Group.make(LIMITS, pids=7)
    write_facts(group, peak=peak_mb * MIB, kills=2, forks=5)
    assert group.counted() == Counted(oom_kills=2, at_bound=at_bound, peak_mb=peak_mb, forks_refused=5)


def test_what_the_kernel_does_not_count_is_nothing(places):
    assert Group.make(LIMITS, pids=7).counted() == Counted(peak_mb=0.0)


def test_a_kernel_without_an_alarm_still_has_its_group(places, monkeypatch):
    group = Group.make(LIMITS, pids=None)
    before = len(os.listdir("/proc/self/fd"))
    assert group.alarm() is None
    assert len(os.listdir("/proc/self/fd")) == before


def test_both_groups_are_removed_at_the_end(places):
    with Group.make(LIMITS, pids=7) as group:
        for path in (group.memory, group.pids):
            for name in os.listdir(path):
                os.unlink(os.path.join(path, name))  # a real group's files go with it
    assert [list(place.iterdir()) for place in places.values()] == [[], []]


def test_a_group_that_stays_busy_for_a_moment_is_removed_after_it(places, monkeypatch):
    group, remove, tries = Group.make(PIDS_ALONE, pids=7), os.rmdir, []

    def busy(path):
        tries.append(path)
        if len(tries) < 4:
            raise OSError("busy")
        remove(path)

    os.unlink(os.path.join(group.pids, "pids.max"))
    monkeypatch.setattr(os, "rmdir", busy)
    with group:
        pass
    assert not os.path.exists(group.pids)


def test_a_start_looks_for_its_own_place_and_not_for_that_of_the_first_thread(tmp_path, monkeypatch):
    place = tmp_path / "pids" / "own"
    place.mkdir(parents=True)
    monkeypatch.setattr(cgroup, "ROOT", str(tmp_path))
    shown = tmp_path / "cgroup"
    shown.write_text("8:cpu,pids:/own\n4:memory:/missing\n0::/\n")
    opened = []
    monkeypatch.setattr("builtins.open", lambda path, **named: opened.append(path) or shown.open())
    assert cgroup._parents("pids") == [str(place)]
    assert cgroup._parents("memory") == []
    assert opened == ["/proc/thread-self/cgroup"] * 2


def test_no_bound_on_processes_needs_no_group_of_them():
    with Group.make(PIDS_ALONE, pids=None) as group:
        assert not group.pids


def test_a_user_who_is_not_root_needs_no_group_because_the_kernel_counts_them(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with Group.make(PIDS_ALONE, pids=5) as group:
        assert not group.pids
        assert "rlimit" in group.pids_held_by


def test_a_group_of_processes_alone_is_entered_and_left(hierarchy):
    group = Group.make(PIDS_ALONE, pids=7)
    assert (bool(group.pids), group.pids_held_by) == (True, "cgroup pids")
    with group.entered():
        assert (only(hierarchy) / "tasks").read_text() == "0"
        assert not (hierarchy / "tasks").exists()
    assert (hierarchy / "tasks").read_text() == "0"


def test_two_groups_never_share_a_directory(hierarchy):
    assert Group.make(PIDS_ALONE, pids=7).pids != Group.make(PIDS_ALONE, pids=7).pids


@pytest.mark.parametrize("place", ["missing", "file"])
def test_root_without_a_place_for_a_group_is_told_that_the_watchdog_has_to_hold_the_bound(
    hierarchy, monkeypatch, place
):
    (hierarchy / "file").touch()
    monkeypatch.setattr(cgroup, "_parents", lambda _: [str(hierarchy / place)])
    group = Group.make(PIDS_ALONE, pids=7)
    assert not group.pids
    assert group.pids_held_by == WATCHDOG


def test_a_group_that_a_killed_host_left_behind_is_removed_by_the_next_start(places):
    for place in places.values():
        gone, living = place / "hermit-4194305-1", place / f"hermit-{os.getppid()}-1"
        gone.mkdir()
        living.mkdir()
    sweep()
    assert [[path.name for path in place.iterdir()] for place in places.values()] == [[f"hermit-{os.getppid()}-1"]] * 2
