"""What the attempts share: a scratch that is gone afterwards whatever was left in it, and one way to give up."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import select
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hermit import sandbox as sandboxes
from hermit.agent.result import Failure
from hermit.domain.command import Command
from hermit.domain.limits import Limits
from hermit.domain.sandbox import Sandbox
from hermit.errors import ConfigError, HermitError, Interrupted, SandboxError
from hermit.run import bench

if TYPE_CHECKING:
    from collections.abc import Callable

NOBODY = 65534
PLACE = sandboxes.unconfined("a test of the bench")


def as_nobody(action: Callable[[Path], bool]) -> None:
    """Does it in a directory of its own, in a fork that root's power has left."""
    with tempfile.TemporaryDirectory(dir="/tmp") as directory:
        os.chmod(directory, 0o777)  # noqa: S103 - another user works in it
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            said = "it returned false"
            try:
                if os.geteuid() == 0:
                    os.setgroups([])
                    os.setgid(NOBODY)
                    os.setuid(NOBODY)
                said = "" if action(Path(directory)) else said
            except BaseException as error:  # noqa: BLE001 - this copy of pytest must not go on
                said = f"{type(error).__name__}: {error}"
            finally:
                os.write(write, said.encode()[:4000])
                os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as stream:
            said = stream.read().decode()
        os.waitpid(pid, 0)
        assert said == ""


def test_a_stop_can_be_read_by_everybody_and_for_ever_once_it_is_set() -> None:
    with bench.Stop() as stop:
        assert select.select([stop.descriptor], [], [], 0)[0] == []
        stop.set()
        stop.set()
        for _ in range(2):
            assert select.select([stop.descriptor], [], [], 0)[0] == [stop.descriptor]


def test_a_bench_leaves_no_scratch_and_no_descriptor(run: Any) -> None:
    before = os.listdir("/proc/self/fd")
    with bench.opened(run.plan(), PLACE, PLACE) as made, made.workspace(made.plan.attempts[0]) as workspace:
        assert workspace.work.is_dir()
        assert list(run.scratch.iterdir()) == [made.scratch]
    assert list(run.scratch.iterdir()) == []
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_a_bench_is_gone_also_when_something_fails_in_it(run: Any) -> None:
    with pytest.raises(ZeroDivisionError), bench.opened(run.plan(), PLACE, PLACE):
        raise ZeroDivisionError
    assert list(run.scratch.iterdir()) == []


def test_the_scratch_of_a_killed_run_is_removed_whatever_the_clock_says_and_that_of_a_living_one_is_not(
    run: Any,
) -> None:
    for name in ("young", "future", "alive"):
        (run.scratch / f"{bench.SCRATCH}{name}").mkdir()
    os.utime(run.scratch / f"{bench.SCRATCH}future", (4e9, 4e9))
    os.utime(run.scratch / f"{bench.SCRATCH}alive", (0, 0))
    held = os.open(run.scratch / f"{bench.SCRATCH}alive", os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        with bench.opened(run.plan(), PLACE, PLACE) as made:
            assert sorted(run.scratch.iterdir()) == sorted([made.scratch, run.scratch / f"{bench.SCRATCH}alive"])
    finally:
        os.close(held)


def test_a_scratch_that_another_run_removed_before_it_was_locked_is_made_anew(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, removed = fcntl.flock, []

    def late(descriptor: int, operation: int) -> None:
        if not removed:
            removed.append(os.readlink(f"/proc/self/fd/{descriptor}"))
            os.rmdir(removed[0])
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", late)
    with bench.opened(run.plan(), PLACE, PLACE) as made:
        assert made.scratch.is_dir()
        assert str(made.scratch) not in removed


def test_the_adapter_is_frozen_for_the_run(run: Any) -> None:
    adapter = run.root / "adapter"
    adapter.mkdir()
    (adapter / "ADAPTER.md").write_text("one")
    with bench.opened(run.plan(adapter=str(adapter)), PLACE, PLACE) as made:
        (adapter / "ADAPTER.md").write_text("two")
        assert made.adapter is not None
        assert (Path(made.adapter) / "ADAPTER.md").read_text() == "one"


def test_an_adapter_that_vanished_is_refused_and_leaves_no_scratch(run: Any) -> None:
    (run.root / "adapter").mkdir()
    plan = run.plan(adapter=str(run.root / "adapter"))
    (run.root / "adapter").rmdir()
    with pytest.raises(ConfigError), bench.opened(plan, PLACE, PLACE):
        pass
    assert list(run.scratch.iterdir()) == []


def test_two_attempts_work_in_two_directories(run: Any) -> None:
    with bench.opened(run.plan(), PLACE, PLACE) as made:
        one, other = made.plan.attempts[:2]
        with made.workspace(one) as first, made.workspace(other) as second:
            assert first.work.parent != second.work.parent
            (first.work / "mine").touch()
            assert list(second.work.iterdir()) == []


def test_each_start_leaves_a_record_that_the_attempt_names(run: Any) -> None:
    command = Command(worker="hermit.agent.worker:run_agent", job=b"{}")
    sandbox = Sandbox(framework=True, cwd="/", env=(("GIVEN", "planted-5bd1"),))
    with bench.opened(run.plan(), PLACE, PLACE) as made, made.workspace(made.plan.attempts[0]) as workspace:
        assert isinstance(workspace.run(PLACE, sandbox, command), Failure)
        workspace.run(PLACE, sandbox, command)
        assert len(set(workspace.records)) == 2
        for name in workspace.records:
            record = json.loads((made.plan.paths.records / name).read_text())
            assert (record["role"], record["confined"], "GIVEN" in record["variables"]) == ("tool", False, True)
            assert "planted-5bd1" not in json.dumps(record)


def test_a_record_is_whole_or_absent_and_one_that_cannot_be_kept_ends_the_run(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    plan = run.plan()
    with bench.opened(plan, PLACE, PLACE) as made, made.workspace(plan.attempts[0]) as workspace:
        with pytest.raises(HermitError, match="No space left") as caught:
            workspace.run(PLACE, Sandbox(role="task"), Command(argv=("true",)))
        assert not isinstance(caught.value, SandboxError)
    assert list(plan.paths.records.iterdir()) == []
    assert list(plan.paths.evaluation.iterdir()) == []


def test_what_was_printed_is_kept_up_to_the_cap_and_the_rest_is_counted(run: Any) -> None:
    command = Command(argv=("sh", "-c", "head -c 3000000 /dev/zero; echo words >&2"))
    with bench.opened(run.plan(), PLACE, PLACE) as made, made.workspace(made.plan.attempts[0]) as workspace:
        workspace.run(PLACE, Sandbox(cwd="/"), command)
        logs = made.plan.paths.logs(*workspace.attempt.key)
    assert (logs / "agent.err").read_text() == "words\n"
    assert (logs / "agent.out").read_bytes().endswith(b"more bytes were not kept]\n")
    assert (logs / "agent.out").stat().st_size < 1_100_000


def test_a_run_that_is_given_up_ends_what_it_has_started(run: Any) -> None:
    with bench.opened(run.plan(), PLACE, PLACE) as made, made.workspace(made.plan.attempts[0]) as workspace:
        made.stop.set()
        with pytest.raises(Interrupted):
            workspace.run(PLACE, Sandbox(cwd="/", limits=Limits(wall_s=30)), Command(argv=("sleep", "60")))


def test_closed_directories_are_removed_without_roots_power() -> None:
    def left_closed(directory: Path) -> bool:
        root = directory / "scratch"
        (root / "work" / "closed" / "inner").mkdir(parents=True)
        (root / "work" / "closed" / "inner" / "file").touch()
        (root / "work" / "sealed").mkdir()
        (root / "work" / "sealed" / "file").touch()
        (root / "work" / "sealed").chmod(0o500)
        (root / "work" / "closed" / "inner").chmod(0)
        (root / "work" / "closed").chmod(0)
        (root / "work").chmod(0)
        try:
            bench.remove(root)
            return not root.exists()
        finally:
            os.system(f"chmod -R u+rwx {root} 2>/dev/null")  # noqa: S605

    as_nobody(left_closed)


def test_removing_follows_no_link_and_opens_nothing_outside(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").touch()
    (tmp_path / "outside").chmod(0o500)
    (tmp_path / "scratch" / "d").mkdir(parents=True)
    (tmp_path / "scratch" / "d" / "link").symlink_to(tmp_path / "outside")
    bench.remove(tmp_path / "scratch")
    assert (tmp_path / "outside" / "file").exists()
    assert (tmp_path / "outside").stat().st_mode & 0o777 == 0o500
    assert not (tmp_path / "scratch").exists()


def test_the_directories_of_an_attempt_are_gone_while_the_run_goes_on(run: Any) -> None:
    plan = run.plan()
    place = sandboxes.unconfined("a test")
    with bench.opened(plan, place, place) as opened:
        with opened.workspace(plan.attempts[0]) as workspace:
            (workspace.work / "left").touch()
        for exchange in (opened.exchange, opened.judge_exchange):
            assert list(exchange.iterdir()) == []
