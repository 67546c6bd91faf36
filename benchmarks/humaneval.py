"""How fast 164 HumanEval solutions are judged, two at a time, each in a fresh sandbox, against no sandbox at all.

Three ways of judging the same canonical solutions, all of them in one way and then in the next, several times over:

* ``bare``: a plain process each, which runs the solution and its tests in one interpreter;
* ``bubblewrap``: the same process each, in raw ``bwrap`` with the mounts of our judge sandbox;
* ``hermit``: what ``hermit eval`` does for each attempt once the agent has ended: collect the answer, start the judge's
  sandbox with its relay and its checks, run the example's judge there, read its word, keep the record. The answers have
  been left before, as the programs of the other two have.

``attempt`` is a whole attempt of ``hermit eval``: the agent's sandbox too. Prints the medians of the rates and of the ratios to ``bare``.

Every way works in memory (``/dev/shm``): some file systems make files many times slower for a while after others were
removed, and what was measured before would then count here.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from hermit import sandbox as sandboxes
from hermit.bwrap import argv, system
from hermit.bwrap import python as shown_python
from hermit.config.load import load
from hermit.domain.bind import Bind
from hermit.domain.sandbox import Sandbox
from hermit.domain.trial import RunOutput
from hermit.run import bench as benches
from hermit.run import plan as plans
from hermit.run import trial

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from typing import Any

    from hermit.run.bench import Bench
    from hermit.run.plan import Attempt

    # What makes a thing to work on from an attempt, and the work.
    Way = tuple[Callable[[Attempt], AbstractContextManager[Any]], Callable[[Any], None]]

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "humaneval"
MEMORY = "/dev/shm"
WORKERS = 2


def program(attempt: Attempt) -> str:
    """The canonical solution with its tests, as one program."""
    name = attempt.task.id.replace("/", "_")
    tests = (EXAMPLE / "data" / "tests" / f"{name}.py").read_text()
    solution = (EXAMPLE / "data" / "reference" / f"{name}.py").read_text()
    return f"{tests}\n{solution}\ncheck({attempt.task.row['entry_point']})\n"


def bare(directory: Path, attempt: Attempt) -> None:
    """One plain process."""
    subprocess.run([sys.executable, str(directory / f"{attempt.task.line}.py")], check=True, capture_output=True)


class RawBubblewrap:
    """Raw bubblewrap, with the mounts of a judge sandbox."""

    def __init__(self, directory: Path) -> None:
        python = shown_python.current()
        self.sandbox = Sandbox(role="judge", framework=True, binds=(Bind(str(directory), "/judged", writable=True),))
        plan = argv.operations(
            self.sandbox,
            system=system.operations(self.sandbox.network),
            python=shown_python.operations(python, framework=True),
        )
        self.plan = [operation for operation in plan if not isinstance(operation, argv.File)]

    def run(self, attempt: Attempt) -> None:
        """One process in it."""
        reader, writer = os.pipe()
        try:
            options = argv.options(self.sandbox, self.plan, status=writer, texts={})
            command = ["bwrap", *options, "--", sys.executable, f"/judged/{attempt.task.line}.py"]
            subprocess.run(command, check=True, capture_output=True, pass_fds=[writer])
        finally:
            os.close(reader)
            os.close(writer)


@contextlib.contextmanager
def answered(bench: Bench, attempt: Attempt) -> Iterator[trial.Trial]:
    """An attempt whose agent has ended and left the canonical solution."""
    with bench.workspace(attempt) as workspace:
        name = attempt.task.id.replace("/", "_")
        answer = (EXAMPLE / "data" / "reference" / f"{name}.py").read_text()
        (workspace.work / "solution.py").write_text(answer)
        yield trial.Trial(bench, workspace)


def judged(one: trial.Trial) -> None:
    """The judge's half of one attempt of `hermit eval`."""
    one.collect()
    result = one.judge("separate", one.task_sandbox(), RunOutput(output=""))
    assert getattr(result, "score", None) == 1.0, result


def attempted(bench: Bench, attempt: Attempt) -> None:
    """One whole attempt of `hermit eval`."""
    row = trial.attempt(bench, attempt)
    assert row.score == 1.0, row


def rate(way: Way, attempts: tuple[Attempt, ...]) -> float:
    """Attempts a second on two workers; what each works on has been made before."""
    prepare, work = way
    with contextlib.ExitStack() as made:
        given = [made.enter_context(prepare(attempt)) for attempt in attempts]
        began = time.perf_counter()
        with ThreadPoolExecutor(WORKERS) as pool:
            list(pool.map(work, given))
        return len(attempts) / (time.perf_counter() - began)


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tasks", type=int, default=164)
    given = parser.parse_args()
    tempfile.tempdir = MEMORY
    with tempfile.TemporaryDirectory(prefix="hermit-bench-") as root:
        directory = Path(root)
        file = EXAMPLE / "run.yaml"
        config = load(file, [f"trainer.output_dir={directory / 'runs'}"], environ=os.environ)
        plan = plans.evaluation(config, config_file=file, adapter="none")
        attempts = plan.attempts[: given.tasks]
        for attempt in attempts:
            (directory / f"{attempt.task.line}.py").write_text(program(attempt))
        place = sandboxes.preflight()
        with benches.opened(plan, place, sandboxes.unconfined("not used")) as bench:
            ways: dict[str, Way] = {
                "bare": (contextlib.nullcontext, lambda attempt: bare(directory, attempt)),
                "bubblewrap": (contextlib.nullcontext, RawBubblewrap(directory).run),
                "hermit": (lambda attempt: answered(bench, attempt), judged),
                "attempt": (contextlib.nullcontext, lambda attempt: attempted(bench, attempt)),
            }
            for way in ways.values():  # the first time of each does not count
                rate(way, attempts[:1])
            rates = [{name: rate(way, attempts) for name, way in ways.items()} for _ in range(given.rounds)]
    host_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    words = []
    for name in ways:
        median = statistics.median(measured[name] for measured in rates)
        ratio = statistics.median(measured[name] / measured["bare"] for measured in rates)
        words.append(f"{name} {median:.1f}/s ({ratio:.2f} x bare)")
    print(
        f"humaneval, {len(attempts)} problems, {WORKERS} at a time: {', '.join(words)}; host process {host_mb:.0f} MB"
    )


if __name__ == "__main__":
    main()
