"""What a start in the image costs through the launcher, against this machine's own sandboxes, `docker exec` and `docker run`.

Two lines for starts, of `true` and of `python3 -c pass`: medians of interleaved starts, one at a time. One line for the
real job: 164 HumanEval solutions judged, two at a time, all of them in one way and then in the next, several times over:

* ``local``: the judge's half of an attempt of `hermit eval` in a sandbox of this machine (see `humaneval.py`);
* ``image``: the same through the launcher, in the judge's container of the run;
* ``exec``: the solution and its tests as one program, in a container of the same options that is there already;
* ``run``: the same program in a container of its own each; only some of them, for they are slow.

The last two only run the program: they collect nothing, check nothing and keep no record. Prints medians, and the medians
of the ratios within each round. Needs a container engine and the image (`make image`), and no other busy containers: all of
a machine's share one group's time, which a program of the machine does not.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import secrets
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from humaneval import EXAMPLE, answered, judged, program, rate

from hermit import sandbox as sandboxes
from hermit.config.load import load
from hermit.domain.bind import Bind
from hermit.domain.command import Command
from hermit.domain.sandbox import Sandbox
from hermit.oci import argv, container, engine
from hermit.oci.launcher import Launcher
from hermit.oci.life import Shape
from hermit.run import bench as benches
from hermit.run import place as places
from hermit.run import plan as plans

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from humaneval import Way

    from hermit.run.plan import Attempt

PROGRAMS = (("true",), ("python3", "-c", "pass"))
SANDBOX = Sandbox(role="bench", framework=True)
# One start in so many is made in a container of its own; of the problems, so many are.
RUN_EVERY, RUN_PROBLEMS = 5, 10


def ours(place: sandboxes.Place, words: tuple[str, ...]) -> None:
    """One start of a sandbox."""
    outcome = place.run(SANDBOX, Command(argv=words), keep=lambda _: None)
    assert outcome.code == 0, outcome


def quietly(*words: str) -> None:
    """One command of the engine."""
    subprocess.run(words, check=True, capture_output=True)


def spelled(found: engine.Engine, shown: str, *words: str, name: str = "") -> list[str]:
    """A closed container with a directory shown, and this program in it."""
    mounts = (Bind(shown, shown),)
    made = argv.Container(image="hermit", entrypoint=words[0], command=words[1:], mounts=mounts, name=name)
    return argv.run_arguments(made, program=found.program)


@contextlib.contextmanager
def idle(found: engine.Engine, shown: str) -> Iterator[str]:
    """The name of a container that is there and does nothing."""
    name = f"hermit-bench-{secrets.token_hex(4)}"
    command = spelled(found, shown, "sleep", "3600", name=name)
    command.insert(2, "--detach")
    quietly(*command)
    try:
        yield name
    finally:
        container.remove(found, name)


def milliseconds(work: Callable[[], None]) -> float:
    """How long it takes once."""
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def starts(found: engine.Engine, image: str, *, count: int) -> None:
    """Measures and prints both lines of starts."""
    with tempfile.TemporaryDirectory(prefix="hermit-bench-") as exchange, contextlib.ExitStack() as ends:
        Path(exchange).chmod(0o755)
        name = ends.enter_context(idle(found, exchange))
        launcher = ends.enter_context(Launcher(found, Shape(image=image, name="hermit", exchange=exchange)))
        local, inside = sandboxes.preflight(), sandboxes.Place(launcher, launcher.record, launcher.owner)
        for words in PROGRAMS:
            own = spelled(found, exchange, *words)
            ways: dict[str, Callable[[], None]] = {
                "local": lambda words=words: ours(local, words),  # type: ignore[misc]
                "image": lambda words=words: ours(inside, words),  # type: ignore[misc]
                "exec": lambda words=words: quietly(found.program, "exec", name, *words),  # type: ignore[misc]
                "run": lambda own=own: quietly(*own),  # type: ignore[misc]
            }
            times: dict[str, list[float]] = {way: [] for way in ways}
            for turn in range(-1, count):
                for way, work in ways.items():
                    if way != "run" or turn % RUN_EVERY == 0:
                        taken = milliseconds(work)
                        if turn >= 0:  # the first time of each does not count
                            times[way].append(taken)
            medians = {way: statistics.median(values) for way, values in times.items()}
            told = ", ".join(f"{way} {value:.1f} ms" for way, value in medians.items())
            image_ms = medians["image"]
            print(
                f"start of {' '.join(words)}: {told}; image {image_ms / medians['local']:.2f} x local, "
                f"exec {medians['exec'] / image_ms:.1f} x image, run {medians['run'] / image_ms:.1f} x image"
            )


def judgements(found: engine.Engine, choice: places.Choice, *, rounds: int, tasks: int) -> None:
    """Measures and prints the line of judgements."""
    with tempfile.TemporaryDirectory(prefix="hermit-bench-") as root, contextlib.ExitStack() as ends:
        directory = Path(root)
        directory.chmod(0o755)
        file = EXAMPLE / "run.yaml"
        plan = plans.evaluation(
            load(file, [f"trainer.output_dir={root}/runs"], environ=os.environ), config_file=file, adapter="none"
        )
        attempts = plan.attempts[:tasks]
        for attempt in attempts:
            (directory / f"{attempt.task.line}.py").write_text(program(attempt))
        host = sandboxes.unconfined("not used")
        here = ends.enter_context(benches.opened(plan, sandboxes.preflight(), host))
        there = ends.enter_context(benches.opened(plan, places.in_images(choice), host))
        name = ends.enter_context(idle(found, root))

        def in_idle(attempt: Attempt) -> None:
            quietly(found.program, "exec", name, "python3", f"{root}/{attempt.task.line}.py")

        def in_own(attempt: Attempt) -> None:
            quietly(*spelled(found, root, "python3", f"{root}/{attempt.task.line}.py"))

        ways: dict[str, Way] = {
            "local": (lambda attempt: answered(here, attempt), judged),
            "image": (lambda attempt: answered(there, attempt), judged),
            "exec": (contextlib.nullcontext, in_idle),
            "run": (contextlib.nullcontext, in_own),
        }
        for way in ways.values():  # the first time of each does not count
            rate(way, attempts[:1])
        rates = [
            {each: rate(way, attempts[:RUN_PROBLEMS] if each == "run" else attempts) for each, way in ways.items()}
            for _ in range(rounds)
        ]
    told = ", ".join(f"{way} {statistics.median(measured[way] for measured in rates):.1f}/s" for way in ways)
    ratios = ", ".join(
        f"{statistics.median(measured['image'] / measured[way] for measured in rates):.2f} x {way}"
        for way in ("local", "exec", "run")
    )
    print(f"judging {len(attempts)} HumanEval problems, two at a time: {told}; image {ratios}")


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--starts", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tasks", type=int, default=164)
    given = parser.parse_args()
    config = load(EXAMPLE / "run.yaml", [], environ=os.environ)
    choice = places.choose(config, runtime="image", environ=os.environ)
    assert choice.engine is not None
    starts(choice.engine, choice.image_id, count=given.starts)
    judgements(choice.engine, choice, rounds=given.rounds, tasks=given.tasks)


if __name__ == "__main__":
    main()
