"""Host processes: the one place that starts any. Lists of arguments, never a shell string."""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class Finished:
    """A host command that ended: its exit code (negative: the signal), and what it wrote."""

    argv: tuple[str, ...]
    code: int
    stdout: bytes
    stderr: bytes

    @property
    def last_words(self) -> str:
        """The last line of its standard error that is not blank, for a message."""
        lines = [line for line in self.stderr.decode(errors="replace").splitlines() if line.strip()]
        return lines[-1].strip() if lines else f"{self.argv[0]} ended with {self.code}"


def capture(
    argv: Sequence[str], *, timeout_s: float, env: Mapping[str, str] | None = None, stdin: bytes = b""
) -> Finished:
    """Runs one short host command to its end and keeps what it writes.

    Raises:
        FileNotFoundError: The program does not exist.
        TimeoutError: It took longer than ``timeout_s`` seconds; its whole process group has been killed.
    """
    child = subprocess.Popen(
        list(argv),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(env) if env is not None else None,
        start_new_session=True,
    )
    with child:
        try:
            stdout, stderr = child.communicate(stdin, timeout=timeout_s)
        except subprocess.TimeoutExpired:
            kill_group(child.pid)  # not read to its end: a process that left the group may hold the pipes
            raise TimeoutError(f"{argv[0]} did not end within {timeout_s:g} s") from None
        except BaseException:
            kill_group(child.pid)
            raise
    return Finished(tuple(argv), child.returncode, stdout, stderr)


def attached(argv: Sequence[str]) -> int:
    """Runs a host command on this process's own terminal and returns its exit code; Ctrl-C reaches it directly."""
    child = subprocess.Popen(list(argv))
    while True:
        try:
            code = child.wait()
        except KeyboardInterrupt:  # the terminal sent it the same signal; its own end is what counts
            continue
        return code if code >= 0 else 128 - code


def spawn(
    argv: Sequence[str], *, stdin: int, stdout: int, stderr: int, pass_fds: Sequence[int]
) -> subprocess.Popen[bytes]:
    """Starts a host process in a session of its own, with these descriptors and an empty environment."""
    return subprocess.Popen(
        list(argv),
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        pass_fds=tuple(pass_fds),
        env={},
        cwd="/",
        start_new_session=True,
    )


def kill_group(pid: int) -> None:
    """Kills the process group that ``pid`` leads; one that is gone is no error."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
