"""The end of a start: its init is killed, and a sandbox is empty only where the kernel says so."""

from __future__ import annotations

import os
import signal
import subprocess
from types import SimpleNamespace

import pytest

from hermit.bwrap import launch
from hermit.domain.limits import Limits
from hermit.errors import SandboxError

UNBOUNDED = Limits(memory_mb=None, pids=None)
NO_GROUP = SimpleNamespace(memory=False, pids_held_by="")


@pytest.fixture
def init():
    """A process that stands for the init of a sandbox."""
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


@pytest.fixture
def start(init):
    """A start that knows its init."""
    made = launch._Start(None, None, NO_GROUP, limits=UNBOUNDED, pids=None)
    made._init = os.pidfd_open(init.pid)
    return made


def test_the_init_of_a_sandbox_is_killed_and_its_end_proves_the_sandbox_empty(start, init):
    start._prove_empty()
    assert start.empty
    assert init.wait(timeout=60) == -signal.SIGKILL


def test_a_sandbox_that_does_not_end_is_told_and_never_called_empty(start, init, monkeypatch):
    monkeypatch.setattr(signal, "pidfd_send_signal", lambda *_: None)
    monkeypatch.setattr(launch, "KILL_S", 0.05)
    with pytest.raises(SandboxError, match=r"alive 0\.05 s after KILL") as caught:
        start._prove_empty()
    assert caught.value.cause == "survivors"
    assert not start.empty
    assert init.poll() is None


def test_the_descriptor_of_an_init_is_closed_however_its_end_came(start, monkeypatch):
    held = start._init
    monkeypatch.setattr(signal, "pidfd_send_signal", lambda *_: None)
    monkeypatch.setattr(launch, "KILL_S", 0.0)
    with pytest.raises(SandboxError):
        start._prove_empty()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(held)
