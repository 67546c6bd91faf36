"""What runs in a sandbox: a program, or a Python module of ours in the interpreter that is already there."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Command:
    """A program with its arguments, or a worker; exactly one of the two.

    A *worker* is a function of the ``hermit`` package that the relay calls in a fork of its own interpreter: the start
    of a second interpreter would cost more than the sandbox does.

    Args:
        argv: The program and its arguments; the program is looked up on the ``PATH`` inside. The kernel passes each to
            it, and each variable, only up to 128 KiB: a longer prompt belongs in a file or on standard input.
        worker: ``package.module:function``, called with (job, result descriptor).
        job: What the worker reads, as bytes, of any size: it comes through memory, and so do a worker's variables.
        result_bytes: The most a worker may hand back.
        stdin: What the command reads; nothing unless given.

    Raises:
        ValueError: Neither or both are given, or an argument holds a NUL byte.
    """

    argv: tuple[str, ...] = ()
    worker: str = ""
    job: bytes = field(default=b"", repr=False)
    result_bytes: int = 16 * 1024 * 1024
    stdin: bytes = field(default=b"", repr=False)

    def __post_init__(self) -> None:
        if bool(self.argv) == bool(self.worker):
            raise ValueError("a command is a program or a worker, and not both")
        if any("\0" in part for part in self.argv):
            raise ValueError("an argument of a command holds a NUL byte")
        if self.job and not self.worker:
            raise ValueError("only a worker takes a job")


@dataclass(frozen=True, kw_only=True)
class Stream:
    """One output stream: the bytes that were kept, and how many there were in all."""

    kept: bytes = b""
    total: int = 0

    @property
    def dropped(self) -> int:
        """How many bytes were read and not kept."""
        return self.total - len(self.kept)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a command ended; a command that failed is a value, a sandbox that failed is an exception.

    Args:
        code: The exit code, ``None`` where a signal ended the command.
        signal: The number of the signal that ended it, 0 where it exited.
        timed_out: Whether the wall clock ended it.
        limit: Which bound ended it, such as ``memory``; empty where none did, or none can be shown to have.
        evidence: What shows that.
        stdout: What it wrote to standard output.
        stderr: What it wrote to standard error.
        result: What a worker handed back, ``None`` where it handed back nothing or more than allowed.
        result_total: How many bytes the worker tried to hand back.
        wall_s: Seconds from the start of the sandbox to its end.
        cpu_s: Processor seconds of the command and its children; ``None`` where nobody could count.
        max_rss_mb: Largest resident size of one of its processes in MiB; ``None`` where nobody could count.
    """

    code: int | None = None
    signal: int = 0
    timed_out: bool = False
    limit: str = ""
    evidence: str = ""
    stdout: Stream = Stream()
    stderr: Stream = Stream()
    result: bytes | None = None
    result_total: int = 0
    wall_s: float = 0.0
    cpu_s: float | None = None
    max_rss_mb: float | None = None

    @property
    def ending(self) -> str:
        """How the command ended, in a few words, and which bound ended it."""
        if self.timed_out:
            words = f"stopped after {self.wall_s:.1f} s"
        else:
            words = f"signal {self.signal}" if self.code is None else f"exit {self.code}"
        return f"{words} ({self.limit}: {self.evidence})" if self.limit else words

    @property
    def shell_code(self) -> int:
        """The one number a shell would show: the exit code, or 128 and the signal."""
        return self.code if self.code is not None else 128 + self.signal
