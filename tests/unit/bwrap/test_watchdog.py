"""The watchdog over a sandbox's memory, on processes of this machine."""

from __future__ import annotations

import mmap
import os
import signal
import threading
import time

import pytest

from hermit.bwrap import watchdog
from hermit.bwrap.watchdog import MIB, Crowd, Size, Strike, Watchdog, family, measured, proportional, resident, total


@pytest.fixture
def fork():
    """Starts children of this process that do one thing and then wait for their end."""
    started = []

    def begin(act=lambda: None):
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                held = act()
                os.write(writer, b"x")
                time.sleep(60)
            finally:
                os._exit(len(held or ()) & 1)
        started.append(pid)
        assert os.read(reader, 1) == b"x"
        os.close(reader)
        os.close(writer)
        return pid

    yield begin
    for pid in started:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def fill(megabytes):
    return lambda: b"x" * (megabytes * MIB)


def fork_again():
    """Starts a grandchild, which ends with this process's child: its pipe closes."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.close(writer)
        os.read(reader, 1)
        os._exit(0)
    os.close(reader)
    return [writer]


def struck_by(pid, bound_mb):
    strikes = []
    watch = Watchdog(bound_mb, lambda: strikes.append(pid))
    watch.watch(pid)
    watch.sample()
    watch.sample()
    return watch.struck, strikes


def test_a_process_that_holds_more_than_its_bound_is_struck_once_with_the_evidence(fork):
    pid = fork(fill(60))
    strike, strikes = struck_by(pid, 40)
    assert strikes == [pid]
    assert strike is not None
    assert 60 <= strike.sum_mb < 200
    assert [size[0] for size in strike.largest] == [pid]
    assert f"of {strike.bound_mb} held" in str(strike)


def test_a_process_that_holds_less_than_its_bound_is_left_alone(fork):
    assert struck_by(fork(fill(60)), 400) == (None, [])


def test_memory_that_processes_share_counts_once(fork):
    held = bytearray(b"x" * (256 * MIB))  # far more than whatever else this process holds
    child = fork(lambda: fork_again() and [fork_again(), fork_again()])
    alone = sum(size.whole for size in map(resident, family(child)))
    shared = sum(size.whole for size in map(proportional, family(child)))
    assert len(family(child)) == 4
    assert alone > 4 * len(held)
    assert shared < 2 * len(held)
    assert struck_by(child, 512) == (None, [])


def test_every_process_below_the_first_is_found_and_nobody_else(fork):
    child, other = fork(fork_again), fork()
    found = family(child)
    assert len(found) == 2
    assert found[0] == child
    assert other not in found
    assert os.getpid() not in found


def test_a_process_that_has_ended_is_looked_at_no_more(fork):
    pid = os.fork()
    if pid == 0:
        time.sleep(60)
    watch = Watchdog(1, lambda: pytest.fail("nothing is left to strike"))
    watch.watch(pid)
    assert watch.remaining() is not None
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    watch.sample()
    assert watch.remaining() is None


def test_a_number_that_another_process_has_taken_over_is_not_struck(fork, monkeypatch):
    pid = fork(fill(60))
    watch = Watchdog(1, lambda: pytest.fail("this is another process"))
    watch.watch(pid)
    monkeypatch.setattr(watchdog, "_birth", lambda _: b"later")
    watch.sample()
    assert watch.struck is None


def test_nothing_is_due_before_the_watch_begins():
    watch = Watchdog(1, lambda: pytest.fail("nothing is watched"))
    assert watch.remaining() is None
    watch.tick()
    watch.sample()
    assert watch.struck is None


def test_a_tick_looks_only_when_it_is_time(fork):
    watch = Watchdog(1, lambda: None)
    watch.watch(fork(fill(20)))
    watch.tick()
    assert watch.struck is None
    watch._next = 0.0
    watch.tick()
    assert watch.struck is not None


@pytest.mark.parametrize(
    ("spent_s", "held_mb", "pause_s"),
    [(0.0, 10, 0.1), (0.0, 60, 0.05), (0.004, 10, 0.2), (0.004, 60, 0.2), (9.0, 60, 0.5)],
)
def test_looking_takes_a_small_part_of_a_processor_and_happens_more_often_near_the_bound(
    monkeypatch, spent_s, held_mb, pause_s
):
    watch = Watchdog(100, lambda: None)
    watch.watch(os.getpid())
    monkeypatch.setattr(watch, "_measure", lambda *_: (held_mb * MIB, [], 0))
    clock = iter([0.0, spent_s])
    monkeypatch.setattr(watchdog.time, "thread_time", lambda: next(clock))
    monkeypatch.setattr(watchdog.time, "monotonic", lambda: 1000.0)
    watch.sample()
    assert watch.remaining() == pytest.approx(pause_s)


def test_memory_that_was_counted_twice_while_a_process_ended_is_measured_again(monkeypatch):
    watch = Watchdog(100, lambda: pytest.fail("it held less"))
    watch.watch(os.getpid())
    measures = iter([(150 * MIB, [], 0), (90 * MIB, [], 0)])
    monkeypatch.setattr(watch, "_measure", lambda *_: next(measures))
    watch.sample()
    assert watch.struck is None
    assert next(measures, None) is None


def test_a_sandbox_of_too_many_processes_and_threads_is_struck_once_with_the_evidence(fork):
    def threads():
        started = [threading.Thread(target=time.sleep, args=(60,), daemon=True) for _ in range(5)]
        for thread in started:
            thread.start()

    pid, strikes = fork(threads), []
    for most in (6, 5):
        watch = Watchdog(None, lambda: strikes.append(pid), pids=most)
        watch.watch(pid)
        watch.sample()
        watch.sample()
        assert len(strikes) == (most == 5)
    assert isinstance(watch.struck, Crowd)
    assert str(watch.struck).startswith("6 processes and threads of 5 after ")


def test_more_than_half_of_the_processes_it_may_have_are_looked_at_more_often(monkeypatch):
    watch = Watchdog(None, lambda: None, pids=10)
    monkeypatch.setattr(watchdog, "family", lambda _: [os.getpid()])
    monkeypatch.setattr(watchdog.time, "thread_time", lambda: 0.0)
    monkeypatch.setattr(watchdog.time, "monotonic", lambda: 1000.0)
    for count, pause_s in ((5, 0.1), (6, 0.05)):
        monkeypatch.setattr(watchdog, "threads", lambda _, count=count: count)
        watch.watch(os.getpid())
        watch.sample()
        assert watch.remaining() == pytest.approx(pause_s)
        assert watch.struck is None


def test_a_process_that_is_gone_has_no_threads():
    assert watchdog.threads(4194305) == 0


def test_files_in_memory_count_whether_a_process_has_mapped_them_or_not():
    sizes = [Size(1, own=10, shared=5), Size(2, own=20, shared=5)]
    assert total(sizes, scratch=0) == 40
    assert total(sizes, scratch=7) == 40
    assert total(sizes, scratch=100) == 130
    assert total([], scratch=100) == 100


def test_only_a_file_system_of_the_sandboxs_own_size_is_its_scratch(tmp_path, monkeypatch):
    monkeypatch.setattr(watchdog, "SCRATCH", (str(tmp_path),))
    disk = os.statvfs(tmp_path)
    size = disk.f_blocks * disk.f_frsize
    assert watchdog.scratch_used(os.getpid(), size=size) > 0
    assert watchdog.scratch_used(os.getpid(), size=size + MIB) == 0


def test_shared_memory_is_told_apart_from_a_processs_own(fork):
    def share():
        memory = mmap.mmap(-1, 30 * MIB)
        memory.write(b"x" * (30 * MIB))
        return [memory]

    plain, sharing = proportional(fork()), proportional(fork(share))
    assert sharing.shared >= plain.shared + 30 * MIB
    assert sharing.own < plain.own + 15 * MIB


def test_the_kernel_is_asked_for_exact_sizes_only_while_the_rough_ones_are_too_much(monkeypatch):
    rough, exact, asked = {1: 50, 2: 40, 3: 30}, {1: 20, 2: 10, 3: 10}, []
    monkeypatch.setattr(watchdog, "resident", lambda pid: Size(pid, rough[pid]))
    monkeypatch.setattr(watchdog, "proportional", lambda pid: asked.append(pid) or Size(pid, exact[pid]))
    assert total(measured([3, 1, 2], 0, bound=200), 0) == 120
    assert asked == []
    assert total(measured([3, 1, 2], 0, bound=90), 0) == 90
    assert asked == [1]
    assert total(measured([3, 1, 2], 0, bound=5), 0) == 40
    assert asked == [1, 1, 2, 3]


def test_where_exact_sizes_are_hidden_the_rough_ones_count(fork, monkeypatch):
    pid, read = fork(fill(20)), watchdog._read
    monkeypatch.setattr(watchdog, "_read", lambda path: b"" if "smaps" in path else read(path))
    assert proportional(pid) == resident(pid)
    assert struck_by(pid, 10)[0] is not None


def test_a_process_that_is_gone_has_no_size_and_no_children():
    assert resident(1 << 30) is None
    assert proportional(1 << 30) is None
    assert family(1 << 30) == [1 << 30]
    assert watchdog.scratch_used(1 << 30, size=0) == 0


def test_a_name_that_a_process_gave_itself_is_told_in_plain_letters(fork):
    def rename():
        with open("/proc/self/comm", "wb") as file:
            file.write(b"\x1b[2J\n\xff'")

    name = watchdog.name_of(fork(rename))
    assert name.isascii()
    assert name.isprintable()
    assert watchdog.name_of(1 << 30) == "?"


def test_a_strike_is_told_in_one_line():
    strike = Strike(
        sum_mb=210.4, bound_mb=200, after_s=1.26, largest=((7, "python", 99.6), (8, "sh", 1)), scratch_mb=12
    )
    assert str(strike) == "210 MiB of 200 held after 1.3 s (largest: python 100, sh 1; files in memory 12)"
