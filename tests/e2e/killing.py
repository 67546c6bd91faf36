"""An evaluation that is killed at one write after the other, and then goes on: a program of `test_killed.py`.

Theory of operation. Whatever changes a file of the run goes through one of a few functions of `os`: files of Python are
replaced by those of `_pyio`, which are written in Python and call them. Each is counted; at a chosen one this process is
killed, before it or in the middle of it. `test_killed.py` counts with `strace` too, and so shows that none goes by.

On the way it keeps what a disk would hold if the power went: of a file what it held when it was last flushed, of a directory
the names it had when that was.
"""

from __future__ import annotations

import _pyio
import builtins
import contextlib
import ctypes
import functools
import io
import itertools
import json
import os
import pickle
import shutil
import signal
import sys
import threading
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hermit import sandbox as sandboxes
from hermit.config.load import load
from hermit.run import evaluate
from hermit.run import plan as plans

BY_DESCRIPTOR = ("write", "pwrite", "writev", "ftruncate", "fsync", "fdatasync", "fchmod", "posix_fallocate")
BY_PATH = ("mkdir", "rename", "replace", "link", "symlink", "unlink", "remove", "rmdir", "truncate", "chmod", "mknod")
FLUSHES = ("fsync", "fdatasync")
REAL = {name: getattr(os, name) for name in (*BY_DESCRIPTOR, *BY_PATH, "open")}


PR_SET_CHILD_SUBREAPER = 36


def halve(descriptor: int, data: bytes) -> None:
    """Writes the first half."""
    REAL["write"](descriptor, data[: len(data) // 2])


@dataclass
class Counted:
    """The changes below a directory, of which one is the last.

    Args:
        root: The directory.
        last: The number of the change at which this process is killed; 0 for none.
        half: Whether that change is half made, where it is one that can be.
        left: Where it is left what the disk would hold after a power cut at that moment.
    """

    root: Path
    last: int = 0
    half: bool = False
    left: Path | None = None
    count: int = 0
    writes: list[int] = field(default_factory=list)
    shown: list[Any] = field(default_factory=list)
    contents: dict[int, bytes] = field(default_factory=dict)
    names: dict[int, dict[str, int]] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def begin(self) -> None:
        """From now on this process counts."""
        builtins.open = io.open = _pyio.open
        os.open = self._opening
        for name in BY_DESCRIPTOR:
            setattr(os, name, self._wrapped(name, self._by_descriptor))
        for name in BY_PATH:
            setattr(os, name, self._wrapped(name, self._by_path))

    def _opening(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        with self.lock:
            if flags & (os.O_CREAT | os.O_TRUNC) and self._by_path(path, dir_fd):
                self._one()
            return int(REAL["open"](path, flags, mode, dir_fd=dir_fd))

    def _wrapped(self, name: str, ours: Any) -> Any:
        def call(first: Any, *more: Any, **named: Any) -> Any:
            with self.lock:
                if ours(first, named.get("dir_fd") or named.get("src_dir_fd")):
                    self._one(functools.partial(halve, first, bytes(more[0])) if name == "write" else None)
                result = REAL[name](first, *more, **named)
                if name in FLUSHES:
                    self._flushed(first)
                return result

        return call

    def _one(self, halve: Any = None) -> None:
        self.count += 1
        if halve is not None:
            self.writes.append(self.count)
        if self.count == self.last:
            if self.half:
                halve()
            if self.left is not None:
                descriptor = REAL["open"](self.left, os.O_WRONLY | os.O_CREAT, 0o600)
                top = os.stat(self.root).st_ino
                REAL["write"](descriptor, pickle.dumps((self.shown, self.contents, self.names, top)))
            os.kill(os.getpid(), signal.SIGKILL)

    def _by_descriptor(self, descriptor: int, _: Any) -> bool:
        try:
            return Path(os.readlink(f"/proc/self/fd/{descriptor}")).is_relative_to(self.root)
        except OSError:
            return False

    def _by_path(self, path: Any, at: int | None) -> bool:
        above = "/" if at is None else os.readlink(f"/proc/self/fd/{at}")
        return Path(above, os.fsdecode(path)).is_relative_to(self.root)

    def _flushed(self, descriptor: int) -> None:
        status = os.fstat(descriptor)
        path = f"/proc/self/fd/{descriptor}"
        if os.path.isdir(path):
            self.names[status.st_ino] = {entry.name: entry.inode() for entry in os.scandir(path)}
        else:
            again = REAL["open"](path, os.O_RDONLY)
            self.contents[status.st_ino] = os.pread(again, status.st_size, 0)
            os.close(again)


@dataclass(frozen=True)
class Trial:
    """One task set, evaluated below a directory that holds nothing else.

    Args:
        config: The run's config.
        runs: Where its runs lie.
        calls: Where the agent leaves a line for each call.
    """

    config: Path
    runs: Path
    calls: Path

    @property
    def evaluation(self) -> Path:
        return self.runs / "one" / "eval" / "none"

    def begin(self, counted: Counted | None = None, *, fresh: bool = False, other: bool = False) -> int:
        """Evaluates in a process of its own, the agent or with ``other`` another one; its wait status."""
        pid = os.fork()
        if pid:
            status = os.waitpid(pid, 0)[1]
            with contextlib.suppress(ChildProcessError):  # what it had started ends by itself, a moment later
                while True:
                    os.waitpid(-1, 0)
            return status
        code = 1
        try:
            if counted is not None:
                counted.begin()
            self._evaluate(counted, fresh=fresh, other=other)
            code = 0
        except BaseException:  # noqa: BLE001 - this copy of the driver must not go on
            traceback.print_exc()
        finally:
            if counted is not None and counted.left is not None:
                counted.left.with_suffix(".count").write_text(json.dumps([counted.count, counted.writes]))
            sys.stderr.flush()
            os._exit(code)

    def _evaluate(self, counted: Counted | None, *, fresh: bool, other: bool) -> None:
        settings = ("agent.params.other=true",) if other else ()
        config = load(self.config, settings, environ=dict(os.environ))
        plan = plans.evaluation(config, config_file=self.config, adapter="none")

        def show(progress: evaluate.Progress) -> None:
            if counted is not None and progress.row is not None:
                counted.shown.append((progress.row.id, progress.row.repeat))

        evaluate.evaluate(plan, sandboxes.unconfined("a test"), fresh=fresh, show=show)

    def clear(self) -> None:
        """As if nothing had ever run."""
        shutil.rmtree(self.runs, ignore_errors=True)
        self.runs.mkdir()
        self.calls.write_text("")

    def made(self) -> Counter[str]:
        """How often the agent was called for each task."""
        return Counter(self.calls.read_text().split())

    def rows(self) -> list[dict[str, Any]]:
        """The whole rows of the results."""
        found = []
        try:
            lines = (self.evaluation / "results.jsonl").read_bytes().split(b"\n")
        except FileNotFoundError:
            return []
        for line in lines:
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
        return found

    def came_to(self) -> Any:
        """What a run came to, without what differs from run to run."""
        rows = [
            {
                **row,
                "wall_s": 0,
                "records": len(row["records"]),
                "evidence": [{**start, "record": bool(start["record"])} for start in row["evidence"]],
            }
            for row in self.rows()
        ]
        summary = json.loads((self.evaluation / "summary.json").read_text())
        lock = json.loads((self.evaluation / "lock.json").read_text())
        for record in (self.runs / "one" / "sandbox").iterdir():
            json.loads(record.read_text())
        beside = sorted(entry.name for entry in self.evaluation.iterdir())
        return rows, {**summary, "wall_s": 0}, lock, beside

    def after_a_power_cut(self, left: Path) -> set[tuple[str, int]]:
        """Brings the runs into the state a disk could have; the attempts that had been shown as kept."""
        shown, contents, names, top = pickle.loads(left.read_bytes())  # noqa: S301 - our own
        shutil.rmtree(self.runs)

        def grow(directory: Path, inode: int) -> None:
            directory.mkdir()
            for name, inner in names.get(inode, {}).items():
                if inner in contents:
                    (directory / name).write_bytes(contents[inner])
                elif inner in names or "." not in name:
                    grow(directory / name, inner)
                else:
                    (directory / name).write_bytes(b"")

        grow(self.runs, top)
        return {tuple(key) for key in shown}


def killed_everywhere(trial: Trial, left: Path) -> dict[str, Any]:
    """Kills at each change in turn; what was wrong afterwards, and how many changes there were."""
    wrong: list[str] = []
    trial.clear()
    trial.begin()
    wanted, once = trial.came_to(), trial.made()
    last, seen = 0, []
    for last in itertools.count(1):
        trial.clear()
        if not os.WIFSIGNALED(trial.begin(Counted(trial.runs, last, left=left))):
            break
        wrong += goes_on(trial, wanted, once, name=f"before change {last}")
        kept = trial.after_a_power_cut(left)
        held = [(path, path.read_bytes() if path.is_file() else b"") for path in sorted(trial.runs.rglob("*"))]
        if (held, kept) in seen:
            continue
        seen.append((held, kept))
        trial.calls.write_text("")
        rows = {(row["id"], row["repeat"]) for row in trial.rows()}
        wrong += [f"before change {last} the power went: {key} had been kept, and is gone" for key in kept - rows]
        wrong += goes_on(trial, (*wanted[:3], None), once, name=f"before change {last} the power went")
    for write in json.loads(left.with_suffix(".count").read_text())[1]:
        trial.clear()
        if os.WIFSIGNALED(trial.begin(Counted(trial.runs, write, half=True, left=left))):
            wrong += goes_on(trial, wanted, once, name=f"in change {write}")
    return {"changes": last - 1, "power_cuts": len(seen), "wrong": wrong}


def goes_on(trial: Trial, wanted: Any, once: Counter[str], *, name: str) -> list[str]:
    """What is wrong with the run that goes on from here."""
    before = {(row["id"], row["repeat"]) for row in trial.rows()}
    calls = trial.made()
    status = trial.begin()
    if status != 0:
        return [f"{name}: the run could not go on, status {status}"]
    came_to = trial.came_to()
    if wanted[3] is None:  # evidence beside the rows outlives a kill, and a power cut may take the last of it
        came_to = (*came_to[:3], None)
    wrong = [] if came_to == wanted else [f"{name}: it came to something else: {came_to}"]
    again = trial.made() - calls
    for task in once:
        due = sum(1 for repeat in range(once[task]) if (task, repeat) not in before)
        if again[task] != due:
            wrong.append(f"{name}: the agent was called {again[task]} times for {task}, and {due} results were missing")
    return wrong


def killed_while_starting_over(trial: Trial, left: Path) -> dict[str, Any]:
    """Kills at each change that drops the results of another agent, until an attempt begins; what was wrong afterwards."""
    wrong: list[str] = []
    trial.clear()
    trial.begin()
    wanted, refused = trial.came_to(), 0
    for last in itertools.count(1):
        trial.clear()
        trial.begin(other=True)
        trial.calls.write_text("")
        trial.begin(Counted(trial.runs, last, left=left), fresh=True)
        if trial.made():
            return {"changes": last - 1, "refused": refused, "wrong": wrong}
        if trial.begin() != 0:  # what is left is the other agent's, and is not added to
            refused += 1
            trial.begin(fresh=True)
        if trial.came_to()[:3] != wanted[:3]:
            wrong.append(f"before change {last}: it came to something else: {trial.came_to()}")
    raise AssertionError


def main(arguments: list[str]) -> int:
    """Counts once, or kills everywhere; prints what came of it."""
    mode, root = arguments[0], Path(arguments[1])
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    trial = Trial(root / "set" / "run.yaml", root / "set" / "runs", root / "calls")
    left = root / "left"
    if mode == "count":
        trial.clear()
        status = trial.begin(Counted(trial.runs, left=left))
        print(json.dumps({"status": status, "changes": json.loads(left.with_suffix(".count").read_text())[0]}))
    else:
        print(json.dumps((killed_while_starting_over if mode == "fresh" else killed_everywhere)(trial, left)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
