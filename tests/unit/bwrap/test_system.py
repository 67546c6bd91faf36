"""What every sandbox shows of the system."""

from __future__ import annotations

import os
from dataclasses import replace
from types import SimpleNamespace

import pytest

from hermit.bwrap import seccomp, system
from hermit.bwrap.argv import File, Filter, Kernel, Link, Show
from hermit.bwrap.system import Ground
from hermit.domain.bind import Bind
from hermit.domain.command import Command
from hermit.domain.network import Network
from hermit.domain.sandbox import Sandbox
from hermit.errors import SandboxError

MASKED = "1 0 0:1 / / rw - x x rw\n2 1 0:2 / /proc rw - proc proc rw\n3 2 0:2 /irq /proc/irq ro - proc proc rw\n"
WHOLE = "1 0 0:1 / / rw - x x rw\n2 1 0:2 / /proc rw - proc proc rw\n3 2 0:3 / /proc/fs/nfsd rw - nfsd x rw\n"


def targets(network):
    return {
        operation.bind.target: operation.bind for operation in system.operations(network) if isinstance(operation, Show)
    }


def test_everything_of_the_system_is_read_only():
    assert not any(bind.writable for bind in targets(Network.OPEN).values())


def test_the_users_file_is_hermits_own_and_names_nobody_of_the_host():
    files = {
        operation.path: operation.content
        for operation in system.operations(Network.ISOLATED)
        if isinstance(operation, File)
    }
    for path in ("/etc/passwd", "/etc/group"):
        assert path not in targets(Network.OPEN)
        text = files[path].decode()
        assert {line.split(":")[0] for line in text.splitlines()} <= {"root", "hermit", "nobody", "nogroup"}


def test_names_are_asked_for_only_where_there_is_a_network():
    difference = set(targets(Network.OPEN)) - set(targets(Network.ISOLATED))
    assert difference <= {*system.NETWORK_ETC, system.CERTIFICATES}
    assert "/etc/resolv.conf" not in targets(Network.ISOLATED)


def test_of_etc_only_what_is_listed_is_shown():
    listed = {*system.ETC, *system.NETWORK_ETC, system.CERTIFICATES, "/etc/passwd", "/etc/group"}
    assert {path for path in targets(Network.OPEN) if path.startswith("/etc")} <= listed
    assert not {"/etc", "/etc/shadow", "/etc/hostname", "/etc/machine-id", "/etc/ssl", "/etc/ssl/private"} & listed


@pytest.mark.bwrap
def test_what_this_kernels_proc_lacks_is_not_covered(place, monkeypatch):
    absent = "/proc/surely-absent"
    monkeypatch.setattr(system, "KERNEL_SETTINGS", (*system.KERNEL_SETTINGS, absent))

    def start():
        afresh = replace(place, backend=replace(place.backend))  # one that has looked at no system yet
        return afresh.run(Sandbox(), Command(argv=("true",)), keep=lambda _: None).code

    assert start() == 0
    if os.geteuid() == 0:  # for anybody else nothing is covered
        exists = os.path.exists
        monkeypatch.setattr(system.os.path, "exists", lambda path: path == absent or exists(path))
        with pytest.raises(SandboxError):
            start()


def test_a_merged_system_keeps_its_links(monkeypatch):
    monkeypatch.setattr(system.os.path, "islink", lambda path: path == "/bin")
    monkeypatch.setattr(system.os, "readlink", lambda _: "usr/bin")
    monkeypatch.setattr(system.os.path, "isdir", lambda path: path == "/lib")
    found = system.operations(Network.ISOLATED)
    assert Link("usr/bin", "/bin") in found
    assert [operation.bind.target for operation in found if isinstance(operation, Show)][:2] == ["/usr", "/lib"]


def test_certificates_are_shown_to_whoever_speaks_to_hosts_and_to_nobody_else():
    def certificates(network, *, trusting):
        shown = [item.bind.target for item in system.operations(network, trusting=trusting) if isinstance(item, Show)]
        return system.CERTIFICATES in shown

    assert certificates(Network.ISOLATED, trusting=True)
    assert not certificates(Network.ISOLATED, trusting=False)


@pytest.fixture
def standing(monkeypatch):
    """Makes up where this process stands: whom the kernel takes it for, what is mounted, and whose ``/proc`` it is."""

    def make(*, uid=1000, owner=65534, mountinfo=WHOLE, numbers="7", pid_namespace="pid:[4026532000]"):
        files = {
            "/proc/self/mountinfo": mountinfo,
            "/proc/self/status": f"Name:\tx\nNSpid:\t{numbers}\nSeccomp:\t0\n",
            "/proc/sys/kernel/overflowuid": "65534\n",
        }
        monkeypatch.setattr(system, "_read", files.__getitem__)
        kernel = SimpleNamespace(
            geteuid=lambda: uid,
            stat=lambda _: SimpleNamespace(st_uid=owner, st_dev=77),
            readlink=lambda _: pid_namespace,
        )
        monkeypatch.setattr(system, "os", kernel)
        return system.ground()

    return make


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ({"uid": 1000, "owner": 0}, Ground()),  # a machine's user
        ({"uid": 1000, "owner": 0, "mountinfo": MASKED}, Ground()),  # a container with masks
        ({"uid": 1000, "owner": 65534}, Ground()),  # the sandbox of such a user
        ({"uid": 65534, "owner": 65534, "mountinfo": MASKED}, Ground()),  # nobody, in a namespace without root
        ({"uid": 0, "owner": 0}, Ground(root=True)),
        ({"uid": 0, "owner": 0, "mountinfo": MASKED}, Ground(root=True)),  # root in a container is lent nothing
        ({"uid": 1000, "owner": 1000}, Ground(root=True)),  # root's, and nothing is covered
        ({"uid": 1000, "owner": 1000, "mountinfo": MASKED}, Ground(root=True, lent=77)),
        ({"uid": 1000, "owner": 1000, "mountinfo": MASKED, "numbers": "57\t1"}, Ground(root=True, deepest=True)),
        (
            {"uid": 1000, "owner": 1000, "mountinfo": MASKED, "pid_namespace": system.FIRST_PID_NAMESPACE},
            Ground(root=True),
        ),
    ],
)
def test_a_sandbox_of_roots_lends_its_proc_and_nothing_else_does(standing, place, expected):
    assert standing(**place) == expected


def test_where_the_kernel_has_no_settings_root_is_who_has_the_number(monkeypatch):
    def missing(_):
        raise FileNotFoundError

    for uid in (0, 1000):
        monkeypatch.setattr(system, "os", SimpleNamespace(geteuid=lambda uid=uid: uid, stat=missing))
        assert system.is_root() is (uid == 0)


def test_an_ordinary_user_gets_a_fresh_proc_without_covers():
    assert system.kernel(Ground()) == (Kernel("proc"), Kernel("dev"))


def test_root_gets_a_fresh_proc_with_its_settings_covered_and_a_filter(monkeypatch):
    monkeypatch.setattr(system, "KERNEL_SETTINGS", ("/proc/sys", "/proc/self", "/proc/no-such-setting"))
    program = seccomp.program(os.uname().machine)
    covers = (Show(Bind("/proc/sys", "/proc/sys")), Show(Bind("/proc/self", "/proc/self")))
    assert system.kernel(Ground(root=True)) == (Kernel("proc"), *covers, Kernel("dev"), Filter(program))


def test_inside_roots_sandbox_the_lent_proc_is_shown_read_only_and_the_filter_stays():
    proc, *rest = system.kernel(Ground(root=True, lent=77))
    assert proc == Show(Bind("/proc", "/proc"))
    assert rest == [Kernel("dev"), Filter(seccomp.program(os.uname().machine))]


def test_a_sandbox_that_was_lent_its_proc_holds_no_other():
    with pytest.raises(SandboxError, match="can hold no other") as refused:
        system.kernel(Ground(root=True, deepest=True))
    assert refused.value.cause == "depth"


def test_only_a_sandbox_that_is_lent_something_shares_a_namespace():
    assert Ground(root=True).shared == ()
    assert Ground(root=True, lent=77).shared == ("cgroup",)


def test_mount_points_are_read_with_their_escapes():
    mountinfo = "22 1 0:1 / / rw - ext4 x rw\n23 22 0:2 / /proc/a\\040b rw shared:1 - proc proc rw\nbroken\n"
    assert system.mount_points(mountinfo) == ("/", "/proc/a b")


def test_what_the_kernel_disregards_masks_nothing():
    assert system.masks(WHOLE) == ()
    assert system.masks(MASKED) == ("/proc/irq",)


def test_a_kernel_without_process_namespaces_has_one_proc_for_all():
    assert system.own_proc("Name:\tx\n")
