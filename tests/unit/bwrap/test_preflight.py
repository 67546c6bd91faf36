"""Why bubblewrap does not start: facts and texts in, a named cause out."""

from __future__ import annotations

import errno
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from hermit.bwrap import preflight
from hermit.bwrap.preflight import Facts, blockers, diagnose, facts

FIT = Facts()
CURE = "docker run --the-whole-command hermit check"
ALL_CAPS = (1 << 41) - 1
FILTERED = replace(FIT, seccomp=2, mount_errno=errno.EPERM, umount_errno=errno.EPERM, unshare_errno=errno.EPERM)
DOCKER = replace(FILTERED, container="docker", overmounts=("/proc/bus", "/proc/kcore", "/proc/sys", "/proc/keys"))
REFUSED = replace(FIT, unshare_errno=errno.EPERM)
UBUNTU = replace(FIT, apparmor_userns=1, lsm_label="unconfined")
SELINUX = "system_u:system_r:container_t:s0:c12,c345"

NO_PERMISSIONS = "bwrap: No permissions to create new namespace, likely because the kernel does not allow non-privileged user namespaces."
NO_PERMISSIONS_0_12 = NO_PERMISSIONS.replace("create new", "create a new")
NO_KERNEL = "bwrap: Creating new namespace failed, likely because the kernel does not support user namespaces.  bwrap must be installed setuid on such systems."
ENOSPC = "bwrap: Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)"

TABLE = [
    (NO_PERMISSIONS, FILTERED, "seccomp"),
    (NO_PERMISSIONS_0_12, FILTERED, "seccomp"),
    (NO_PERMISSIONS, replace(REFUSED, userns_clone=0), "userns_sysctl"),
    (NO_PERMISSIONS_0_12, replace(REFUSED, userns_clone=0), "userns_sysctl"),
    (NO_PERMISSIONS, replace(REFUSED, chrooted=True), "chroot"),
    (NO_PERMISSIONS, replace(REFUSED, id_mapped=False), "unmapped_id"),
    (NO_PERMISSIONS, replace(REFUSED, lsm_label="mine (enforce)"), "apparmor"),
    (NO_KERNEL, replace(FIT, unshare_errno=errno.EINVAL), "kernel"),
    (NO_KERNEL, replace(FIT, max_namespaces=(("user", 9),)), "kernel"),
    (ENOSPC, replace(FIT, max_namespaces=(("user", 0),)), "namespace_limit"),
    (ENOSPC, FIT, "namespace_limit"),
    ("bwrap: unshare user ns: No space left on device", FIT, "namespace_limit"),
    ("bwrap: Creating new namespace failed: Function not implemented", FIT, "runtime"),
    ("bwrap: Creating new namespace failed: Resource temporarily unavailable", FIT, "pids_limit"),
    ("bwrap: Creating new namespace failed: Permission denied", FIT, "apparmor"),
    ("bwrap: Can't mount proc on /newroot/proc: Operation not permitted", DOCKER, "masked_proc"),
    ("bwrap: Can't mount proc on /proc: Operation not permitted", DOCKER, "masked_proc"),
    ("bwrap: Failed to make / slave: Operation not permitted", FILTERED, "seccomp"),
    ("bwrap: unmount old root: Operation not permitted", FILTERED, "seccomp"),
    ("bwrap: pivot_root: Operation not permitted", FILTERED, "seccomp"),
    ("bwrap: unshare user ns: Operation not permitted", FILTERED, "seccomp"),
    ("bwrap: Failed to make / slave: Permission denied", DOCKER, "apparmor"),
    ("bwrap: Failed to mount tmpfs: Permission denied", replace(FIT, lsm_label=SELINUX), "selinux"),
    ("bwrap: Can't mount proc on /newroot/proc: Permission denied", replace(FIT, lsm_label=SELINUX), "selinux"),
    ("bwrap: Creating new namespace failed: Permission denied", replace(FIT, lsm_label=SELINUX), "selinux"),
    ("bwrap: Failed to mount tmpfs: Permission denied", replace(FIT, lsm_label="mine (enforce)"), "apparmor"),
    ("bwrap: setting up uid map: Permission denied", UBUNTU, "apparmor_userns"),
    ("bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted", UBUNTU, "apparmor_userns"),
    ("bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted", FIT, "apparmor"),
    ("bwrap: setting up uid map: Operation not permitted", replace(FIT, uid=0), "root"),
    ("bwrap: execvp nothing: No such file or directory", FIT, "unknown"),
    ("", FIT, "unknown"),
]


@pytest.mark.parametrize(("text", "place", "cause"), TABLE)
def test_each_text_of_bubblewrap_has_its_cause(text, place, cause):
    finding = diagnose(text, place, container_cure=CURE)
    assert finding.cause == cause
    assert finding.what
    assert finding.cure


@pytest.mark.parametrize("text", ["warning: harmless\n" + NO_PERMISSIONS + "\n", NO_PERMISSIONS])
def test_a_cause_is_found_among_other_lines(text):
    assert diagnose(text, FILTERED).cause == "seccomp"


def test_a_hint_of_bubblewraps_is_never_repeated_unchecked():
    known = diagnose(NO_KERNEL, replace(FIT, max_namespaces=(("user", 9), ("mnt", 9)))).what
    assert "was built without those of the kind pid, net, ipc, uts, cgroup" in known
    for text in (NO_KERNEL, NO_PERMISSIONS, NO_PERMISSIONS_0_12):
        for place in (FIT, FILTERED, REFUSED, UBUNTU):
            found = diagnose(text.replace("kernel does not", "moon does not"), place)
            assert "setuid" not in found.what + found.cure
            assert "likely" not in found.what + found.cure


def test_where_no_process_more_can_be_started_that_is_the_answer(monkeypatch):
    def fork():
        raise BlockingIOError

    monkeypatch.setattr(preflight.os, "fork", fork)
    assert [finding.cause for finding in blockers(replace(facts(), container="", uid=1))][-1] == "pids_limit"


def test_a_text_nobody_knows_is_kept():
    assert "the moon is full" in diagnose("bwrap: the moon is full\n\n", FIT).what


SINGLE = [
    (FILTERED, "seccomp"),
    (replace(FIT, seccomp=2, umount_errno=errno.EPERM), "seccomp"),
    (replace(FIT, lsm_label="docker-default (enforce)", container="docker"), "apparmor"),
    (replace(FIT, overmounts=("/proc/sys",)), "masked_proc"),
    (replace(FIT, uid=0, cap_eff=0), "root"),
    (replace(FIT, uid=0, cap_eff=ALL_CAPS, container="docker"), "root"),
    (replace(FIT, max_namespaces=(("user", 100), ("net", 0))), "namespace_limit"),
    (replace(FIT, max_namespaces=(("user", 0),), unshare_errno=errno.ENOSPC), "namespace_limit"),
    (replace(FIT, unshare_errno=errno.ENOSPC), "namespace_limit"),
    (replace(FIT, unshare_errno=errno.EUSERS), "namespace_limit"),
    (replace(FIT, unshare_errno=errno.EINVAL), "kernel"),
    (replace(FIT, unshare_errno=errno.ENOSYS), "runtime"),
    (replace(FIT, unshare_errno=errno.EAGAIN), "pids_limit"),
    (replace(FIT, unshare_errno=errno.EACCES), "apparmor"),
    (replace(REFUSED, userns_clone=0), "userns_sysctl"),
    (replace(REFUSED, chrooted=True), "chroot"),
    (REFUSED, "chroot"),
    (replace(REFUSED, lsm_label="mine"), "apparmor"),
    (replace(REFUSED, id_mapped=False), "unmapped_id"),
    (UBUNTU, "apparmor_userns"),
]


@pytest.mark.parametrize(("place", "cause"), SINGLE)
def test_each_blocker_is_named_alone(place, cause):
    assert [finding.cause for finding in blockers(place, container_cure=CURE)] == [cause]


FIT_PLACES = [
    FIT,
    replace(FIT, seccomp=2, no_new_privs=True, container="docker"),
    replace(FIT, uid=0, cap_eff=ALL_CAPS),
    replace(FIT, overmounts=("/proc/irq", "/proc/sys"), inside_roots=True),
    replace(FIT, lsm_label="unconfined", apparmor_userns=0),
    replace(FIT, lsm_label="hermit (unconfined)", apparmor_userns=0),
    replace(UBUNTU, uid=0, cap_eff=ALL_CAPS),
    replace(UBUNTU, lsm_label="", apparmor_userns=None, userns_clone=1),
]


@pytest.mark.parametrize("place", FIT_PLACES)
def test_a_fit_place_has_no_blocker(place):
    assert blockers(place) == ()


def test_seccomp_apparmor_and_masked_proc_at_once_are_each_named():
    place = replace(DOCKER, lsm_label="docker-default (enforce)")
    assert [finding.cause for finding in blockers(place)] == ["seccomp", "apparmor", "masked_proc"]


def test_every_blocker_at_once_is_named():
    place = replace(
        DOCKER,
        lsm_label="docker-default (enforce)",
        uid=0,
        max_namespaces=(("user", 0),),
        apparmor_userns=1,
        container="",
    )
    causes = [finding.cause for finding in blockers(place)]
    assert causes == ["seccomp", "apparmor", "masked_proc", "root", "namespace_limit"]


@pytest.mark.parametrize("cause", ["seccomp", "masked_proc", "root"])
def test_in_a_container_the_cure_is_the_whole_command(cause):
    place = replace(DOCKER, uid=0)
    assert {finding.cause: finding.cure for finding in blockers(place, container_cure=CURE)}[cause] == CURE


def test_in_a_container_under_apparmor_the_cure_names_the_option_too():
    place = replace(FIT, container="docker", lsm_label="docker-default (enforce)")
    (finding,) = blockers(place, container_cure=CURE)
    assert CURE in finding.cure
    assert "apparmor=" in finding.cure
    whole = f"{CURE} --security-opt apparmor=unconfined"
    assert blockers(place, container_cure=whole)[0].cure == whole


@pytest.mark.parametrize("container", ["podman", ""])
def test_selinux_is_named_with_its_label_and_a_cure_of_its_own(container):
    finding = diagnose(
        "bwrap: Failed to mount tmpfs: Permission denied",
        replace(FIT, lsm_label=SELINUX, container=container),
        container_cure=CURE,
    )
    assert SELINUX in finding.what
    assert ("label=disable" in finding.cure, CURE in finding.cure) == (bool(container), bool(container))
    assert "AppArmor" not in finding.what + finding.cure


def test_both_cures_of_a_machine_that_restricts_user_namespaces_are_printed():
    cure = diagnose("bwrap: setting up uid map: Permission denied", UBUNTU).cure
    assert "AppArmor profile for bubblewrap that has `userns,`" in cure
    assert "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0" in cure


def test_on_a_machine_no_cure_speaks_of_a_container():
    place = replace(DOCKER, container="", lsm_label="x (enforce)", uid=0, max_namespaces=(("user", 0),))
    assert not [finding for finding in blockers(place, container_cure=CURE) if "docker" in finding.cure]


def test_a_zero_limit_is_cured_by_name():
    (finding,) = blockers(replace(FIT, max_namespaces=(("user", 0), ("pid", 0), ("net", 5))))
    assert "user.max_user_namespaces=10000 user.max_pid_namespaces=10000" in finding.cure
    assert "net" not in finding.cure


@pytest.mark.parametrize(
    ("id_map", "number", "mapped"),
    [
        ("         0          0 4294967295\n", 0, True),
        ("      1000          0          1\n", 1000, True),
        ("      1000          0          1\n", 0, False),
        ("0 100 10\n50 200 10\n", 59, True),
        ("0 100 10\n50 200 10\n", 60, False),
        ("", 7, False),
    ],
)
def test_an_id_is_mapped_where_a_line_of_the_map_holds_it(id_map, number, mapped):
    assert preflight._mapped(id_map, number) is mapped


def test_what_is_mounted_on_a_mount_point_of_proc_masks_nothing(monkeypatch):
    mountinfo = (
        "1 0 0:1 / / rw - x x rw\n2 1 0:2 / /proc/sys/fs/binfmt_misc rw - x x rw\n3 1 0:3 / /proc/kcore rw - x x rw\n"
    )
    monkeypatch.setattr(preflight, "_read", lambda path: mountinfo if path.endswith("mountinfo") else "")
    assert facts().overmounts == ("/proc/kcore",)


def test_the_facts_of_this_process_are_read_and_no_process_stays():
    place = facts()
    status = Path("/proc/self/status").read_text()
    assert f"CapEff:\t{place.cap_eff:016x}" in status
    assert f"Seccomp:\t{place.seccomp}" in status
    assert dict(place.max_namespaces)["user"] >= 0
    with pytest.raises(ChildProcessError):
        preflight.os.waitpid(-1, preflight.os.WNOHANG)


def test_the_facts_are_one_line_for_a_report():
    text = DOCKER.as_text()
    assert "\n" not in text
    assert "mount=EPERM umount2=EPERM unshare=EPERM" in text


def test_the_facts_can_be_asked_for_from_any_thread():
    found = []
    thread = threading.Thread(target=lambda: found.append(facts()))
    thread.start()
    thread.join()
    assert found == [facts()]
