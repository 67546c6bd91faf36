"""One whole ``hermit`` command inside an image, with its results in the hands of the user who called.

Theory of operation. ``docker run`` is a child on this process's own terminal, so Ctrl-C reaches it (and, through it, the
command inside) without our help; this process waits for it however often it is interrupted. When it is gone, for
whatever reason, the container is removed by name, and only then, with nobody inside left to race against, the run
directory changes hands. A caller who is not root keeps their own user and group inside, and nothing changes hands. Root
never enters: the command runs as 1000:1000, to whom the run directory is lent for that time.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import sys
import threading
from typing import TYPE_CHECKING

from hermit.errors import PlaceError
from hermit.oci import engine as engines
from hermit.oci.argv import Container, run_arguments
from hermit.oci.container import REMOVAL_S, give, labels, mounts, remove, suited, user_inside
from hermit.oci.failure import failure
from hermit.proc import attached, capture

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hermit.oci.engine import Engine

# How long the command inside may take to end by itself once it was asked to.
GRACE_S = 10


def run(
    engine: Engine,
    *,
    image: str,
    arguments: Sequence[str],
    read: Sequence[str],
    write: str,
    env: Sequence[str] = (),
    cwd: str = "",
    memory_mb: int = 8192,
    pids: int = 4096,
    tmp_mb: int = 1024,
) -> int:
    """Runs ``hermit`` with these arguments in a closed container and returns its exit code.

    Args:
        engine: The engine that runs it.
        image: The image; it must exist here already.
        arguments: What follows ``hermit`` on the command line.
        read: Paths shown read-only at their own location.
        write: The run directory, shown writable at its own location; it must exist.
        env: Names of this process's variables that pass in.
        cwd: The working directory inside; the image's own where empty.
        memory_mb: MiB that everything inside shares.
        pids: How many processes and threads there may be inside.
        tmp_mb: MiB of ``/tmp`` inside.

    Raises:
        PlaceError: The image or a path does not exist, the engine refuses, or the container cannot be removed.
    """
    if engines.image_id(engine, image) is None:
        raise PlaceError(f"the image {image} does not exist here", where=engine.program, cure="make image")
    caller, inside = (os.geteuid(), os.getegid()), user_inside(os.geteuid(), os.getegid())
    name = f"hermit-run-{secrets.token_hex(6)}"
    terminal = sys.stdout.isatty()
    container = Container(
        image=image,
        command=tuple(arguments),
        mounts=mounts(read, write=(write,)),
        env=tuple(env),
        uid=inside[0],
        gid=inside[1],
        cwd=cwd,
        tmp_mb=tmp_mb,
        memory_mb=memory_mb,
        pids=pids,
        tty=terminal,
        interactive=terminal and sys.stdin.isatty(),
        name=name,
        labels=labels(write),
        **suited(engine),
    )
    with _lent(write, to=inside, back=caller), _removed(engine, name), _stopped_on_request(engine, name):
        code = attached(run_arguments(container, program=engine.program))
    refused = failure(code, "", program=engine.program, image=image)
    if refused is not None:
        raise PlaceError(
            "the container engine refused to start the image; its own words stand above", where=engine.program
        )
    return code


@contextlib.contextmanager
def _lent(directory: str, *, to: tuple[int, int], back: tuple[int, int]) -> Iterator[None]:
    if to == back:
        yield
        return
    try:
        _hand_over(directory, to=to)
        yield
    finally:
        with _undisturbed():
            _hand_over(directory, to=back)


def _hand_over(directory: str, *, to: tuple[int, int]) -> None:
    try:
        give(directory, uid=to[0], gid=to[1])
    except OSError as error:
        cure = "use an output directory on a file system that root owns, or --runtime local"
        raise PlaceError(
            f"the run directory cannot be given to {to[0]}:{to[1]}: {error}", where=directory, cure=cure
        ) from error


@contextlib.contextmanager
def _removed(engine: Engine, name: str) -> Iterator[None]:
    """The container is gone at the end, also where its client left without it."""
    try:
        yield
    finally:
        with _undisturbed():
            remove(engine, name)


@contextlib.contextmanager
def _stopped_on_request(engine: Engine, name: str) -> Iterator[None]:
    def stop(_number: int, _frame: object) -> None:
        with contextlib.suppress(TimeoutError, OSError):
            capture([engine.program, "stop", "--time", str(GRACE_S), name], timeout_s=GRACE_S + REMOVAL_S)

    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may decide what a signal does
        return
    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Ctrl-C waits for nothing here and breaks nothing off: what was begun is brought to its end."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread is ever interrupted
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
