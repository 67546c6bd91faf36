"""What the start of a Python program costs in our sandbox, against raw bubblewrap with the same mounts and a bare process.

Medians of interleaved starts. Prints a line with the ratios for each of: a plain sandbox; one with forty more binds;
one with the allowlist proxy, against the same raw bubblewrap without any; and a sandbox inside a sandbox, where a
program that stays in an outer one, ours or raw bubblewrap, starts an inner one of the same kind.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from hermit import sandbox as sandboxes
from hermit.bwrap import argv, system
from hermit.bwrap import python as shown_python
from hermit.domain.command import Command
from hermit.domain.sandbox import Sandbox
from hermit.streams import Streams

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SANDBOX = Sandbox(role="bench", framework=True)
WITH_PROXY = replace(SANDBOX, allowed_hosts=("api.example.com",))
BINDS = 40
OUTER = Sandbox(role="bench", framework=True, read=(os.path.abspath(__file__),))


def mounts(sandbox: Sandbox) -> tuple[argv.Operation, ...]:
    """What our sandbox mounts."""
    python = shown_python.current()
    plan = argv.operations(
        sandbox,
        system=system.operations(sandbox.network),
        python=shown_python.operations(python, framework=True),
        kernel=system.kernel(system.ground()),
    )
    return tuple(operation for operation in plan if not isinstance(operation, argv.Handed))


def with_binds(directory: str) -> Sandbox:
    """A sandbox that shows forty directories more."""
    paths = [os.path.join(directory, str(number)) for number in range(BINDS)]
    for path in paths:
        os.mkdir(path)
    return replace(SANDBOX, read=tuple(paths))


def raw(plan: tuple[argv.Operation, ...], program: tuple[str, ...]) -> None:
    """One start of raw bubblewrap."""
    with options(plan) as (words, status):
        subprocess.run(["bwrap", *words, "--", *program], check=True, pass_fds=[status])


@contextlib.contextmanager
def options(plan: tuple[argv.Operation, ...]) -> Iterator[tuple[tuple[str, ...], int]]:
    """Bubblewrap's options for a plan, and the descriptor it reports on."""
    reader, writer = os.pipe()
    try:
        yield argv.options(SANDBOX, plan, status=writer, texts={}, shared=system.ground().shared), writer
    finally:
        os.close(reader)
        os.close(writer)


def ours(place: sandboxes.Place, program: tuple[str, ...], sandbox: Sandbox = SANDBOX) -> None:
    """One start of our sandbox, with relay, checks and record."""
    outcome = place.run(sandbox, Command(argv=program), keep=lambda _: None)
    assert outcome.code == 0, outcome


def milliseconds(work: Callable[[], None]) -> float:
    """How long it takes once."""
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def stay(kind: str, program: tuple[str, ...]) -> None:
    """The program in an outer sandbox: for each line it reads it starts an inner one, and says how long that took."""
    if kind == "hermit":
        place = sandboxes.preflight()

        def work() -> None:
            ours(place, program)
    else:
        plan = mounts(SANDBOX)

        def work() -> None:
            raw(plan, program)

    for _ in sys.stdin:
        print(milliseconds(work), flush=True)


@contextlib.contextmanager
def nested(kind: str, executable: str) -> Iterator[Callable[[], float]]:
    """Something that says how long the start of an inner sandbox takes, asked of a program in an outer one."""
    there, here = (os.pipe() for _ in range(2))
    words = (executable, OUTER.read[0], "--stay", kind)
    with contextlib.ExitStack() as ends:
        # Who runs the outer sandbox closes its ends of both pipes, so that its end is seen.
        run = outer_of_ours if kind == "hermit" else outer_of_bubblewrap
        thread = threading.Thread(target=run, args=(words, there[0], here[1]))
        thread.start()
        ends.callback(thread.join)
        questions = ends.enter_context(open(there[1], "w", encoding="ascii"))
        answers = ends.enter_context(open(here[0], encoding="ascii"))

        def ask() -> float:
            questions.write("\n")
            questions.flush()
            return float(answers.readline())

        yield ask


def outer_of_ours(words: tuple[str, ...], stdin: int, stdout: int) -> None:
    """A sandbox of ours around a program, to its end."""
    try:
        streams = Streams(stdin=stdin, stdout=stdout)
        sandboxes.preflight().run(OUTER, Command(argv=words), keep=lambda _: None, streams=streams)
    finally:
        os.close(stdin)
        os.close(stdout)


def outer_of_bubblewrap(words: tuple[str, ...], stdin: int, stdout: int) -> None:
    """Raw bubblewrap around a program, to its end; it finds Hermit, for it has to know what to mount."""
    found = os.path.dirname(shown_python.current().package)
    try:
        with options(mounts(OUTER)) as (spelled, status):
            whole = ["bwrap", *spelled, "--setenv", "PYTHONPATH", found, "--", *words]
            subprocess.run(whole, stdin=stdin, stdout=stdout, pass_fds=[status], check=True)
    finally:
        os.close(stdin)
        os.close(stdout)


def interleaved(ways: dict[str, Callable[[], float]], starts: int) -> dict[str, float]:
    """The median of each way, in milliseconds; the first time of each does not count."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for ask in ways.values():
        ask()
    for _ in range(starts):
        for name, ask in ways.items():
            times[name].append(ask())
    return {name: statistics.median(values) for name, values in times.items()}


def line(medians: dict[str, float]) -> str:
    """The medians in words, each with its ratio to raw bubblewrap."""
    return ", ".join(
        f"{name} {value:.1f} ms ({value / medians['bubblewrap']:.2f} x bubblewrap)" for name, value in medians.items()
    )


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--starts", type=int, default=60)
    parser.add_argument("--stay", choices=("hermit", "bubblewrap"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    program = (shown_python.current().executable, "-c", "pass")
    if given.stay:
        stay(given.stay, program)
        return
    place = sandboxes.preflight()

    def against_raw(sandbox: Sandbox) -> dict[str, Callable[[], float]]:
        plan = mounts(sandbox)
        return {
            "bubblewrap": lambda: milliseconds(lambda: raw(plan, program)),
            "hermit": lambda: milliseconds(lambda: ours(place, program, sandbox)),
        }

    def bare() -> None:
        subprocess.run(program, check=True)

    with tempfile.TemporaryDirectory(prefix="hermit-bench-") as directory:
        kinds = {
            "start of python3 -c pass": {"bare": lambda: milliseconds(bare), **against_raw(SANDBOX)},
            f"the same with {BINDS} more binds": against_raw(with_binds(directory)),
            "the same with the allowlist proxy": {
                **against_raw(SANDBOX),
                "hermit": lambda: milliseconds(lambda: ours(place, program, WITH_PROXY)),
            },
        }
        for name, ways in kinds.items():
            print(f"{name}, {given.starts} times each: {line(interleaved(ways, given.starts))}")
    with nested("bubblewrap", program[0]) as raw_in_raw, nested("hermit", program[0]) as ours_in_ours:
        medians = interleaved({"bubblewrap": raw_in_raw, "hermit": ours_in_ours}, given.starts)
    print(f"nested, a sandbox inside a sandbox of its own kind, {given.starts} times each: {line(medians)}")


if __name__ == "__main__":
    main()
