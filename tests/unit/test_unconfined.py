"""A command without a sandbox says so, and is still bounded and ended."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hermit import sandbox as sandboxes
from hermit.domain.bind import Bind
from hermit.domain.command import Command
from hermit.domain.limits import Limits
from hermit.domain.sandbox import Sandbox
from hermit.errors import SandboxError

CLOCK = Limits(wall_s=30)


@pytest.fixture
def run():
    place = sandboxes.unconfined("the test says so")

    def start(sandbox, *words, **more):
        records = []
        return place.run(sandbox, Command(argv=words), keep=records.append, **more), records

    return start


def test_the_record_says_that_nothing_was_confined_and_why(run):
    _, (record,) = run(Sandbox(limits=CLOCK, read=("/etc",)), "true")
    assert (record.backend, record.confined, record.reason) == ("unconfined", False, "the test says so")
    assert (record.network, record.checks, record.ended, record.empty) == ("open", (), "exit 0", True)
    assert {name: held for name, _, held in record.limits}["pids"] == "nothing: unconfined"


def test_a_path_under_another_name_is_refused_rather_than_shown_somewhere_else(run):
    with pytest.raises(SandboxError, match="cannot be shown as") as refused:
        run(Sandbox(binds=(Bind("/etc", "/w/etc"),), limits=CLOCK), "true")
    assert refused.value.cause == "unconfined"


def test_a_place_that_confines_nothing_says_so():
    assert sandboxes.unconfined("x").confined is False


def test_a_failed_start_leaves_a_record_too(monkeypatch):
    place = sandboxes.unconfined("x")
    broken = replace(
        place, backend=replace(place.backend, python=replace(place.backend.python, executable="/bin/false"))
    )
    records = []
    with pytest.raises(SandboxError) as failed:
        broken.run(Sandbox(limits=CLOCK), Command(argv=("true",)), keep=records.append)
    assert failed.value.cause == "start"
    assert records[0].ended.startswith("SandboxError")


def test_the_hosts_variables_pass_and_the_declared_ones_win(run):
    sandbox = Sandbox(env=(("A", "declared"), ("PATH", "/usr/bin")), limits=CLOCK)
    outcome, _ = run(sandbox, "/usr/bin/env", variables={"A": "host", "B": "host", "PATH": "/bin"})
    seen = dict(line.split("=", 1) for line in outcome.stdout.kept.decode().splitlines())
    assert (seen["A"], seen["B"], seen["PATH"]) == ("declared", "host", "/usr/bin")
