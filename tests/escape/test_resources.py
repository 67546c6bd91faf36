"""What a command cannot use up: the host's memory, and the machine's processes."""

from __future__ import annotations

import tracemalloc

import pytest

from hermit.domain.limits import MIB, Limits

pytestmark = pytest.mark.bwrap

# At most 150 processes, each of which ends with its parent.
MULTIPLY = """
import os
def attack(most):
    reader, writer = os.pipe()
    started = 0
    try:
        for _ in range(150):
            if os.fork() == 0:
                os.read(reader, 1)
                os._exit(0)
            started += 1
    finally:
        os.close(writer)
        return started > int(most)
"""


def peak_of_a_flood(field, *, kept_mb):
    """The most memory the host's side had in use while a command wrote 64 MiB."""
    sandbox = field.sandbox(limits=Limits(wall_s=30, output_bytes=kept_mb * MIB))
    tracemalloc.start()
    try:
        outcome = field.run(sandbox, "head", "-c", str(64 * MIB), "/dev/zero")
        assert outcome.stdout.total == 64 * MIB
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_output_cannot_fill_the_memory_of_the_host(field):
    assert peak_of_a_flood(field, kept_mb=1) < 16 * MIB
    assert peak_of_a_flood(field, kept_mb=64) > 60 * MIB  # the planted failure: a host that keeps it all


def test_a_fork_bomb_ends_at_the_bound_on_processes(field):
    assert field.attack(MULTIPLY, 20, sandbox=field.sandbox(limits=Limits(wall_s=30, pids=20))) is False
    assert field.attack(MULTIPLY, 20, sandbox=field.sandbox(limits=Limits(wall_s=30, pids=None))) is True


def test_the_bound_on_processes_is_one_sandboxs_and_holds_for_each(field):
    bounded = field.sandbox(limits=Limits(wall_s=30, pids=20))
    assert field.attack(MULTIPLY, 8, sandbox=bounded) is True
    assert field.attack(MULTIPLY, 8, sandbox=bounded) is True
