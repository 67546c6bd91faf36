"""What the relay finds in a ``/proc`` that was lent to it, on a kernel that the test makes up, and on this one."""

from __future__ import annotations

import os
import subprocess
from types import SimpleNamespace

import pytest

MOUNTED = [
    ("/", b"/", b"tmpfs", False, b"0:5"),
    ("/proc", b"/", b"proc", False, b"0:5"),
    ("/proc/sys", b"/sys", b"proc", False, b"0:5"),
]
ORDERS = {"lent_proc": 77, "namespaces": {"pid": "pid:[4026532000]"}}


@pytest.fixture
def around(inside):
    return inside("around")


@pytest.fixture
def kernel(around, monkeypatch):
    """Makes calls of the kernel's answer as the test says, to the checks alone."""

    def make(**calls):
        monkeypatch.setattr(around, "os", SimpleNamespace(**{**vars(os), "getpid": lambda: 1, **calls}))

    return make


@pytest.fixture
def judged(around, kernel):
    def judge(*, numbers=("57", "1"), mounted=MOUNTED, orders=ORDERS, device=77, link="57"):
        kernel(stat=lambda _: SimpleNamespace(st_dev=device), readlink=lambda _: link)
        return around.lent(list(numbers), mounted, orders)

    return judge


def test_the_proc_of_the_sandbox_around_it_passes_where_nothing_of_it_can_be_written(judged):
    assert judged() == (True, "of the sandbox around, shows process 1 as 57, 1")


@pytest.mark.parametrize(
    "fault",
    [
        {"device": 78},  # another one than the host said
        {"orders": {**ORDERS, "namespaces": {"pid": "pid:[4026531836]"}}},  # the machine's own
        {"numbers": ("4711", "57", "1")},  # the one of somebody further out
        {"numbers": ("1",), "link": "1"},  # not lent at all
        {"numbers": ("57", "2")},
        {"link": "58"},
        {"mounted": [("/proc", b"/", b"tmpfs", False, b"0:5")]},
        {"mounted": [("/proc", b"/sub", b"proc", False, b"0:5")]},
        {"mounted": [*MOUNTED, ("/proc", b"/", b"proc", False, b"0:5")]},
        {"mounted": []},
    ],
)
def test_a_proc_that_is_not_the_one_of_the_sandbox_around_it_is_found(judged, fault):
    assert judged(**fault)[0] is False


@pytest.mark.parametrize("place", ["/proc", "/proc/sys", "/proc/irq"])
def test_a_part_of_it_that_can_be_written_is_found_and_named(judged, place):
    mounted = [each for each in MOUNTED if each[0] != place] + [(place, b"/", b"proc", True, b"0:5")]
    passed, seen = judged(mounted=mounted)
    assert passed is False
    assert f"{place} can be written" in seen


@pytest.mark.parametrize(("failure", "expected"), [(ProcessLookupError, True), (PermissionError, False), (None, False)])
def test_another_process_in_its_own_namespace_is_found(around, kernel, failure, expected):
    def kill(pid, number):
        assert (pid, number) == (-1, 0)
        if failure:
            raise failure

    kernel(kill=kill)
    assert around.alone()[0] is expected


@pytest.fixture
def process():
    """A process of this user in this namespace: every way to it is open."""
    with subprocess.Popen(["sleep", "86.4"]) as started:
        yield str(started.pid)
        started.kill()


def test_each_way_to_a_process_that_is_open_is_found_and_named(around, kernel, process):
    kernel(listdir=lambda _: [process, "self", "57"])
    passed, seen = around.out_of_reach("57")
    assert passed is False
    assert seen.split(", ") == [f"{process}: {way}" for way in around.REACHES]
    assert set(around.REACHES) >= {"environ", "mem", "oom_score_adj", "root", "signal"}


def test_a_process_that_has_gone_and_the_relay_itself_are_none_that_can_be_reached(around, kernel):
    kernel(listdir=lambda _: ["4194305", "57"])
    assert around.out_of_reach("57") == (True, "1 visible")


def test_the_checks_of_a_lent_proc_stand_in_the_place_of_those_of_an_own_one(inside):
    checks = inside("checks")
    status = {"NSpid": "57\t1"}
    own = [name for name, _, _ in checks.own_proc({}, status, MOUNTED)]
    assert own == ["own processes", "own /proc"]
    lent = [name for name, _, _ in checks.own_proc(ORDERS, status, MOUNTED)]
    assert lent == ["own processes", "lent /proc", "processes around it out of reach"]
