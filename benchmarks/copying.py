"""What a sanitized copy costs, against `cp -a`: ten thousand small files, and one file of a gigabyte.

Interleaved rounds, each into a fresh directory on one file system; a line for each shows the medians and their ratios to
`cp -a`. The ways: a copy by descriptor on the host, as a separate judge's is; the same with its manifest, for which every
byte is digested too; and a copy that is made inside a sandbox and streamed out, start of the sandbox included.
"""

from __future__ import annotations

import argparse
import os
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


def measure(
    make: Callable[[Path], None], by: dict[str, Callable[[str, str], None]], *, rounds: int, directory: str
) -> dict[str, float]:
    """The median of each way, in seconds; the first round does not count."""
    with tempfile.TemporaryDirectory(prefix="hermit-bench-", dir=directory) as root:
        tree = Path(root, "tree")
        tree.mkdir()
        make(tree)
        times: dict[str, list[float]] = {}
        for number in range(rounds + 1):
            for name, way in by.items():
                into = Path(root, f"copy-{number}-{name.replace(' ', '-')}")
                into.mkdir()
                began = time.perf_counter()
                way(str(tree), str(into))
                took = time.perf_counter() - began
                if number:
                    times.setdefault(name, []).append(took)
                if (
                    make is make_big
                ):  # the others stay to the end: many deletions slow the next copy where there is no journal
                    remove(str(into))
        return {name: statistics.median(taken) for name, taken in times.items()}


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
        line = ", ".join(
            f"{name} {taken:.2f} s ({medians['cp -a'] / taken:.2f} x cp -a)" for name, taken in medians.items()
        )
        print(f"{words} on {kind}, {given.rounds} times each: {line}", flush=True)


if __name__ == "__main__":
    main()
