"""Switches each protection off in turn, and shows which test notices: every one must (`make mutants`).

Theory of operation. The table ``mutants.toml`` names each protection, the text that makes it and what stands there
when it is off. The tree is copied once; every mutant gets a copy of that copy with one text exchanged, and its tests run
there with that copy's ``hermit``. A test that fails has noticed, if it passes in the copy without a change.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from hermit.inside import family
from hermit.proc import capture

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).resolve().parent.parent
TABLE = Path(__file__).with_name("mutants.toml")
DATA = "examples/humaneval/data"
# Tests that need longer than this to notice a missing protection cannot be told from tests that hang.
MOST_S = 90.0
# Of a test that fails, said at once: the summary at the end is lost where a session breaks.
FAILED = re.compile(r"(tests/.+?) (?:FAILED|ERROR)\b")
NO_TESTS_FAILED, TESTS_FAILED = 0, 1


class Verdict(Enum):
    """What came of one mutant."""

    NOTICED = "noticed by"
    MISSED = "NOT NOTICED"
    BROKEN = "ERROR"


@dataclass(frozen=True)
class Mutant:
    """One protection and how it is switched off.

    Args:
        name: The protection in plain words.
        file: The file that holds it, from the root of the tree.
        old: The text that makes it; it stands in the file exactly once.
        new: What stands there when it is off.
        tests: The arguments of pytest that are expected to notice.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


@dataclass
class Trees:
    """Where the copies of the tree lie.

    Args:
        home: The directory of all of them.
        clean: The copy without a change.
    """

    home: Path
    clean: Path = field(init=False)
    _passing: dict[str, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.clean = self.home / "clean"
        for name in tracked():
            target = self.clean / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target, follow_symlinks=False)
        if (ROOT / DATA).is_dir():
            (self.clean / DATA).symlink_to(ROOT / DATA)

    def mutated(self, mutant: Mutant, *, number: int) -> Path:
        """A copy with the protection off."""
        tree = self.home / str(number)
        shutil.copytree(self.clean, tree, symlinks=True)
        path = tree / mutant.file
        path.write_text(path.read_text(encoding="utf-8").replace(mutant.old, mutant.new), encoding="utf-8")
        return tree

    def passes(self, test: str) -> bool:
        """Whether a test passes with every protection on; one that fails anyway notices nothing."""
        if test not in self._passing:
            try:
                code, failed, _ = pytest(self.clean, [test], timeout_s=MOST_S)
            except TimeoutError:
                code, failed = TESTS_FAILED, [test]
            self._passing[test] = code in (NO_TESTS_FAILED, TESTS_FAILED) and not failed
        return self._passing[test]


def tracked() -> list[str]:
    """Every file of the tree that git knows or would take, and that is there."""
    listed = capture(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"], timeout_s=30
    )
    names = [os.fsdecode(name) for name in listed.stdout.split(b"\0") if name]
    return [name for name in dict.fromkeys(names) if (ROOT / name).is_file()]


def mutants() -> Iterator[Mutant]:
    """The table: for each file its tests, and rows of name, old text, new text and tests of the row's own."""
    for file, section in tomllib.loads(TABLE.read_text(encoding="utf-8")).items():
        for name, old, new, *own in section["mutants"]:
            yield Mutant(name, file, old, new, tuple(shlex.split(own[0] if own else section["tests"])))


def unfit(mutant: Mutant, tree: Path) -> str:
    """Why a mutant cannot be made; empty where it can."""
    path = tree / mutant.file
    if not path.is_file():
        return f"there is no {mutant.file}"
    found = path.read_text(encoding="utf-8").count(mutant.old)
    return "" if found == 1 else f"{mutant.old!r} stands {found} times in {mutant.file}: correct {TABLE.name}"


def pytest(tree: Path, tests: Sequence[str], *, timeout_s: float) -> tuple[int, list[str], str]:
    """The exit code of these tests in this tree, the tests that failed, and the last line that was written.

    Raises:
        TimeoutError: They did not end in time.
    """
    scratch = tempfile.mkdtemp(prefix="t", dir=tree.parent)  # short: a socket's path has 108 bytes
    # A missing bubblewrap would skip the tests that could notice.
    env = {**os.environ, "PYTHONPATH": str(tree), "HERMIT_TEST_NEEDS": "bwrap"}
    # In the tree, for the directory it is started in comes first on the path of every `python -m`.
    argv = ["env", f"--chdir={tree}", sys.executable, "-m", "pytest", "-v", "--tb=line", "-p", "no:cacheprovider"]
    try:
        ran = capture([*argv, f"--basetemp={scratch}", *tests], timeout_s=timeout_s, env=env)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    lines = ran.stdout.decode(errors="replace").splitlines()
    failed = [found[1] for line in lines if (found := FAILED.match(line))]
    words = [line for line in lines if line.strip()]
    return ran.code, failed, words[-1].strip("= ") if words else ran.last_words


def tried(trees: Trees, mutant: Mutant, *, number: int) -> tuple[Verdict, str]:
    """Whether the tests of one mutant notice it, and which one did."""
    if reason := unfit(mutant, trees.clean):
        return Verdict.BROKEN, reason
    tree = trees.mutated(mutant, number=number)
    try:
        code, failed, last = pytest(tree, ["-x", *mutant.tests], timeout_s=MOST_S)
    except TimeoutError:
        return Verdict.MISSED, f"no test had failed after {MOST_S:g} s"
    finally:
        shutil.rmtree(tree, ignore_errors=True)
    if code == TESTS_FAILED and failed:
        if trees.passes(failed[0]):
            return Verdict.NOTICED, failed[0]
        return Verdict.BROKEN, f"{failed[0]} fails with the protection on, too"
    # Without a failed test, 1 means that something was left behind: maybe by the mutant that is tried beside it.
    if code in (NO_TESTS_FAILED, TESTS_FAILED):
        return Verdict.MISSED, last
    return Verdict.BROKEN, f"pytest ended with {code}: {last}"


def is_tested(tree: Path) -> bool:
    """Whether ``hermit`` comes from this tree, as the tests import it."""
    told = capture(
        ["env", f"--chdir={tree}", sys.executable, "-c", "import hermit; print(hermit.__file__)"],
        timeout_s=30,
        env={**os.environ, "PYTHONPATH": str(tree)},
    )
    return told.stdout.decode().startswith(f"{tree}/")


def try_all(chosen: Sequence[Mutant], *, workers: int) -> int:
    """Tries these mutants, a line each in their order; 1 where one was not noticed or could not be made."""
    counts = dict.fromkeys(Verdict, 0)
    with tempfile.TemporaryDirectory(prefix="mutants-") as home:
        trees = Trees(Path(home))
        if not is_tested(trees.clean):
            print("ERROR: the tests would not try the copy of the tree, but another `hermit`")
            return 1
        with ThreadPoolExecutor(workers) as pool:
            ended = [pool.submit(tried, trees, mutant, number=number) for number, mutant in enumerate(chosen)]
            try:
                for mutant, future in zip(chosen, ended, strict=True):
                    verdict, words = future.result()
                    counts[verdict] += 1
                    print(f"{mutant.file}: {mutant.name}: {verdict.value} {words}", flush=True)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                family.signal_all(9)
                raise
    print(", ".join(f"{count} {verdict.name.lower()}" for verdict, count in counts.items()))
    return 0 if chosen and counts[Verdict.NOTICED] == len(chosen) else 1


def main(arguments: Sequence[str]) -> int:
    """Tries the mutants; 1 where one was not noticed or could not be made."""
    parser = argparse.ArgumentParser(prog="mutants.py", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", metavar="NAME_PART", help="only protections whose name or file has this")
    parser.add_argument("--list", action="store_true", help="print the protections and try nothing")
    parser.add_argument("-n", type=int, default=2, metavar="WORKERS", help="how many are tried at once")
    options = parser.parse_args(arguments)
    chosen = [mutant for mutant in mutants() if options.only in f"{mutant.file} {mutant.name}"]
    if options.list:
        print("\n".join(f"{mutant.file}: {mutant.name}" for mutant in chosen))
        return 0
    family.adopt()  # a sandbox without one of its protections may leave processes: they are ended here
    try:
        return try_all(chosen, workers=options.n)
    finally:
        family.end_all()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
