"""What held an attempt is read from its records; what cannot be read is counted, never taken for good."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hermit.domain.record import Check
from hermit.run.reading import isolation


def test_every_field_of_a_record_is_read(maker: Any, a_row: Any, a_record: Any) -> None:
    made = a_record(image="hermit", reaches=("80 -> x",), warnings=("weak",), network="isolated", reason="")
    run = maker.opened([a_row("a", records=["r.json"])], records={"r.json": made})
    start = isolation.start(run.top, "r.json")
    assert start is not None
    for name in ("role", "backend", "version", "confined", "image", "network", "reaches", "warnings", "variables"):
        assert getattr(start, name) == getattr(made, name)
    assert (start.ended, start.empty, start.held_by) == ("exit 0", True, "bubblewrap 0.8.0")
    assert [(bind.source, bind.target, bind.writable) for bind in start.binds] == [
        ("/usr", "/usr", False),
        ("/tmp/work", "/work", True),
    ]
    assert start.limits == (isolation.Bound("memory_mb", "1,048,576", "cgroup memory"),)
    assert start.checks == (isolation.Check("own processes", passed=True, detail="1 visible"),)


def test_what_all_records_say_is_counted(maker: Any, a_row: Any, a_record: Any) -> None:
    records = {
        "1.json": a_record(),
        "2.json": a_record(role="judge", image="hermit-judge", warnings=("weak",), empty=False),
        "3.json": a_record(backend="unconfined", version="", confined=False, reason="asked for", checks=()),
        "4.json": a_record(checks=(Check("own processes", passed=False, detail="7 visible"),)),
        "5.json": b"{}",
    }
    rows = [a_row("a", records=["1.json", "2.json"]), a_row("b", records=["3.json", "4.json", "5.json", "none"])]
    found = isolation.of_run(maker.opened(rows, records=records)).as_json()
    assert found == {
        "starts": {"task": 3, "judge": 1},
        "held_by": {"bubblewrap 0.8.0": 3, "nothing": 1},
        "images": {"": 3, "hermit-judge": 1},
        "unconfined": {"asked for": 1},
        "checks_passed": 2,
        "checks_failed": {"own processes": 1},
        "warnings": {"weak": 1},
        "records_missing": 2,
        "not_seen_empty": 1,
    }


@pytest.mark.parametrize(
    "wrong",
    [
        {"confined": "yes"},
        {"empty": 1},
        {"checks": [{"name": "x", "passed": "true", "detail": ""}]},
        {"binds": [{"source": "/x", "target": "/x", "writable": 0}]},
    ],
)
def test_what_is_no_truth_value_is_read_as_the_worse_one(maker: Any, a_row: Any, a_record: Any, wrong: Any) -> None:
    document = json.dumps({**json.loads(a_record().as_json()), **wrong}).encode()
    start = isolation.start(maker.opened([a_row("a")], records={"r.json": document}).top, "r.json")
    assert start is not None
    worse = not start.confined or not start.empty or start.failed or start.binds[0].writable
    assert worse


@pytest.mark.parametrize("data", [b"", b"[]", b"null", b"\xff", b"[" * 5000, b'{"role": "task"}'])
def test_a_record_that_is_none_is_missing(maker: Any, a_row: Any, data: bytes) -> None:
    assert isolation.start(maker.opened([a_row("a")], records={"r.json": data}).top, "r.json") is None
