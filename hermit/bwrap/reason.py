"""Which bound ended a command, from what was counted and measured, never from an exit code alone. Pure.

Looked for in the order in which one bound hides another: who was struck down did not exit, and what ran into the clock
was not ended by what it was refused before. A command that succeeded was ended by nothing, whatever it met on its way.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hermit.bwrap.cgroup import Counted
from hermit.bwrap.watchdog import Crowd
from hermit.domain.limits import Ended

if TYPE_CHECKING:
    from hermit.bwrap.watchdog import Strike
    from hermit.domain.command import Outcome
    from hermit.domain.limits import Limits


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What was seen of a sandbox beside its outcome.

    Args:
        counted: What its control groups counted.
        alarmed: Whether the alarm of its group went off, and it was killed for that.
        strike: Why the watchdog ended it, if it did.
        full: Its scratch directories that had no room left when the command ended.
    """

    counted: Counted = field(default_factory=Counted)
    alarmed: bool = False
    strike: Strike | Crowd | None = None
    full: tuple[str, ...] = ()

    @property
    def out_of_memory(self) -> bool:
        """Whether the kernel had no memory for it."""
        return self.alarmed or self.counted.oom_kills > 0


def reason(outcome: Outcome, limits: Limits, evidence: Evidence) -> Ended:
    """The bound that ended the command; an empty reason where none did, or none can be shown to have."""
    if evidence.strike is not None:
        return Ended("pids" if isinstance(evidence.strike, Crowd) else "memory", str(evidence.strike))
    if outcome.timed_out:
        return Ended("wall", f"stopped after {outcome.wall_s:.1f} s{_met(evidence)}")
    if outcome.code == 0:
        return Ended()
    return _signalled(outcome, limits, evidence) or _refused(outcome, limits, evidence) or Ended()


def _signalled(outcome: Outcome, limits: Limits, evidence: Evidence) -> Ended | None:
    """A bound that the kernel enforces by a signal to the command itself."""
    if outcome.signal == signal.SIGXFSZ and limits.file_mb is not None:
        return Ended("file size", f"SIGXFSZ: a file would have grown past {limits.file_mb} MiB")
    if limits.cpu_s is None or evidence.out_of_memory:
        return None
    spent = outcome.cpu_s
    if outcome.signal == signal.SIGXCPU:
        return Ended("cpu", f"SIGXCPU at {limits.cpu_s} s of processor time")
    if outcome.signal == signal.SIGKILL and spent is not None and spent >= limits.cpu_s:
        return Ended("cpu", f"killed after {spent:.2f} s of processor time, of {limits.cpu_s}")
    return None


def _refused(outcome: Outcome, limits: Limits, evidence: Evidence) -> Ended | None:
    """A bound that was met by a process of the command, and that somebody counted or measured."""
    counted = evidence.counted
    if evidence.out_of_memory:
        words = f"{_killed(counted)}, peak {counted.peak_mb or 0:.0f} MiB"
        if counted.at_bound:
            return Ended("memory", f"{words}, bound {limits.memory_mb}")
        return Ended("machine memory", f"{words}, below the bound of the sandbox")
    largest = outcome.max_rss_mb
    if limits.memory_mb is not None and largest is not None and largest >= limits.memory_mb:
        # Faster than the watchdog looks: the bound of each process, a little wider, has refused it more.
        return Ended("memory", f"one process held {largest:.0f} MiB, bound {limits.memory_mb}")
    if counted.forks_refused:
        return Ended("pids", _forks(counted))
    if evidence.full:
        return Ended("disk", f"no room left in {', '.join(evidence.full)} ({limits.tmp_mb} MiB each)")
    return None


def _met(evidence: Evidence) -> str:
    """What a command met before something else ended it."""
    counted = evidence.counted
    words = [_killed(counted)] if evidence.out_of_memory else []
    words += [_forks(counted)] if counted.forks_refused else []
    return "".join(f"; {word}" for word in words)


def _killed(counted: Counted) -> str:
    # The alarm comes before the kernel has killed anything.
    return (
        f"out of memory, {counted.oom_kills} processes killed by the kernel" if counted.oom_kills else "out of memory"
    )


def _forks(counted: Counted) -> str:
    return f"{counted.forks_refused} times the kernel refused to start a process"
