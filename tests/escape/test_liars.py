"""A bubblewrap that lies never runs a command as if it were confined."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace

import pytest

from hermit import clock
from hermit import sandbox as sandboxes
from hermit.bwrap.prepare import Prepared
from hermit.domain.command import Command
from hermit.domain.sandbox import Enforce, Sandbox
from hermit.errors import PlaceError, SandboxError

pytestmark = pytest.mark.bwrap

SAYS_ITS_VERSION = 'if [ "$1" = --version ]; then echo "bubblewrap 0.8.0"; exit 0; fi\n'
DOES_NOTHING = "exit 0\n"
FAILS = "echo 'bwrap: something new' >&2; exit 1\n"
HANGS = "exec sleep 60\n"
# Leaves bubblewrap's own options out and runs what follows them.
RUNS_IT_BARE = """
while [ "$1" != -- ]; do shift; done
shift; exec "$@"
"""
TALKS_INSTEAD = """
echo forged; echo '{"exit-code": 0}'; exit 0
"""


@pytest.fixture
def liar(field, tmp_path):
    """A range whose bubblewrap is a program of the test's."""

    def make(text):
        directory = tmp_path / "bin"
        directory.mkdir(exist_ok=True)
        program = directory / "bwrap"
        program.write_text("#!/bin/sh\n" + text)
        program.chmod(0o755)
        return replace(field, place=replace(field.place, backend=replace(field.place.backend, program=str(program))))

    return make


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        pytest.param(DOES_NOTHING, "start", id="does_nothing_and_succeeds"),
        pytest.param(FAILS, "start", id="fails"),
        pytest.param(RUNS_IT_BARE, "check", id="runs_the_command_bare"),
        pytest.param(TALKS_INSTEAD, "start", id="talks_instead"),
    ],
)
def test_no_command_runs_in_a_bubblewrap_that(field, liar, text, cause):
    with pytest.raises(SandboxError) as refused:
        liar(text).run(field.sandbox(), "touch", f"{field.work}/ran")
    assert refused.value.cause == cause
    assert not (field.work / "ran").exists()


def test_without_the_relays_checks_a_bubblewrap_that_confines_nothing_would_run_the_command(field, liar, monkeypatch):
    order = Prepared.orders
    monkeypatch.setattr(
        Prepared, "orders", lambda *given, **named: replace(order(*given, **named), checks={"confined": False})
    )
    liar(RUNS_IT_BARE).run(field.sandbox(), "touch", f"{field.work}/ran")
    assert (field.work / "ran").exists()


def test_a_bubblewrap_that_hangs_is_given_up(field, liar, monkeypatch):
    monkeypatch.setattr(clock, "START_S", 0.3)
    with pytest.raises(SandboxError) as refused:
        liar(HANGS).run(field.sandbox(), "touch", f"{field.work}/ran")
    assert refused.value.cause == "start timeout"


def test_what_a_bubblewrap_that_is_given_up_has_started_ends_with_it(field, liar, monkeypatch):
    monkeypatch.setattr(clock, "START_S", 0.3)
    lock = f"{field.work}/lock"
    with pytest.raises(SandboxError):
        liar(f"flock {lock} sleep 30 & wait\n").run(field.sandbox(), "true")
    with open(lock) as held:
        wait = ["flock", "--wait", "5", str(held.fileno())]
        assert subprocess.run(wait, pass_fds=[held.fileno()], check=False).returncode == 0


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(DOES_NOTHING, id="says_nothing"),
        pytest.param("echo bubblewrap; exit 1\n", id="has_no_version"),
        pytest.param(SAYS_ITS_VERSION + DOES_NOTHING, id="does_nothing_but_say_its_version"),
        pytest.param(SAYS_ITS_VERSION + FAILS, id="fails"),
        pytest.param(SAYS_ITS_VERSION + RUNS_IT_BARE, id="confines_nothing"),
        pytest.param(SAYS_ITS_VERSION + TALKS_INSTEAD, id="talks_instead"),
    ],
)
def test_the_preflight_refuses_a_machine_whose_bubblewrap(liar, monkeypatch, text):
    directory = os.path.dirname(liar(text).place.backend.program)
    monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")
    with pytest.raises(PlaceError):
        sandboxes.preflight()


def test_the_preflight_refuses_a_machine_without_bubblewrap_and_says_how_to_install_it(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(PlaceError) as refused:
        sandboxes.preflight()
    assert "install bubblewrap" in refused.value.cure


def test_best_effort_runs_unconfined_where_bubblewrap_lies_and_says_so_in_place_and_record(liar, monkeypatch):
    directory = os.path.dirname(liar(SAYS_ITS_VERSION + RUNS_IT_BARE).place.backend.program)
    monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")
    place = sandboxes.preflight(Enforce.BEST_EFFORT)
    assert place.confined is False
    records = []
    place.run(Sandbox(), Command(argv=("true",)), keep=records.append)
    assert records[0].confined is False
    assert "not closed" in records[0].reason
