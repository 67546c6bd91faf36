"""What the caller's terminal and the machine's list of processes give away."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import termios
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hermit import proc
from hermit.streams import Streams

pytestmark = pytest.mark.bwrap

PUSH = """
import fcntl, sys, termios
def attack():
    try:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    except OSError:
        pass
    fcntl.ioctl(0, termios.TIOCSTI, b"#")
    return True
"""
PUSH_ON_THE_HOST = PUSH + "\nprint(attack())"
OWNER = """
import fcntl, sys, termios, time
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
print("mine", flush=True)
time.sleep(60)
"""
WAIT = 'touch "$1/up"; while [ ! -e "$1/seen" ]; do sleep 0.02; done; cat "$2/data.txt"'


@pytest.fixture
def terminal():
    """A terminal of the test's own."""
    near, far = os.openpty()
    yield far
    os.close(near)
    os.close(far)


def test_a_command_cannot_type_into_the_terminal_it_was_started_from(field, terminal):
    with subprocess.Popen(
        [sys.executable, "-c", OWNER], stdin=terminal, stdout=subprocess.PIPE, start_new_session=True
    ) as owner:
        try:
            assert owner.stdout.readline() == b"mine\n"  # the terminal belongs to somebody else's session now
            assert field.attack(PUSH, streams=Streams(stdin=terminal)) is False
            waiting = fcntl.ioctl(terminal, termios.FIONREAD, b"\0" * 4)
            assert int.from_bytes(waiting, sys.byteorder) == 0
        finally:
            owner.kill()


@pytest.mark.skipif(os.geteuid() != 0, reason="newer kernels let only root type into a terminal at all")
def test_the_attack_on_the_terminal_works_for_a_process_outside(terminal):
    ran = subprocess.run(
        [sys.executable, "-c", PUSH_ON_THE_HOST],
        stdin=terminal,
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
    )
    assert ran.stdout == "True\n", ran.stderr


def listed(marker, work):
    """Whether the machine's list of processes shows the marker while a command runs."""
    for _ in range(1000):
        if (work / "up").exists():
            break
        time.sleep(0.01)
    found = False
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found = found or marker in entry.read_bytes()
        except OSError:
            continue
    (work / "seen").touch()
    return found


@pytest.fixture
def seen_while_running(field):
    """Runs a command with a secret value and a secret path, and looks at the list of processes meanwhile."""

    def look(marker):
        for name in ("up", "seen"):
            (field.work / name).unlink(missing_ok=True)
        named = field.shown.parent / f"shown-{marker}"
        named.mkdir(exist_ok=True)
        sandbox = field.sandbox(read=(str(field.shown), str(named)), env=(("TOKEN", marker),))
        command = ("sh", "-c", WAIT, "sh", str(field.work), str(field.shown))
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(field.run, sandbox, *command)
            found = listed(marker.encode(), field.work)
            assert running.result().stdout.kept == b"data"
        return found

    return look


def test_neither_a_variables_value_nor_a_path_stands_in_the_list_of_processes(seen_while_running, monkeypatch):
    marker = "value-7f3a9"
    assert seen_while_running(marker) is False
    spawn = proc.spawn

    def spelled_out(argv, **more):
        at = argv.index("--")
        return spawn((*argv[:at], "--setenv", "TOKEN", marker, *argv[at:]), **more)

    monkeypatch.setattr(proc, "spawn", spelled_out)
    assert seen_while_running(marker) is True
