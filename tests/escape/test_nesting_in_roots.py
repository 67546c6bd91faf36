"""What can be reached by way of the ``/proc`` that a sandbox of root's lends to one inside it."""

from __future__ import annotations

import os

import pytest

pytestmark = [
    pytest.mark.bwrap,
    pytest.mark.skipif(os.geteuid() != 0, reason="only a sandbox that root started lends its /proc"),
]

# What runs in the outer sandbox: a process that keeps a secret, and an inner sandbox that looks for it. The first
# argument says where the search runs, or which hole the inner sandbox gets and whether its checks still look.
SEARCH = """
import os, subprocess, sys
from dataclasses import replace
from hermit import sandbox as sandboxes
from hermit.bwrap import argv
from hermit.bwrap.prepare import Prepared
from hermit.domain.command import Command
from hermit.domain.limits import Limits
from hermit.domain.sandbox import Sandbox
from hermit.errors import SandboxError
HOLES = {
    "writable": ((("--ro-bind", "/proc", "/proc"), ("--bind", "/proc", "/proc")),),
    "same processes": ((("--unshare-pid",), ()), (("--as-pid-1",), ())),
    "closed": (),
}
def patch(where):
    name, _, blind = where.partition(", ")
    spell, order = argv.options, Prepared.orders
    def options(*given, **named):
        words = list(spell(*given, **named))
        for old, new in HOLES[name]:
            at = next(at for at in range(len(words)) if tuple(words[at : at + len(old)]) == old)
            words[at : at + len(old)] = new
        return tuple(words)
    def unchecked(*given, **named):
        return replace(order(*given, **named), checks={"confined": False})
    backend = sandboxes.preflight()
    argv.options = options
    if blind:
        Prepared.orders = unchecked
    return backend
def searched(where, source):
    words = ("python", "-c", source, str(os.getpid()))
    if where == "the outer sandbox itself":
        return subprocess.run(words, capture_output=True, text=True).stdout
    try:
        sandbox = Sandbox(limits=Limits(wall_s=20))
        outcome = patch(where).run(sandbox, Command(argv=words), keep=lambda _: None)
    except SandboxError as refused:
        return str(refused)
    return outcome.stdout.kept.decode() + outcome.stderr.kept.decode()
with subprocess.Popen(["sleep", "86.4"], env={**os.environ, "KEPT": "the answer"}) as keeper:
    print(searched(sys.argv[1], sys.argv[2]))
    print("keeper", keeper.poll())
    keeper.kill()
"""
OTHERS = """
import os, signal, sys
found = []
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        with open(f"/proc/{pid}/cmdline") as file:
            if file.read().split(chr(0))[:2] == ["sleep", "86.4"]:
                found.append(pid)
    except OSError:
        pass
"""
READ = (
    OTHERS
    + """
for pid in found:
    try:
        with open(f"/proc/{pid}/environ") as file:
            print("read" if "the answer" in file.read() else "")
    except OSError as refused:
        print(refused)
"""
)
FOLLOW = (
    OTHERS
    + """
for pid in found:
    for name in ("root", "cwd", "exe", "fd/0"):
        try:
            os.stat(f"/proc/{pid}/{name}")
            print("followed")
        except OSError as refused:
            print(refused)
"""
)
# The value that is there is written, so nothing changes where it can be.
CHANGE = (
    OTHERS
    + """
for pid in found:
    try:
        with open(f"/proc/{pid}/oom_score_adj", "r+") as file:
            value = file.read()
            file.seek(0)
            file.write(value)
        print("changed")
    except OSError as refused:
        print(refused)
"""
)
KILL = (
    OTHERS
    + """
for pid in found:
    try:
        signal.pidfd_send_signal(os.open(f"/proc/{pid}", os.O_RDONLY), signal.SIGTERM)
        print("killed")
    except OSError as refused:
        print(refused)
"""
)


@pytest.fixture
def search(field):
    """What a search for the keeper's secret came to: what it said, and whether the keeper still lived."""
    task = field.sandbox(role="task", framework=True)

    def run(where, source):
        outcome = field.run(task, "python", "-c", SEARCH, where, source)
        assert outcome.code == 0, outcome.stderr.kept.decode()
        *said, keeper = outcome.stdout.kept.decode().strip().splitlines()
        return "\n".join(said).strip(), keeper == "keeper None"

    return run


@pytest.mark.parametrize(
    ("source", "done"),
    [(READ, "read"), (FOLLOW, "followed"), (CHANGE, "changed"), (KILL, "killed")],
    ids=["its variables", "its files", "its settings", "its life"],
)
def test_a_process_of_the_outer_sandbox_is_seen_and_cannot_be_reached(search, source, done):
    said, alive = search("closed", source)
    assert done not in said
    assert said  # the keeper was found, and each way to it was refused
    assert alive
    said, alive = search("the outer sandbox itself", source)
    assert done in said
    assert alive is (done != "killed")


def test_a_lent_proc_that_can_be_written_is_noticed(search):
    said, _ = search("writable", CHANGE)
    assert "lent /proc" in said
    assert "/proc can be written" in said
    assert "out of reach" in said
    assert search("writable, blind", CHANGE)[0] == "changed"


def test_an_inner_sandbox_among_the_processes_of_the_outer_one_is_noticed(search):
    said, _ = search("same processes", KILL)
    assert "own namespaces: pid" in said
    assert "own processes: another process can be signalled" in said
    assert search("same processes, blind", KILL) == ("killed", False)
