"""The relay: the first thing that runs in a sandbox, and the last to leave it.

Theory of operation. The relay is process 1 of the sandbox; its code and its orders come on a descriptor, and it works in
four steps:

1. It tries to break out, from inside, before the command exists (``checks``). One failed check and it says so and
   leaves; the command never starts.
2. It forks. The child sets the limits on itself, takes its descriptors and becomes the command (``command``).
3. It waits for its children, and reaps every orphan of the command: it is the sandbox's init, and without a sandbox a
   *subreaper*, so whatever the command leaves behind becomes its child. A thread listens to the host, which may ask it
   to TERM or KILL them, or to pass a signal of the caller's on to the command.
4. When the command has ended it kills what is left, waits until it has no child, and reports the end.

It talks to the host over one socket, a line for each event, which no other process has: the child closes it, and the
relay is not dumpable, so its descriptors cannot be opened through ``/proc`` either. Whatever the command sends to it, a
KILL included, the kernel drops: only the host can end an init, and with it the whole sandbox. Who dies first: the
command, then the relay, then bubblewrap; if the host dies, all of them at once. Orders come from the host and are
trusted; what the relay says is text the host reads with care.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` itself imports enum, at a cost
import _thread
import os

import checks
import command
import family
import forward
import limits
import network

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

REFUSED = 71  # any code would do: the host goes by the report


class Report:
    """The relay's end of the socket to the host."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def say(self, *events: tuple[str, ...]) -> None:
        """Sends events at once, so that the host wakes once: a line for each, tabs between its words."""
        lines = ["\t".join(word.replace("\t", " ").replace("\n", " ") for word in words) for words in events]
        data = "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")
        while data:
            data = data[os.write(self.descriptor, data) :]


def listen(descriptor: int, child: int) -> None:
    """Does what the host asks: T to TERM the command's processes, K to KILL them; so too when the host is gone.

    S, and the number of a signal in the byte after it, passes that signal on to the command.
    """
    while True:
        order = os.read(descriptor, 1)
        if order == b"T":
            family.signal_all(15)
        elif order == b"S":
            family.pass_on(os.read(descriptor, 1), child)
        else:
            family.signal_all(9)
        if not order:
            return


def wait_for(child: int) -> int:
    """The wait status of the command; orphans that end before it are reaped on the way."""
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == child:
            return status


def main(job: dict[str, Any]) -> int:
    """Checks, starts the command, waits for it, reports; the code is only for people who look at processes."""
    # Python would answer this one, and whatever an init does not answer nobody inside can send it.
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    report = Report(job["report"])
    os.set_inheritable(job["report"], False)
    if job["ports"]:
        forward.hand_over(job["ports"], job["handover"])
    results = checks.run(job["checks"])
    if job["proxy"]:
        results = [*results, forward.refusal(job["proxy"])]
    said = [("check", name, "1" if passed else "0", detail) for name, passed, detail in results]
    if not all(passed for _, passed, _ in results):
        report.say(*said, ("refused",))
        return REFUSED
    family.adopt()
    isolated = job["checks"].get("network") == "isolated"
    unrouted = network.unrouted() if isolated else 0  # the checks have tried a few
    report.say(*said, ("ready",))
    if job["worker"]:
        __import__(job["worker"].partition(":")[0])  # here, where no page is shared yet and has to be copied
    child = command.start(job, close=job["report"])
    if isinstance(child, str):
        report.say(("failed", child))
        return REFUSED
    _thread.start_new_thread(listen, (job["report"], child))
    status = wait_for(child)
    full = limits.full(job["scratch_mb"])
    family.end_all()
    cpu_s, max_rss_kb = family.usage()
    tried = network.unrouted() - unrouted if isolated else 0
    report.say(("tried", str(tried)), ("full", *full), ("end", str(status), f"{cpu_s:.6f}", str(max_rss_kb)))
    return 0
