"""What the relay does when the host asks, and when the host has gone."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time

import pytest


@pytest.mark.parametrize(("said", "signals"), [(b"T", [15, 9]), (b"K", [9, 9]), (b"", [9])])
def test_the_relay_terms_and_kills_as_it_is_asked_and_kills_when_the_host_is_gone(inside, monkeypatch, said, signals):
    relay = inside("relay")
    sent = []
    monkeypatch.setattr(relay.family, "signal_all", sent.append)
    reader, writer = os.pipe()
    os.write(writer, said)
    os.close(writer)
    relay.listen(reader, 7)
    os.close(reader)
    assert sent == signals


def test_a_signal_is_passed_on_however_its_order_comes_in_pieces(inside, monkeypatch):
    relay = inside("relay")
    sent = []
    monkeypatch.setattr(relay.family, "signal_all", sent.append)
    monkeypatch.setattr(relay.family, "pass_on", lambda numbers, command: sent.append((numbers, command)))
    reader, writer = os.pipe()
    listening = threading.Thread(target=relay.listen, args=(reader, 7))
    listening.start()
    for piece in (b"S", b"T", b"S", b"K", b"TS\x02", b"S"):  # a number may look like an order; the last one has none
        os.write(writer, piece)
        time.sleep(0.02)
    os.close(writer)
    listening.join(timeout=30)
    os.close(reader)
    assert sent == [(b"T", 7), (b"K", 7), 15, (b"\x02", 7), (b"", 7), 9]


LEFT = "import os, time; os.setsid(); print('left', flush=True); time.sleep(60)"
COMMAND = f"""
import subprocess, sys, time
subprocess.Popen(["sleep", "60"])
subprocess.run([sys.executable, "-c", {LEFT!r}])
"""


@pytest.fixture
def command():
    """A command with a child in its process group and one that has left it; none of them knows of any signal."""
    with subprocess.Popen([sys.executable, "-c", COMMAND], stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout.readline() == b"left\n"
        children = below(process.pid)
        assert len(children) == 2
        yield process.pid, *children
        for pid in (*children, process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def below(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return list(map(int, file.read().split()))


def running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    ("number", "left"), [(signal.SIGTERM, [False, False, True]), (signal.SIGUSR1, [False, True, True])]
)
def test_a_signal_reaches_the_commands_group_and_a_programs_own_signal_the_command_alone(inside, command, number, left):
    family = inside("family")
    family.pass_on(bytes([number]), command[0])
    for _ in range(500):
        if not running(command[0]):
            break
        time.sleep(0.01)
    time.sleep(0.1)
    assert [running(pid) for pid in command] == left


def test_a_number_that_is_no_longer_the_commands_gets_no_signal(inside, monkeypatch, command):
    family = inside("family")
    sent = []
    kill = os.kill
    monkeypatch.setattr(family.os, "kill", lambda *given: sent.append(given))
    family.pass_on(bytes([signal.SIGTERM]), os.getppid())
    assert sent == []
    family.pass_on(bytes([signal.SIGTERM, signal.SIGUSR2]), command[0])
    assert sent == [(-command[0], signal.SIGTERM), (command[0], signal.SIGUSR2)]
    monkeypatch.setattr(family.os, "kill", kill)
