"""Moves that outlive the call: processes that leave it in every way there is, and write when nobody should any more."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from typing import TYPE_CHECKING

from hermit.run.attack import plants

if TYPE_CHECKING:
    from hermit import RunOutput
    from hermit.run.attack.scene import Scene

# How long a survivor writes, once the call has ended, and how often.
WRITES_S, EVERY_S = 20.0, 0.02
READY_S = 10.0


def survivor(scene: Scene) -> RunOutput:
    """Leaves a process in a session of its own, which heeds no signal and writes verdicts after the call has ended."""
    output = plants.placeholder(scene)
    ready, told = os.pipe()
    agent = os.getpid()
    if os.fork() == 0:
        _leave(scene, agent, told)
    os.close(told)
    os.read(ready, 1)  # it has left the call
    os.close(ready)
    return output


def _leave(scene: Scene, agent: int, told: int) -> None:
    """Becomes a process that nobody waits for, and never returns."""
    try:
        os.setsid()
        if os.fork() == 0:
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
                signal.signal(number, signal.SIG_IGN)
            null = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(null, stream)
            os.write(told, b"x")
            os.close(told)
            while _runs(agent):
                time.sleep(EVERY_S)
            _write(scene)
    finally:
        os._exit(0)


def _runs(pid: int) -> bool:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        return file.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    return False


def _write(scene: Scene) -> None:
    until = time.monotonic() + WRITES_S
    while time.monotonic() < until and os.path.isdir(scene.work):
        plants.verdict_files(scene)
        time.sleep(EVERY_S)
