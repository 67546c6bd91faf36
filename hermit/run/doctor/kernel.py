"""What the kernel and its security modules allow this process, each from its own facts; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermit.bwrap import preflight
from hermit.run.doctor.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hermit.bwrap.preflight import Facts

SELINUX_FIELDS = 4
# The causes that each probe answers for: every cause of `preflight.blockers` has one.
CAUSES = {
    "user_namespaces": ("kernel", "runtime", "pids_limit", "userns_sysctl", "chroot"),
    "namespace_limits": ("namespace_limit",),
    "seccomp": ("seccomp",),
    "apparmor": ("apparmor", "apparmor_userns"),
    "selinux": ("selinux",),
    "masked_proc": ("masked_proc",),
    "user": ("root", "unmapped_id"),  # the last one, see `probes`
}


def probes(facts: Facts, *, container_cure: str, started: bool = False, image: bool = False) -> list[Finding]:
    """A finding for each of the probes, whether it is as it has to be or not.

    Args:
        facts: The facts of the place.
        container_cure: The whole command that starts a fit container, empty where this is none.
        started: Whether a sandbox was started: what that disproves is no blocker, whatever the facts look like.
        image: Whether this is our image, which nobody should run as root.
    """
    found = {blocker.cause: blocker for blocker in preflight.blockers(facts, container_cure=container_cure)}
    probed = [_probe(probe, facts, {} if started else found, image=image) for probe in CAUSES]
    if started and "root" in found:
        probed[-1] = _started_by_root(found["root"], image=image)
    return probed


def _started_by_root(blocker: preflight.Finding, *, image: bool) -> Finding:
    what = "uid 0 in a container: sandboxes start, and a process that leaves one could change the machine's settings"
    return Finding("user", False, what, blocker.cure, needed=image)


def _probe(probe: str, facts: Facts, blockers: Mapping[str, preflight.Finding], *, image: bool) -> Finding:
    name = probe.replace("_", " ")
    for cause in CAUSES[probe]:
        if cause in blockers:
            blocker = blockers[cause]
            # Root in our image could write the machine's settings where /proc is whole: nothing should run there at all.
            unconfined = not (cause == "root" and image)
            return Finding(name, False, blocker.what, blocker.cure, unconfined=unconfined, id=probe)
    return Finding(name, True, _WORDS[probe](facts), id=probe)


def _user_namespaces(facts: Facts) -> str:
    if facts.seccomp_blocks:
        return "a filter answers for the kernel, see seccomp"
    setting = "" if facts.userns_clone is None else f"; kernel.unprivileged_userns_clone={facts.userns_clone}"
    return f"one was made{setting}" if not facts.unshare_errno else "refused, see below"


def _limits(facts: Facts) -> str:
    if not facts.max_namespaces:
        return "the kernel shows none"
    kind, least = min(facts.max_namespaces, key=lambda pair: pair[1])
    return f"at least {least} of each kind ({kind})"


def _seccomp(facts: Facts) -> str:
    modes = {0: "no filter", 1: "strict mode", 2: "a filter, which lets mount and umount2 through"}
    return modes.get(facts.seccomp, f"mode {facts.seccomp}")


def _apparmor(facts: Facts) -> str:
    setting = facts.apparmor_userns
    restricted = "" if setting is None else f"; kernel.apparmor_restrict_unprivileged_userns={setting}"
    named = facts.lsm_label and not _is_selinux(facts)
    return (f"this process is {facts.lsm_label}" if named else "not active") + restricted


def _selinux(facts: Facts) -> str:
    # A label alone denies nothing: whether it does, mounting shows.
    return f"this process is {facts.lsm_label}" if _is_selinux(facts) else "not active"


def _is_selinux(facts: Facts) -> bool:
    return facts.lsm_label.count(":") >= SELINUX_FIELDS - 1


def _proc(facts: Facts) -> str:
    return "covered by the sandbox around this one, which lends it" if facts.inside_roots else "nothing covers a part"


def _user(facts: Facts) -> str:
    bounding = "no capability can be had" if not facts.cap_bnd else f"bounding set {facts.cap_bnd:016x}"
    return f"{facts.uid}:{facts.gid}, {bounding}"


_WORDS: dict[str, Callable[[Facts], str]] = {
    "user_namespaces": _user_namespaces,
    "namespace_limits": _limits,
    "seccomp": _seccomp,
    "apparmor": _apparmor,
    "selinux": _selinux,
    "masked_proc": _proc,
    "user": _user,
}
