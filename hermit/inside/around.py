"""What the relay tries where the sandbox around this one lends its ``/proc``: it shows others, and does them no harm."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` itself imports enum, at a cost
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

Seen = tuple[bool, str]
Mount = tuple[str, bytes, bytes, bool, bytes]

# The machine's own namespace of processes, by the number that the kernel always gives it.
FIRST_PID_NAMESPACE = "pid:[4026531836]"
# Ways to a process of somebody else: how each file of it is opened; the links; and a signal that does nothing.
READ, WRITE = os.O_RDONLY, os.O_WRONLY
LINKED = ("root", "cwd", "exe", "fd/0")
REACHES = {"environ": READ, "mem": READ, "oom_score_adj": WRITE, "signal": 0, **dict.fromkeys(LINKED, 0)}
MOST_TRIED = 16


def plan(
    orders: dict[str, Any], status: dict[str, str], mounted: list[Mount]
) -> list[tuple[str, Callable[..., Seen], tuple[Any, ...]]]:
    """The checks of a lent ``/proc`` and what each is given."""
    numbers = status["NSpid"].split()
    return [
        ("own processes", alone, ()),
        ("lent /proc", lent, (numbers, mounted, orders)),
        ("processes around it out of reach", out_of_reach, (numbers[0],)),
    ]


def alone() -> Seen:
    """There is nobody else to send a signal to: asked with one that does nothing, where ``/proc`` shows others too."""
    try:
        os.kill(-1, 0)
    except ProcessLookupError:
        return True, "nobody else"
    except PermissionError:
        pass
    return False, "another process can be signalled"


def lent(numbers: list[str], mounted: list[Mount], orders: dict[str, Any]) -> Seen:
    """``/proc`` is the one of the sandbox around this one and cannot be written: not the machine's, not a stranger's.

    It knows this process by two numbers, its own and the one that the sandbox around it has for it.
    """
    own = str(os.getpid())
    whole = [(root, kind) for target, root, kind, *_ in mounted if target == "/proc"] == [(b"/", b"proc")]
    opened = [target for target, _, _, changed, _ in mounted if changed and (target + "/").startswith("/proc/")]
    machines = orders["namespaces"].get("pid") == FIRST_PID_NAMESPACE
    theirs = whole and os.stat("/proc").st_dev == orders["lent_proc"] and not machines
    known = numbers[1:] == [own] and os.readlink("/proc/self") == numbers[0]
    seen = f"{'of' if theirs else 'not of'} the sandbox around, shows process {own} as {', '.join(numbers)}"
    return theirs and known and not opened, ", ".join([seen, *(f"{target} can be written" for target in opened)])


def out_of_reach(own: str) -> Seen:
    """Of the other processes in a lent ``/proc`` nothing can be opened, followed, changed or signalled."""
    others = [name for name in os.listdir("/proc") if name.isdigit() and name != own]
    found = [f"{pid}: {way}" for pid in others[:MOST_TRIED] for way in REACHES if reached(f"/proc/{pid}", way)]
    return not found, ", ".join(found) or f"{len(others)} visible"


def reached(process: str, way: str) -> bool:
    """Whether one way to a process is open; one that has gone meanwhile is none."""
    try:
        if way == "signal":
            descriptor = os.open(process, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                _signal.pidfd_send_signal(descriptor, 0)
            finally:
                os.close(descriptor)
        elif way in LINKED:
            os.readlink(f"{process}/{way}")
        else:
            os.close(os.open(f"{process}/{way}", REACHES[way] | os.O_CLOEXEC))
    except OSError:
        return False
    return True
