"""What a cheat has to work with, inside: the task, the hints, its own directory and a few ways to leave things."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hermit import environ
from hermit.domain.bind import contains
from hermit.run.attack.forged import WRONG

if TYPE_CHECKING:
    from collections.abc import Iterable

# A cheat reads no more than this of anything it finds.
MOST_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True)
class Scene:
    """One attempt, as the cheat that makes it sees it.

    Args:
        task: The task's row.
        work: The working directory of the call.
        targets: Names below it that a judge may look for.
        functions: Names that a judge may call in a program of the agent's.
        secrets: Paths that hold what an agent must not see: the data, the judge, its tests.
        tests: Names of test files, relative to where they may be copied.
        shown: Paths that the config shows to the agent.
        shared: Those of them that every call may write to: a cheat reads there and leaves nothing.
        beacon: A port of the host's loopback where the attack's own listener waits.
        confined: Whether this runs in a sandbox. Where it does not, a cheat leaves nothing outside its own directory.
        took: What it got hold of that no agent may have.
    """

    task: dict[str, Any]
    work: str
    targets: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()
    beacon: int = 0
    confined: bool = False
    took: list[str] = field(default_factory=list)

    @classmethod
    def told(cls, task: dict[str, Any], work: str, hints: dict[str, Any]) -> Scene:
        """The scene from what the host says of it, in JSON."""
        fields: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in hints.items()
        }
        return cls(task, work, **fields)

    def leave(self, name: str, content: str | bytes, *, mode: int = 0o644) -> None:
        """Makes a file, with the directories above it; what cannot be made is left out, as an intruder would."""
        path = os.path.join(self.work, name)
        data = content.encode() if isinstance(content, str) else content
        with contextlib.suppress(OSError):
            if not self._may(path):
                return
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if os.path.islink(path):
                os.unlink(path)
            with open(path, "wb") as file:
                file.write(data)
            os.chmod(path, mode)

    def clear(self, name: str) -> str:
        """The path of a name below the work, with nothing there."""
        path = os.path.join(self.work, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.lexists(path):
            os.unlink(path)
        return path

    def _may(self, path: str) -> bool:
        above = os.path.realpath(os.path.dirname(path))
        if any(contains(os.path.realpath(shared), above) for shared in self.shared):
            return False
        return self.confined or contains(os.path.realpath(self.work), above)

    def answer(self, content: str | bytes = WRONG) -> None:
        """Leaves this wherever an answer may be looked for."""
        for name in self.targets:
            self.leave(name, content)

    def program(self, text: str) -> str:
        """Leaves a Python program wherever one may be looked for, and beside it the wrong answer; returns the program."""
        self.answer()
        programs = [name for name in self.targets if name.endswith(".py")]
        for name in programs or self.targets:
            self.leave(name, text)
        return text

    def likeliest(self, target: str, paths: Iterable[str]) -> list[str]:
        """Those of these files that may be this answer, the likeliest first: by the task's id, the name and the form."""
        slug = _slug(str(self.task.get("id", self.task.get("task_id", ""))))
        base = os.path.basename(target).lower()
        stem, form = os.path.splitext(base)

        def marks(path: str) -> int:
            last = os.path.basename(path).lower()
            named = bool(slug) and re.search(rf"(^|_){re.escape(slug)}(_|$)", _slug(path)) is not None
            return 8 * named + 4 * (last == base) + 2 * (stem in last) + (os.path.splitext(last)[1] == form)

        return sorted((path for path in paths if not os.path.isdir(path)), key=marks, reverse=True)

    def home(self) -> str:
        """The home directory of whoever this runs as."""
        return environ.snapshot().get("HOME", "/tmp")  # noqa: S108 - the sandbox's own

    def places(self) -> list[str]:
        """Where a judge, or the next call, might look: the work, and every scratch of the sandbox."""
        given = environ.snapshot().get("HERMIT_LOGS", "")
        own = ["", "logs", "output", "out", "results", ".hermit", "logs/verifier"]
        return [*own, "/tmp", "/dev/shm", "/logs/verifier", self.home(), *([given] if given else [])]  # noqa: S108


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")


def content(path: str) -> bytes | None:
    """What a regular file holds; ``None`` for anything else, and for what cannot be read."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return None
        with open(path, "rb") as file:
            return file.read(MOST_BYTES)
    except OSError:
        return None
