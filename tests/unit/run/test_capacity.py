"""Attempts start while their memory fits: what is available is read from the kernel, and one may always run."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

import pytest

from hermit.errors import Interrupted
from hermit.run import bench, capacity
from hermit.run.capacity import Admission, available_mb, declared_mb

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

MIB = 1 << 20


@pytest.fixture
def kernel(tmp_path: Path) -> Callable[..., Path]:
    """Makes what a kernel shows: 8,000 MiB available, these lines of control groups, and these files of theirs."""

    def make(groups: str = "0::/\n", files: dict[str, str] | None = None) -> Path:
        shown = {"proc/meminfo": f"MemTotal: 16 kB\nMemAvailable:   {8000 * 1024} kB\n"}
        shown |= {"proc/thread-self/cgroup": groups}
        shown |= {f"sys/fs/cgroup/{name}": text for name, text in (files or {}).items()}
        for name, text in shown.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        return tmp_path

    return make


def test_without_a_bound_it_is_what_the_machine_has_available(kernel: Callable[..., Path]) -> None:
    assert available_mb(kernel()) == 8000
    assert 0 < available_mb() <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // MIB


def test_a_group_of_version_1_bounds_it_by_what_it_has_left_and_would_give_up(kernel: Callable[..., Path]) -> None:
    files = {
        "memory/a/b/memory.limit_in_bytes": f"{3000 * MIB}\n",
        "memory/a/b/memory.usage_in_bytes": f"{1200 * MIB}\n",
        "memory/a/b/memory.stat": f"cache 1\ntotal_inactive_file {200 * MIB}\n",
        "memory/a/memory.limit_in_bytes": "9223372036854771712\n",
        "memory/a/memory.usage_in_bytes": f"{9000 * MIB}\n",
    }
    assert available_mb(kernel("5:cpu:/x\n4:memory:/a/b\n", files)) == 2000


@pytest.mark.parametrize("bound", ["memory.max", "memory.high"])
def test_a_group_of_version_2_and_those_above_it_bound_it(kernel: Callable[..., Path], bound: str) -> None:
    files = {
        "a/b/memory.max": "max\n",
        "a/b/memory.current": f"{7900 * MIB}\n",
        f"a/{bound}": f"{2500 * MIB}\n",
        "a/memory.current": f"{2000 * MIB}\n",
        "a/memory.stat": f"anon 5\ninactive_file {MIB}\n",
    }
    assert available_mb(kernel("0::/a/b\n", files)) == 501


def test_in_a_container_whose_own_group_is_shown_as_the_first_that_one_bounds_it(kernel: Callable[..., Path]) -> None:
    files = {
        "memory/memory.limit_in_bytes": f"{900 * MIB}\n",
        "memory/memory.usage_in_bytes": f"{100 * MIB}\n",
    }
    assert available_mb(kernel("4:memory:/docker/0123\n", files)) == 800


def test_a_group_that_holds_more_than_its_bound_has_nothing_left(kernel: Callable[..., Path]) -> None:
    files = {"memory.max": f"{100 * MIB}\n", "memory.current": f"{300 * MIB}\n"}
    assert available_mb(kernel("0::/\n", files)) == 0


@pytest.mark.parametrize(
    ("overrides", "declared"),
    [
        ((), None),
        (("environment.resources.memory_mb=100",), 100),
        (("judge.resources.memory_mb=300",), 300),
        (("environment.resources.memory_mb=100", "judge.resources.memory_mb=300"), 300),
        (("environment.resources.memory_mb=500", "judge.resources.memory_mb=300"), 500),
    ],
)
def test_an_attempt_declares_the_larger_of_what_its_agent_and_its_judge_do(
    run: Any, overrides: tuple[str, ...], declared: int | None
) -> None:
    assert declared_mb(run.config(*overrides)) == declared


@pytest.fixture
def stop() -> Iterator[bench.Stop]:
    with bench.Stop() as made:
        yield made


class Crowd:
    """Attempts that all want in at once, each of which leaves when it is told to."""

    def __init__(self, admission: Admission, size: int) -> None:
        self.admission = admission
        self.inside: list[int] = []
        self.interrupted = 0
        self.came = threading.Semaphore(0)
        self.leave = threading.Semaphore(0)
        self.threads = [threading.Thread(target=self._attempt, args=(number,), daemon=True) for number in range(size)]
        for thread in self.threads:
            thread.start()

    def _attempt(self, number: int) -> None:
        try:
            with self.admission.admitted():
                self.inside.append(number)
                self.came.release()
                self.leave.acquire()
                self.inside.remove(number)
        except Interrupted:
            self.interrupted += 1

    def end(self) -> None:
        """Lets all of them leave, and waits for it."""
        for _ in self.threads:
            self.leave.release()
        for thread in self.threads:
            thread.join(60)


@pytest.mark.parametrize(
    ("each_mb", "machine_mb", "at_once"), [(100, 1000, 5), (300, 1000, 3), (501, 1000, 1), (4000, 1000, 1)]
)
def test_so_many_run_as_fit_and_one_always_does(stop: bench.Stop, each_mb: int, machine_mb: int, at_once: int) -> None:
    told: list[str] = []
    admission = Admission(each_mb=each_mb, stop=stop.descriptor, tell=told.append, measure=lambda: machine_mb)
    crowd = Crowd(admission, 5)
    for _ in range(at_once):
        assert crowd.came.acquire(timeout=60)
    if at_once < 5:
        assert not crowd.came.acquire(timeout=1.2)  # longer than a waiting one waits before it looks again
    assert len(crowd.inside) == at_once
    crowd.end()
    assert crowd.inside == []
    assert len(told) == (1 if at_once < 5 else 0)
    assert all(f"each declares {each_mb} MiB" in words for words in told)


def test_what_others_take_meanwhile_counts_and_their_end_is_noticed(stop: bench.Stop) -> None:
    free = [1000]
    admission = Admission(each_mb=100, stop=stop.descriptor, tell=lambda _: None, measure=lambda: free[0])
    with admission.admitted():
        free[0] = 99
        crowd = Crowd(admission, 1)
        assert not crowd.came.acquire(timeout=1.2)
        free[0] = 100
        assert crowd.came.acquire(timeout=60)
        crowd.end()


def test_what_was_available_is_measured_anew_when_none_runs(stop: bench.Stop) -> None:
    free = [150]
    admission = Admission(each_mb=100, stop=stop.descriptor, tell=lambda _: None, measure=lambda: free[0])
    with admission.admitted():
        pass
    free[0] = 250
    with admission.admitted(), admission.admitted():
        pass


def test_what_declares_nothing_waits_for_nothing_and_measures_nothing(stop: bench.Stop) -> None:
    def never() -> int:
        raise AssertionError

    admission = Admission(each_mb=None, stop=stop.descriptor, tell=lambda _: None, measure=never)
    with admission.admitted(), admission.admitted():
        pass


def test_who_waits_is_given_up_with_the_run(stop: bench.Stop) -> None:
    admission = Admission(each_mb=600, stop=stop.descriptor, tell=lambda _: None, measure=lambda: 1000)
    crowd = Crowd(admission, 3)
    assert crowd.came.acquire(timeout=60)
    stop.set()
    deadline = threading.Event()
    for _ in range(600):
        if crowd.interrupted == 2:
            break
        deadline.wait(0.1)
    assert crowd.interrupted == 2
    crowd.end()


def test_an_attempt_that_fails_leaves_its_place(stop: bench.Stop) -> None:
    admission = Admission(each_mb=600, stop=stop.descriptor, tell=lambda _: None, measure=lambda: 1000)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), admission.admitted():
            raise ZeroDivisionError


def test_a_config_that_cannot_fit_is_warned_of_with_what_to_do(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from hermit.run import check

    monkeypatch.setattr(capacity, "available_mb", lambda: 1000)
    assert check.memory(run.config()) == []
    [fits] = check.memory(run.config("environment.resources.memory_mb=1000"))
    assert fits.ok
    [found] = check.memory(run.config("judge.resources.memory_mb=1001"))
    assert (found.ok, found.needed) == (False, False)
    assert "1001 MiB" in found.found
    assert "1000 MiB" in found.found
    assert "judge.resources.memory_mb" in found.cure
