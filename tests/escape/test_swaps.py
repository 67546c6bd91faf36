"""A granted path, swapped between the look at it and the mount: the old file is shown, or nothing starts."""

from __future__ import annotations

import os
import threading
from dataclasses import replace

import pytest

from hermit import proc
from hermit.bwrap import argv
from hermit.bwrap.prepare import Prepared
from hermit.domain.bind import Bind
from hermit.domain.command import Command
from hermit.errors import SandboxError

pytestmark = pytest.mark.bwrap

READ = """
def attack(path):
    with open(path) as file:
        return file.read() == "the answer"
"""
WRITE = """
def attack(path):
    with open(path, "w") as file:
        file.write("planted")
    return True
"""
# The relay's check, cut out.
CUT = {"inside/checks.py": ("if (shown.st_dev, shown.st_ino) != (device, inode):", "if False:")}
CHECK = "grants are what was opened"
TURNS = 30  # about every second one meets a swap


def by_link(field):
    """A link that leads to the secret's directory by the time it is mounted."""
    source = field.work.parent / "link"
    source.symlink_to(field.shown)

    def swap():
        source.unlink()
        source.symlink_to(field.secret.parent)

    return Bind(str(source), "/given"), "/given/answers.jsonl", swap


def by_a_link_on_the_way(field):
    """A directory above the source that becomes a link to another tree with the same names in it."""
    above = field.work.parent / "above"
    (above / "hidden").mkdir(parents=True)

    def swap():
        above.rename(field.work.parent / "away")
        above.symlink_to(field.secret.parent.parent)

    return Bind(str(above / "hidden"), "/given"), "/given/answers.jsonl", swap


def by_rename(field):
    """A directory in whose place the secret's own lies by the time it is mounted."""
    source = field.work.parent / "collected"
    source.mkdir()

    def swap():
        source.rename(field.work.parent / "away")
        field.secret.parent.rename(source)

    return Bind(str(source), "/given"), "/given/answers.jsonl", swap


def by_a_hard_link(field):
    """A file whose name is the secret's by the time it is mounted."""
    source = field.work.parent / "file"
    source.write_text("data")

    def swap():
        source.unlink()
        os.link(field.secret, source)

    return Bind(str(source), "/given"), "/given", swap


def to_be_written(field):
    """The same with a file that is granted for writing."""
    bind, path, swap = by_a_hard_link(field)
    return replace(bind, writable=True), path, swap


MANNERS = [by_link, by_a_link_on_the_way, by_rename, by_a_hard_link, to_be_written]


@pytest.fixture
def swapping(monkeypatch):
    """Does something once, after everything was decided and before bubblewrap runs."""

    def at_the_next_start(swap):
        spawn, waiting = proc.spawn, [swap]

        def late(*given, **named):
            while waiting:
                waiting.pop()()
            return spawn(*given, **named)

        monkeypatch.setattr(proc, "spawn", late)

    return at_the_next_start


def reached(field, bind, path, **changes):
    """Whether what lies behind the swap is reached."""
    return field.attack(WRITE if bind.writable else READ, path, sandbox=field.sandbox(binds=(bind,), **changes))


@pytest.mark.parametrize("manner", MANNERS)
def test_a_source_that_was_swapped_shows_what_was_opened_or_ends_the_start(field, swapping, manner):
    bind, path, swap = manner(field)
    swapping(swap)
    try:
        found = reached(field, bind, path)
    except SandboxError as refused:
        assert refused.cause in ("check", "start")  # noqa: PT017 - to be refused is one of the two good ends
    else:
        assert found is bind.writable  # the old file may well be written
    assert "planted" not in {file.read_text() for file in field.work.parent.rglob("answers.jsonl")}


@pytest.mark.parametrize("manner", MANNERS)
def test_where_bubblewrap_looks_the_path_up_again_the_relay_notices(field, swapping, monkeypatch, manner):
    monkeypatch.setattr(argv, "takes_descriptors", lambda _: False)
    bind, path, swap = manner(field)
    swapping(swap)
    with pytest.raises(SandboxError, match=f"{CHECK}: /given") as refused:
        reached(field, bind, path)
    assert refused.value.cause == "check"


@pytest.mark.parametrize("manner", MANNERS)
def test_without_the_relays_check_a_swap_would_reach_the_secret(field, swapping, edited, monkeypatch, manner):
    monkeypatch.setattr(argv, "takes_descriptors", lambda _: False)
    bind, path, swap = manner(field)
    swapping(swap)
    # Nor may the secret be looked for by its numbers, which notices the same.
    assert reached(edited(CUT), bind, path, probes=()) is True


@pytest.fixture
def restless(field):
    """A granted link that leads to one directory and to another by turns, as fast as they can be exchanged."""
    source, fresh = field.work.parent / "link", field.work.parent / "new"
    source.symlink_to(field.shown)
    done = threading.Event()

    def swap():
        while not done.is_set():
            for target in (field.secret.parent, field.shown):
                fresh.symlink_to(target)
                fresh.rename(source)

    swapper = threading.Thread(target=swap)
    swapper.start()
    yield field.sandbox(binds=(Bind(str(source), "/given"),))
    done.set()
    swapper.join()


@pytest.fixture
def looked_at(monkeypatch):
    """The numbers of the files that each start has looked at."""
    order, seen = Prepared.orders, []

    def orders(prepared, **named):
        seen.append({grant.bind.target: grant.inode for grant in prepared.granted})
        return order(prepared, **named)

    monkeypatch.setattr(Prepared, "orders", orders)
    return seen


def shown(field, sandbox, looked_at):
    """Whether the file shown is the one looked at, ``None`` where nothing started."""
    try:
        outcome = field.run(sandbox, "stat", "-c", "%i", "/given")
    except SandboxError as refused:
        assert refused.cause in ("check", "start")  # noqa: PT017 - any other end would be a failure of ours
        return None
    return int(outcome.stdout.kept) == looked_at[-1]["/given"]


def test_a_source_that_is_swapped_all_the_time_shows_what_was_opened_or_ends_the_start(field, restless, looked_at):
    assert False not in [shown(field, restless, looked_at) for _ in range(TURNS)]


def test_without_the_relays_check_it_would_show_what_nobody_had_looked_at(
    field, restless, looked_at, edited, monkeypatch
):
    monkeypatch.setattr(argv, "takes_descriptors", lambda _: False)
    careless, unprobed = edited(CUT), replace(restless, probes=())
    assert any(shown(careless, unprobed, looked_at) is False for _ in range(TURNS))


def test_a_link_shows_what_it_leads_to_and_is_compared_with_that(field):
    link = field.work.parent / "link"
    link.symlink_to(field.shown)
    records = []
    sandbox = field.sandbox(binds=(Bind(str(link), "/given"), Bind(str(link / "data.txt"), "/file")))
    outcome = field.place.run(sandbox, Command(argv=("cat", "/given/data.txt", "/file")), keep=records.append)
    assert outcome.stdout.kept == b"datadata"
    found = {check.name: check.detail for check in records[0].checks}
    assert found[CHECK] == "4 compared"


def test_a_grant_that_is_covered_is_not_compared_and_the_others_are(field):
    (field.shown / "scorer.py").write_text("ANSWER = 42\n")
    records = []
    sandbox = field.sandbox(binds=(Bind(str(field.shown / "scorer.py"), "/given.py"),), hide=("scorer",))
    outcome = field.place.run(sandbox, Command(argv=("cat", "/given.py")), keep=records.append)
    assert (outcome.code, outcome.stdout.total) == (0, 0)
    found = {check.name: check.detail for check in records[0].checks}
    assert found[CHECK] == "2 compared"


def test_a_path_that_the_system_shows_too_is_granted_all_the_same(field):
    records = []
    sandbox = field.sandbox(read=("/usr", str(field.shown)))
    assert field.place.run(sandbox, Command(argv=("true",)), keep=records.append).code == 0
    found = {check.name: check.detail for check in records[0].checks}
    assert found[CHECK] == "3 compared"


def test_a_source_that_went_away_is_named_and_ends_the_start(field, swapping):
    source = field.work.parent / "file"
    source.write_text("data")
    swapping(source.unlink)
    with pytest.raises(SandboxError, match=f"the sandbox did not start: .*{source}") as refused:
        field.run(field.sandbox(read=(str(source),)), "true")
    assert refused.value.cause == "start"
