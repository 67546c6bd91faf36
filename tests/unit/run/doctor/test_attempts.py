"""The steps of a sandbox are tried for real and leave nothing; a step that is refused is named with its cause."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest

from hermit.bwrap.preflight import Facts
from hermit.run.doctor import attempts
from hermit.run.doctor.finding import Level

FIT = Facts()
DONE = dict.fromkeys(range(len(attempts.STEPS)), 0)
UBUNTU = replace(FIT, apparmor_userns=1, lsm_label="unconfined")


def mounted() -> list[str]:
    """What is mounted where the steps mount; other things of the machine may change meanwhile."""
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [point for point in points if point in ("/tmp", "/tmp/proc", "/tmp/old", "/old", "/proc")]


@pytest.mark.bwrap
def test_where_sandboxes_start_every_step_is_done_and_nothing_stays() -> None:
    before = set(os.listdir("/proc/self/fd")), mounted()
    tried = attempts.answers()
    assert tried == DONE
    assert (set(os.listdir("/proc/self/fd")), mounted()) == before
    assert not Path("/tmp/old").exists()
    assert not Path("/tmp/proc").exists()
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
    assert [finding.level for finding in attempts.probes(FIT, tried, container_cure="")] == [Level.FIT, Level.FIT]


REFUSED = [
    (
        attempts.NAMESPACES,
        errno.EPERM,
        replace(FIT, mount_errno=errno.EPERM),
        "new namespaces: EPERM; a seccomp filter",
    ),
    (attempts.NAMESPACES, errno.ENOSPC, replace(FIT, max_namespaces=(("net", 0),)), "of the kind net"),
    (attempts.NAMESPACES, errno.EAGAIN, FIT, "no further process may be started"),
    (attempts.NAMESPACES, errno.EINVAL, replace(FIT, max_namespaces=(("user", 1),)), "of the kind mnt, pid, net, ipc"),
    (attempts.NAMESPACES, errno.EINVAL, replace(FIT, unshare_errno=errno.EINVAL), "without user namespaces"),
    (attempts.MAP, errno.EPERM, replace(FIT, uid=0), "the user's number: EPERM; this is uid 0 without"),
    (attempts.MAP, errno.EACCES, UBUNTU, "restricts user namespaces"),
    (attempts.SLAVE, errno.EACCES, replace(FIT, lsm_label="docker-default (enforce)"), "docker-default"),
    (attempts.SLAVE, errno.EPERM, FIT, "a seccomp filter"),
    (attempts.TMPFS, errno.EACCES, replace(FIT, lsm_label="a:b:c:d"), "SELinux confines this process as a:b:c:d"),
    (attempts.PROC, errno.EPERM, replace(FIT, overmounts=("/proc/sys",)), "a /proc of its own: EPERM; parts of /proc"),
    (attempts.ROOT, errno.EPERM, FIT, "pivot_root: EPERM; a seccomp filter"),
    (attempts.OLD_ROOT, errno.EPERM, FIT, "umount: EPERM; a seccomp filter"),
]


@pytest.mark.parametrize(("step", "answer", "facts", "words"), REFUSED)
def test_a_refused_step_is_named_with_its_cause_and_a_cure(step: int, answer: int, facts: Facts, words: str) -> None:
    mounts, loopback = attempts.probes(facts, {**DONE, step: answer}, container_cure="")
    assert words in mounts.found
    assert (mounts.level, bool(mounts.cure)) == (Level.BEST_EFFORT, True)
    assert loopback.ok is (step != attempts.NAMESPACES)


def test_a_loopback_that_cannot_be_brought_up_is_no_fault_of_the_mounts() -> None:
    mounts, loopback = attempts.probes(UBUNTU, {**DONE, attempts.LOOPBACK: errno.EPERM}, container_cure="")
    assert mounts.ok
    assert loopback.found.startswith("the loopback: EPERM; the machine restricts user namespaces")


def test_on_a_machine_whose_calls_are_not_known_nothing_is_tried_and_it_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(attempts.seccomp, "CALLS", {})
    assert attempts.answers() == {}
    assert all("not tried" in finding.found for finding in attempts.probes(FIT, {}, container_cure=""))


def test_a_process_that_cannot_be_started_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def fork() -> int:
        raise BlockingIOError

    monkeypatch.setattr(os, "fork", fork)
    before = set(os.listdir("/proc/self/fd"))
    assert attempts.answers() == {attempts.NAMESPACES: errno.EAGAIN}
    assert set(os.listdir("/proc/self/fd")) == before
