"""A text as a learner is told it: what lies below its root is named from there."""

from __future__ import annotations

import json

import pytest

from hermit.domain.bind import Bind
from hermit.domain.pathmap import Layout, PathMap

LEARNER = PathMap(
    (
        Bind("/runs/r/adapter", "/w/adapter", writable=True),
        Bind("/data/sim", "/w/environment/sim"),
        Bind("/opt/t", "/tools"),
    ),
    Layout("/runs/r", "/w"),
)
MWM = PathMap(
    (Bind("/runs/r/adapter", "/w", writable=True), Bind("/runs/r/m", "/evidence")), Layout("/runs/r/adapter", "/w")
)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("see /runs/r/adapter/a.md.", "see adapter/a.md."),
        ("/runs/r/adapter", "adapter"),
        ("in /runs/r, or /runs/r/ itself", "in /w, or /w/ itself"),
        ("'/data/sim/x y' (/data/sim)", "'environment/sim/x y' (environment/sim)"),
        ("/opt/t/run stays absolute", "/tools/run stays absolute"),
        ("/w/adapter and /ww/x stay, /runs/r/adapter/b does not", "/w/adapter and /ww/x stay, adapter/b does not"),
        ("/runs/r/other and /runs/rr/adapter are nobody's", "/runs/r/other and /runs/rr/adapter are nobody's"),
        ("https://h/runs/r/adapter", "https://h/runs/r/adapter"),
        ("", ""),
    ],
)
def test_what_lies_below_the_root_is_told_from_there(text: str, told: str) -> None:
    assert LEARNER.relative_text(text) == told


def test_a_json_string_stays_one() -> None:
    text = json.dumps({"path": "/runs/r/adapter/é", "n": "a\n/data/sim/x"})
    assert json.loads(LEARNER.relative_text(text)) == {"path": "adapter/é", "n": "a\nenvironment/sim/x"}


def test_a_root_that_is_shown_itself_is_told_as_it_is() -> None:
    assert MWM.relative_text("/runs/r/adapter, /runs/r/adapter/s/a.md, /runs/r/m/1") == "/w, s/a.md, /evidence/1"


def test_without_a_layout_every_path_stays_absolute() -> None:
    assert PathMap(LEARNER.binds).relative_text("/runs/r/adapter/a") == "/w/adapter/a"
