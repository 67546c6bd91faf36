"""The front door stands for its command: signals, the terminal, every kind of stream, and its own sudden end."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import termios
from typing import TYPE_CHECKING, Any

import pytest

from .conftest import alive, descendants, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.bwrap

PASSED = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGWINCH")
# Says each signal it gets, and ends with 7 when it is told to on its input.
ANSWERS = """
import os, signal, sys
for name in sys.argv[1:]:
    signal.signal(getattr(signal, name), lambda number, _: os.write(1, signal.Signals(number).name.encode() + b"\\n"))
print("up", flush=True)
sys.stdin.readline()
sys.exit(7)
"""
# A command whose child, in the same process group, writes down which signal ended it.
WITH_A_CHILD = """
import os, signal, subprocess, sys
signal.signal(getattr(signal, sys.argv[1]), lambda *_: os.write(1, b"got\\n"))
child = subprocess.Popen(["sleep", "60"])
print("up", flush=True)
sys.stdin.readline()
print(child.poll(), flush=True)
child.kill()
"""


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts the front door with a command; what still runs at the end is ended."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*command: str, spec: Any = None, **streams: Any) -> subprocess.Popen[bytes]:
        text = json.dumps({"limits": {"wall_s": 60}, **(spec or {})})
        words = [sys.executable, "-m", "hermit.sandbox", text, "--", *command]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, **streams}
        # A group of its own in this session, as a shell starts it: one that is cut off is never stopped by a terminal.
        started.append(subprocess.Popen(words, cwd=tmp_path, process_group=0, **pipes))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()


def answered(process: subprocess.Popen[bytes]) -> str:
    """The next line of its output."""
    assert process.stdout is not None
    return process.stdout.readline().decode().strip()


@pytest.mark.parametrize("name", PASSED)
def test_a_signal_to_the_front_door_reaches_the_command(door: Callable[..., Any], name: str) -> None:
    process = door("python3", "-c", ANSWERS, name)
    assert answered(process) == "up"
    process.send_signal(getattr(signal, name))
    assert answered(process) == name
    process.stdin.write(b"\n")
    process.stdin.flush()
    assert process.wait(timeout=30) == 7


@pytest.mark.parametrize("name", PASSED[:-1])
def test_a_command_that_a_signal_ends_is_128_and_its_number(door: Callable[..., Any], name: str) -> None:
    process = door("sh", "-c", "echo up; exec sleep 60")
    assert answered(process) == "up"
    number = getattr(signal, name)
    process.send_signal(number)
    assert process.wait(timeout=30) == 128 + number


def test_a_front_door_that_passes_no_signal_on_would_be_seen(tmp_path: Path) -> None:
    # The planted failure: the same front door with the passing cut out.
    cut = (
        "import sys; from hermit import sandbox, signals;"
        "signals.Caught.passed_on = lambda self, *_, **__: bool(__import__('os').read(self.descriptor, 9));"
        "sys.exit(sandbox.main(sys.argv[1:]))"
    )
    words = [sys.executable, "-c", cut, '{"limits": {"wall_s": 3}}', "--", "python3", "-c", ANSWERS, "SIGTERM"]
    with subprocess.Popen(words, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert answered(process) == "up"
        process.send_signal(signal.SIGUSR1)  # without an answer it would end the command
        process.stdin.write(b"\n")  # type: ignore[union-attr]
        process.stdin.flush()  # type: ignore[union-attr]
        assert process.wait(timeout=30) == 7


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_second_signal_is_passed_on_like_the_first_where_the_command_goes_on(
    door: Callable[..., Any], name: str
) -> None:
    process = door("python3", "-c", ANSWERS, name)
    assert answered(process) == "up"
    for _ in range(3):
        process.send_signal(getattr(signal, name))
        assert answered(process) == name
    process.stdin.close()
    assert process.wait(timeout=30) == 7


@pytest.mark.parametrize(
    ("name", "ended"), [("SIGTERM", -signal.SIGTERM), ("SIGINT", -signal.SIGINT), ("SIGUSR1", None), ("SIGUSR2", None)]
)
def test_what_asks_to_end_reaches_the_whole_group_and_a_programs_own_signal_the_command_alone(
    door: Callable[..., Any], name: str, ended: int | None
) -> None:
    process = door("python3", "-c", WITH_A_CHILD, name)
    assert answered(process) == "up"
    process.send_signal(getattr(signal, name))
    assert answered(process) == "got"
    until(lambda: ended is None or not sleeping(process.pid), what="the end of the child")
    process.stdin.write(b"\n")
    process.stdin.flush()
    assert answered(process) == str(None if ended is None else int(ended))


def sleeping(pid: int) -> set[int]:
    """The living processes below this one that sleep for a minute."""
    found = set()
    for below in alive(descendants(pid)):
        try:
            with open(f"/proc/{below}/cmdline", "rb") as file:
                if file.read() == b"sleep\0" + b"60\0":
                    found.add(below)
        except OSError:
            continue
    return found


def test_a_signal_that_the_caller_had_ignored_is_not_passed_on(tmp_path: Path) -> None:
    text = '{"limits": {"wall_s": 60}}'
    words = ["sh", "-c", 'trap "" HUP; exec "$@"', "sh", sys.executable, "-m", "hermit.sandbox", text, "--"]
    command = ["python3", "-c", ANSWERS, "SIGHUP", "SIGTERM"]
    with subprocess.Popen([*words, *command], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert answered(process) == "up"
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
        assert answered(process) == "SIGTERM"
        process.stdin.close()  # type: ignore[union-attr]
        assert process.wait(timeout=30) == 7


def test_the_terminal_cannot_stop_what_watches_the_sandbox(door: Callable[..., Any]) -> None:
    process = door("sh", "-c", "echo up; exec sleep 60", spec={"limits": {"wall_s": 2}})
    assert answered(process) == "up"
    process.send_signal(signal.SIGTSTP)
    assert process.wait(timeout=30) == 143, "the clock ran on"


def test_a_signal_before_the_command_is_there_ends_the_front_door_and_the_command_never_runs(tmp_path: Path) -> None:
    # A bubblewrap that says what it is, starts one sandbox for the preflight, and then takes its time.
    real = subprocess.run(["sh", "-c", "command -v bwrap"], capture_output=True, text=True, check=True).stdout.strip()
    program = tmp_path / "bin" / "bwrap"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\nif [ "$1" = --version ] || [ ! -e {tmp_path}/second ]; then\n'
        f'  [ "$1" = --version ] || : > {tmp_path}/second\n  exec {real} "$@"\nfi\n: > {tmp_path}/waiting\nexec sleep 50\n'
    )
    program.chmod(0o755)
    (tmp_path / "work").mkdir()
    text = json.dumps({"write": [f"{tmp_path}/work"]})
    words = [sys.executable, "-m", "hermit.sandbox", text, "--", "touch", f"{tmp_path}/work/ran"]
    env = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}
    with subprocess.Popen(words, env=env, cwd=tmp_path) as process:
        until((tmp_path / "waiting").exists, what="the second start")
        below = descendants(process.pid)
        process.send_signal(signal.SIGWINCH)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 143
    assert not (tmp_path / "work" / "ran").exists()
    until(lambda: not alive(below), what="the end of the start")


def test_everything_ends_when_the_front_door_is_killed(door: Callable[..., Any]) -> None:
    deaf = "trap '' TERM INT HUP; setsid sh -c 'trap \"\" TERM INT HUP; sleep 60' & sleep 60 & echo up; wait"
    process = door("sh", "-c", deaf)
    assert answered(process) == "up"
    below = descendants(process.pid)
    assert len(below) >= 4, "bubblewrap, the relay, the command and its children"
    process.kill()
    until(lambda: not alive(below), what="the end of the sandbox")


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """A terminal of the test's own: the hand at the keyboard, and what a program is given."""
    near, far = os.openpty()
    attributes = termios.tcgetattr(far)
    attributes[3] &= ~termios.ECHO
    termios.tcsetattr(far, termios.TCSANOW, attributes)
    yield near, far
    os.close(near)
    os.close(far)


def test_the_command_has_the_callers_terminal(door: Callable[..., Any], terminal: tuple[int, int]) -> None:
    near, far = terminal
    looks = (
        "import os, sys; print([os.isatty(n) for n in range(3)], os.get_terminal_size(), flush=True); print(input())"
    )
    termios.tcsetwinsize(far, (33, 77))
    process = door("python3", "-c", looks, stdin=far, stdout=far, stderr=far)
    assert read_line(near) == "[True, True, True] os.terminal_size(columns=77, lines=33)"
    os.write(near, b"typed\n")
    assert read_line(near) == "typed"
    assert process.wait(timeout=30) == 0


def test_ctrl_c_on_the_callers_terminal_interrupts_the_command(tmp_path: Path, terminal: tuple[int, int]) -> None:
    near, far = terminal
    own = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    command = ["python3", "-c", ANSWERS, "SIGINT", "SIGQUIT"]
    words = [sys.executable, "-c", own, "-m", "hermit.sandbox", '{"limits": {"wall_s": 60}}', "--", *command]
    streams = {"stdin": far, "stdout": far, "stderr": far}
    with subprocess.Popen(words, cwd=tmp_path, start_new_session=True, **streams) as process:
        assert read_line(near) == "up"
        os.write(near, b"\x03")
        assert read_line(near) == "SIGINT"
        os.write(near, b"\x1c")
        assert read_line(near) == "SIGQUIT"
        os.write(near, b"\n")
        assert process.wait(timeout=30) == 7


def read_line(descriptor: int) -> str:
    """The next line that is neither empty nor the terminal's echo of a control character."""
    line = b""
    while not line.endswith(b"\n") or not line.strip():
        line = (line if line.strip() else b"") + os.read(descriptor, 1)
    return line.decode().strip()


def test_a_socket_is_the_commands_own_stream(door: Callable[..., Any]) -> None:
    asks = "import os, socket, stat; print(all(stat.S_ISSOCK(os.fstat(n).st_mode) for n in (0, 1)), flush=True); s = socket.socket(fileno=0); s.sendall(s.recv(9)[::-1])"
    near, far = socket.socketpair()
    with near, far:
        process = door("python3", "-c", asks, stdin=far, stdout=far)
        far.close()
        near.settimeout(30)
        assert near.recv(9) == b"True\n"
        near.sendall(b"abc")
        assert near.recv(9) == b"cba"
        assert process.wait(timeout=30) == 0


def test_the_front_door_reads_nothing_of_the_input_and_changes_no_stream(
    door: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "in").write_bytes(b"one\ntwo\n")
    reader, writer = os.pipe2(os.O_NONBLOCK)
    with (tmp_path / "in").open("rb") as given, (tmp_path / "out").open("w+b") as taken:
        taken.write(b"before\n")
        taken.flush()
        process = door(
            "sh", "-c", "head -c 4 >&2; cat <&0 | head -c 0; echo here", stdin=given, stdout=taken, stderr=writer
        )
        assert process.wait(timeout=30) == 0
        assert os.get_blocking(writer) is False
        assert os.read(reader, 99) == b"one\n"
    os.close(reader)
    os.close(writer)
    assert (tmp_path / "out").read_bytes() == b"before\nhere\n"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_stream_that_the_caller_closed_is_empty_inside_and_breaks_nothing(tmp_path: Path, closed: str) -> None:
    (tmp_path / "work").mkdir()
    text = json.dumps({"write": [f"{tmp_path}/work"], "cwd": f"{tmp_path}/work"})
    looks = "import os; open('seen', 'w').write(str([os.fstat(n).st_rdev == os.stat('/dev/null').st_rdev for n in range(3)]))"
    words = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-m", "hermit.sandbox", text, "--"]
    ran = subprocess.run([*words, "python3", "-c", looks], stdin=subprocess.PIPE, capture_output=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, b"")
    closed_ones = [mark in closed.split() for mark in ("<&-", ">&-", "2>&-")]
    assert (tmp_path / "work" / "seen").read_text() == str(closed_ones)


def test_a_refusal_reaches_a_caller_whatever_is_closed() -> None:
    for closed in ("2>&-", ">&- 2>&-"):
        words = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-m", "hermit.sandbox", "{", "--", "true"]
        assert subprocess.run(words, capture_output=True, check=False).returncode == 125


@pytest.mark.parametrize("size", [1 << 20])
def test_a_megabyte_with_every_byte_passes_through_unchanged(door: Callable[..., Any], size: int) -> None:
    data = bytes(range(256)) * (size // 256)
    out, _ = door("cat").communicate(data, timeout=60)
    assert out == data


def test_a_command_without_a_sandbox_gets_its_signals_all_the_same(door: Callable[..., Any]) -> None:
    spec = {"enforce": "best_effort"}
    quiet = {"env": {**os.environ, "PATH": "/nowhere"}, "stderr": subprocess.PIPE}
    process = door(sys.executable, "-c", ANSWERS, "SIGTERM", spec=spec, **quiet)
    assert answered(process) == "up"
    process.send_signal(signal.SIGTERM)
    assert answered(process) == "SIGTERM"
    process.send_signal(signal.SIGUSR1)
    assert process.wait(timeout=30) == 128 + signal.SIGUSR1
    with process.stderr:
        assert process.stderr.read().startswith(b"hermit.sandbox: nothing is confined: ")
