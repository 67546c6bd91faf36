"""The filter of root's sandboxes, run as the kernel would run it."""

from __future__ import annotations

import errno
import os
import struct

import pytest

from hermit.bwrap import seccomp

ALLOWED = "allowed"
FORK = 0x01200011  # what the C library asks for
NEWUSER, NEWCGROUP = 0x10000000, 0x02000000
# What bubblewrap asks for at once.
SANDBOX = NEWUSER | 0x20000 | 0x4000000 | 0x8000000 | 0x20000000 | 0x40000000
MACHINES = [(machine, *calls) for machine, tables in seccomp.CALLS.items() for calls in tables]


def answer(program, *, architecture, number, first=0):
    """What a filter makes of one call."""
    instructions = list(struct.iter_unpack("<HBBI", program))
    data = {seccomp.NUMBER: number, seccomp.ARCHITECTURE: architecture, seccomp.FIRST_ARGUMENT: first & 0xFFFFFFFF}
    at = loaded = 0
    while True:
        code, met, unmet, value = instructions[at]
        at += 1
        if code == seccomp.RETURN:
            return ALLOWED if value == seccomp.ALLOW else errno.errorcode[value & 0xFFFF]
        if code == seccomp.LOAD:
            loaded = data[value]
            continue
        tests = {seccomp.EQUAL: loaded == value, seccomp.AT_LEAST: loaded >= value, seccomp.ANY_BIT: loaded & value}
        at += met if tests[code] else unmet


@pytest.mark.parametrize(("machine", "architecture", "clone", "unshare"), MACHINES)
def test_no_control_group_namespace_is_made_by_any_call_of_any_architecture(machine, architecture, clone, unshare):
    program = seccomp.program(machine)

    def said(number, first=0):
        return answer(program, architecture=architecture, number=number, first=first)

    for number in (clone, unshare):
        assert said(number, NEWCGROUP) == "ENOSPC"
        assert said(number, SANDBOX | NEWCGROUP) == "ENOSPC"
        assert said(number, SANDBOX | NEWCGROUP | 1 << 40) == "ENOSPC"
        assert said(number, SANDBOX) == ALLOWED
    assert said(clone, FORK) == ALLOWED
    assert said(seccomp.CLONE3) == "ENOSYS"


@pytest.mark.parametrize(("machine", "architecture", "clone", "unshare"), MACHINES)
def test_every_other_call_is_left_alone(machine, architecture, clone, unshare):
    program = seccomp.program(machine)
    for number in range(440):
        if number not in (clone, unshare, seccomp.CLONE3):
            assert answer(program, architecture=architecture, number=number, first=NEWCGROUP) == ALLOWED


@pytest.mark.parametrize("machine", seccomp.CALLS)
def test_a_table_of_calls_that_is_not_known_has_no_call(machine):
    assert answer(seccomp.program(machine), architecture=0x1234, number=0) == "ENOSYS"


def test_the_third_table_of_calls_is_no_way_around():
    program = seccomp.program("x86_64")
    for number in (56, 272, 435):
        said = answer(program, architecture=0xC000003E, number=number | seccomp.X32, first=NEWCGROUP)
        assert said == "ENOSYS"


def test_a_machine_whose_calls_are_not_known_is_refused():
    with pytest.raises(ValueError, match="system calls of a pdp11 are not known"):
        seccomp.program("pdp11")


def test_this_machines_calls_are_known():
    assert seccomp.program(os.uname().machine)
