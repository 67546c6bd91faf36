"""`hermit eval`: every attempt of a plan, on a pool, each kept as it ends."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import threading
import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hermit import sandbox as sandboxes
from hermit.errors import ConfigError, Interrupted
from hermit.handoff.remove import remove
from hermit.run import bench as benches
from hermit.run import trial
from hermit.run.paths import write_atomically
from hermit.run.report import Results, Tally, resume

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from hermit.run.bench import Bench
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
        row: The row that has just been kept, ``None`` at the beginning.
    """

    total: int
    resumed: int
    tally: Tally
    row: Row | None = None


def evaluate(
    plan: EvalPlan, place: Place | InImage, *, fresh: bool, show: Callable[[Progress], None]
) -> dict[str, Any]:
    """Makes every attempt that has not been made, and returns the summary.

    Args:
        plan: What to do.
        place: Where sandboxes are started.
        fresh: Start over instead of going on where an earlier run stopped.
        show: Is told after each attempt, in this thread.

    Raises:
        ConfigError: The run's directory holds results of something else, or another process works in it.
        Interrupted: Somebody pressed Ctrl-C; every finished attempt is kept.
    """
    began = time.monotonic()
    with claimed(plan, fresh=fresh):
        done = resume(plan.paths.results, wanted=[attempt.key for attempt in plan.attempts])
        keys = {(row["id"], row["repeat"]) for row in done}
        ahead = [attempt for attempt in plan.attempts if attempt.key not in keys]
        tally = Tally()
        for row in done:
            tally.add(row)
        show(Progress(len(plan.attempts), len(done), tally))
        earlier_s = _earlier_wall_s(plan) if done else 0.0
        try:
            with Results(plan.paths.results) as results, closing(finished_rows(plan, place, ahead)) as rows:
                for finished in rows:
                    document = finished.as_json()
                    results.add(document)
                    tally.add(document)
                    show(Progress(len(plan.attempts), len(done), tally, finished))
        finally:
            summary = tally.summary(
                adapter=plan.paths.selector,
                commit=plan.adapter.commit,
                tasks=len(plan.tasks),
                repeats=plan.config.eval.repeats,
                wall_s=earlier_s + time.monotonic() - began,
            )
            write_atomically(plan.paths.summary, json.dumps(summary, indent=1).encode() + b"\n")
        return summary


def finished_rows(plan: EvalPlan, place: Place | InImage, ahead: list[Attempt]) -> Generator[Row]:
    """The rows of these attempts, as they end.

    Ctrl-C and TERM give up what runs: the sandboxes are killed, what had ended is still handed out.

    Raises:
        Interrupted: The run was given up.
    """
    host = sandboxes.unconfined("the judge runs on the host")
    with benches.opened(plan, place, host) as bench, given_up_by_signal(bench):
        pool = ThreadPoolExecutor(plan.config.agent.concurrency, thread_name_prefix="attempt")
        try:
            yield from _rows(pool, bench, ahead)
        finally:
            bench.stop.set()
            pool.shutdown(cancel_futures=True)


def _rows(pool: ThreadPoolExecutor, bench: Bench, ahead: list[Attempt]) -> Iterator[Row]:
    """A few attempts are handed to the pool at a time: a run of a million does not wait in memory."""
    waiting = iter(ahead)
    running: set[Future[Row]] = set()
    interrupted: Interrupted | None = None
    while True:
        while len(running) < 2 * bench.plan.config.agent.concurrency and (attempt := next(waiting, None)) is not None:
            running.add(pool.submit(trial.attempt, bench, attempt))
        if not running:
            break
        ended, running = wait(running, return_when=FIRST_COMPLETED)
        for future in ended:
            try:
                yield future.result()
            except Interrupted as error:
                interrupted = error
                waiting = iter(())
    if interrupted is not None:
        raise Interrupted("the run was given up; every finished attempt is kept", cure="run the same command to go on")


@contextmanager
def given_up_by_signal(bench: Bench) -> Iterator[None]:
    """The first Ctrl-C or TERM gives the bench up; a second one does what it would have done without us.

    Nothing is thrown at whatever this thread is doing: the sandboxes end, and the run ends because they do.
    """
    if threading.current_thread() is not threading.main_thread():  # only the main thread gets signals
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def give_up(number: int, _: object) -> None:
        signal.signal(number, before[signal.Signals(number)])
        bench.stop.set()

    for number in before:
        signal.signal(number, give_up)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def claimed(plan: EvalPlan, *, fresh: bool) -> Iterator[None]:
    """The run's directory, held by this process alone, with results of this very plan or none.

    Raises:
        ConfigError: Another process holds it, or it holds results of something else.
    """
    directory = plan.paths.evaluation
    _create(directory)
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
        if fresh:
            _empty(directory)
        _match_lock(plan)
        yield
    finally:
        os.close(lock)


def _create(directory: Any) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"it cannot be created: {error.strerror}", where=str(directory), cure="set trainer.output_dir elsewhere"
        ) from None


def _empty(directory: Any) -> None:
    for entry in directory.iterdir():
        remove(str(entry)) if entry.is_dir() and not entry.is_symlink() else entry.unlink()


def _match_lock(plan: EvalPlan) -> None:
    path = plan.paths.lock
    if not path.exists():
        write_atomically(path, json.dumps(plan.lock, indent=1).encode() + b"\n")
        return
    try:
        held = dict(json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError) as error:
        raise ConfigError(f"it cannot be read: {error}", where=str(path), cure="use --fresh") from None
    if held.get("digest") == plan.lock["digest"]:
        return
    changed = [
        f"{part}.{key}"
        for part in ("settings", "contents")
        for key in sorted({*held.get(part, {}), *plan.lock[part]})
        if held.get(part, {}).get(key) != plan.lock[part].get(key)
    ]
    raise ConfigError(
        f"this run holds results of something else: {', '.join(changed) or 'an older layout'} changed",
        where=str(plan.paths.evaluation),
        cure="use --fresh to start over, or give the run another trainer.run_name",
    )


def _earlier_wall_s(plan: EvalPlan) -> float:
    try:
        return float(json.loads(plan.paths.summary.read_bytes())["wall_s"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0.0
