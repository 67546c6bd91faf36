"""Where the files of a run lie: the one place that spells their names."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import json
import os
import re
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import quote

from hermit.errors import HermitError

if TYPE_CHECKING:
    from collections.abc import Iterator

# Of a file system's 255 bytes, so that a time, a role and an ending fit beside it.
LONGEST_NAME = 120
# What a file system says that cannot flush, as against one that could not.
NO_FLUSH = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS)
ROOM = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True)
class RunPaths:
    """The files of one evaluation.

    ::

        <output_dir>/<run_name>/
        ├── sandbox/                      a record for each start of a sandbox
        │   ├── <time>-<role>-<id>-<repeat>.json
        │   └── <time>-<role>-<id>-<repeat>.proxy.jsonl   what its proxy decided, where it had one
        └── eval/<selector>/
            ├── lock.json                 what runs: another config, agent, judge or data may not add to it
            ├── results.jsonl             a line for each attempt, as they end
            ├── summary.json              what they come to
            ├── redaction.jsonl           which keys were scrubbed where, where any were
            ├── report.html               the page of `hermit report`, where it was asked for
            └── logs/<id>-<repeat>/       what the agent and the judge printed, where they printed anything
                ├── agent.out agent.err judge.out judge.err
                ├── messages.jsonl        the agent's trajectory, a line for each message, where it handed any back
                ├── agent-logs/           a copy of the agent's `.logs`, where it wrote any
                └── collected.jsonl       what a separate judge got of the work: a line for each file, with its BLAKE3

    Args:
        root: The run's directory.
        selector: Which adapter is evaluated.
    """

    root: Path
    selector: str

    @property
    def evaluation(self) -> Path:
        """The directory of this evaluation."""
        return self.root / "eval" / self.selector

    @property
    def lock(self) -> Path:
        """What runs."""
        return self.evaluation / "lock.json"

    @property
    def results(self) -> Path:
        """A line for each attempt."""
        return self.evaluation / "results.jsonl"

    @property
    def summary(self) -> Path:
        """What the attempts come to."""
        return self.evaluation / "summary.json"

    @property
    def records(self) -> Path:
        """A record for each start."""
        return self.root / "sandbox"

    @property
    def redaction(self) -> Path:
        """What was scrubbed from what each attempt left: counts, never values."""
        return self.evaluation / "redaction.jsonl"

    @property
    def page(self) -> Path:
        """The page that shows the evaluation."""
        return self.evaluation / "report.html"

    def logs(self, task_id: str, repeat: int) -> Path:
        """What one attempt printed."""
        return self.evaluation / "logs" / f"{file_name(task_id)}-{repeat}"

    def messages(self, task_id: str, repeat: int) -> Path:
        """The trajectory of one attempt."""
        return self.logs(task_id, repeat) / "messages.jsonl"

    def agent_logs(self, task_id: str, repeat: int) -> Path:
        """The copy of what the agent of one attempt logged."""
        return self.logs(task_id, repeat) / "agent-logs"

    def manifest(self, task_id: str, repeat: int) -> Path:
        """What a separate judge got of one attempt's work."""
        return self.logs(task_id, repeat) / "collected.jsonl"

    def new_record(self, role: str, task_id: str, repeat: int) -> Path:
        """A name for the record of a start that happens now, and of no other, whatever the clock says."""
        now = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")
        stem = f"{now}-{role}-{file_name(task_id)}-{repeat}"
        names = itertools.chain([stem], (f"{stem}-{number}" for number in itertools.count(1)))
        return next(path for name in names if not (path := self.records / f"{name}.json").exists())


def file_name(task_id: str) -> str:
    """A task's id as one component of a path: two ids never share one, and any id has one."""
    name = quote(task_id, safe="")
    if name.startswith("."):
        name = "%2E" + name[1:]
    if len(name) > LONGEST_NAME:
        name = f"{name[:80]}+{hashlib.sha256(task_id.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"
    return name


def run_name(*, given: str | None, config: Path, agent: str) -> str:
    """The run's name: the one that was given, or the config's directory and the agent's name."""
    return given or re.sub(r"[^A-Za-z0-9._-]+", "-", f"{config.parent.name}-{agent.rpartition(':')[2]}").strip(".-")


def write_atomically(path: Path, data: bytes, *, lasting: bool = True, made_in: Path | None = None) -> None:
    """Writes a file whole or not at all; whoever reads it sees the old one or the new one.

    Args:
        path: The file.
        data: What it holds.
        lasting: Whether it outlives a power cut from here on, and not only the end of this process.
        made_in: Where it grows, on the same file system; beside itself unless given.

    Raises:
        HermitError: There is no room, or the file cannot be written.
    """
    with told(path), written_atomically(path, lasting=lasting, made_in=made_in) as file:
        file.write(data)


@contextlib.contextmanager
def written_atomically(path: Path, *, lasting: bool = False, made_in: Path | None = None) -> Iterator[BinaryIO]:
    """A file to write to, which is at its place when it is whole, and never when the writing fails."""
    for directory in {path.parent, made_in or path.parent}:
        directory.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=made_in or path.parent, prefix=f".{path.name[:LONGEST_NAME]}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fchmod(file.fileno(), 0o644)
            if lasting:
                flush(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    if lasting:
        flush_directory(path.parent)


def point_to(link: Path, target: str) -> None:
    """Makes a link lead somewhere, whether or not it was there; whoever follows it finds the old target or the new one."""
    new = link.with_name(f".{link.name}.new")
    new.unlink(missing_ok=True)
    new.symlink_to(target)
    os.replace(new, link)


def write_json(path: Path, document: Any) -> None:
    """Writes a document for people and programs, whole or not at all."""
    write_atomically(path, json.dumps(document, indent=1).encode("ascii") + b"\n")


def remove_unfinished(directory: Path) -> None:
    """Removes the files of this directory that were growing when their process was killed; nobody else works in it."""
    for entry in directory.iterdir():
        if entry.name.startswith(".") and not entry.is_dir():
            entry.unlink()


def make_directory(path: Path) -> None:
    """Makes a directory and those above it; each is on the disk before anything in it."""
    missing = [step for step in (path, *path.parents) if not step.exists()]
    for step in reversed(missing):
        step.mkdir(exist_ok=True)
        flush_directory(step.parent)


def flush(descriptor: int) -> None:
    """Returns when what was written is on the disk.

    Raises:
        OSError: It is not, and may never be; a file system that cannot say is no error.
    """
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in NO_FLUSH:
            raise


def flush_directory(path: Path) -> None:
    """Returns when the names in a directory are on the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        flush(descriptor)
    finally:
        os.close(descriptor)


def flush_tree(path: Path) -> None:
    """Returns when everything in a directory of our own is on the disk: its files, then the names of them."""
    for directory, _, names in os.walk(path, topdown=False):
        for name in names:
            file = os.path.join(directory, name)
            if not os.path.islink(file):
                descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
                try:
                    flush(descriptor)
                finally:
                    os.close(descriptor)
        flush_directory(Path(directory))


@contextlib.contextmanager
def told(path: Path) -> Iterator[None]:
    """What keeps a file of the run from being written, in words that say what to do.

    Raises:
        HermitError: In place of the `OSError`.
    """
    try:
        yield
    except OSError as error:
        need = "make room for it" if error.errno in ROOM else "make it writable"
        raise HermitError(
            f"it could not be written: {error.strerror}",
            where=str(path),
            cure=f"{need}, and run the same command again: no attempt whose row is kept is made twice",
        ) from None
