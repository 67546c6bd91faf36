"""What a sanitized copy costs, against `cp -a`: ten thousand small files, and one file of a gigabyte.

Interleaved rounds, each into a fresh directory on one file system; a line for each shows the medians and their ratios to
`cp -a`, by the clock and by the processor time of everything that took part, which says more where the machine is busy.
The ways: a copy by descriptor on the host, as a separate judge's is; the same with its manifest, for which every byte is
digested too, those of a large file in a thread beside the one that copies, whose own time comes third; and a copy that is
made inside a sandbox and streamed out, start of the sandbox included.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from hermit import sandbox as sandboxes
from hermit.handoff.carry import carry
from hermit.handoff.collect import collect
from hermit.handoff.remove import remove

if TYPE_CHECKING:
    from collections.abc import Callable

FILES, PER_DIRECTORY, SMALL = 10_000, 100, 2048
BIG = 1_000_000_000
PIECE = 1 << 20


def make_small(tree: Path) -> None:
    """Ten thousand files, a hundred in each directory."""
    for number in range(FILES // PER_DIRECTORY):
        directory = tree / f"part-{number:03}"
        directory.mkdir()
        for file in range(PER_DIRECTORY):
            (directory / f"file-{file:03}.txt").write_bytes(os.urandom(SMALL))


def make_big(tree: Path) -> None:
    """One file that no compression makes smaller."""
    with (tree / "big").open("wb") as file:
        for _ in range(BIG // PIECE):
            file.write(os.urandom(PIECE))


def by_cp(tree: str, into: str) -> None:
    """As everybody does."""
    subprocess.run(["cp", "-a", f"{tree}/.", into], check=True)


def by_descriptor(tree: str, into: str) -> None:
    """On the host, without a manifest."""
    collect(tree, ["."], into=into)


def with_manifest(tree: str, into: str) -> None:
    """On the host, with a manifest."""
    with tempfile.TemporaryFile() as manifest:
        collect(tree, ["."], into=into, manifest=manifest)


def ways() -> dict[str, Callable[[str, str], None]]:
    """Every way there is here."""
    place = sandboxes.preflight()

    def from_inside(tree: str, into: str) -> None:
        carry(place, tree, into=into, keep=lambda _: None)

    return {"cp -a": by_cp, "hermit": by_descriptor, "with manifest": with_manifest, "from inside": from_inside}


def used(who: int) -> float:
    """Seconds of a processor that were used so far."""
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def clocks() -> tuple[float, float, float]:
    """The time, what all threads and ended children have used, and the same without this process's other threads."""
    children = used(resource.RUSAGE_CHILDREN)
    return time.perf_counter(), used(resource.RUSAGE_SELF) + children, time.thread_time() + children


def measure(
    make: Callable[[Path], None], by: dict[str, Callable[[str, str], None]], *, rounds: int, directory: str
) -> dict[str, list[float]]:
    """The medians of each way's clocks, in seconds; the first round does not count."""
    with tempfile.TemporaryDirectory(prefix="hermit-bench-", dir=directory) as root:
        tree = Path(root, "tree")
        tree.mkdir()
        make(tree)
        times: dict[str, list[tuple[float, ...]]] = {}
        for number in range(rounds + 1):
            for name, way in by.items():
                into = Path(root, f"copy-{number}-{name.replace(' ', '-')}")
                into.mkdir()
                began = clocks()
                way(str(tree), str(into))
                took = tuple(now - then for now, then in zip(clocks(), began, strict=True))
                if number:
                    times.setdefault(name, []).append(took)
                if (
                    make is make_big
                ):  # the others stay to the end: many deletions slow the next copy where there is no journal
                    remove(str(into))
        return {name: [statistics.median(one) for one in zip(*taken, strict=True)] for name, taken in times.items()}


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--directory", default=tempfile.gettempdir(), help="where the copies are made")
    given = parser.parse_args()
    kind = subprocess.run(
        ["stat", "--file-system", "--format=%T", given.directory], capture_output=True, text=True, check=True
    ).stdout.strip()
    by = ways()
    for words, make in ((f"{FILES} files of {SMALL} bytes", make_small), ("one file of 1 GB", make_big)):
        medians = measure(make, by, rounds=given.rounds, directory=given.directory)
        print(f"{words} on {kind}, {given.rounds} times each, as rates: cp -a is 1", flush=True)
        for name, taken in medians.items():
            wall, total, thread = (ours / one for ours, one in zip(medians["cp -a"], taken, strict=True))
            print(
                f"  {name:14} {wall:.2f} by the clock ({taken[0]:.2f} s), {total:.2f} by processor time ({taken[1]:.2f} s),"
                f" {thread:.2f} by that of the copying thread ({taken[2]:.2f} s)",
                flush=True,
            )


if __name__ == "__main__":
    main()
