"""What the start of a Python program costs in our sandbox, against raw bubblewrap with the same mounts and a bare process.

Medians of interleaved starts, in one process. Prints one line with the ratios.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import time
from typing import TYPE_CHECKING

from hermit import sandbox as sandboxes
from hermit.bwrap import argv, system
from hermit.bwrap import python as shown_python
from hermit.domain.command import Command
from hermit.domain.sandbox import Sandbox

if TYPE_CHECKING:
    from collections.abc import Callable

SANDBOX = Sandbox(role="bench", framework=True)


def mounts() -> tuple[argv.Operation, ...]:
    """What our sandbox mounts."""
    python = shown_python.current()
    plan = argv.operations(
        SANDBOX,
        system=system.operations(SANDBOX.network),
        python=shown_python.operations(python, framework=True),
    )
    return tuple(operation for operation in plan if not isinstance(operation, argv.File))


def raw(plan: tuple[argv.Operation, ...], program: tuple[str, ...]) -> None:
    """One start of raw bubblewrap."""
    reader, writer = os.pipe()
    try:
        options = argv.options(SANDBOX, plan, status=writer, texts={})
        subprocess.run(["bwrap", *options, "--", *program], check=True, pass_fds=[writer])
    finally:
        os.close(reader)
        os.close(writer)


def ours(place: sandboxes.Place, program: tuple[str, ...]) -> None:
    """One start of our sandbox, with relay, checks and record."""
    outcome = place.run(SANDBOX, Command(argv=program), keep=lambda _: None)
    assert outcome.code == 0, outcome


def milliseconds(work: Callable[[], None]) -> float:
    """How long it takes once."""
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--starts", type=int, default=60)
    given = parser.parse_args()
    place, plan = sandboxes.preflight(), mounts()
    program = (shown_python.current().executable, "-c", "pass")
    ways: dict[str, Callable[[], None]] = {
        "bare": lambda: subprocess.run(program, check=True) and None,
        "bubblewrap": lambda: raw(plan, program),
        "hermit": lambda: ours(place, program),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    for work in ways.values():
        work()
    for _ in range(given.starts):
        for name, work in ways.items():
            times[name].append(milliseconds(work))
    medians = {name: statistics.median(values) for name, values in times.items()}
    words = [
        f"{name} {value:.1f} ms ({value / medians['bubblewrap']:.2f} x bubblewrap)" for name, value in medians.items()
    ]
    print(f"start of python3 -c pass, {given.starts} times each: {', '.join(words)}")


if __name__ == "__main__":
    main()
