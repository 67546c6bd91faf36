"""The relay: the first thing that runs in a sandbox, and the last to leave it.

Theory of operation. Bubblewrap's own init is process 1 of the sandbox; the relay is its only child, started as
``python -I -S .../inside/__main__.py JOB`` where JOB is a descriptor that holds its orders. It works in four steps:

1. It tries to break out, from inside, before the command exists (``checks``). One failed check and it says so and
   leaves; the command never starts.
2. It forks. The child sets the limits on itself, takes its descriptors and becomes the command (``command``).
3. It waits for its children, and reaps every orphan of the command: it is the *subreaper* of the sandbox, so whatever
   the command leaves behind becomes its child. A thread listens to the host, which may ask it to TERM or KILL them.
4. When the command has ended it kills what is left, waits until it has no child, and reports the end.

It talks to the host over one socket, a line for each event, which no other process has: the child closes it, and the
relay is not dumpable, so its descriptors cannot be opened through ``/proc`` either. Killing the relay ends the sandbox.
Who dies first: the command, then the relay, then bubblewrap's init, then bubblewrap; if the host dies, all of them at
once. Orders come from the host and are trusted (``marshal``); what the relay says is text the host reads with care.
"""

from __future__ import annotations

import _thread
import marshal
import os

import checks
import command
import family
import forward
import limits

REFUSED = 71  # any code would do: the host goes by the report


class Report:
    """The relay's end of the socket to the host."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def say(self, *words: str) -> None:
        """Sends one event: its words, tabs between them."""
        text = "\t".join(word.replace("\t", " ").replace("\n", " ") for word in words) + "\n"
        data = text.encode("utf-8", "backslashreplace")
        while data:
            data = data[os.write(self.descriptor, data) :]


def read_all(descriptor: int) -> bytes:
    """Everything a descriptor holds, from its start; it is closed."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    with open(descriptor, "rb") as file:
        return file.read()


def listen(descriptor: int) -> None:
    """Does what the host asks: T to TERM the command's processes, K to KILL them; so too when the host is gone."""
    while True:
        order = os.read(descriptor, 1)
        if order == b"T":
            family.signal_all(15)
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


def main(job_descriptor: int) -> int:
    """Checks, starts the command, waits for it, reports; the code is only for people who look at processes."""
    job = marshal.loads(read_all(job_descriptor))  # noqa: S302 - the host wrote it
    report = Report(job["report"])
    os.set_inheritable(job["report"], False)
    failed = False
    if job["ports"]:
        forward.hand_over(job["ports"], job["handover"])
    results = checks.run(job["checks"])
    if job["proxy"]:
        results = [*results, forward.refusal(job["proxy"])]
    for name, passed, detail in results:
        report.say("check", name, "1" if passed else "0", detail)
        failed = failed or not passed
    if failed:
        report.say("refused")
        return REFUSED
    family.adopt()
    report.say("ready")
    child = command.start(job, close=job["report"])
    if isinstance(child, str):
        report.say("failed", child)
        return REFUSED
    _thread.start_new_thread(listen, (job["report"],))
    status = wait_for(child)
    report.say("full", *limits.full(job["scratch_mb"]))
    family.end_all()
    cpu_s, max_rss_kb = family.usage()
    report.say("end", str(status), f"{cpu_s:.6f}", str(max_rss_kb))
    return 0
