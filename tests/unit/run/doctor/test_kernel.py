"""Each fact of a kernel that stops sandboxes is one finding, alone, and one that does not is none."""

from __future__ import annotations

import errno
from dataclasses import replace
from typing import Any

import pytest

from hermit.bwrap import preflight
from hermit.bwrap.preflight import Facts
from hermit.run.doctor import kernel
from hermit.run.doctor.finding import Level

CURE = "docker run --the-whole-command hermit check"
FIT = Facts()
REFUSED = replace(FIT, unshare_errno=errno.EPERM)
SELINUX = "system_u:system_r:container_t:s0:c12,c345"

ALONE = [
    ({"unshare_errno": errno.EINVAL}, "user_namespaces", "CONFIG_USER_NS"),
    ({"unshare_errno": errno.ENOSYS}, "user_namespaces", "runc or crun"),
    ({"unshare_errno": errno.EAGAIN}, "user_namespaces", "ulimit -u"),
    ({"unshare_errno": errno.EPERM, "userns_clone": 0}, "user_namespaces", "unprivileged_userns_clone=1"),
    ({"unshare_errno": errno.EPERM}, "user_namespaces", "chroot"),
    ({"unshare_errno": errno.EPERM, "id_mapped": False}, "user", "maps"),
    ({"unshare_errno": errno.ENOSPC}, "namespace_limits", "user.max_user_namespaces"),
    ({"max_namespaces": (("user", 9), ("net", 0))}, "namespace_limits", "user.max_net_namespaces=10000"),
    ({"mount_errno": errno.EPERM, "seccomp": 2, "unshare_errno": errno.EPERM}, "seccomp", "SystemCallFilter"),
    ({"lsm_label": "docker-default (enforce)", "container": "docker"}, "apparmor", "apparmor=unconfined"),
    ({"apparmor_userns": 1, "lsm_label": "unconfined"}, "apparmor", "apparmor_restrict_unprivileged_userns=0"),
    ({"unshare_errno": errno.EPERM, "lsm_label": SELINUX}, "selinux", "unconfined_t"),
    ({"overmounts": ("/proc/kcore",)}, "masked_proc", "unmount"),
    ({"uid": 0}, "user", "unprivileged user"),
]


def probed(facts: Facts, **more: Any) -> dict[str, Any]:
    return {finding.id: finding for finding in kernel.probes(facts, container_cure="", **more)}


@pytest.mark.parametrize(("changes", "probe", "cure"), ALONE)
def test_a_cause_is_found_by_its_own_probe_and_by_no_other(changes: dict[str, Any], probe: str, cure: str) -> None:
    found = probed(replace(FIT, **changes))
    assert list(found) == list(kernel.CAUSES)
    assert [name for name, finding in found.items() if not finding.ok] == [probe]
    assert found[probe].level is Level.BEST_EFFORT
    assert cure in found[probe].found + found[probe].cure


def test_a_fit_place_has_a_word_for_every_probe_and_no_cure() -> None:
    found = probed(replace(FIT, userns_clone=1, apparmor_userns=0, seccomp=2, lsm_label=SELINUX))
    assert {finding.level for finding in found.values()} == {Level.FIT}
    assert all(finding.found for finding in found.values())
    assert SELINUX in found["selinux"].found
    assert "apparmor_restrict_unprivileged_userns=0" in found["apparmor"].found


def test_every_cause_of_the_preflight_has_a_probe() -> None:
    known = {cause for causes in kernel.CAUSES.values() for cause in causes}
    places = [replace(FIT, **changes) for changes, _, _ in ALONE]
    assert {finding.cause for place in places for finding in preflight.blockers(place)} <= known


def test_what_a_started_sandbox_disproves_is_no_blocker() -> None:
    facts = replace(REFUSED, overmounts=("/proc/sys",), max_namespaces=(("user", 0),))
    assert {finding.level for finding in probed(facts, started=True).values()} == {Level.FIT}


@pytest.mark.parametrize("started", [True, False])
def test_root_in_our_image_is_unfit_also_where_sandboxes_start(*, started: bool) -> None:
    facts = replace(FIT, uid=0, container="docker", cap_eff=(1 << 41) - 1)
    assert probed(facts, started=started, image=True)["user"].level is Level.UNFIT
    elsewhere = probed(facts, started=started)["user"].level
    assert elsewhere is (Level.WITHOUT if started else Level.BEST_EFFORT)
