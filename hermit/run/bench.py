"""What the attempts of a run share: the place, the scratch they work in, and where their evidence goes."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import json
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

from hermit.agent.result import Failure, handed_back
from hermit.errors import SandboxError
from hermit.handoff import budget, scrub
from hermit.handoff.collect import collect
from hermit.handoff.redact import Found, Redactor
from hermit.handoff.remove import remove
from hermit.oci.container import give
from hermit.run.paths import write_atomically, written_atomically
from hermit.run.place import InImage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO

    from hermit.domain.command import Command, Outcome
    from hermit.domain.record import Record
    from hermit.domain.sandbox import Sandbox
    from hermit.run.plan import Attempt, EvalPlan
    from hermit.sandbox import Place


SCRATCH = "hermit-run-"


class Stop:
    """A pipe whose reading end becomes readable, for everybody and for ever, when the run is given up."""

    def __init__(self) -> None:
        self.descriptor, self._far = os.pipe()
        self._set = False

    def set(self) -> None:
        """Gives the run up; again is no error."""
        if not self._set:
            self._set = True
            os.close(self._far)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.set()
        os.close(self.descriptor)


@dataclass(frozen=True)
class Borrowed:
    """Somebody else's word that work is given up: it is listened to, and never given from here.

    Args:
        descriptor: Becomes readable.
    """

    descriptor: int

    def set(self) -> None:
        """Nothing: who waits for this work gives it up."""


@dataclass(frozen=True)
class Bench:
    """Where a run works.

    Args:
        plan: What is run.
        place: Where the agents' sandboxes are started.
        judge_place: Where the judges' are.
        host: Where a judge on the host is started.
        scratch: A directory of this run alone.
        exchange: The directory in it that the agents' place sees; each attempt has one of its own in it.
        judge_exchange: The directory in it that the judges' place sees.
        adapter: The frozen adapter, ``None`` for the baseline without one.
        stop: Says that the run is given up.
    """

    plan: EvalPlan
    place: Place
    judge_place: Place
    host: Place
    scratch: Path
    exchange: Path
    judge_exchange: Path
    adapter: str | None
    stop: Stop | Borrowed

    @functools.cached_property
    def redactor(self) -> Redactor:
        """What takes the keys out of everything that is kept."""
        return Redactor(self.plan.keys)

    def scrub_shared(self) -> None:
        """Takes the keys out of what calls share, once nobody works there any more."""
        for path in self.plan.config.environment.write if self.redactor else ():
            found = Found()
            try:
                scrub.tree(self.redactor, os.path.realpath(path), found=found)
            except OSError as error:
                found.unreadable.append(f"{error.filename or path}: {error.strerror}")
            if found:
                self.report({"environment.write": str(path), **found.as_json()})

    def keep_record(self, record: Record, *, of: tuple[str, int], found: Found) -> Path:
        """Keeps the record of a start, and what its proxy decided, without a key.

        Args:
            record: The record.
            of: The attempt, or what else was made, and which time.
            found: Takes what was scrubbed.
        """
        path = self.plan.paths.new_record(record.role, *of)
        if record.decisions:
            decisions = path.with_suffix(".proxy.jsonl")
            told = (self.redactor.text(line, found=found, where=decisions.name) for line in record.decisions)
            self.leave(decisions, "".join(f"{line}\n" for line in told).encode())
        self.leave(path, self.redactor.document(record.as_json(), found=found, where=path.name))
        return path

    def leave(self, path: Path, data: bytes) -> None:
        """Leaves evidence: whole or not at all, and nothing beside it where this process is killed meanwhile."""
        write_atomically(path, data, lasting=False, made_in=self.plan.paths.evaluation)

    def report(self, said: dict[str, Any]) -> None:
        """Leaves a line of what was scrubbed, and of what could not be looked into."""
        line = json.dumps(self.redactor.value(said)) + "\n"
        self.plan.paths.redaction.parent.mkdir(parents=True, exist_ok=True)
        with self.plan.paths.redaction.open("ab", buffering=0) as file:
            file.write(line.encode("ascii"))

    @contextlib.contextmanager
    def workspace(self, attempt: Attempt) -> Iterator[Workspace]:
        """The directories and the evidence of one attempt; the directories are gone afterwards."""
        remove(str(self.plan.paths.logs(*attempt.key)))  # of an attempt that was cut off, and is now made anew
        with _directory(self.exchange) as root, _directory(self.judge_exchange) as apart:
            workspace = Workspace(self, attempt, work=root / "work", collected=apart / "collected", logs=root / "logs")
            for directory in (workspace.work, workspace.collected, workspace.logs):
                directory.mkdir()
            lend(root, self.place)
            lend(apart, self.judge_place)
            yield workspace


@contextlib.contextmanager
def _directory(above: Path) -> Iterator[Path]:
    """A directory of its own, gone afterwards."""
    made = tempfile.mkdtemp(dir=above)
    try:
        yield Path(made)
    finally:
        remove(made)


def lend(directory: Path, place: Place) -> None:
    """Gives a directory, and what it holds by now, to whoever writes in a place; it is removed by this process anyway."""
    if place.owner is not None and place.owner != (os.geteuid(), os.getegid()):
        give(str(directory), uid=place.owner[0], gid=place.owner[1])


@dataclass
class Workspace:
    """One attempt's own directories, and the evidence of what it started.

    Args:
        bench: What it shares with the other attempts.
        attempt: The attempt.
        work: The agent's working directory.
        collected: What a separate judge gets in its place.
        logs: Where the agent writes its logs.
        records: The names of the records of its starts so far.
        evidence: What was seen of each of these starts.
        ended: Whether the last start is known to have left no process behind.
        found: What was scrubbed from what is kept of it.
    """

    bench: Bench
    attempt: Attempt
    work: Path
    collected: Path
    logs: Path
    records: list[str] = field(default_factory=list)
    evidence: list[dict[str, Any]] = field(default_factory=list)
    ended: bool = False
    found: Found = field(default_factory=Found)

    def run(self, place: Place, sandbox: Sandbox, command: Command) -> dict[str, Any] | Failure:
        """Starts a worker and reads what it hands back; its record and what it printed are kept.

        Raises:
            SandboxError: The sandbox failed.
            Interrupted: The run was given up.
        """
        self.ended = False
        outcome = place.run(sandbox, command, keep=self._keep, cancel=self.bench.stop.descriptor)
        who = "judge" if sandbox.role == "judge" else "agent"
        self._keep_output(who, outcome)
        return handed_back(command, outcome)

    def keep_logs(self) -> None:
        """Copies what the agent logged, sanitized, beside the results."""
        into = self.bench.plan.paths.agent_logs(*self.attempt.key)
        scrubbed = self.logs.with_name("logs-scrubbed")
        scrubbed.mkdir()
        remove(str(into))
        into.mkdir(parents=True)
        try:
            # Scrubbed in the scratch, so that nothing in the run's directory ever held a key.
            collect(str(self.logs), ["."], into=str(scrubbed))
            scrub.tree(self.bench.redactor, str(scrubbed), found=self.found)
            collect(str(scrubbed), ["."], into=str(into))
        except (budget.TooMuch, OSError) as error:
            raise SandboxError(f"the logs of the call could not be copied: {error}", cause="collect") from None

    def keep_messages(self, messages: list[Any]) -> None:
        """Keeps the trajectory of the call, from which the keys have been taken; one of an earlier try is removed."""
        path = self.bench.plan.paths.messages(*self.attempt.key)
        if messages:
            write_atomically(path, b"".join(json.dumps(message).encode("ascii") + b"\n" for message in messages))
        else:
            path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def manifest(self) -> Iterator[BinaryIO]:
        """Where the manifest of what was collected is written: it holds names, and these may hold keys."""
        path = self.bench.plan.paths.manifest(*self.attempt.key)
        with (
            written_atomically(path) as file,
            self.bench.redactor.through(file, found=self.found, where=path.name) as scrubbed,
        ):
            yield scrubbed

    def _keep(self, record: Record) -> None:
        path = self.bench.keep_record(record, of=self.attempt.key, found=self.found)
        self.records.append(path.name)
        self.evidence.append(record.evidence(kept_as=path.name))
        self.ended = record.empty

    def report_scrubbed(self) -> None:
        """Leaves a line of what was scrubbed from what is kept of this attempt; none where there was nothing."""
        if self.found:
            task_id, repeat = self.attempt.key
            self.bench.report({"id": task_id, "repeat": repeat, **self.found.as_json()})

    def _keep_output(self, who: str, outcome: Outcome) -> None:
        for name, stream in (("out", outcome.stdout), ("err", outcome.stderr)):
            if stream.total:
                note = f"\n[{stream.dropped} more bytes were not kept]\n".encode() if stream.dropped else b""
                path = self.bench.plan.paths.logs(*self.attempt.key) / f"{who}.{name}"
                kept = self.bench.redactor.data(
                    stream.kept, found=self.found, where=path.name, cut=bool(stream.dropped)
                )
                self.bench.leave(path, kept + note)


@contextlib.contextmanager
def opened(plan: EvalPlan, where: Place | InImage, host: Place, *, stop: Stop | None = None) -> Iterator[Bench]:
    """A bench for one run; its scratch, and the containers it had, are gone afterwards.

    Args:
        plan: What is run.
        where: Where sandboxes are started.
        host: Where a judge on the host is started.
        stop: Says that the run is given up; one of its own unless given.

    Raises:
        PlaceError: The containers of the run cannot be started.
    """
    with contextlib.ExitStack() as ends:
        scratch = ends.enter_context(scratch_directory())
        exchange, judge_exchange = scratch / "task", scratch / "judge"
        exchange.mkdir()
        judge_exchange.mkdir()
        adapter = plan.adapter.put(str(exchange / "adapter"))
        if isinstance(where, InImage):
            places = where.opened(plan, exchange=exchange, judge_exchange=judge_exchange)
            place, judge_place = ends.enter_context(places)
        else:
            place = judge_place = where
        if adapter is not None:
            lend(Path(adapter), place)
        own = stop or ends.enter_context(Stop())
        bench = Bench(plan, place, judge_place, host, scratch, exchange, judge_exchange, adapter, own)
        try:
            yield bench
        finally:
            bench.scrub_shared()


@contextlib.contextmanager
def scratch_directory() -> Iterator[Path]:
    """A directory of this run alone, gone afterwards; those of runs that were killed are removed on the way.

    Whoever lives holds a lock on its own, so a directory that can be locked belongs to nobody any more.
    """
    for left in Path(tempfile.gettempdir()).glob(f"{SCRATCH}*"):
        _remove_abandoned(left)
    scratch, lock = _locked_directory()
    try:
        yield scratch
    finally:
        os.close(lock)
        remove(str(scratch))


def _locked_directory() -> tuple[Path, int]:
    """A new directory and the lock on it; another run that found it without one may have removed it, then once more."""
    while True:
        made = Path(tempfile.mkdtemp(prefix=SCRATCH))
        with contextlib.suppress(FileNotFoundError):
            lock = os.open(made, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if made.exists():
                return made, lock
            os.close(lock)


def _remove_abandoned(directory: Path) -> None:
    try:
        lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:  # another user's, or gone meanwhile
        return
    try:
        if os.fstat(lock).st_uid == os.geteuid():
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove(str(directory))
    except OSError:  # locked: its run lives
        return
    finally:
        os.close(lock)
