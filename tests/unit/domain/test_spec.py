"""A sandbox as JSON: every field, and every way to get it wrong."""

from __future__ import annotations

import re
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


@pytest.mark.parametrize(
    ("document", "line"),
    [
        (None, "a sandbox: expected an object with the fields of a sandbox; found null"),
        ([], "a sandbox: expected an object with the fields of a sandbox; found []"),
        ({"reed": []}, "reed: no such field; the nearest is 'read', which takes a list, each item an absolute path"),
        ({"forwards": []}, "forwards: no such field; the nearest is 'ports', which takes a list"),
        ({"a\nb": 1}, "['a\\nb']: no such field; the nearest is "),
        ({"role": 1}, "role: expected a lower-case word of up to 32 letters, digits, '-' and '_'; found 1"),
        ({"role": "Not A Role"}, "role: expected a lower-case word"),
        ({"role": None}, "role: expected a lower-case word of up to 32 letters, digits, '-' and '_'; found null"),
        ({"read": "/a"}, "read: expected a list, each item an absolute path"),
        ({"read": ["/a", 1]}, "read[1]: expected an absolute path without '..' that is not the root; found 1"),
        ({"read": ["a"]}, "read[0]: expected an absolute path without '..' that is not the root; found 'a'"),
        ({"read": ["/"]}, "read[0]: expected an absolute path without '..' that is not the root; found '/'"),
        ({"read": ["/a\ud800"]}, "read[0]: expected an absolute path"),
        ({"write": {"/a": 1}}, "write: expected a list"),
        ({"write": ["/a/../b"]}, "write[0]: expected an absolute path without '..'"),
        ({"binds": {}}, "binds: expected a list, each item an object with a source and a target; found {}"),
        ({"binds": ["/a"]}, "binds[0]: expected an object with a source and a target; found '/a'"),
        ({"binds": [{"source": "/a"}]}, "binds[0].target: expected an absolute path"),
        ({"binds": [{"source": 1, "target": "/t"}]}, "binds[0].source: expected an absolute path"),
        ({"binds": [{"source": "/a", "target": "/"}]}, "binds[0].target: expected an absolute path"),
        ({"binds": [{"source": "/a", "target": "/t", "mode": "rw"}]}, "binds[0].mode: no such field; the nearest is "),
        (
            {"binds": [{"source": "/a", "target": "/t", "writable": 0}]},
            "binds[0].writable: expected true or false; found 0",
        ),
        ({"cwd": ["/"]}, "cwd: expected an absolute path without '..'; found ['/']"),
        ({"cwd": "work"}, "cwd: expected an absolute path without '..'; found 'work'"),
        ({"network": "allowlist"}, "network: expected 'isolated' or 'open'; found 'allowlist'"),
        ({"network": []}, "network: expected 'isolated' or 'open'; found []"),
        ({"network": "open", "ports": [8080]}, "ports: expected nothing beside an open network"),
        ({"allowed_hosts": ["http://a"]}, "allowed_hosts[0]: expected a host such as api.example.com"),
        ({"ports": [80]}, "ports[0]: expected a port from 1024 to 65535; found 80"),
        ({"ports": [8080.5]}, "ports[0]: expected a port from 1024 to 65535; found 8080.5"),
        ({"ports": [8080, 8080]}, "ports: expected each item once; found [8080, 8080]"),
        ({"sockets": {"80": "/x"}}, "sockets.80: expected a port from 1024 to 65535; found '80'"),
        ({"sockets": {"8080": ""}}, "sockets.8080: expected an absolute path without '..'; found ''"),
        ({"env": []}, "env: expected an object of texts; found []"),
        ({"env": {"A B": "1"}}, "env['A B']: expected the name of a variable; found 'A B'"),
        ({"env": {"A": None}}, "env.A: expected text without a NUL; found null"),
        (
            {"env_allow": "A"},
            "env_allow: expected a list, each item the name of a variable, or a pattern such as MWM_*",
        ),
        ({"env_allow": ["*"]}, "env_allow[0]: expected the name of a variable, or a pattern such as MWM_*; found '*'"),
        ({"limits": None}, "limits: expected an object of bounds; found null"),
        ({"limits": {"ram": 1}}, "limits.ram: no such field; the nearest is "),
        (
            {"limits": {"memory": 1}},
            "limits.memory: no such field; the nearest is 'memory_mb', which takes a whole number",
        ),
        (
            {"limits": {"memory_mb": -1}},
            "limits.memory_mb: expected a whole number from 1 to 4398046511104, or null; found -1",
        ),
        ({"limits": {"memory_mb": "64"}}, "limits.memory_mb: expected a whole number from 1"),
        ({"limits": {"memory_mb": True}}, "limits.memory_mb: expected a whole number from 1"),
        ({"limits": {"tmp_mb": None}}, "limits.tmp_mb: expected a whole number from 1 to 4398046511104; found null"),
        ({"limits": {"wall_s": float("inf")}}, "limits.wall_s: expected a number above 0"),
        ({"limits": {"wall_s": float("nan")}}, "limits.wall_s: expected a number above 0"),
        ({"probes": [""]}, "probes[0]: expected an absolute path without '..'; found ''"),
        ({"framework": "false"}, "framework: expected true or false; found 'false'"),
        ({"packages": ["a b"]}, "packages[0]: expected a name such as bench.scoring"),
        ({"hide": ["../x"]}, "hide[0]: expected a name such as bench.scoring"),
        ({"layout": {"outside": "/a"}}, "layout.inside: expected an absolute path without '..'; found nothing"),
        ({"enforce": "maybe"}, "enforce: expected 'required' or 'best_effort'; found 'maybe'"),
        ({"read": ["/a"], "write": ["/a"]}, "read, write, binds: /a is shown twice"),
        ({"write": ["/a", "/a/b"]}, "read, write, binds: /a/b cannot be shown below /a, which is writable inside"),
        ({"ports": [8080], "sockets": {"8080": "/x"}}, "sockets.8080: the port is among the 'ports' already"),
    ],
)
def test_what_is_wrong_is_one_line_with_the_field_what_was_expected_and_the_nearest_there_is(document, line):
    with pytest.raises(ValueError, match=r"\A" + re.escape(line)) as refused:
        spec.sandbox(document)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 250


def test_every_field_is_among_those_that_are_refused_when_wrong():
    cases = test_what_is_wrong_is_one_line_with_the_field_what_was_expected_and_the_nearest_there_is.pytestmark[0].args[
        1
    ]
    named = {name for document, _ in cases if isinstance(document, dict) for name in document}
    assert named >= set(WHOLE)


def test_a_variables_value_is_not_repeated_in_a_refusal():
    with pytest.raises(ValueError, match=r"env\.KEY: expected text") as refused:
        spec.sandbox({"env": {"KEY": "the-key\0"}})
    assert "the-key" not in str(refused.value)


def test_a_whole_number_may_be_written_with_a_fraction_of_nought():
    read = spec.sandbox({"limits": {"memory_mb": 64.0}, "ports": [8080.0]})
    assert (repr(read.limits.memory_mb), repr(read.forwards[0].port)) == ("64", "8080")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b'{"read": ["/a"], "read": ["/b"]}', "'read' is given twice in one object"),
        (b'{"limits": {"pids": 1, "pids": 2}}', "'pids' is given twice in one object"),
        (b'{"limits": {"wall_s": NaN}}', "NaN is no number of JSON"),
        (b'{"limits": {"wall_s": 1e999}}', "limits.wall_s: expected a number"),
        (b'{"a":' * 100_000, "nested too deep"),
        (b"{", "line 1 column 2"),
        (b"", "line 1 column 1"),
        (b"{} {}", "Extra data"),
        (b'{"role": "\xff"}', "utf-8"),
    ],
)
def test_bytes_that_are_no_json_or_say_something_twice_are_refused(text, words):
    with pytest.raises(ValueError, match=re.escape(words)) as refused:
        spec.parsed(text)
    assert "\n" not in str(refused.value)


def test_a_sandbox_is_read_from_bytes():
    assert spec.parsed(b' {"role": "task"}\n') == Sandbox(role="task")


def test_what_is_read_is_not_changed():
    given = {"read": ["/a"], "env": {"A": "1"}}
    spec.sandbox(given)
    assert given == {"read": ["/a"], "env": {"A": "1"}}
