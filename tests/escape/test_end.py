"""Nothing that was started inside outlives its sandbox, whatever it does to the processes around it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from hermit.bwrap.status import Status
from hermit.domain.limits import Limits
from hermit.errors import SandboxError

pytestmark = pytest.mark.bwrap

# A process in a session of its own, an orphan, deaf to every signal that can be ignored, without any open stream.
SURVIVOR = """
import fcntl, os, signal, sys, time
work = sys.argv[1]
with open(work + "/pids", "w") as file:
    print(os.getpid(), file=file)
ready, writer = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
            signal.signal(number, signal.SIG_IGN)
        held = open(work + "/lock", "w")
        fcntl.flock(held, fcntl.LOCK_EX)
        with open(work + "/pids", "a") as file:
            print(os.getpid(), file=file)
        os.closerange(0, 3)
        os.write(writer, b"x")
        os.close(writer)
        time.sleep(40)
    os._exit(0)
os.read(ready, 1)
relay = os.getppid()
"""
LEAVE = ""
STAY = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(40)\n"
STOP_THE_RELAY = "os.kill(relay, signal.SIGSTOP)\n" + STAY
KILL_THE_RELAY = "os.kill(relay, signal.SIGKILL)\n" + STAY


@pytest.fixture
def alive(field):
    """Whether the survivor still holds its lock; one that does is ended afterwards."""

    def look():
        with (field.work / "lock").open("a") as held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    yield look
    if (field.work / "lock").exists() and look():  # then it shares the host's process numbers
        for pid in (field.work / "pids").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)


def run(field, ending):
    # Without a bound on processes there is no control group, which a survivor would keep from being removed.
    sandbox = field.sandbox(limits=Limits(wall_s=1.0, pids=None, memory_mb=None))
    return field.run(sandbox, "python", "-c", SURVIVOR + ending, str(field.work))


@pytest.mark.parametrize(
    ("ending", "timed_out"),
    [
        pytest.param(LEAVE, False, id="leaving_it_behind"),
        pytest.param(STAY, True, id="ignoring_the_timeout"),
        pytest.param(STOP_THE_RELAY, True, id="stopping_the_relay"),
        pytest.param(KILL_THE_RELAY, True, id="killing_the_relay"),
    ],
)
def test_no_process_survives_its_sandbox_by(field, alive, ending, timed_out):
    outcome = run(field, ending)
    assert not alive()
    assert outcome.timed_out is timed_out


@pytest.mark.parametrize(
    "ending", [pytest.param(STOP_THE_RELAY, id="stopping_the_relay"), pytest.param(KILL_THE_RELAY, id="killing_it")]
)
def test_without_a_process_namespace_one_does_survive_by(field, alive, opened, hole, ending):
    opened(hole(drop=(("--unshare-pid",), ("--as-pid-1",))), blind=False)
    with pytest.raises(SandboxError, match="own processes"):
        run(field, ending)
    opened(hole(drop=(("--unshare-pid",), ("--as-pid-1",))), blind=True)
    try:
        run(field, ending)
    except SandboxError as error:
        assert error.cause == "survivors"  # noqa: PT017 - both are an end with a survivor
    assert alive()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGSTOP, signal.SIGSEGV])
def test_nothing_inside_can_end_or_stop_the_relay(field, number):
    outcome = field.run(field.sandbox(), "sh", "-c", f"kill -{number:d} $PPID; kill -{number:d} 1; exit 7")
    assert (outcome.code, outcome.signal, outcome.timed_out) == (7, 0, False)


def test_a_relay_that_was_killed_from_outside_is_an_end_by_that_signal_and_no_success(field, monkeypatch):
    hear = Status.take
    timers = []

    def kill(status, data):
        hear(status, data)
        if not timers and status.init is not None:  # a document may come in pieces
            timers.append(threading.Timer(0.5, os.kill, (status.init, signal.SIGKILL)))
            timers[0].start()

    monkeypatch.setattr(Status, "take", kill)
    outcome = field.run(field.sandbox(limits=Limits(wall_s=30)), "sleep", "20")
    assert (outcome.code, outcome.signal) == (None, signal.SIGKILL)


HOST = """
import sys
from hermit import sandbox as sandboxes
from hermit.domain.command import Command
from hermit.bwrap.status import Status
from hermit.domain.limits import Limits
from hermit.domain.sandbox import Sandbox
work = sys.argv[1]
sandbox = Sandbox(write=(work,), limits=Limits(pids=None, memory_mb=None, wall_s=60))
sandboxes.preflight().run(sandbox, Command(argv=("python", "-c", sys.argv[2], work)), keep=lambda _: None)
"""


def kill_the_host_while_it_runs(field, alive, package):
    """Starts a host of its own, ends it without a warning once its command runs, and says whether that still runs."""
    work = str(field.work)
    environ = {**os.environ, "PYTHONPATH": os.path.dirname(package)}
    with subprocess.Popen([sys.executable, "-c", HOST, work, SURVIVOR + STAY], env=environ, cwd="/") as host:
        wait_until((field.work / "pids").exists)
        wait_until(alive)
        host.kill()
    wait_until(lambda: not alive(), at_most=100)
    return alive()


def wait_until(condition, *, at_most=1000):
    for _ in range(at_most):
        if condition():
            return
        time.sleep(0.02)


def test_everything_in_a_sandbox_ends_when_its_host_is_killed(field, alive):
    assert kill_the_host_while_it_runs(field, alive, field.place.backend.python.package) is False


def test_without_the_tie_to_its_parent_a_sandbox_does_outlive_its_host(field, alive, edited):
    cuts = {
        "bwrap/argv.py": ('*("--die-with-parent", ', "*("),
        "inside/relay.py": ("            family.signal_all(9)\n", "            return\n"),
    }
    package = edited(cuts).place.backend.python.package
    try:
        assert kill_the_host_while_it_runs(field, alive, package) is True
    finally:
        (field.work / "pids").write_text("\n".join(still_running(str(field.work))))


def still_running(work):
    """The host's numbers of the processes that were started with this work directory."""
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if work.encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                yield entry.name
