"""The host's end of the relay."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermit import clock, relay
from hermit.bwrap import python
from hermit.domain.command import Command, Outcome
from hermit.domain.limits import Limits
from hermit.errors import Interrupted, SandboxError
from hermit.relay import Line, Orders, Said
from hermit.streams import Sink, Streams

PYTHON = python.current()
ORDERS = Orders(env={}, cwd="/", limits=Limits(wall_s=30), rlimits={}, checks={"confined": False}, python=PYTHON)


NO_STREAMS = """
import os
from hermit.bwrap import python
from hermit.domain.command import Command
from hermit.domain.limits import Limits
from hermit.relay import Line, Orders
from hermit.streams import Streams
orders = Orders(env={}, cwd="/", limits=Limits(), rlimits={}, checks={}, python=python.current())
with Line(Command(argv=("true",)), orders, Streams()) as line:
    os.close(0)
    os.close(2)
    line.add_memory("more", b"")
    print(min(line.far))
"""


def test_no_descriptor_that_goes_inside_has_the_number_of_a_standard_stream():
    told = subprocess.run([sys.executable, "-c", NO_STREAMS], capture_output=True, check=True)
    assert int(told.stdout) >= 3


@given(st.lists(st.binary(max_size=20)), st.integers(min_value=0, max_value=50))
def test_a_sink_keeps_the_first_bytes_up_to_its_cap_and_counts_all(pieces, cap):
    sink = Sink(cap)
    for piece in pieces:
        sink.take(piece)
    whole = b"".join(pieces)
    assert (sink.stream().kept, sink.stream().total) == (whole[:cap], len(whole))


def test_a_report_is_heard_line_by_line():
    said = Said()
    for line in (b"check\tuser\t1\tuid 1000", b"check\tnet\t0\teth0", b"ready", b"end\t1792\t0.25\t2048"):
        said.hear(line)
    assert [(check.name, check.passed) for check in said.checks] == [("user", True), ("net", False)]
    assert (said.ready, said.refused, said.failed) == (True, False, "")
    assert said.end == (1792, 0.25, 2.0)


def test_a_check_passes_by_its_one_word_only():
    said = Said()
    for word in (b"0", b"true", b"", b"10", b"yes"):
        said.hear(b"check\tuser\t" + word + b"\t")
    assert not any(check.passed for check in said.checks)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"READY",
        b"ready\t",
        b"check\tuser\t1",
        b"check\tuser\t1\ta\tb",
        b"failed",
        b"end\t0\t0",
        b"end\tx\t0\t0",
        b"end\t0\tx\t0",
        b"end\t0\t0\t1.5",
        b"end\t999999999999\t0\t0",
        b"end\t-1\t0\t0",
        b"\xff\xfe",
        b"exec\trm",
    ],
)
def test_a_line_that_no_relay_says_is_refused(line):
    with pytest.raises(ValueError, match=r"."):
        Said().hear(line)


@given(st.binary(max_size=40))
def test_any_line_is_heard_or_refused(line):
    said = Said()
    try:
        said.hear(line)
    except ValueError:
        assert not said.ready


@pytest.fixture
def playing():
    """Follows a made-up relay: a program that gets the descriptor of the report, and that of the output."""

    def play(source, *, orders=ORDERS, command=None, kill=None, cancel=None):
        with Line(command or Command(argv=("x",)), orders, Streams(), cancel=cancel) as line:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", source, *map(str, line.far)],
                pass_fds=line.far,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            line.started()
            return line.follow(process, kill=kill or process.kill)

    return play


# The order in which a line makes its descriptors: report, diagnosis, input, output, errors, result or orders.
SAY = "import os, sys, time; report, diagnosis, _, out, err = map(int, sys.argv[1:6])\n"


def test_an_outcome_is_what_the_relay_reported_and_the_streams_held(playing):
    outcome = playing(SAY + "os.write(out, b'hi'); os.write(report, b'ready\\nend\\t1792\\t0.5\\t1024\\n')")
    assert (outcome.code, outcome.signal, outcome.stdout.kept) == (7, 0, b"hi")
    assert (outcome.cpu_s, outcome.max_rss_mb, outcome.timed_out) == (0.5, 1.0, False)


def test_a_report_may_come_in_pieces(playing):
    source = SAY + "[(os.write(report, bytes([b])), time.sleep(0.001)) for b in b'ready\\nend\\t0\\t0\\t0\\n']"
    assert playing(source).code == 0


def test_a_relay_that_ends_without_a_word_is_an_end_by_kill_and_never_success(playing):
    outcome = playing(SAY + "os.write(report, b'ready\\n')")
    assert (outcome.code, outcome.signal) == (None, signal.SIGKILL)


@pytest.mark.parametrize("text", [r"b'hello\n'", r"b'end\t1\n'", r"b'end\t99999999999\t0\t0\n'"])
def test_a_relay_that_says_something_else_is_not_ours(playing, text):
    with pytest.raises(SandboxError) as refused:
        playing(SAY + f"os.write(report, b'ready\\n' + {text}); time.sleep(20)")
    assert refused.value.cause == "relay"


def test_a_relay_that_never_stops_talking_is_refused_and_fills_no_memory(playing):
    with pytest.raises(SandboxError) as refused:
        playing(SAY + "\nfor _ in range(64): os.write(report, b'x' * 65536)\ntime.sleep(20)")
    assert refused.value.cause == "relay"


def test_a_sandbox_that_is_never_ready_is_given_up(playing, monkeypatch):
    monkeypatch.setattr(clock, "START_S", 0.2)
    with pytest.raises(SandboxError) as refused:
        playing(SAY + "time.sleep(20)")
    assert refused.value.cause == "start timeout"


def test_the_wall_clock_asks_the_relay_first_and_then_kills(playing):
    asked = "import socket; s = socket.socket(fileno=report); s.send(b'ready\\n'); os.write(out, s.recv(1) + s.recv(1)); time.sleep(20)"
    limits = Limits(wall_s=0.2)
    orders = Orders(env={}, cwd="/", limits=limits, rlimits={}, checks={"confined": False}, python=PYTHON)
    outcome = playing(SAY + asked, orders=orders)
    assert (outcome.timed_out, outcome.signal) == (True, signal.SIGKILL)
    assert outcome.stdout.kept in (b"TK", b"")  # the kill may come before the relay has written down what it was asked


def test_what_outlives_its_sandbox_with_a_stream_open_is_told(playing, monkeypatch):
    monkeypatch.setattr(clock, "KILL_S", 0.3)
    reader, writer = os.pipe()
    source = (
        SAY + f"os.write(report, b'ready\\n')\nif os.fork() == 0:\n    os.closerange(0, 3); time.sleep(3)\n# {writer}"
    )
    with pytest.raises(SandboxError) as refused:
        playing(source, kill=lambda: None)
    os.close(reader)
    os.close(writer)
    assert refused.value.cause == "survivors"


def test_a_run_that_is_given_up_kills_and_is_no_outcome(playing):
    reader, writer = os.pipe()
    os.close(writer)
    with pytest.raises(Interrupted):
        playing(SAY + "os.write(report, b'ready\\n'); time.sleep(20)", cancel=reader)
    os.close(reader)


RESULT = SAY + "os.write(report, b'ready\\nend\\t0\\t0\\t0\\n'); os.write(int(sys.argv[7]), b'x' * {size})"


@pytest.mark.parametrize(("size", "kept"), [(10, b"x" * 10), (11, None)])
def test_a_result_is_whole_or_none_at_all(playing, size, kept):
    command = Command(worker="m:f", job=b"{}", result_bytes=10)
    outcome = playing(RESULT.format(size=size), command=command)
    assert (outcome.result, outcome.result_total) == (kept, size)


def test_a_worker_that_hands_back_nothing_has_no_result(playing):
    outcome = playing(SAY + "os.write(report, b'ready\\nend\\t0\\t0\\t0\\n')", command=Command(worker="m:f"))
    assert (outcome.result, outcome.result_total) == (None, 0)


def test_every_descriptor_of_a_start_is_closed_at_its_end(playing):
    before = len(os.listdir("/proc/self/fd"))
    playing(SAY + "os.write(report, b'ready\\nend\\t0\\t0\\t0\\n')")
    with pytest.raises(SandboxError):
        playing(SAY + "os.write(report, b'nonsense\\n')")
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_command_that_could_not_start_has_the_shells_code_and_the_reason():
    said = Said(failed="127 prog: No such file")
    outcome = relay.unstartable(said, Outcome(code=0, wall_s=1.5))
    assert (outcome.code, outcome.stderr.kept, outcome.wall_s) == (127, b"hermit: prog: No such file\n", 1.5)
    assert relay.unstartable(Said(), Outcome(code=0)) is None


def test_a_record_says_what_holds_each_bound():
    held = {name: held_by for name, _, held_by in Limits(memory_mb=1, cpu_s=None).held(pids="cgroup pids")}
    assert held["memory_mb"] == "rlimit data, each process"
    assert held["pids"] == "cgroup pids"
    assert "cpu_s" not in held


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (Outcome(code=3), "exit 3"),
        (Outcome(signal=9), "signal 9"),
        (Outcome(signal=9, timed_out=True, wall_s=2.04), "stopped after 2.0 s"),
    ],
)
def test_how_a_command_ended_is_said_in_a_few_words(outcome, words):
    assert outcome.ending == words
