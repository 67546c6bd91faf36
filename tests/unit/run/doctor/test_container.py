"""A container is told exactly the options it was started without, as they are typed."""

from __future__ import annotations

import errno
import shlex
from dataclasses import replace
from typing import Any

import pytest

from hermit.bwrap.preflight import Facts
from hermit.oci import argv
from hermit.run.doctor import container
from hermit.run.doctor.container import Around

CLOSED = Facts(seccomp=2, no_new_privs=True, container="docker")
OPEN = {
    "init": ({}, {"first": True}),
    "read-only": ({}, {"read_only": False}),
    "tmpfs": ({}, {"scratch": False}),
    "network": ({}, {"routes": 2}),
    "user": ({"uid": 0}, {}),
    "cap-drop": ({"cap_bnd": 1}, {}),
    "no-new-privileges": ({"no_new_privs": False}, {}),
    "seccomp": ({"mount_errno": errno.EPERM}, {}),
    "systempaths": ({"overmounts": ("/proc/sys",)}, {}),
    "apparmor": ({"lsm_label": "docker-default (enforce)"}, {}),
    "label": ({"lsm_label": "system_u:system_r:container_t:s0:c1,c2"}, {}),
    "pids-limit": ({}, {"pids": None}),
    "memory": ({}, {"memory": None}),
}


@pytest.mark.parametrize("name", OPEN)
def test_one_option_that_is_missing_is_named_alone(name: str) -> None:
    facts, seen = OPEN[name]
    assert container.missing(replace(CLOSED, **facts), Around(**seen)) == [name]


def test_no_filter_at_all_is_a_missing_profile() -> None:
    assert container.missing(replace(CLOSED, seccomp=0), Around()) == ["seccomp"]


@pytest.mark.parametrize(("setting", "names"), [(1, ["seccomp"]), (0, [])])
def test_a_setting_of_the_machine_is_no_missing_profile(setting: int, names: list[str]) -> None:
    facts = replace(CLOSED, unshare_errno=errno.EPERM, userns_clone=setting)
    assert container.missing(facts, Around()) == names


def test_all_that_are_missing_are_spelled_in_the_order_of_the_command() -> None:
    facts: dict[str, Any] = {key: value for change, _ in OPEN.values() for key, value in change.items()}
    seen: dict[str, Any] = {key: value for _, change in OPEN.values() for key, value in change.items()}
    found = container.probe(replace(CLOSED, **facts), Around(**seen), container_cure="the command")
    closed = argv.Container(image="hermit", seccomp="hermit-seccomp.json", lifted=("selinux",))
    command = argv.run_arguments(closed)
    assert found.found == f"started without {shlex.join(command[3:-1])}"
    assert (found.ok, found.cure) == (False, "the command")


def test_a_closed_container_lacks_nothing() -> None:
    assert container.probe(CLOSED, Around(), container_cure="x").ok


def test_every_option_of_the_command_is_looked_for() -> None:
    assert set(argv.options(argv.Container(image="x", lifted=tuple(argv.LIFTING)))) == set(OPEN)


def test_what_is_around_this_process_can_be_seen() -> None:
    seen = container.around()
    assert not seen.first
    assert seen.routes >= 0
