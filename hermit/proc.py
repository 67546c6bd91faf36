"""Host processes: the one place that starts any. Lists of arguments, never a shell string."""

from __future__ import annotations

import contextlib
import itertools
import os
import resource
import signal
import subprocess
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hermit.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


# Threads take the processors in turn.
_TURNS = itertools.count()
_THREAD = threading.local()

# The kernel's own bounds: of one argument or variable in pages, and the least and the most of all of them in bytes.
MOST_PAGES = 32
LEAST_IN_ALL, MOST_IN_ALL = 128 * 1024, 6 * 1024 * 1024
POINTER_BYTES = 8
MOST_LAST_WORDS = 4096
LAST_WORDS_S = 2.0


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
    argv: Sequence[str],
    *,
    timeout_s: float,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    pass_fds: Sequence[int] = (),
) -> Finished:
    """Runs one short host command to its end and keeps what it writes.

    Args:
        argv: The command.
        timeout_s: Seconds it may take.
        env: Its variables; this process's own unless given.
        stdin: Its standard input.
        pass_fds: Descriptors it holds too: what they lock stays locked as long as it lives, even where this process dies.

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
        pass_fds=tuple(pass_fds),
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


def logged(argv: Sequence[str], *, env: Mapping[str, str], cwd: str) -> tuple[int, str]:
    """Runs a command to its end with this process's own output, and returns its code and the last line of its errors.

    Raises:
        OSError: It does not start.
    """
    child = subprocess.Popen(
        list(argv), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env=dict(env), cwd=cwd, start_new_session=True
    )
    said = bytearray()

    def pass_on() -> None:
        assert child.stderr is not None  # noqa: S101 - it is a pipe
        with child.stderr as errors:
            while piece := os.read(errors.fileno(), 1 << 16):
                said.extend(piece)
                del said[:-MOST_LAST_WORDS]
                while piece:
                    piece = piece[os.write(2, piece) :]

    reader = threading.Thread(target=pass_on, daemon=True)
    reader.start()
    code = child.wait()
    reader.join(timeout=LAST_WORDS_S)  # a process it left behind may hold the pipe
    return code, Finished(tuple(argv), code, b"", bytes(said)).last_words


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


def companion(argv: Sequence[str], *, stderr: int) -> subprocess.Popen[bytes]:
    """Starts a host command that lives beside this process: out of reach of its terminal, heard by its complaints alone.

    Raises:
        OSError: It does not start.
    """
    return subprocess.Popen(
        list(argv),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=stderr,
        start_new_session=True,
    )


def processors() -> tuple[int, ...]:
    """The processors that the calling thread may use, its own first: threads take theirs in turn."""
    if not hasattr(_THREAD, "turn"):
        _THREAD.turn = next(_TURNS)
    allowed = sorted(os.sched_getaffinity(0))
    own = _THREAD.turn % len(allowed)
    return (*allowed[own:], *allowed[:own])


def settle(processor: int) -> None:
    """Gives the calling thread this processor for its own, where it may use it: that of the thread it works for."""
    allowed = sorted(os.sched_getaffinity(0))
    if processor in allowed:
        _THREAD.turn = allowed.index(processor)


@contextlib.contextmanager
def on_one_processor() -> Iterator[None]:
    """Keeps the calling thread, and what it starts meanwhile, on its own processor.

    The processes of a start take turns. Each that woke on another processor than the one before would first have to
    rouse that, which costs a tenth of all the attempts that a machine can make.
    """
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {processors()[0]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def refuse_oversized(argv: Sequence[str], env: Mapping[str, str], *, where: str) -> None:
    """Refuses what the kernel would not pass to a program: one argument or variable, or all together, that is too long.

    Raises:
        SandboxError: It names what is too long, and how long it may be.
    """
    longest = MOST_PAGES * os.sysconf("SC_PAGE_SIZE")
    stack = resource.getrlimit(resource.RLIMIT_STACK)[0]
    most = MOST_IN_ALL if stack == resource.RLIM_INFINITY else max(LEAST_IN_ALL, min(MOST_IN_ALL, stack // 4))
    named = {f"argument {number} of the command": argument for number, argument in enumerate(argv)}
    named |= {f"the variable {name}": f"{name}={value}" for name, value in env.items()}
    total = 0
    for name, text in named.items():
        size = len(text.encode("utf-8", "replace")) + 1  # a NUL ends each; a byte that is no text counts as one
        total += size + POINTER_BYTES
        if size > longest:
            raise _oversized(f"{name} has {size - 1} bytes, and the kernel passes {longest - 1} at most", where)
    if total > most:
        what = f"the arguments and variables have {total} bytes together, and the kernel passes {most} at most"
        raise _oversized(what, where)


def _oversized(what: str, where: str) -> SandboxError:
    cure = "hand it over in a file that is shown, or on standard input"
    return SandboxError(what, where=where, cause="declaration", cure=cure)


def kill_group(pid: int) -> None:
    """Kills the process group that ``pid`` leads; one that is gone is no error."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
