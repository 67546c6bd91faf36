"""Whose failure it is when an agent's work cannot be collected."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hermit import sandbox as sandboxes
from hermit.agent.result import Failure
from hermit.errors import SandboxError
from hermit.handoff.collect import Collection
from hermit.run import bench
from hermit.run.trial import Trial

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PLACE = sandboxes.unconfined("a test of the collecting")


def collected(run: Any, left: Callable[[Path], object]) -> tuple[Collection | Failure, list[str]]:
    """What comes of a work directory that an agent left so, and the files in the log directory of its attempt."""
    plan = run.plan("judge.mode=separate", "judge.collect=[.]")
    with bench.opened(plan, PLACE, PLACE) as made, made.workspace(plan.attempts[0]) as workspace:
        left(workspace.work)
        found = Trial(made, workspace).collect()
        return found, sorted(path.name for path in plan.paths.logs(*workspace.attempt.key).iterdir())


def test_what_was_collected_is_named_in_the_log_directory_of_its_attempt(run: Any) -> None:
    found, files = collected(run, lambda work: (work / "answer").write_text("42"))
    assert isinstance(found, Collection)
    assert (found.entries, found.bytes, files) == (1, 2, ["collected.jsonl"])
    assert set(found.as_json()) == {"entries", "bytes", "apparent_bytes", "same_but_case", "digest"}
    json.dumps(found.as_json())


def test_a_work_directory_that_is_none_any_more_is_the_agents_failure_and_not_ours(run: Any) -> None:
    def exchange(work: Path) -> None:
        work.rmdir()
        work.symlink_to("/etc")

    found, files = collected(run, exchange)
    assert found == Failure("collect", "its work directory cannot be read: link")
    assert files == []


def test_a_tree_too_deep_is_the_agents_failure_and_leaves_no_manifest(run: Any) -> None:
    found, files = collected(run, lambda work: (work / "/".join("d" * 130)).mkdir(parents=True))
    assert isinstance(found, Failure)
    assert "budget: depth" in found.error
    assert files == []


def test_a_copy_that_cannot_be_written_is_our_failure(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("hermit.handoff.sanitize.write_all", full)
    with pytest.raises(SandboxError, match="No space left"):
        collected(run, lambda work: (work / "answer").write_text("42"))
