"""The options of a container, as golden lists: a missing one is a hole."""

from __future__ import annotations

import csv
import shlex
from pathlib import Path

import pytest

from hermit.domain.bind import Bind
from hermit.oci.argv import (
    SECCOMP_PROFILE,
    Container,
    confined_by,
    cure,
    event_arguments,
    kill_arguments,
    labels_arguments,
    list_arguments,
    one_line,
    run_arguments,
)

GOLDEN = [
    "docker",
    "run",
    "--rm",
    "--init",
    "--read-only",
    "--tmpfs",
    "/tmp:mode=1777,size=64m",
    "--network",
    "none",
    "--user",
    "1000:1000",
    "--cap-drop",
    "ALL",
    "--security-opt",
    "no-new-privileges",
    "--security-opt",
    "seccomp=/p/seccomp.json",
    "--security-opt",
    "systempaths=unconfined",
    "--pids-limit",
    "100",
    "--memory",
    "512m",
]


def container(**changes):
    values = {"image": "hermit", "tmp_mb": 64, "pids": 100, "memory_mb": 512, "seccomp": "/p/seccomp.json"}
    return Container(**{**values, **changes})


def test_a_container_is_closed_by_exactly_these_options():
    assert run_arguments(container()) == [*GOLDEN, "hermit"]


def test_the_rules_of_a_security_module_are_lifted_where_they_are_named_and_nowhere_else():
    lifted = ["--security-opt", "apparmor=unconfined", "--security-opt", "label=disable"]
    at = GOLDEN.index("--pids-limit")
    assert run_arguments(container(lifted=("apparmor", "selinux"))) == [*GOLDEN[:at], *lifted, *GOLDEN[at:], "hermit"]
    with pytest.raises(ValueError, match="seccomp is no security module"):
        container(lifted=("seccomp",))


@pytest.mark.parametrize(
    ("label", "modules"),
    [
        ("docker-default (enforce)", ("apparmor",)),
        ("docker-default (complain)", ()),
        ("unconfined", ()),
        ("", ()),
        ("system_u:system_r:container_t:s0:c12,c345", ("selinux",)),
        ("system_u:system_r:spc_t:s0", ()),
        ("unconfined_u:unconfined_r:unconfined_t:s0-s0:c0.c1023", ()),
    ],
)
def test_the_module_that_confines_a_container_is_read_from_its_label(label, modules):
    assert confined_by(label) == modules
    command = cure("hermit", "check", lifted=modules)
    assert ("apparmor=unconfined" in command, "label=disable" in command) == (
        "apparmor" in modules,
        "selinux" in modules,
    )


def test_every_setting_has_its_option_and_the_command_comes_last():
    value = container(
        command=("eval", "--config", "a b"),
        mounts=(Bind("/data", "/data"), Bind("/out", "/out", writable=True)),
        env=("MODEL_KEY",),
        uid=12,
        gid=34,
        cwd="/out",
        tty=True,
        interactive=True,
        name="hermit-run-1",
        labels=(("hermit.run", "/out"),),
    )
    golden = [part if part != "1000:1000" else "12:34" for part in GOLDEN]
    assert run_arguments(value, program="/usr/bin/podman") == [
        "/usr/bin/podman",
        *golden[1:],
        "--name",
        "hermit-run-1",
        "--label",
        "hermit.run=/out",
        "--interactive",
        "--tty",
        "--workdir",
        "/out",
        "--env",
        "MODEL_KEY",
        "--mount",
        "type=bind,source=/data,target=/data,readonly",
        "--mount",
        "type=bind,source=/out,target=/out",
        "hermit",
        "eval",
        "--config",
        "a b",
    ]


def test_a_parent_is_mounted_before_what_lies_below_it():
    argv = run_arguments(container(mounts=(Bind("/x", "/a/b/c"), Bind("/y", "/a"), Bind("/z", "/a/b"))))
    assert [part.split("target=")[1] for part in argv if part.startswith("type=bind")] == [
        "/a,readonly",
        "/a/b,readonly",
        "/a/b/c,readonly",
    ]


@pytest.mark.parametrize("path", ["/a,readonly=false", '/a"b', '/a",b', "/a b", "/a=b,target=/etc"])
def test_a_path_cannot_smuggle_an_option_into_a_mount(path):
    mount = run_arguments(container(mounts=(Bind(path, path),)))[-2]
    assert next(csv.reader([mount])) == ["type=bind", f"source={path}", f"target={path}", "readonly"]


@pytest.mark.parametrize("path", ["/a\nb", "/a\rb"])
def test_a_path_with_a_line_break_is_refused(path):
    with pytest.raises(ValueError, match="line break"):
        container(mounts=(Bind(path, "/a"),))


@pytest.mark.parametrize("uid", [0, -1])
def test_root_is_refused_when_the_value_is_built(uid):
    with pytest.raises(ValueError, match="unprivileged"):
        container(uid=uid)


@pytest.mark.parametrize(
    "changes",
    [
        {"image": ""},
        {"image": "--privileged"},
        {"name": "-x"},
        {"seccomp": ""},
        {"seccomp": "unconfined"},
        {"env": ("KEY=secret",)},
        {"env": ("",)},
        {"labels": (("a=b", "c"),)},
        {"pids": 0},
        {"pids": -1},
        {"memory_mb": 0},
        {"tmp_mb": 0},
        {"cwd": "relative"},
        {"command": ("a\0b",)},
        {"mounts": (Bind("/a", "/c"), Bind("/b", "/c"))},
    ],
)
def test_a_broken_or_opened_container_is_refused_when_the_value_is_built(changes):
    with pytest.raises(ValueError, match=r"."):
        container(**changes)


def test_a_person_can_paste_the_command_into_a_shell():
    value = container(command=("eval", "it's $HOME", "a b"))
    assert shlex.split(one_line(value)) == run_arguments(value)


def test_the_cure_fetches_the_profile_from_the_image_and_runs_with_it():
    fetch, run = cure("hermit", "check").split(" && ")
    assert fetch == "docker run --rm --entrypoint cat hermit /opt/hermit/share/seccomp.json > hermit-seccomp.json"
    assert "seccomp=hermit-seccomp.json" in shlex.split(run)
    assert shlex.split(run)[-2:] == ["hermit", "check"]


def test_the_profile_of_the_package_is_the_default():
    assert Path(SECCOMP_PROFILE).read_text().startswith("{")
    assert f"seccomp={SECCOMP_PROFILE}" in run_arguments(Container(image="hermit"))


def test_a_program_and_processors_of_its_own_are_options_of_their_own():
    found = run_arguments(container(entrypoint="/bin/program", command=("word",), processors=(0, 3)))
    assert found == [*GOLDEN, "--cpuset-cpus", "0,3", "--entrypoint", "/bin/program", "hermit", "word"]


def test_a_container_is_removed_with_its_volumes():
    assert kill_arguments("one", program="podman") == ["podman", "rm", "--force", "--volumes", "one"]


def test_what_an_engine_is_asked_is_spelled_here_too():
    assert list_arguments("hermit.x") == [
        "docker",
        "ps",
        "--all",
        "--quiet",
        "--no-trunc",
        "--filter",
        "label=hermit.x",
    ]
    assert labels_arguments(["a", "b"])[:3] == ["docker", "container", "inspect"]
    assert labels_arguments(["a", "b"])[-2:] == ["a", "b"]
    asked = event_arguments("one", since_s=1.5, until_s=2.0)
    assert asked[:6] == ["docker", "events", "--since", "1.500000", "--until", "2.000000"]
    assert asked[6:8] == ["--filter", "container=one"]
