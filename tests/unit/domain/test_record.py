"""Records and trials as plain data."""

from __future__ import annotations

import json

from hermit.domain.bind import Bind
from hermit.domain.record import Check, Record
from hermit.domain.trial import JudgeResult, RunOutput


def test_a_record_is_plain_json_with_each_limit_and_what_holds_it():
    record = Record(
        role="task",
        backend="bubblewrap",
        version="1",
        confined=True,
        binds=(Bind("/a", "/b"),),
        limits=(("pids", 5, "cgroup pids"),),
        checks=(Check("user", passed=True, detail="uid 1000"),),
    )
    document = json.loads(record.as_json())
    assert document["limits"] == [{"name": "pids", "value": 5, "held_by": "cgroup pids"}]
    assert document["binds"] == [{"source": "/a", "target": "/b", "writable": False}]
    assert document["checks"] == [{"name": "user", "passed": True, "detail": "uid 1000"}]


def test_a_file_of_a_record_has_a_line_for_each_bind_and_check():
    checks = (Check("one", passed=True), Check("two", passed=False, detail="a\nb"))
    record = Record(role="task", backend="b", version="1", confined=True, binds=(Bind("/a", "/b"),), checks=checks)
    lines = record.as_json().decode("ascii").splitlines()
    assert [line.strip(" ,") for line in lines if '"source"' in line] == [
        '{"source": "/a", "target": "/b", "writable": false}'
    ]
    assert sum('"passed"' in line for line in lines) == 2


def test_results_are_equal_by_their_fields_and_only_within_their_class():
    assert RunOutput(output=1) == RunOutput(output=1)
    assert RunOutput(output=1) != RunOutput(output=2)
    assert JudgeResult(1.0) != RunOutput(output=1.0)


def test_two_outputs_never_share_a_list():
    first, second = RunOutput(), RunOutput()
    first.messages.append("x")
    first.extra["a"] = 1
    assert (second.messages, second.extra) == ([], {})
