"""`hermit eval`: every attempt of a plan, on a pool, each kept as it ends."""

from __future__ import annotations

import contextlib
import json
import os
import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from hermit import sandbox as sandboxes
from hermit.errors import ExitCode, HermitError, Interrupted
from hermit.run import bench as benches
from hermit.run import claim, trial
from hermit.run.capacity import Admission, declared_mb
from hermit.run.paths import write_atomically
from hermit.run.report import Tally, resume
from hermit.run.results import Results, put_in_order
from hermit.signals import GivenUp

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from hermit.run.bench import Bench, Borrowed, Stop
    from hermit.run.place import InImage
    from hermit.run.plan import Attempt, EvalPlan
    from hermit.run.report import Row
    from hermit.sandbox import Place


@dataclass(frozen=True)
class Progress:
    """Where an evaluation stands, for whoever shows it.

    Args:
        total: How many attempts there are.
        resumed: How many of them an earlier run had made.
        tally: What the rows so far come to.
        row: The row that has just been kept, ``None`` at the beginning and with a note.
        note: Something that is said once, on the way.
    """

    total: int
    resumed: int
    tally: Tally
    row: Row | None = None
    note: str = ""


@dataclass
class Evaluation:
    """What is being made, and what there is of it.

    Args:
        plan: What to do.
        done: The rows of an earlier run.
        show: Is told how it goes on.
    """

    plan: EvalPlan
    done: list[dict[str, Any]]
    show: Callable[[Progress], None]
    began: float = field(default_factory=time.monotonic)
    tally: Tally = field(default_factory=Tally)
    keys: list[tuple[str, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for row in self.done:
            self._count(row)
        self.earlier_s = _earlier_wall_s(self.plan) if self.done else 0.0

    def _count(self, row: dict[str, Any]) -> None:
        self.tally.add(row)
        self.keys.append((row["id"], row["repeat"]))

    def ahead(self) -> list[Attempt]:
        """The attempts that have not been made."""
        made = set(self.keys)
        return [attempt for attempt in self.plan.attempts if attempt.key not in made]

    def tell(self, row: Row | None = None, note: str = "") -> None:
        """Shows where it stands."""
        self.show(Progress(len(self.plan.attempts), len(self.done), self.tally, row, note))

    def keep(self, rows: Iterator[Row], stop: Stop | Borrowed) -> None:
        """Keeps each row as it comes; where the disk is full, those that come until everything has been given up.

        Raises:
            HermitError: They could not all be kept.
            Interrupted: The run was given up.
        """
        full: HermitError | None = None
        with Results(self.plan.paths.results) as results:
            try:
                for row in rows:
                    document = row.as_json()
                    results.add(document)
                    self._count(document)
                    self.tell(row)
                    try:
                        results.hold()
                    except HermitError as error:
                        full = error
                        stop.set()
            except Interrupted:
                if full is None:
                    raise
        if full is not None:
            raise full

    @classmethod
    def resumed(cls, plan: EvalPlan, show: Callable[[Progress], None]) -> Self:
        """What there is of a plan's attempts."""
        return cls(plan, resume(plan.paths.results, wanted=[attempt.key for attempt in plan.attempts]), show)

    def conclude(self) -> dict[str, Any]:
        """Leaves the summary, and the rows in the order of the split."""
        plan = self.plan
        summary = self.tally.summary(
            adapter=plan.paths.selector,
            commit=plan.adapter.commit,
            tasks=len(plan.tasks),
            repeats=plan.config.eval.repeats,
            wall_s=self.earlier_s + time.monotonic() - self.began,
        )
        write_atomically(plan.paths.summary, json.dumps(summary, indent=1).encode() + b"\n")
        put_in_order(plan.paths.results, rows=self.keys, order=[attempt.key for attempt in plan.attempts])
        return summary


def evaluate(
    plan: EvalPlan,
    place: Place | InImage,
    *,
    fresh: bool,
    show: Callable[[Progress], None],
    leave: Callable[[], None] | None = None,
) -> dict[str, Any]:
    """Makes every attempt that has not been made, and returns the summary.

    Args:
        plan: What to do.
        place: Where sandboxes are started.
        fresh: Start over instead of going on where an earlier run stopped.
        show: Is told after each attempt, in this thread; of a wait for memory in another.
        leave: Ends this process, where it is given up a second time; without a word unless given.

    Raises:
        ConfigError: The run's directory holds results of something else, or another process works in it.
        HermitError: What was made cannot be kept, for want of room.
        Interrupted: Somebody gave the run up; every finished attempt is kept.
    """
    with claimed(plan, fresh=fresh), benches.Stop() as stop, GivenUp(stop.set, leave or _leave) as given_up:
        run = Evaluation.resumed(plan, show)
        run.tell()
        finished = finished_rows(
            plan, place, run.ahead(), stop=stop, given_up=given_up, tell=lambda words: run.tell(note=words)
        )
        try:
            with closing(finished) as rows:
                run.keep(rows, stop)
        except BaseException:
            with contextlib.suppress(HermitError):  # what went wrong first is what is told
                run.conclude()
            raise
        return run.conclude()


def finished_rows(
    plan: EvalPlan,
    place: Place | InImage,
    ahead: list[Attempt],
    *,
    stop: Stop | None = None,
    given_up: GivenUp | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Generator[Row]:
    """The rows of these attempts, as they end.

    When the run is given up its sandboxes are killed, and what had ended is still handed out; so too when an attempt
    fails in a way that no row can say.

    Args:
        plan: What to do.
        place: Where sandboxes are started.
        ahead: The attempts.
        stop: Says that the run is given up; one of its own unless given.
        given_up: What signals do; what they do meanwhile to a run alone unless given.
        tell: Is told once that attempts wait for memory.

    Raises:
        Interrupted: The run was given up.
    """
    host = sandboxes.unconfined("the judge runs on the host")
    with benches.opened(plan, place, host, stop=stop) as bench, given_up_by_signal(bench, given_up):
        admission = Admission(each_mb=declared_mb(plan.config), stop=bench.stop.descriptor, tell=tell)

        yield from rows_at(bench, ahead, admission)


def rows_at(bench: Bench, ahead: list[Attempt], admission: Admission) -> Generator[Row]:
    """The same at a bench that is open and stays open; it is given up where somebody stops taking rows before the last."""

    def admitted(attempt: Attempt) -> Row:
        with admission.admitted():
            return trial.attempt(bench, attempt)

    pool = ThreadPoolExecutor(bench.plan.config.agent.concurrency, thread_name_prefix="attempt")
    try:
        yield from _rows(lambda attempt: pool.submit(admitted, attempt), bench, ahead)
    except BaseException:
        bench.stop.set()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def given_up_by_signal(bench: Bench, given_up: GivenUp | None = None) -> Iterator[None]:
    """From here on signals give the bench up, and throw nothing at whatever this thread is doing.

    Args:
        bench: What is given up.
        given_up: What answers signals, also afterwards; only meanwhile unless given.
    """
    with contextlib.nullcontext(given_up) if given_up else GivenUp(bench.stop.set, _leave) as answers:
        answers.in_order = True
        yield


def _leave() -> None:
    os._exit(ExitCode.INTERRUPTED)


def _rows(submit: Callable[[Attempt], Future[Row]], bench: Bench, ahead: list[Attempt]) -> Iterator[Row]:
    """A few attempts are handed to the pool at a time: a run of a million does not wait in memory."""
    waiting = iter(ahead)
    running: set[Future[Row]] = set()
    failed: list[BaseException] = []
    interrupted = False
    while True:
        while len(running) < 2 * bench.plan.config.agent.concurrency and (attempt := next(waiting, None)) is not None:
            running.add(submit(attempt))
        if not running:
            break
        ended, running = wait(running, return_when=FIRST_COMPLETED)
        for future in ended:
            error = future.exception()
            if error is None:
                yield future.result()
                continue
            waiting = iter(())
            if isinstance(error, Interrupted):
                interrupted = True
            else:
                failed.append(error)
                bench.stop.set()
    if failed:
        raise failed[0]
    if interrupted:
        raise Interrupted("the run was given up; every finished attempt is kept", cure="run the same command to go on")


@contextmanager
def claimed(plan: EvalPlan, *, fresh: bool) -> Iterator[None]:
    """The run's directory, held by this process alone, with results of this very plan or none.

    Raises:
        ConfigError: Another process holds it, or it holds results of something else.
    """
    paths = plan.paths
    with claim.held(paths.evaluation, paths.records):
        if fresh:
            claim.empty(paths.evaluation, first=paths.results, last=paths.lock)
        claim.match(paths.lock, plan.lock, made=paths.results)
        yield


def _earlier_wall_s(plan: EvalPlan) -> float:
    try:
        return float(json.loads(plan.paths.summary.read_bytes())["wall_s"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0.0
