"""A sandbox as JSON: every field, and every way to get it wrong."""

from __future__ import annotations

from dataclasses import fields

import pytest

from hermit.domain import spec
from hermit.domain.bind import Bind
from hermit.domain.limits import Limits
from hermit.domain.network import Forward, Network
from hermit.domain.pathmap import Layout
from hermit.domain.sandbox import Enforce, Sandbox

WHOLE = {
    "role": "judge",
    "read": ["/a"],
    "write": ["/w"],
    "binds": [{"source": "/s", "target": "/t", "writable": True}],
    "cwd": "/w",
    "network": "isolated",
    "allowed_hosts": ["api.example.com"],
    "ports": [8080],
    "sockets": {"8081": "/run/model.sock"},
    "env": {"A": "1"},
    "env_allow": ["MWM_*"],
    "limits": {"memory_mb": 64, "wall_s": 1.5, "pids": None},
    "probes": ["/p"],
    "framework": True,
    "packages": ["bench"],
    "hide": ["bench.scoring"],
    "layout": {"outside": "/s", "inside": "/t"},
    "enforce": "best_effort",
}


def test_every_field_has_a_json_form():
    names = {field.name for field in fields(Sandbox)}
    assert set(WHOLE) == names - {"forwards"} | {"ports", "sockets"}
    assert spec.sandbox(WHOLE) == Sandbox(
        role="judge",
        read=("/a",),
        write=("/w",),
        binds=(Bind("/s", "/t", writable=True),),
        cwd="/w",
        network=Network.ISOLATED,
        allowed_hosts=("api.example.com",),
        forwards=(Forward(8080), Forward(8081, "/run/model.sock")),
        env=(("A", "1"),),
        env_allow=("MWM_*",),
        limits=Limits(memory_mb=64, wall_s=1.5, pids=None),
        probes=("/p",),
        framework=True,
        packages=("bench",),
        hide=("bench.scoring",),
        layout=Layout("/s", "/t"),
        enforce=Enforce.BEST_EFFORT,
    )


def test_an_empty_object_is_the_closed_sandbox():
    assert spec.sandbox({}) == Sandbox()


@pytest.mark.parametrize("document", [None, [], "x", 1, True])
def test_only_an_object_is_a_sandbox(document):
    with pytest.raises(TypeError, match="a sandbox is an object"):
        spec.sandbox(document)


def test_an_unknown_field_is_refused_with_the_ones_there_are():
    with pytest.raises(TypeError, match=r"no field 'reed'.*read"):
        spec.sandbox({"reed": []})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("role", 1),
        ("role", None),
        ("read", "/a"),
        ("read", [1]),
        ("write", {"/a": 1}),
        ("binds", {}),
        ("binds", ["/a"]),
        ("binds", [{"source": "/a"}]),
        ("binds", [{"source": 1, "target": "/t"}]),
        ("binds", [{"source": "/a", "target": "/t", "mode": "rw"}]),
        ("binds", [{"source": "/a", "target": "/t", "writable": "false"}]),
        ("binds", [{"source": "/a", "target": "/t", "writable": 0}]),
        ("cwd", ["/"]),
        ("env", []),
        ("env", {"A": 1}),
        ("env", {"A": None}),
        ("env_allow", "A"),
        ("limits", []),
        ("limits", None),
        ("limits", {"ram": 1}),
        ("probes", [None]),
        ("framework", "false"),
        ("framework", 0),
    ],
)
def test_a_value_of_the_wrong_type_is_refused(name, value):
    with pytest.raises(TypeError):
        spec.sandbox({name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("role", "Not A Role"),
        ("read", ["a"]),
        ("write", ["/a/../b"]),
        ("binds", [{"source": "/a", "target": "/"}]),
        ("cwd", "work"),
        ("network", "allowlist"),
        ("network", []),
        ("env", {"A B": "1"}),
        ("env", {"A": "1\0"}),
        ("env_allow", ["*"]),
        ("limits", {"memory_mb": -1}),
        ("limits", {"memory_mb": "64"}),
        ("limits", {"wall_s": float("inf")}),
        ("probes", [""]),
        ("enforce", "maybe"),
        ("read", ["/a\ud800"]),
    ],
)
def test_a_value_that_no_sandbox_has_is_refused(name, value):
    with pytest.raises(ValueError, match=r"."):
        spec.sandbox({name: value})


def test_what_is_read_is_not_changed():
    given = {"read": ["/a"], "env": {"A": "1"}}
    spec.sandbox(given)
    assert given == {"read": ["/a"], "env": {"A": "1"}}
