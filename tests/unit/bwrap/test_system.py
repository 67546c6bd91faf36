"""What every sandbox shows of the system."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from hermit.bwrap import system
from hermit.bwrap.argv import File, Link, Show
from hermit.domain.command import Command
from hermit.domain.network import Network
from hermit.domain.sandbox import Sandbox
from hermit.errors import SandboxError


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
