"""A place that calls each worker in a fork of the test, with nothing around it: what a run is made of, without the starts."""

from __future__ import annotations

import contextlib
import importlib
import os
import select
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

from hermit.domain.command import Command, Outcome, Stream
from hermit.domain.record import Record
from hermit.errors import Interrupted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hermit.domain.sandbox import Sandbox


class Forked:
    """Calls workers, and no programs; stands where `hermit.unconfined.Unconfined` does.

    Args:
        in_child: Is called in each fork first.
    """

    confined = False

    def __init__(self, in_child: Callable[[], None] = lambda: None) -> None:
        self._in_child = in_child

    def run(
        self,
        sandbox: Sandbox,
        command: Command,
        *,
        environ: Mapping[str, str],
        keep: Callable[[Record], None],
        cancel: int | None = None,
        **_: Any,
    ) -> Outcome:
        """Calls the worker to its end."""
        began = time.monotonic()
        files = [os.memfd_create(name) for name in ("job", "result", "out", "err")]
        os.write(files[0], command.job)
        os.lseek(files[0], 0, os.SEEK_SET)
        pid = os.fork()
        if pid == 0:
            self._call(sandbox, command, files, {**environ, **dict(sandbox.env)})
        outcome = self._ended(pid, files, sandbox.limits.wall_s, cancel)
        keep(Record(role=sandbox.role, backend="forked", version="0", confined=False, empty=True))
        if outcome is None:
            raise Interrupted("the run was given up")
        code, number, timed_out = outcome
        data = [self._read(file) for file in files[1:]]
        for file in files:
            os.close(file)
        streams = [Stream(kept=each, total=len(each)) for each in data[1:]]
        return Outcome(
            code=code,
            signal=number,
            timed_out=timed_out,
            stdout=streams[0],
            stderr=streams[1],
            result=data[0] or None,
            result_total=len(data[0]),
            wall_s=time.monotonic() - began,
        )

    def _call(self, sandbox: Sandbox, command: Command, files: list[int], env: dict[str, str]) -> None:
        code = 1
        with contextlib.suppress(BaseException):
            self._in_child()
            os.setsid()
            signal.set_wakeup_fd(-1)
            for given in {int(name) for name in os.listdir("/proc/self/fd")} - {0, 1, 2, *files}:
                with contextlib.suppress(OSError):  # what the parent alone closes says something by that
                    os.close(given)
            os.environ.clear()
            os.environ.update(env)
            os.chdir(sandbox.cwd or "/")
            os.dup2(files[2], 1)
            os.dup2(files[3], 2)
            sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering=1, closefd=False) for number in (1, 2))
            module, _, name = command.worker.partition(":")
            # Each is closed by the worker, and read by the test by a descriptor of its own.
            getattr(importlib.import_module(module), name)(os.dup(files[0]), os.dup(files[1]))
            code = 0
        os._exit(code)

    def _ended(
        self, pid: int, files: list[int], wall_s: float | None, cancel: int | None
    ) -> tuple[int | None, int, bool] | None:
        process = os.pidfd_open(pid)
        watched = [process] if cancel is None else [process, cancel]
        ready = select.select(watched, [], [], wall_s)[0]
        if process not in ready:
            os.kill(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
        os.close(process)
        if process not in ready and ready:
            for file in files:
                os.close(file)
            return None
        if os.WIFSIGNALED(status):
            return None, os.WTERMSIG(status), not ready
        return os.WEXITSTATUS(status), 0, False

    def _read(self, file: int) -> bytes:
        return os.pread(file, os.fstat(file).st_size, 0)
