"""Why bubblewrap cannot start here, by name: facts are read once, everything after that is pure.

bubblewrap has one sentence for several causes. Raw system calls with pointers that lead nowhere tell them apart
without any privilege: the kernel answers EFAULT where the call is let through, a seccomp filter answers EPERM before
the kernel looks.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
import struct
from dataclasses import dataclass

from hermit.bwrap import system

CLONE_NEWUSER = 0x10000000
CAP_SYS_ADMIN = 21
CAP_SETFCAP = 31
_NAMESPACES = ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup")


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What decides whether a process may make a sandbox here. The defaults are those of a fit machine.

    Args:
        uid: The effective user.
        gid: The effective group.
        id_mapped: Whether both have a meaning in the present user namespace.
        chrooted: Whether the root is not the root of a mount: the kernel makes no user namespace then.
        seccomp: 0 none, 1 strict, 2 a filter.
        no_new_privs: Whether privileges can never grow again.
        cap_eff: The effective capabilities as a bit mask.
        cap_bnd: The bounding set as a bit mask.
        max_namespaces: The limit of each kind of namespace, as pairs; a kind the kernel does not know is missing.
        userns_clone: Debian's ``unprivileged_userns_clone``, ``None`` where the kernel has none.
        apparmor_userns: Ubuntu's ``apparmor_restrict_unprivileged_userns``, ``None`` where the kernel has none.
        lsm_label: What the security module calls this process; empty without one.
        overmounts: What is mounted below ``/proc`` and so masks a part of it.
        inside_roots: Whether this is the inside of a sandbox that root started, which masks ``/proc`` and lends it.
        container: The kind of container, empty on a machine.
        mount_errno: What ``mount`` with junk pointers answers.
        umount_errno: What ``umount2`` with junk pointers answers.
        unshare_errno: What a new user namespace answers, 0 where it was made.
    """

    uid: int = 1000
    gid: int = 1000
    id_mapped: bool = True
    chrooted: bool = False
    seccomp: int = 0
    no_new_privs: bool = False
    cap_eff: int = 0
    cap_bnd: int = 0
    max_namespaces: tuple[tuple[str, int], ...] = tuple((kind, 10000) for kind in _NAMESPACES)
    userns_clone: int | None = None
    apparmor_userns: int | None = None
    lsm_label: str = ""
    overmounts: tuple[str, ...] = ()
    inside_roots: bool = False
    container: str = ""
    mount_errno: int = errno.EFAULT
    umount_errno: int = errno.EFAULT
    unshare_errno: int = 0

    def has(self, capability: int) -> bool:
        """Whether a capability, by its number, is effective."""
        return bool(self.cap_eff >> capability & 1)

    @property
    def seccomp_blocks(self) -> bool:
        """Whether a filter stops the calls a sandbox is made with, before the kernel sees them."""
        return errno.EPERM in (self.mount_errno, self.umount_errno)

    @property
    def limits_at_zero(self) -> tuple[str, ...]:
        """The kinds of namespace of which none may be made."""
        return tuple(kind for kind, most in self.max_namespaces if most == 0)

    def as_text(self) -> str:
        """The facts in one line, for a report."""
        limits = " ".join(f"{kind}={most}" for kind, most in self.max_namespaces)
        return (
            f"uid={self.uid} gid={self.gid} Seccomp={self.seccomp} NoNewPrivs={int(self.no_new_privs)} "
            f"CapEff={self.cap_eff:016x} CapBnd={self.cap_bnd:016x} max_namespaces[{limits}] "
            f"unprivileged_userns_clone={self.userns_clone} apparmor_restrict_unprivileged_userns={self.apparmor_userns} "
            f"label={self.lsm_label or '-'} over_proc={len(self.overmounts)} inside_roots={int(self.inside_roots)} container={self.container or '-'} "
            f"mount={_name(self.mount_errno)} umount2={_name(self.umount_errno)} unshare={_name(self.unshare_errno)}"
        )


def facts() -> Facts:
    """The facts of this process and this machine, as they are now."""
    status = dict(line.partition(":\t")[::2] for line in _read("/proc/self/status").splitlines())
    mounts = _read("/proc/self/mountinfo")
    answers = _probe()
    limits = ((kind, _number(f"/proc/sys/user/max_{kind}_namespaces")) for kind in _NAMESPACES)
    return Facts(
        uid=os.geteuid(),
        gid=os.getegid(),
        # A kernel without user namespaces maps nothing and knows everybody.
        id_mapped=not os.path.exists("/proc/self/uid_map")
        or (_mapped(_read("/proc/self/uid_map"), os.geteuid()) and _mapped(_read("/proc/self/gid_map"), os.getegid())),
        chrooted="/" not in system.mount_points(mounts),
        seccomp=int(status.get("Seccomp", "0")),
        no_new_privs=status.get("NoNewPrivs", "0").strip() == "1",
        cap_eff=int(status.get("CapEff", "0"), 16),
        cap_bnd=int(status.get("CapBnd", "0"), 16),
        max_namespaces=tuple((kind, most) for kind, most in limits if most is not None),
        userns_clone=_number("/proc/sys/kernel/unprivileged_userns_clone"),
        apparmor_userns=_number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
        lsm_label=_read("/proc/self/attr/current").strip("\0\n "),
        overmounts=system.masks(mounts),
        inside_roots=system.inside_roots(),
        container=_container(),
        mount_errno=answers[0],
        umount_errno=answers[1],
        unshare_errno=answers[2],
    )


def _container() -> str:
    if os.path.exists("/run/.containerenv"):
        return "podman"
    if os.path.exists("/.dockerenv"):
        return "docker"
    found = re.search(r"(docker|libpod|containerd|kubepods|lxc)[-/]", _read("/proc/1/cgroup"))
    return found.group(1) if found else ""


def _mapped(id_map: str, number: int) -> bool:
    for line in id_map.splitlines():
        first, _, count = (int(part) for part in line.split())
        if first <= number < first + count:
            return True
    return False


def _probe() -> tuple[int, int, int]:
    """What mount, umount2 and a new user namespace answer, asked in a child that ends with the answers."""
    libc = ctypes.CDLL(None, use_errno=True)
    reader, writer = os.pipe()
    try:
        child = os.fork()
    except BlockingIOError:  # not one process more may be started
        os.close(reader)
        os.close(writer)
        return errno.EFAULT, errno.EFAULT, errno.EAGAIN
    if child == 0:
        # Nothing but system calls from here on: other threads of the parent may have held locks.
        with contextlib.suppress(BaseException):
            junk = ctypes.c_void_p(1)
            answers = [
                _errno(libc.mount(junk, junk, junk, ctypes.c_ulong(0), None)),
                _errno(libc.umount2(junk, 0)),
                _errno(libc.unshare(CLONE_NEWUSER)),
            ]
            os.write(writer, struct.pack("3i", *answers))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    if len(said) != struct.calcsize("3i"):  # a filter that kills instead of answering
        return errno.EPERM, errno.EPERM, errno.EPERM
    mount, umount, unshare = struct.unpack("3i", said)
    return mount, umount, unshare


def _errno(returned: int) -> int:
    return ctypes.get_errno() if returned < 0 else 0


def _name(number: int) -> str:
    return errno.errorcode.get(number, str(number)) if number else "ok"


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _number(path: str) -> int | None:
    text = _read(path).strip()
    return int(text) if text.lstrip("-").isdigit() else None


@dataclass(frozen=True)
class Finding:
    """One thing that stands in bubblewrap's way.

    Args:
        cause: A short fixed name, such as ``seccomp`` or ``masked_proc``.
        what: What is wrong, one sentence without a full stop.
        cure: The command that cures it, or what to change.
    """

    cause: str
    what: str
    cure: str


def blockers(facts: Facts, *, container_cure: str = "") -> tuple[Finding, ...]:
    """Everything here that stops bubblewrap, each by its own facts: curing one never hides another.

    Args:
        facts: The facts of the place.
        container_cure: The whole command that starts a fit container, used where this is a container.
    """
    found = []
    if facts.seccomp_blocks:
        found.append(_seccomp(facts, container_cure))
    if "(enforce)" in facts.lsm_label:
        found.append(_apparmor(facts, container_cure))
    if facts.overmounts and not facts.inside_roots:
        found.append(_masked_proc(facts, container_cure))
    if facts.uid == 0 and (facts.container or not facts.has(CAP_SETFCAP)):
        found.append(_root(facts, container_cure))
    if facts.limits_at_zero:
        found.append(_limits(facts))
    if facts.apparmor_userns == 1 and "(enforce)" not in facts.lsm_label and not facts.has(CAP_SYS_ADMIN):
        found.append(_restricted_userns(facts))
    # A filter answers for the kernel, so only without one does the answer speak of the kernel's own reasons.
    if facts.unshare_errno and not facts.seccomp_blocks and not facts.limits_at_zero:
        found.append(_namespace_refused(facts, container_cure))
    return tuple(found)


def diagnose(text: str, facts: Facts, *, container_cure: str = "") -> Finding:
    """The cause behind what bubblewrap wrote when it did not start.

    Args:
        text: What bubblewrap wrote to its standard error.
        facts: The facts of the place.
        container_cure: The whole command that starts a fit container, used where this is a container.
    """
    if "kernel does not support user namespaces" in text:  # it says so of any namespace that it is refused by EINVAL
        return _KERNEL if facts.unshare_errno else _missing_kind(facts)
    if re.search(r"No permissions to create (a )?new namespace", text):
        return _seccomp(facts, container_cure) if facts.seccomp_blocks else _namespace_refused(facts, container_cure)
    if re.search(r"\(ENOSPC\)|unshare user ns: No space left on device", text):
        return _limits(facts)
    if "Creating new namespace failed: Function not implemented" in text:
        return _RUNTIME
    if "Creating new namespace failed: Resource temporarily unavailable" in text:
        return NO_PROCESS
    return _diagnose_setup(text, facts, container_cure) or _unknown(text)


def _diagnose_setup(text: str, facts: Facts, container_cure: str) -> Finding | None:
    """The causes that show only after the namespace was made."""
    if re.search(r"Can't mount proc on (/newroot)?/proc: Operation not permitted", text):
        return _masked_proc(facts, container_cure)
    if re.search(r"setting up uid map: Operation not permitted", text):
        return _root(facts, container_cure)
    restricted = r"setting up uid map: Permission denied|Failed RTM_NEWADDR: Operation not permitted"
    if facts.apparmor_userns == 1 and re.search(restricted, text):
        return _restricted_userns(facts)
    call = r"(Failed to make / slave|unmount old root|pivot_root|unshare user ns)[^:]*: "
    if re.search(call + "Operation not permitted", text):
        return _seccomp(facts, container_cure)
    denied = r"(Creating new namespace failed|(Failed to|Can't) mount [^:]*): Permission denied|"
    if re.search(call + "Permission denied|" + denied + restricted, text):
        return _apparmor(facts, container_cure)
    return None


_KERNEL = Finding(
    "kernel",
    "the kernel was built without user namespaces (CONFIG_USER_NS)",
    "use another kernel; on this one there are no unprivileged sandboxes",
)
_RUNTIME = Finding(
    "runtime",
    "the container runtime implements no namespaces of its own (gVisor and its like do not)",
    "run the container with the runtime runc or crun: docker run --runtime runc ...",
)
NO_PROCESS = Finding(
    "pids_limit",
    "no further process may be started: a limit on processes is reached",
    "raise it: docker run --pids-limit N for a container, ulimit -u N for a user",
)


def _seccomp(facts: Facts, container_cure: str) -> Finding:
    what = "a seccomp filter blocks mount, umount2, pivot_root or the making of a user namespace"
    if facts.container:
        return Finding("seccomp", what, container_cure or "start the container with Hermit's seccomp profile")
    cure = "start it outside the service or program that set the filter (systemd: SystemCallFilter=)"
    return Finding("seccomp", what, cure)


def _apparmor(facts: Facts, container_cure: str) -> Finding:
    if facts.lsm_label.count(":") > 1:  # a user, a role, a type and a level: SELinux's, not a profile's name
        return _selinux(facts, container_cure)
    what = f"a security module confines this process as {facts.lsm_label or 'something unnamed'} and denies mounts or namespaces"
    profile = "an AppArmor profile that allows userns, mount, umount and pivot_root"
    if not facts.container:
        return Finding("apparmor", what, f"give the program {profile}")
    # docker-default denies mount, which no addition can take back: another profile has to stand in its place.
    option = "--security-opt apparmor=unconfined"
    tail = f"{container_cure}  - and put {option} (or {profile}) before the image".removeprefix("  - and ")
    return Finding("apparmor", what, container_cure if option in container_cure else tail)


def _selinux(facts: Facts, container_cure: str) -> Finding:
    what = f"SELinux confines this process as {facts.lsm_label} and denies mounts or namespaces"
    if not facts.container:
        return Finding("selinux", what, "start it in a domain that may mount, such as unconfined_t (runcon)")
    tail = f"{container_cure}  - and put --security-opt label=disable (or a type that may mount) before the image"
    right = "label=disable" in container_cure
    return Finding("selinux", what, container_cure if right else tail.removeprefix("  - and "))


def _masked_proc(facts: Facts, container_cure: str) -> Finding:
    shown = ", ".join(facts.overmounts[:3]) + (" ..." if len(facts.overmounts) > 3 else "")  # noqa: PLR2004 - enough to see
    what = (
        "parts of /proc are covered"
        + (f" ({shown})" if shown else "")
        + ", so the kernel lets no sandbox mount a /proc of its own"
    )
    if facts.container:
        tail = "start the container with --security-opt systempaths=unconfined as an unprivileged user"
        return Finding("masked_proc", what, container_cure or tail)
    return Finding("masked_proc", what, "unmount what lies below /proc, or start it where /proc is whole")


def _root(facts: Facts, container_cure: str) -> Finding:
    if facts.container:
        what = "the container runs as uid 0, which could reach the host and cannot nest sandboxes"
        return Finding("root", what, container_cure or "start the container with --user 1000:1000")
    what = "this is uid 0 without the capability SETFCAP, which may not make the user namespace of a sandbox"
    return Finding("root", what, "run it as an unprivileged user")


def _limits(facts: Facts) -> Finding:
    kinds = facts.limits_at_zero
    if not kinds:
        what = "namespaces are nested too deep, or a limit of user.max_*_namespaces is reached"
        cure = "nest fewer sandboxes, or on the machine: sudo sysctl user.max_user_namespaces=10000"
        return Finding("namespace_limit", what, cure)
    settings = " ".join(f"user.max_{kind}_namespaces=10000" for kind in kinds)
    what = f"the machine allows no new namespaces of the kind {', '.join(kinds)}"
    return Finding("namespace_limit", what, f"on the machine: sudo sysctl {settings}")


def _restricted_userns(facts: Facts) -> Finding:
    what = "the machine restricts user namespaces to programs with an AppArmor profile of their own"
    setting = "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0"
    cure = f"load an AppArmor profile for bubblewrap that has `userns,`, or on the machine: {setting}"
    # One alone of the two trades one failure for the other.
    more = " and start the container with --security-opt apparmor=unconfined" if facts.container else ""
    return Finding("apparmor_userns", what, cure + more)


def _namespace_refused(facts: Facts, container_cure: str) -> Finding:
    """Why the kernel itself refuses a user namespace."""
    answers = {
        errno.EINVAL: _KERNEL,
        errno.ENOSYS: _RUNTIME,
        errno.EAGAIN: NO_PROCESS,
        errno.ENOSPC: _limits(facts),
        errno.EUSERS: _limits(facts),
    }
    if facts.unshare_errno in answers:
        return answers[facts.unshare_errno]
    if facts.userns_clone == 0:
        what = "the machine forbids user namespaces to unprivileged users"
        return Finding("userns_sysctl", what, "on the machine: sudo sysctl kernel.unprivileged_userns_clone=1")
    if not facts.id_mapped:
        what = f"the user {facts.uid}:{facts.gid} has no meaning in this user namespace"
        return Finding("unmapped_id", what, container_cure or "run it as a user that the namespace maps")
    # Where no module has a name for this process, none denies it anything: a chroot to a mount point shows no other sign.
    if facts.chrooted or (facts.unshare_errno == errno.EPERM and not facts.lsm_label):
        what = "this is a chroot, in which the kernel makes no user namespace"
        return Finding("chroot", what, "start it outside, or in a container")
    return _apparmor(facts, container_cure)


def _missing_kind(facts: Facts) -> Finding:
    missing = [kind for kind in _NAMESPACES if kind not in dict(facts.max_namespaces)]
    what = (
        f"the kernel makes user namespaces, and was built without those of the kind {', '.join(missing) or 'unknown'}"
    )
    return Finding("kernel", what, "use another kernel; on this one a sandbox would share what it must not")


def _unknown(text: str) -> Finding:
    plain = re.sub(r",? likely because.*|[. ]*bwrap must be installed setuid.*", "", text)  # its guesses are not ours
    lines = [line.strip() for line in plain.splitlines() if line.strip()]
    what = f"bubblewrap did not start: {lines[-1]}" if lines else "bubblewrap did not start and said nothing"
    return Finding("unknown", what, "hermit check --json shows the facts of this place; report them")
