"""The child of the relay becomes the command: a program, or a worker in this very interpreter."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` itself imports enum, at a cost
import gc
import os
import sys

import family
import limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def start(job: dict[str, Any], *, close: int) -> int | str:
    """Starts the command and returns its process id, or the reason why it could not start.

    The reason comes through a pipe that closes when the program takes over: silence is success.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reader)
            os.close(close)
            become(job, started=writer)
        except BaseException as failure:  # noqa: BLE001 - whatever it is, the host is told
            os.write(writer, reason(failure, job).encode("utf-8", "backslashreplace"))
        finally:
            os._exit(127)
    os.close(writer)
    with open(reader, "rb") as file:
        said = file.read()
    if said:
        os.waitpid(pid, 0)
        return said.decode()
    return pid


def become(job: dict[str, Any], *, started: int) -> None:
    """Takes the descriptors, the session, the directory and the bounds of the command, then runs it."""
    os.setsid()
    for number, descriptor in enumerate(job["streams"]):
        os.dup2(descriptor, number)
    os.chdir(job["cwd"])
    # The interpreter ignores these two; a program expects to be ended by them.
    _signal.signal(_signal.SIGPIPE, _signal.SIG_DFL)
    _signal.signal(_signal.SIGXFSZ, _signal.SIG_DFL)
    if job["processors"]:
        os.sched_setaffinity(0, job["processors"])
    limits.apply(job["limits"])
    if job["argv"]:
        close_all_but(started)
        os.set_inheritable(started, False)
        os.execvpe(job["argv"][0], job["argv"], job["env"])
    work(job, started=started)


def work(job: dict[str, Any], *, started: int) -> None:
    """Runs a worker here: its module is imported, its function called, and the process ends without clean-up."""
    family.hide_descriptors()
    close_all_but(started, job["worker_job"], job["worker_result"])
    os.close(started)
    _signal.signal(_signal.SIGINT, _signal.default_int_handler)
    os.environ.clear()
    os.environ.update(job["env"])
    function = worker_of(job)
    gc.freeze()
    gc.enable()
    function(job["worker_job"], job["worker_result"])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def worker_of(job: dict[str, Any]) -> Any:
    """The worker's function, in an environment as ``python -I`` would have set it up."""
    import site  # noqa: PLC0415 - a program has no use for it

    site.main()
    module, _, function = job["worker"].partition(":")  # imported by the relay
    sys.modules["__main__"].Carried.forget()
    sys.path[:] = dict.fromkeys([*sys.path, *job["search"], job["framework"]])
    return getattr(sys.modules[module], function)


def close_all_but(*kept: int) -> None:
    """Closes every descriptor but the three streams and those named."""
    edges = [2, *sorted(kept), 1 << 16]
    for low, high in zip(edges, edges[1:], strict=False):
        os.closerange(low + 1, high)


def reason(failure: BaseException, job: dict[str, Any]) -> str:
    """One line: the exit code a shell would give, and what happened."""
    program = job["argv"][0] if job["argv"] else job["worker"]
    if isinstance(failure, OSError):
        where = failure.filename or program
        missing = isinstance(failure, FileNotFoundError) and where != job["cwd"]
        return f"{127 if missing else 126} {os.fsdecode(where)}: {failure.strerror}"
    return f"126 {program}: {type(failure).__name__}: {failure}"
