"""Which bound ended a command."""

from __future__ import annotations

import signal

import pytest

from hermit.bwrap.cgroup import Counted
from hermit.bwrap.reason import Evidence, reason
from hermit.bwrap.watchdog import Crowd, Strike
from hermit.domain.command import Outcome
from hermit.domain.limits import Ended, Limits

LIMITS = Limits(memory_mb=200, file_mb=8, cpu_s=2, pids=20, wall_s=5)
KILLED = Outcome(signal=signal.SIGKILL, cpu_s=0.5)
FAILED = Outcome(code=1, cpu_s=0.5)
BARE = Evidence()
STRIKE = Strike(sum_mb=210, bound_mb=200, after_s=1)
OOM = Counted(oom_kills=1, at_bound=True, peak_mb=232.0)
FORKS = Counted(forks_refused=3)


@pytest.mark.parametrize(
    ("outcome", "evidence", "name", "words"),
    [
        (KILLED, Evidence(strike=STRIKE), "memory", "210 MiB of 200"),
        (KILLED, Evidence(strike=Crowd(count=21, bound=20, after_s=1)), "pids", "21 processes and threads of 20"),
        (KILLED, Evidence(counted=OOM), "memory", "1 processes killed by the kernel, peak 232 MiB, bound 200"),
        (FAILED, Evidence(counted=OOM), "memory", "1 processes killed"),
        (KILLED, Evidence(counted=Counted(at_bound=True, peak_mb=232), alarmed=True), "memory", "out of memory"),
        (Outcome(code=1, max_rss_mb=230.2), BARE, "memory", "one process held 230 MiB, bound 200"),
        (Outcome(signal=signal.SIGABRT, max_rss_mb=200.0), BARE, "memory", "one process held 200 MiB"),
        (KILLED, Evidence(counted=Counted(oom_kills=1, peak_mb=20)), "machine memory", "below the bound"),
        (Outcome(signal=signal.SIGXFSZ), BARE, "file size", "8 MiB"),
        (Outcome(signal=signal.SIGXCPU), BARE, "cpu", "2 s"),
        (Outcome(signal=signal.SIGKILL, cpu_s=2.01), BARE, "cpu", "2.01 s"),
        (FAILED, Evidence(counted=FORKS), "pids", "3 times"),
        (FAILED, Evidence(full=("/tmp",)), "disk", "no room left in /tmp"),
        (Outcome(signal=signal.SIGTERM, timed_out=True, wall_s=5.04), BARE, "wall", "stopped after 5.0 s"),
        (Outcome(code=0, timed_out=True, wall_s=5.04), BARE, "wall", "stopped after 5.0 s"),
    ],
)
def test_a_bound_that_ended_a_command_is_named_with_what_was_seen(outcome, evidence, name, words):
    ended = reason(outcome, LIMITS, evidence)
    assert ended.reason == name
    assert words in ended.evidence


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome(code=0),
        FAILED,
        KILLED,
        Outcome(code=137),
        Outcome(code=128 + signal.SIGXFSZ),
        Outcome(code=128 + signal.SIGXCPU),
        Outcome(signal=signal.SIGSEGV),
        Outcome(signal=signal.SIGKILL),
        Outcome(signal=signal.SIGKILL, cpu_s=1.9),
        Outcome(code=1, max_rss_mb=199.9),
    ],
)
def test_no_bound_is_guessed_from_how_a_command_ended(outcome):
    assert reason(outcome, LIMITS, BARE) == Ended()


@pytest.mark.parametrize("evidence", [Evidence(counted=OOM), Evidence(counted=FORKS), Evidence(full=("/tmp",))])
def test_a_command_that_succeeded_was_ended_by_nothing(evidence):
    assert reason(Outcome(code=0), LIMITS, evidence) == Ended()


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome(signal=signal.SIGXFSZ),
        Outcome(signal=signal.SIGXCPU),
        Outcome(signal=signal.SIGKILL, cpu_s=9, max_rss_mb=999),
    ],
)
def test_a_bound_that_was_not_set_has_ended_nothing(outcome):
    assert reason(outcome, Limits(memory_mb=None, file_mb=None, cpu_s=None), BARE) == Ended()


def test_the_clock_is_the_reason_even_where_something_was_refused_before_and_both_are_told():
    bomb = Outcome(signal=signal.SIGKILL, timed_out=True, wall_s=5)
    ended = reason(bomb, LIMITS, Evidence(counted=FORKS))
    assert ended == Ended("wall", "stopped after 5.0 s; 3 times the kernel refused to start a process")


def test_a_process_without_memory_is_not_taken_for_one_without_processor_time():
    assert reason(Outcome(signal=signal.SIGKILL, cpu_s=9), LIMITS, Evidence(counted=OOM)).reason == "memory"


def test_how_it_ended_is_told_in_one_line_and_nothing_in_none():
    assert str(Ended("wall", "stopped after 5.0 s")) == "wall: stopped after 5.0 s"
    assert str(Ended()) == ""
