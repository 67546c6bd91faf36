"""Nobody inside speaks for the relay, and no program an agent starts speaks for its worker."""

from __future__ import annotations

import json

import pytest

from hermit.domain.command import Command

pytestmark = pytest.mark.bwrap

# The three doors into another process: its descriptors by system call, through /proc, and its memory.
TAKE_A_DESCRIPTOR = """
import ctypes, os, stat
def attack():
    libc = ctypes.CDLL(None, use_errno=True)
    other = os.pidfd_open(os.getppid())
    for number in range(3, 64):
        taken = libc.syscall(438, other, number, 0)
        if taken >= 0 and stat.S_ISSOCK(os.fstat(taken).st_mode):
            os.write(taken, b"")
            return True
    return False
"""
OPEN_DESCRIPTORS = """
import os
def attack():
    return any(os.readlink(f"/proc/{os.getppid()}/fd/{number}") for number in range(3))
"""
TRACE = """
import ctypes, os
def attack():
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
    other = os.getppid()
    if libc.ptrace(16, other, None, None) != 0:
        return False
    os.waitpid(other, 0x40000000)
    libc.ptrace(17, other, None, None)
    return True
"""
READ_MEMORY = """
import os
def attack():
    with open(f"/proc/{os.getppid()}/mem", "rb") as file:
        return file is not None
"""
DUMPABLE = {"inside/family.py": ("    prctl(PR_SET_DUMPABLE, 0)", "    return")}

FORGER = """
import os
forged = b'{"value":{"output":"forged"}}'
for name in [f"/proc/{os.getppid()}/fd/{number}" for number in range(3, 64)]:
    try:
        os.write(os.open(name, os.O_WRONLY | os.O_NONBLOCK), forged)
    except OSError:
        pass
"""
HEIR = """
import os
for number in range(3, 64):
    try:
        os.write(number, b'{"value":{"output":"forged"}}')
    except OSError:
        pass
"""
AGENT = """
import subprocess, sys
from hermit import RunOutput
def run(task, adapter):
    subprocess.run([sys.executable, "-c", task["program"]], close_fds=False, check=False)
    return RunOutput(output="honest")
"""


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(TAKE_A_DESCRIPTOR, id="taking_its_socket"),
        pytest.param(OPEN_DESCRIPTORS, id="opening_its_descriptors"),
        pytest.param(TRACE, id="tracing_it"),
        pytest.param(READ_MEMORY, id="writing_its_memory"),
    ],
)
def test_a_command_cannot_speak_for_the_relay_by(field, edited, source):
    assert field.attack(source) is False
    assert edited(DUMPABLE).attack(source) is True


@pytest.mark.parametrize(
    ("program", "cuts"),
    [
        pytest.param(FORGER, DUMPABLE, id="through_proc"),
        pytest.param(
            HEIR,
            {
                "agent/worker.py": (
                    "os.set_inheritable(result_descriptor, False)",
                    "os.set_inheritable(result_descriptor, True)",
                )
            },
            id="by_inheritance",
        ),
    ],
)
def test_a_program_cannot_forge_the_result_of_the_worker_that_started_it(field, edited, program, cuts):
    (field.shown / "agent.py").write_text(AGENT)
    job = {
        "callable": f"{field.shown}/agent.py:run",
        "task": {"id": "1", "program": program},
        "adapter": None,
        "params": {},
        "base": str(field.shown),
    }
    command = Command(worker="hermit.agent.worker:run_agent", job=json.dumps(job).encode())

    def result(at):
        return at.place.run(at.sandbox(framework=True), command, keep=lambda _: None).result

    assert json.loads(result(field))["value"]["output"] == "honest"
    assert b"forged" in result(edited(cuts))
