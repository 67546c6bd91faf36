"""When a command is asked to end, and when it is ended."""

from __future__ import annotations

import pytest

from hermit import clock
from hermit.clock import Clock, Guards
from hermit.errors import SandboxError


@pytest.fixture
def made(monkeypatch):
    """A clock over made-up seconds, and what it did."""
    did, now = [], [0.0]
    monkeypatch.setattr(clock.time, "monotonic", lambda: now[0])

    def make(*, wall_s, ready=True):
        return Clock(wall_s=wall_s, ready=lambda: ready, ask=did.append, kill=lambda: did.append("kill"))

    def at(seconds):
        now[0] = seconds

    return make, at, did


def test_a_command_is_asked_first_then_killed_from_both_sides(made):
    make, at, did = made
    watch = make(wall_s=2)
    watch.tick(running=True)
    at(1.9)
    watch.tick(running=True)
    assert did == []
    at(2.1)
    watch.tick(running=True)
    assert (did, watch.timed_out) == ([b"T"], True)
    at(2.1 + clock.GRACE_S + 0.1)
    watch.tick(running=True)
    assert did == [b"T", b"K", "kill"]


def test_what_is_alive_after_kill_is_a_broken_sandbox(made):
    make, at, _ = made
    watch = make(wall_s=None)
    watch.strike()
    at(clock.KILL_S + 0.1)
    with pytest.raises(SandboxError) as broken:
        watch.tick(running=True)
    assert broken.value.cause == "survivors"


def test_a_sandbox_that_is_never_ready_is_a_broken_one(made):
    make, at, _ = made
    watch = make(wall_s=None, ready=False)
    at(clock.START_S + 1)
    with pytest.raises(SandboxError) as broken:
        watch.tick(running=True)
    assert broken.value.cause == "start timeout"


def test_without_a_wall_clock_nothing_is_ever_due(made):
    make, at, did = made
    watch = make(wall_s=None)
    watch.tick(running=True)
    at(1e9)
    watch.tick(running=True)
    assert (did, watch.remaining(running=True)) == ([], None)


def test_a_guard_that_wants_to_look_sooner_shortens_the_wait():
    class Dog:
        struck = None

        def remaining(self):
            return 0.05

        def tick(self):
            self.struck = "it held too much"

    guards = Guards(None, Dog())
    assert (guards.within(None), guards.within(0.01), guards.within(3.0)) == (0.05, 0.01, 0.05)
    assert guards.tick()
    assert not guards.tick(), "it strikes once"
