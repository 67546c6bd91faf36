"""The published schema of a sandbox and the reader take the same documents."""

from __future__ import annotations

import copy
import json
import string
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from hermit.domain import schema, spec
from hermit.domain.limits import MOST, Limits
from hermit.domain.sandbox import Sandbox

PUBLISHED = Path(schema.__file__).with_name("sandbox.schema.json")
AGAIN = "python -m hermit.sandbox --schema > hermit/domain/sandbox.schema.json"
VALIDATOR = Draft202012Validator(schema.schema())

letters = st.text(string.ascii_lowercase, min_size=1, max_size=6)
# Each field has roots of its own, so that no path is shown twice and none below a writable one.
counted = st.integers(0, 99).map(str)


def paths(root):
    tails = st.sampled_from(["", "/", "//x", "/./x", "/ x", "/\u2603\n", "/..x", "/\U0001f600", "/\udc80"])
    return st.lists(st.builds("{}{}{}".format, st.just(f"/{root}"), counted, tails), max_size=3, unique_by=root_of)


def root_of(path):
    return path.split("/")[1]


binds = st.lists(
    st.fixed_dictionaries(
        {"source": st.sampled_from(["/", "/s", "/s/t"]), "target": counted.map("/t{}".format)},
        optional={"writable": st.booleans()},
    ),
    max_size=3,
    unique_by=lambda bind: bind["target"],
)
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=8)
variables = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True)
names = st.from_regex(r"\w[\w-]{0,4}(\.\w[\w-]{0,4}){0,2}", fullmatch=True)
whole = st.integers(1, MOST) | st.sampled_from([1, 64.0, MOST])
bounds = {
    **dict.fromkeys(("memory_mb", "file_mb", "open_files", "cpu_s", "pids", "disk_mb"), whole | st.none()),
    **dict.fromkeys(("tmp_mb", "output_bytes"), whole),
    "wall_s": whole | st.floats(0, MOST, exclude_min=True) | st.none(),
}
documents = st.fixed_dictionaries(
    {},
    optional={
        "role": letters,
        "read": paths("r"),
        "write": paths("w"),
        "binds": binds,
        "cwd": st.sampled_from(["/", "/w", "/w/./x"]),
        "network": st.just("isolated"),
        "allowed_hosts": st.lists(st.sampled_from(["api.example.com", "*.example.com", "[::1]:80"]), max_size=2),
        "ports": st.lists(st.integers(1024, 30000), max_size=3, unique=True),
        "sockets": st.dictionaries(st.integers(30001, 65535).map(str), st.just("/run/x.sock"), max_size=2),
        "env": st.dictionaries(variables, texts, max_size=2),
        "env_allow": st.lists(st.sampled_from(["A", "MWM_*", "*_X", "_1"]), max_size=2),
        "limits": st.fixed_dictionaries({}, optional=bounds),
        "probes": st.lists(st.sampled_from(["/", "/p", "/p/q"]), max_size=2),
        "framework": st.booleans(),
        "packages": st.lists(names, max_size=2),
        "hide": st.lists(names, max_size=2),
        "layout": st.none() | st.just({"outside": "/o", "inside": "/i"}),
        "enforce": st.sampled_from(["required", "best_effort"]),
    },
)
# What may stand in the place of anything: right in some places, wrong in most.
ANYTHING = [
    *(None, True, False, 0, 1, -1, 1.5, 64.0, 1024, 65535, 65536, 80, MOST, MOST + 1, 1e300, 10**30),
    *("", "x", "/", "//", "/.", "/x", "/x/..", "/../x", "/x\0", "/x\n", "/..\n", "/\ud800", "/\udc80", "x\n", "x\0"),
    *("A", "A B", "A\n", "*", "*_", "MWM_*", "1A", "open", "isolated", "required", "8080", "08080", "\u0664\u0662"),
    *("a" * 32, "a" * 33, "A-b", "a..b", ".a", "a.", "http://x", "x@y", "a b", "*.x"),
    *([], [1], [None], ["/x"], ["x"], [[]], [{}], {}, {"x": 1}, {"source": "/a", "target": "/t"}, {"wall_s": 1}),
    *({"outside": "/a", "inside": "/b"}, {"outside": "/a"}, {"8080": "/x"}, {"80": "/x"}, {"A": "1"}, [8080, 8080.0]),
]
KEYS = [
    "x",
    "read",
    "Read",
    "reed",
    "writable",
    "source",
    "memory_mb",
    "memory",
    "A",
    "8080",
    "1024",
    "1023",
    "forwards",
]


def accepted(document, *, together=True):
    """Whether the reader takes it; fields that only cannot be together are no matter of the schema."""
    try:
        spec.sandbox(document)
    except spec.Conflict:
        return together
    except ValueError:
        return False
    return True


def places(document, at=()):
    """Every place of a document."""
    yield at
    inner = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in inner:
        yield from places(value, (*at, key))


@st.composite
def mutated(draw):
    """A document with a few things changed: a value replaced, a part removed, a field added or renamed."""
    holder = {"whole": copy.deepcopy(draw(documents))}
    for _ in range(draw(st.integers(1, 2))):
        spots = [place for place in places(holder) if place]
        *above, last = draw(st.sampled_from(spots))
        within = holder
        for key in above:
            within = within[key]
        change = draw(st.sampled_from(["replace", "remove", "add", "rename"]))
        if change == "replace" or len(above) == 0:
            within[last] = copy.deepcopy(draw(st.sampled_from(ANYTHING)))
        elif change == "remove":
            del within[last]
        elif isinstance(within, dict):
            value = within.pop(last) if change == "rename" else copy.deepcopy(draw(st.sampled_from(ANYTHING)))
            within[draw(st.sampled_from(KEYS))] = value
        else:
            within.append(copy.deepcopy(draw(st.sampled_from(ANYTHING))))
    return holder["whole"]


def test_the_published_file_is_what_the_code_says():
    assert json.loads(PUBLISHED.read_text(encoding="utf-8")) == schema.schema(), AGAIN


def test_the_schema_is_one():
    Draft202012Validator.check_schema(schema.schema())


def test_the_schema_has_every_field_and_bound_with_its_default():
    told = schema.schema()["properties"]
    assert set(told) == {field.name for field in fields(Sandbox)} - {"forwards"} | {"ports", "sockets"}
    assert set(told["limits"]["properties"]) == {field.name for field in fields(Limits)}
    defaults = {name: field["default"] for name, field in told.items()}
    assert spec.sandbox(defaults) == Sandbox()
    bound = {name: field["default"] for name, field in told["limits"]["properties"].items()}
    assert spec.sandbox({"limits": bound}) == Sandbox()
    assert all(field["title"] and field["description"] for field in told.values())


@given(documents)
def test_what_is_right_is_taken_by_both(document):
    assert VALIDATOR.is_valid(document)
    spec.sandbox(document)


@settings(max_examples=500, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(mutated())
def test_a_changed_document_is_taken_by_both_or_by_neither(document):
    assert accepted(document) == VALIDATOR.is_valid(document)


@pytest.mark.parametrize("name", sorted(schema.schema()["properties"]))
def test_each_field_takes_and_refuses_the_same_values_in_both(name):
    alone = [{name: value} for value in ANYTHING]
    verdicts = [(accepted(document, together=False), VALIDATOR.is_valid(document)) for document in alone]
    assert [document for document, (reader, told) in zip(alone, verdicts, strict=True) if reader != told] == []
    assert {reader for reader, _ in verdicts} == {True, False}


@pytest.mark.parametrize("name", schema.ISOLATED_ONLY)
def test_an_open_network_has_nothing_that_only_an_isolated_one_has(name):
    some = {"allowed_hosts": ["a.example.com"], "ports": [8080], "sockets": {"8080": "/x"}}
    for network, taken in (("isolated", True), ("open", False)):
        document = {"network": network, name: some[name]}
        assert accepted(document) is VALIDATOR.is_valid(document) is taken
        assert accepted({"network": network, name: type(some[name])()})


def test_a_reader_that_takes_more_than_the_schema_is_seen(monkeypatch):
    wider = schema.schema()
    wider["properties"]["packages"]["items"] = {"type": "string", "title": "text"}
    monkeypatch.setattr(spec, "_schema", lambda: wider)
    with pytest.raises(AssertionError, match="packages"):
        test_each_field_takes_and_refuses_the_same_values_in_both("packages")
