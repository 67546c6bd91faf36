"""A directory of a run, held by one process, and what lies in it: of this very run, or nothing."""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hermit.errors import ConfigError
from hermit.handoff.remove import remove
from hermit.run.paths import flush_directory, make_directory, remove_unfinished, write_atomically

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

START_OVER = "use --fresh to start over, or give the run another trainer.run_name"


@contextmanager
def held(directory: Path, *others: Path) -> Iterator[None]:
    """A directory that is there and writable, and that no other process of ours works in; so are the others made.

    Raises:
        ConfigError: Another process holds it, or one of them cannot be written to.
    """
    for each in (directory, *others):
        _create(each)
    lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(
                "another process works in this run",
                where=str(directory),
                cure="wait for it, or give the run another trainer.run_name",
            ) from None
        remove_unfinished(directory)
        yield
    finally:
        os.close(lock)


def _create(directory: Path) -> None:
    """Makes a directory of the run, before anything is paid for that could not be kept there."""
    try:
        make_directory(directory)
        reason = "" if os.access(directory, os.W_OK | os.X_OK) else "nothing can be written there"
    except OSError as error:
        reason = f"it cannot be created: {error.strerror}"
    if reason:
        cure = "make it writable for whoever runs this, make room, or set trainer.output_dir elsewhere"
        raise ConfigError(reason, where=str(directory), cure=cure)


def empty(directory: Path, *, first: Path, last: Path) -> None:
    """Drops everything of an earlier run: its rows first and the lock last, so that no row is ever taken for another's."""
    for entry in sorted(directory.iterdir(), key=lambda entry: (entry != first, entry == last)):
        remove(str(entry)) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
        flush_directory(directory)


def match(path: Path, lock: Mapping[str, Any], *, made: Path, start_over: str = START_OVER) -> None:
    """Keeps what runs, or compares it with what is kept.

    Args:
        path: Where it is kept.
        lock: What runs.
        made: What would be added to; where it is there, so is the lock.
        start_over: What to do where they differ.

    Raises:
        ConfigError: Something else ran here.
    """
    if not path.exists():
        if made.exists():
            what = "there are results, and nothing that says of what"
            raise ConfigError(what, where=str(path), cure=f"put the file back, or {start_over}")
        write_atomically(path, json.dumps(lock, indent=1).encode() + b"\n")
        return
    try:
        kept = dict(json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError) as error:
        raise ConfigError(f"it cannot be read: {error}", where=str(path), cure=start_over) from None
    if kept.get("digest") == lock["digest"]:
        return
    changed = [
        f"{part}.{key}"
        for part in ("settings", "contents")
        for key in sorted({*kept.get(part, {}), *lock[part]})
        if kept.get(part, {}).get(key) != lock[part].get(key)
    ]
    raise ConfigError(
        f"this run holds results of something else: {', '.join(changed) or 'an older layout'} changed",
        where=str(path.parent),
        cure=start_over,
    )
