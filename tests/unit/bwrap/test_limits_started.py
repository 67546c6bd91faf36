"""Bounds in real sandboxes: who uses too much is stopped alone, its neighbour is not, and the reason is told."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

import hermit
from hermit.bwrap import argv, cgroup, python, system
from hermit.bwrap.cgroup import Group
from hermit.bwrap.reason import Evidence, reason
from hermit.bwrap.status import Status
from hermit.bwrap.watchdog import Watchdog
from hermit.domain.command import Outcome
from hermit.domain.limits import Limits
from hermit.domain.network import Network
from hermit.domain.sandbox import Sandbox

pytestmark = pytest.mark.bwrap

MEMORY_MB = 200
CLOCK_S = 20.0
INSIDE = str(Path(hermit.__file__).parent / "inside")
# What the relay does: the bounds, the command, and what scratch was left without room.
RELAY = f"""
import json, os, resource, sys
sys.path.insert(0, {INSIDE!r})
import limits
if (child := os.fork()) == 0:
    limits.apply(json.loads(sys.argv[1]))
    os.execvp(sys.argv[4], sys.argv[4:])
_, status = os.waitpid(child, 0)
spent = resource.getrusage(resource.RUSAGE_CHILDREN)
os.write(int(sys.argv[2]), json.dumps([status, spent.ru_utime + spent.ru_stime, spent.ru_maxrss / 1024, limits.full(int(sys.argv[3]))]).encode())
"""
# Four processes, each a good way below the bound, together above it; every page is written to.
FOUR = """
import os, time
for _ in range(4):
    if os.fork() == 0:
        held = bytearray(80 << 20)
        held[::4096] = b"x" * (80 << 8)
        time.sleep(30)
        os._exit(0)
codes = [os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(4)]
raise SystemExit(1 if any(codes) else 0)
"""
FILL = """
held = []
while True:
    held.append(b"x" * (1 << 20))
"""
FILES = """
for number in range(600):
    with open(f"/dev/shm/{number}", "wb") as file:
        file.write(b"x" * (1 << 20))
"""
# Bounded: at most 400 processes, each of which waits for its parent.
FORKS = """
import os
reader, writer = os.pipe()
for _ in range(400):
    if os.fork() == 0:
        os.close(writer)
        os.read(reader, 1)
        os._exit(0)
"""
SPARSE = "import os; os.truncate(os.open('/tmp/sparse', os.O_CREAT | os.O_WRONLY), 100 << 30)"
DISK = """
with open("/tmp/big", "wb", buffering=0) as file:
    while True:
        file.write(b"x" * (1 << 20))
"""
SPIN = "while True: pass"


@dataclass
class Started:
    """A sandbox that runs, without the relay and the launcher: its bounds and what watches them, nothing else."""

    limits: Limits
    group: Group
    child: subprocess.Popen[bytes]
    report: int
    watchdog: Watchdog | None = None
    init: int = -1
    alarm: int | None = None
    written: int = 0

    def kill(self):
        """Ends every process of the sandbox."""
        signal.pidfd_send_signal(self.init, signal.SIGKILL)

    def follow(self):
        """Reads and counts to the end, looks at the memory where a watchdog does, and returns outcome and evidence."""
        due, struck, alarmed = time.monotonic() + CLOCK_S, False, False
        while True:
            left = self.watchdog.remaining() if self.watchdog else None
            watched = [self.child.stdout, *([] if self.alarm is None else [self.alarm])]
            ready, _, _ = select.select(watched, [], [], 1.0 if left is None else left)
            if self.watchdog:
                self.watchdog.tick()
            if self.alarm in ready:
                self.alarm, alarmed = None, True
                self.kill()
            if self.child.stdout in ready:
                data = os.read(self.child.stdout.fileno(), 1 << 18)
                self.written += len(data)
                if not data:
                    break
            if time.monotonic() > due and not struck:
                struck = True
                self.kill()
        self.child.wait()
        told = os.read(self.report, 4096)
        status, cpu_s, largest_mb, full = json.loads(told) if told else (signal.SIGKILL.value, None, None, [])
        code = os.waitstatus_to_exitcode(status)
        outcome = Outcome(
            code=code if code >= 0 else None, signal=max(0, -code), timed_out=struck, cpu_s=cpu_s, max_rss_mb=largest_mb
        )
        strike = self.watchdog.struck if self.watchdog else None
        return outcome, Evidence(counted=self.group.counted(), alarmed=alarmed, strike=strike, full=tuple(full))

    def ended(self):
        """The reason of its end."""
        outcome, evidence = self.follow()
        return reason(outcome, self.limits, evidence)


@pytest.fixture
def start():
    """Starts Python source in a sandbox; whatever still runs at the end of the test is killed."""
    interpreter = python.current()
    program = shutil.which("bwrap")
    with contextlib.ExitStack() as ends:

        def begin(source, limits, *, grouped=True):
            group = ends.enter_context(Group.make(limits, pids=limits.pids and limits.pids + 4) if grouped else Group())
            shown = system.operations(Network.ISOLATED)
            own = python.operations(interpreter, framework=True)
            plan = argv.operations(Sandbox(limits=limits), system=shown, python=own)
            plan = [operation for operation in plan if not isinstance(operation, argv.File)]
            status, status_far = os.pipe()
            report, report_far = os.pipe()
            bounds = json.dumps(limits.set_inside(pids=None if group.pids else limits.pids, whole=True))
            relay = [interpreter.executable, "-I", "-S", "-c", RELAY, bounds, str(report_far), str(limits.tmp_mb)]
            spelled = [*argv.options(Sandbox(limits=limits), plan, status=status_far, texts={}), "--", *relay]
            with group.entered():
                child = subprocess.Popen(
                    [program, *spelled, interpreter.executable, "-c", source],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    stdin=subprocess.DEVNULL,
                    pass_fds=[status_far, report_far],
                )
            ends.callback(child.stdout.close)
            ends.callback(child.wait)
            ends.callback(child.kill)
            for far in (status_far, report_far):
                os.close(far)
            heard = Status()
            while heard.init is None and (data := os.read(status, 4096)):
                heard.take(data)
            ends.callback(os.close, status)
            init = heard.init
            ends.callback(os.close, report)
            started = Started(limits, group, child, report, init=os.pidfd_open(init))
            ends.callback(os.close, started.init)
            started.alarm = group.alarm()
            if started.alarm is not None:
                ends.callback(os.close, started.alarm)
            if not grouped:
                started.watchdog = Watchdog(limits.memory_mb, started.kill, scratch_mb=limits.tmp_mb)
                started.watchdog.watch(init)
            return started

        yield begin


@pytest.fixture
def neighbour(start):
    """A second sandbox that runs beside the one that misbehaves, and must come to its own end."""
    beside = start("import time\nheld = b'x' * (30 << 20)\ntime.sleep(2)", SMALL)
    yield beside
    outcome, evidence = beside.follow()
    assert outcome.code == 0
    assert evidence.counted.oom_kills == 0


SMALL = Limits(memory_mb=MEMORY_MB, pids=64)


def has_group():
    """Whether this process may make groups that bound memory."""
    return bool(cgroup._parents("memory"))


HELD_BY = pytest.mark.parametrize("grouped", [True, False], ids=["group", "watchdog"])


@HELD_BY
@pytest.mark.parametrize("source", [FOUR, FILL, FILES], ids=["four processes", "one process", "files in memory"])
def test_a_sandbox_that_fills_its_memory_is_stopped_alone_and_the_reason_is_memory(start, neighbour, source, grouped):
    if grouped and not has_group():
        pytest.skip("no memory cgroup of version 1 is writable here")
    filling = start(source, SMALL, grouped=grouped)
    ended = filling.ended()
    assert ended.reason == "memory", ended
    assert neighbour.child.poll() is None


@HELD_BY
def test_a_sandbox_within_its_memory_is_left_alone(start, grouped):
    modest = start("held = b'x' * (100 << 20); import time; time.sleep(0.5)", SMALL, grouped=grouped)
    outcome, evidence = modest.follow()
    assert (outcome.code, evidence.strike, evidence.counted.oom_kills) == (0, None, 0)


@HELD_BY
def test_memory_that_forks_share_counts_once(start, grouped):
    source = "import os, time\nheld = b'x' * (90 << 20)\nfor _ in range(3): os.fork()\ntime.sleep(0.7)"
    outcome, evidence = start(source, SMALL, grouped=grouped).follow()
    assert (outcome.code, evidence.strike, evidence.counted.oom_kills) == (0, None, 0)


def test_a_fork_bomb_is_stopped_alone_and_the_group_counts_what_it_refused(start, neighbour):
    counts = os.geteuid() == 0 and bool(cgroup._parents("pids"))
    bomb = start(FORKS, SMALL)
    outcome, evidence = bomb.follow()
    assert outcome.code == 1  # the error that fork raised
    assert reason(outcome, SMALL, evidence).reason == ("pids" if counts else "")
    assert neighbour.child.poll() is None


def test_a_sparse_file_of_a_hundred_gigabytes_is_refused_by_the_size_of_a_file(start, neighbour):
    ended = start(f"import signal; signal.signal(signal.SIGXFSZ, signal.SIG_DFL); {SPARSE}", SMALL).ended()
    assert ended.reason == "file size"
    assert neighbour.child.poll() is None


def test_scratch_that_is_full_is_the_reason_disk(start, neighbour):
    ended = start(DISK, Limits(memory_mb=MEMORY_MB, disk_mb=8)).ended()
    assert (ended.reason, "/tmp" in ended.evidence) == ("disk", True)
    assert neighbour.child.poll() is None


def test_processor_time_that_is_used_up_is_the_reason_cpu(start):
    ended = start(SPIN, Limits(memory_mb=MEMORY_MB, cpu_s=1)).ended()
    assert ended.reason == "cpu"


def test_a_program_that_ignores_the_signal_is_killed_for_its_processor_time_all_the_same(start):
    source = f"import signal; signal.signal(signal.SIGXCPU, signal.SIG_IGN)\n{SPIN}"
    outcome, evidence = start(source, Limits(memory_mb=MEMORY_MB, cpu_s=1)).follow()
    assert outcome.signal == signal.SIGKILL
    assert reason(outcome, Limits(cpu_s=1), evidence).reason == "cpu"


def test_three_gigabytes_of_output_neither_end_a_sandbox_nor_stay_in_the_host(start, neighbour):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    flood = start("import os\nchunk = b'x' * (1 << 20)\nfor _ in range(3072): os.write(1, chunk)", SMALL)
    outcome, evidence = flood.follow()
    assert outcome.code == 0
    assert reason(outcome, SMALL, evidence).reason == ""
    assert flood.written <= 3 << 30
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024


@pytest.mark.skipif(shutil.which("node") is None, reason="no node on this machine")
def test_node_runs_under_the_default_bounds(start):
    node = os.path.realpath(shutil.which("node"))
    source = f"import os; os.execv({node!r}, ['node', '-e', 'new WebAssembly.Memory({{initial: 1}})'])"
    if not node.startswith("/usr/"):
        pytest.skip("this node is not among the system's programs")
    started = start(source, Limits())
    outcome, _ = started.follow()
    assert outcome.code == 0


def test_no_group_is_left(start):
    if not has_group():
        pytest.skip("no memory cgroup of version 1 is writable here")
    started = start("pass", SMALL)
    assert os.path.isdir(started.group.memory)
    started.follow()
    with started.group:
        pass
    assert not os.path.exists(started.group.memory)
