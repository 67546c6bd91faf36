"""What the profile lets through, read from the file: the same on every architecture."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hermit.oci.argv import SECCOMP_PROFILE

BLOCKED = [
    "ptrace",
    "process_vm_writev",
    "process_vm_readv",
    "process_mrelease",
    "process_madvise",
    "memfd_secret",
    "adjtimex",
    "acct",
    "add_key",
    "bpf",
    "chroot",
    "clock_adjtime",
    "clock_settime",
    "delete_module",
    "fanotify_init",
    "fanotify_mark",
    "finit_module",
    "fsconfig",
    "fsmount",
    "fsopen",
    "fspick",
    "get_mempolicy",
    "init_module",
    "io_uring_enter",
    "io_uring_register",
    "io_uring_setup",
    "ioperm",
    "iopl",
    "kcmp",
    "kexec_file_load",
    "kexec_load",
    "keyctl",
    "listmount",
    "lookup_dcookie",
    "mbind",
    "migrate_pages",
    "modify_ldt",
    "mount_setattr",
    "move_mount",
    "move_pages",
    "open_by_handle_at",
    "open_tree",
    "perf_event_open",
    "pidfd_getfd",
    "quotactl",
    "reboot",
    "request_key",
    "set_mempolicy",
    "set_mempolicy_home_node",
    "setdomainname",
    "sethostname",
    "setns",
    "settimeofday",
    "statmount",
    "swapoff",
    "swapon",
    "syslog",
    "uselib",
    "userfaultfd",
    "vhangup",
]
NEWUSER = 0x10000000
EQUAL, MASKED = "SCMP_CMP_EQ", "SCMP_CMP_MASKED_EQ"


@pytest.fixture(scope="module")
def profile():
    return json.loads(Path(SECCOMP_PROFILE).read_text())


def rules(profile, name):
    return [rule for rule in profile["syscalls"] if name in rule["names"]]


def conditions(profile, name):
    return [
        {(arg["index"], arg["op"], arg["value"], arg["valueTwo"]) for arg in rule.get("args", ())}
        for rule in rules(profile, name)
    ]


def test_what_is_not_named_is_denied_with_eperm(profile):
    assert (profile["defaultAction"], profile["defaultErrnoRet"]) == ("SCMP_ACT_ERRNO", 1)
    assert {rule["action"] for rule in profile["syscalls"]} == {"SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO"}


@pytest.mark.parametrize("name", BLOCKED)
def test_a_call_that_reaches_beyond_a_sandbox_is_not_let_through(profile, name):
    assert rules(profile, name) == []


@pytest.mark.parametrize("name", ["mount", "umount2", "pivot_root"])
def test_the_calls_that_build_a_sandbox_are_let_through(profile, name):
    assert conditions(profile, name) == [set()]


def test_a_new_namespace_is_made_only_together_with_a_user_namespace(profile):
    assert conditions(profile, "clone") == [{(0, MASKED, 0x7E020000, 0)}, {(0, MASKED, NEWUSER, NEWUSER)}]
    assert conditions(profile, "unshare") == [{(0, EQUAL, NEWUSER, 0)}]


def test_clone3_looks_as_if_the_kernel_had_none(profile):
    assert [(rule["action"], rule["errnoRet"]) for rule in rules(profile, "clone3")] == [("SCMP_ACT_ERRNO", 38)]


def test_a_socket_is_of_the_unix_internet_or_routing_family(profile):
    assert conditions(profile, "socket") == [
        {(0, EQUAL, 1, 0)},
        {(0, EQUAL, 2, 0)},
        {(0, EQUAL, 10, 0)},
        {(0, EQUAL, 16, 0), (2, EQUAL, 0, 0)},
    ]


def test_no_call_of_one_architecture_is_named_without_saying_so(profile):
    for name, architecture in (("arch_prctl", "amd64"), ("riscv_flush_icache", "riscv64")):
        assert [rule["includes"] for rule in rules(profile, name)] == [{"arches": [architecture]}]


def test_programs_of_another_word_size_are_not_let_in(profile):
    # Their calls have other numbers and other arguments, which the conditions above do not describe.
    assert {entry["architecture"] for entry in profile["archMap"]} >= {"SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64"}
    assert all(entry["subArchitectures"] == [] for entry in profile["archMap"])
