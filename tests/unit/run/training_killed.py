"""A training run that is killed at one write after the other, and then goes on: a program of `test_train_killed.py`.

Theory of operation. Whatever changes a file of the run goes through a few functions of `os`, as `tests/e2e/killing.py` has it.
What a kill leaves is what the directory holds at that moment: so one run is made, before each of its changes the directory is
copied, and each copy that differs from every other one is what a killed run left. Beside it is copied what a disk would hold
if the power went at that moment. Then the same run is made once more over each copy, or, because that takes minutes, over each so-manieth.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "e2e")]

import killing  # noqa: E402
from forked import Forked  # noqa: E402

from hermit import sandbox as sandboxes  # noqa: E402
from hermit.config.load import load  # noqa: E402
from hermit.run import train, training  # noqa: E402

# What differs from run to run: how long something took, and when.
TIMES = re.compile(rb'"(wall_s|seconds|api_speed|bytes_out)": [^,}\n]+|\d{8}T\d{6}\.\d+')


@dataclass
class Copied(killing.Counted):
    """The changes below a directory; before each, what it holds and what a disk would hold is copied once.

    Args:
        into: Where the copies are made.
    """

    into: Path = Path()
    listed: dict[int, dict[str, tuple[int, str]]] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)

    def _one(self, halve: Any = None) -> None:
        self.count += 1
        self._copy(self.root, f"{self.count:04d}-kill")
        if halve is not None and b"results.jsonl" in os.readlink(f"/proc/self/fd/{halve.args[0]}").encode():
            self._copy(self.root, f"{self.count:04d}-half", half=halve.args)
        with tempfile.TemporaryDirectory(dir=self.into.parent) as made:
            disk = Path(made, "disk")
            shutil.copytree(self.root / "trees", disk / "trees", symlinks=True) if (self.root / "trees").exists() else 0
            if (self.root / "one").exists():
                self._grow(disk / "one", (self.root / "one").stat().st_ino)
            self._copy(disk, f"{self.count:04d}-power")

    def _copy(self, source: Path, name: str, *, half: tuple[int, bytes] | None = None) -> None:
        state = state_of(source)
        if state in self.seen and half is None:
            return
        self.seen.add(state)
        if source.exists():
            shutil.copytree(source, self.into / name, symlinks=True)
        else:
            (self.into / name).mkdir()
        if half is not None:
            file = Path(os.readlink(f"/proc/self/fd/{half[0]}")).relative_to(source)
            with (self.into / name / file).open("ab") as results:
                results.write(half[1][: len(half[1]) // 2])

    def _flushed(self, descriptor: int) -> None:
        super()._flushed(descriptor)
        path = f"/proc/self/fd/{descriptor}"
        if os.path.isdir(path):
            inode = os.fstat(descriptor).st_ino
            self.listed[inode] = {entry.name: self._listed(entry) for entry in os.scandir(path)}

    def _listed(self, entry: os.DirEntry[str]) -> tuple[int, str]:
        """A name's number, and what it was when the name was flushed: a number is given again to something else."""
        if entry.is_symlink():
            return entry.inode(), os.readlink(entry.path)
        return entry.inode(), "/" if entry.is_dir() else ""

    def _grow(self, directory: Path, inode: int) -> None:
        directory.mkdir(parents=True)
        for name, (inner, kind) in self.listed.get(inode, {}).items():
            if kind == "/":
                self._grow(directory / name, inner)
            elif kind:
                (directory / name).symlink_to(kind)
            else:
                (directory / name).write_bytes(self.contents.get(inner, b""))


def state_of(directory: Path) -> str:
    """What a directory holds, as one word."""
    total = hashlib.sha256()
    for path in sorted(directory.rglob("*")):
        if "sandbox" in path.parts:  # evidence beside the run, which nobody reads again
            continue
        data = os.readlink(path).encode() if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        total.update(f"{path.relative_to(directory)}\0{len(data)}\0".encode() + data)
    return total.hexdigest()


@dataclass(frozen=True)
class Run:
    """The run whose config lies here."""

    root: Path

    @property
    def runs(self) -> Path:
        return self.root / "runs"

    @property
    def one(self) -> Path:
        return self.runs / "one"

    def train(self, in_child: Any = lambda: None) -> None:
        config = load(self.root / "run.yaml", (), environ=dict(os.environ))
        plan = training.training(config, config_file=self.root / "run.yaml")
        train.train(plan, sandboxes.Place(Forked(in_child)), attempts=lambda _: None, show=lambda _: None)

    def copied(self, into: Path) -> int:
        """Makes the run in a fork that copies what it changes; how many changes there were."""
        reader, writer = os.pipe()
        if os.fork() == 0:
            counted = Copied(self.runs, into=into)
            code = 1
            try:
                counted.begin()
                self.train(plain)
                os.write(writer, str(counted.count).encode())
                code = 0
            except BaseException:  # noqa: BLE001 - this copy of the driver must not go on
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        os.close(writer)
        with os.fdopen(reader) as said:
            changes = said.read()
        assert os.wait()[1] == 0
        return int(changes)

    def made(self) -> Counter[str]:
        """How often agent and learner were called for what since this was asked last."""
        file = self.root / "calls"
        lines = file.read_text().splitlines() if file.exists() else []
        file.unlink(missing_ok=True)
        return Counter(lines)

    def due(self, once: Counter[str]) -> Counter[str]:
        """The calls whose results are not on the disk."""
        due = Counter(once)
        parts = {"step_0000/setup": ["setup"], "step_0000": ["bootstrap"], "step_0001": ["step 1"]}
        parts |= {"step_0002": ["step 2", "attempt d"], "final": ["finalize"]}
        for part, calls in parts.items():
            if (self.one / part / "learner" / "answer.json").exists():
                due.subtract(calls)
        for results in self.one.glob("step_000[12]/results.jsonl"):
            for line in results.read_bytes().split(b"\n"):
                with contextlib.suppress(ValueError):
                    due.subtract([f"attempt {json.loads(line)['id']}"])
        return +due

    def came_to(self) -> dict[str, bytes]:
        """What there is at the end, without what differs from run to run."""
        found = {}
        for path in self.one.rglob("*"):
            name = str(path.relative_to(self.one))
            if path.is_file() and not name.startswith("sandbox/"):
                found[name] = TIMES.sub(b"", path.read_bytes())
            elif path.is_symlink() or path.is_dir():
                found[name] = b"" if not path.is_symlink() else os.readlink(path).encode()
        words = ["git", f"--git-dir={self.runs / 'trees' / 'prompt-only'}", "for-each-ref"]
        found["references"] = subprocess.run(words, capture_output=True, check=True).stdout
        return found


def plain() -> None:
    """Puts the functions of `os` back, in a fork that nobody counts."""
    for name, function in killing.REAL.items():
        setattr(os, name, function)


def killed_everywhere(run: Run, copies: Path, *, each: int) -> dict[str, Any]:
    """Goes on from each copy, or from each so-manieth; what was wrong afterwards, and how many there were."""
    changes = run.copied(copies)
    wanted, once = run.came_to(), run.made()
    wrong: list[str] = []
    left = sorted(copies.iterdir())
    for copy in left[::each]:
        if (copy / "one" / "summary.json").exists():
            continue  # it has ended
        shutil.rmtree(run.runs)
        shutil.copytree(copy, run.runs, symlinks=True)
        due = run.due(once)
        try:
            run.train()
        except BaseException as error:  # noqa: BLE001 - it is told
            wrong.append(f"{copy.name}: the run could not go on: {''.join(traceback.format_exception(error))[-1500:]}")
            run.made()
            continue
        came_to, made = run.came_to(), run.made()
        differs = sorted(name for name in {*wanted, *came_to} if wanted.get(name) != came_to.get(name))
        wrong += [f"{copy.name}: {', '.join(differs)}"] if differs else []
        wrong += [f"{copy.name}: called for {dict(made)}, and {dict(due)} was due"] if made != due else []
    return {"changes": changes, "left": len(left), "calls": once, "wrong": wrong}


if __name__ == "__main__":
    place = Path(sys.argv[1])
    (place.parent / "copies").mkdir()
    tempfile.tempdir = str(place.parent / "scratch")
    print(json.dumps(killed_everywhere(Run(place), place.parent / "copies", each=int(sys.argv[2]))))
