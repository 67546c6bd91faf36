"""Whether this machine's memory holds one attempt more: attempts start only while what they declare fits.

Theory of operation. An attempt that has just started has not yet taken what it declares, so what the machine has available
now says too much. Two things have to hold: what all attempts that run declare together is no more than was available when
none of them ran, and what is available now holds the newcomer, for others use this machine too. One attempt may always
run: a config that declares more than there is gets its result or its cause, and never waits for ever.

What a config does not declare is not counted: ``agent.concurrency`` bounds such attempts, and each sandbox has its own bound.
"""

from __future__ import annotations

import contextlib
import select
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from hermit.domain.limits import MIB
from hermit.errors import Interrupted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hermit.config.schema import RunConfig

# Others may leave the machine at any time, and nobody tells.
LOOK_EVERY_S = 0.5
KIB = 1024
# More than any machine has: how version 1 says that a group has no bound.
NO_BOUND = 1 << 60
# For both versions of control groups: the files of the bounds, of what is held, and the name of what the kernel gives up.
VERSIONS = {
    "memory": (("memory.limit_in_bytes",), "memory.usage_in_bytes", "total_inactive_file"),
    "": (("memory.max", "memory.high"), "memory.current", "inactive_file"),
}


def declared_mb(config: RunConfig) -> int | None:
    """What one attempt declares: the agent and its judge run one after the other, so the larger of the two."""
    given = (config.environment.resources.memory_mb, config.judge.resources.memory_mb)
    return max((each for each in given if each is not None), default=None)


def available_mb(root: Path = Path("/")) -> int:
    """MiB that can be taken now: what the machine has, within the bound of every control group this process is in.

    Args:
        root: Where the kernel shows them.
    """
    lines = (line.split() for line in _lines(root / "proc/meminfo"))
    sizes = {words[0]: int(words[1]) * KIB for words in lines if len(words) > 1 and words[1].isdigit()}
    free = sizes.get("MemAvailable:", sizes.get("MemFree:", 0))
    return min([free, *_left_by_groups(root)]) // MIB


def _left_by_groups(root: Path) -> Iterator[int]:
    """Bytes that each group which bounds memory has left, from this process's own up to the first."""
    for line in _lines(root / "proc/thread-self/cgroup"):
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            if controller in VERSIONS:
                top = root / "sys/fs/cgroup" / controller
                group = top / path.lstrip("/")
                for directory in (group, *group.parents):
                    if directory.is_relative_to(top):
                        yield from _left(directory, *VERSIONS[controller])


def _left(group: Path, bounds: tuple[str, ...], held: str, given_up: str) -> Iterator[int]:
    sizes = [int(line) for name in bounds for line in _lines(group / name) if line.isdigit()]
    bound = min(sizes, default=NO_BOUND)
    if bound < NO_BOUND:
        kept = sum(int(line) for line in _lines(group / held))
        cache = [line.split() for line in _lines(group / "memory.stat")]
        yield max(0, bound - kept + sum(int(words[1]) for words in cache if words[0] == given_up))


def _lines(path: Path) -> list[str]:
    """The lines of a file of the kernel's; none where it shows no such file."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


class Admission:
    """Lets attempts in while their memory fits; the others wait.

    Args:
        each_mb: What one attempt declares, ``None`` where nothing is declared and nothing waits.
        stop: A descriptor that becomes readable when the run is given up.
        tell: Is told once, by the first attempt that has to wait, in its thread.
        measure: What is available, in MiB.
    """

    def __init__(
        self,
        *,
        each_mb: int | None,
        stop: int,
        tell: Callable[[str], None],
        measure: Callable[[], int] = available_mb,
    ) -> None:
        self._each_mb = each_mb
        self._stop = stop
        self._tell = tell
        self._measure = measure
        self._changed = threading.Condition()
        self._running = 0
        self._alone_mb = 0
        self._told = False

    @contextlib.contextmanager
    def admitted(self) -> Iterator[None]:
        """Waits until there is memory for one attempt more, and holds it meanwhile.

        Raises:
            Interrupted: The run was given up while this attempt waited.
        """
        if self._each_mb is None:
            yield
            return
        self._wait(self._each_mb)
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify()

    def _wait(self, each_mb: int) -> None:
        with self._changed:
            while not self._fits(each_mb):
                if self._given_up():
                    raise Interrupted("the run was given up before this attempt began")
                self._changed.wait(LOOK_EVERY_S)
            self._running += 1

    def _given_up(self) -> bool:
        stop = select.poll()
        stop.register(self._stop, select.POLLIN)
        return bool(stop.poll(0))

    def _fits(self, each_mb: int) -> bool:
        now_mb = self._measure()
        if not self._running:
            self._alone_mb = now_mb
            return True
        fits = (self._running + 1) * each_mb <= self._alone_mb and each_mb <= now_mb
        if not fits and not self._told:
            self._told = True
            self._tell(
                f"attempts wait for memory: each declares {each_mb} MiB, {self._running} of them run,"
                f" and {now_mb} MiB are available ({self._alone_mb} when none ran)"
            )
        return fits
