"""One step in full: what it changed, why not, the tools it called, and the records of its learner."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hermit.run.paths import RunPaths
from hermit.run.reading import lesson

if TYPE_CHECKING:
    from pathlib import Path


def test_a_step_is_shown_with_all_that_is_kept_of_it(maker: Any, whole_training: Any) -> None:
    training = maker.trained(whole_training)
    records = lesson.records_of_calls(training.top)
    full = lesson.of_step(training, training.steps[1], records=records["step_0001"])
    assert [section.title for section in full.sections] == ["What the learner says it did", "And why"]
    assert [section.text.head for section in full.printed] == ["printed"]
    assert [file.path for file in full.change.files] == ["ADAPTER.md", "n"]
    assert [(use.tool, use.came_to, use.unknown) for use in full.uses] == [
        ("check_spec", "1 ok", 0),
        ("t", "1 timeout", 0),
    ]
    assert [(each.what, each.reason) for each in full.failed] == [("t", "too long")]
    assert [file.title for file in full.files] == ["notes.md"]
    assert [start.role for _, start in full.starts] == ["evolver", "tool"]
    facts = {fact.name: fact.value for fact in full.facts}
    assert facts["cost"] == "$0.8500"
    assert facts["tokens"] == "110"


def test_the_reasons_of_an_outcome_are_told_one_by_one(maker: Any, whole_training: Any) -> None:
    training = maker.trained(whole_training)
    verdict = lesson.of_step(training, training.steps[2]).verdict
    assert [vars(each) for each in verdict.found] == [
        {"what": "2 formats", "path": "skills/x", "reason": "it is no text"}
    ]
    assert [each.what for each in verdict.repairs] == ["dropped"]
    assert [each.what for each in verdict.still] == ["2 formats"]
    assert (verdict.not_copied, verdict.more, verdict.path) == ((("link", 2),), 3, "step_0002/check_feedback.json")


def test_a_check_that_passed_found_nothing(maker: Any, step_line: Any) -> None:
    paths = maker.training([step_line(1)])
    check = {"number": 2, "name": "formats", "state": "passed", "problems": [{"path": "x", "reason": "of old"}]}
    maker.step(paths.step(1), checked={"checks": [check, {**check, "state": "not run"}]})
    training = maker.trained(paths)
    assert lesson.of_step(training, training.steps[0]).verdict.found == ()


def test_why_a_call_failed_stands_first(maker: Any, whole_training: Any) -> None:
    training = maker.trained(whole_training)
    full = lesson.of_step(training, training.steps[5])
    assert [(section.title, section.text.head) for section in full.sections] == [
        ("Why the learner's call failed", "exception: it broke")
    ]
    assert full.change is None


def test_many_reasons_are_bounded_and_counted(maker: Any, step_line: Any) -> None:
    paths = maker.training([step_line(1)])
    problems = [{"path": f"{number}", "reason": "r" * 9999} for number in range(lesson.MOST_TOLD + 7)]
    check = {"checks": [{"number": 2, "name": "formats", "state": "failed", "problems": problems}]}
    maker.step(paths.step(1), checked=check)
    training = maker.trained(paths)
    verdict = lesson.of_step(training, training.steps[0]).verdict
    assert (len(verdict.found), verdict.more) == (lesson.MOST_TOLD, 7)
    assert len(verdict.found[0].reason) == lesson.MOST_REASON


def test_odd_documents_say_nothing_and_break_nothing(maker: Any, step_line: Any) -> None:
    paths = maker.training([step_line(1)])
    odd: list[Any] = [[], 5, {"checks": 5}, {"checks": [5, {"state": "failed", "problems": [5, {}]}], "not_copied": []}]
    odd += [{"repairs": [5], "after_repair": 5, "more_repairs": {"x": "y"}}]
    for document in odd:
        maker.step(paths.step(1), checked=document, calls=[5, {}, {"tool": 5, "seconds": "x", "status": None}])
        training = maker.trained(paths)
        assert lesson.of_step(training, training.steps[0]).change is not None


def test_a_torn_log_of_tools_is_read_as_far_as_it_goes(maker: Any, step_line: Any) -> None:
    paths = maker.training([step_line(1)])
    call = {"tool": "check_spec", "status": "ok", "seconds": 1, "cost_usd": None}
    maker.step(paths.step(1), calls=[call, call])
    paths.step(1).tools.write_bytes(paths.step(1).tools.read_bytes()[:-9])
    training = maker.trained(paths)
    (use,) = lesson.of_step(training, training.steps[0]).uses
    assert (use.came_to, use.unknown) == ("1 ok", 1)


def test_attempts_that_the_learner_asked_for_are_named(maker: Any, step_line: Any) -> None:
    paths = maker.training([step_line(1)])
    for number in (2, 10, 1):
        paths.step(1).rollout(number).evaluation.mkdir(parents=True)
    (paths.step(1).evaluation / "run_agent" / "<b>").mkdir()
    training = maker.trained(paths)
    found = lesson.of_step(training, training.steps[0]).rollouts
    assert found == tuple(f"step_0001/run_agent/{number}" for number in (1, 2, 10))


def test_files_of_a_step_that_lead_elsewhere_are_not_read(maker: Any, step_line: Any, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "file").write_text("diff --git a/x b/x\n+secret\n")
    paths = maker.training([step_line(1)])
    place = paths.step(1)
    for path in (place.change, place.check, place.tools, place.evaluation / "learner.out"):
        path.unlink(missing_ok=True)
        path.symlink_to(tmp_path / "secret" / "file")
    place.call.mkdir()
    place.left("output").symlink_to(tmp_path / "secret")
    training = maker.trained(paths)
    full = lesson.of_step(training, training.steps[0])
    assert (full.change, full.verdict, full.uses, full.printed, full.files) == (None, None, (), (), ())


def test_what_held_a_training_run_counts_the_attempts_and_the_learner(
    maker: Any, step_line: Any, a_row: Any, a_record: Any
) -> None:
    paths = maker.training([step_line(1)])
    maker.step(paths.step(1), rows=[a_row("a", records=["mine.json", "gone.json"], on_host="asked")])
    records = RunPaths(paths.root, "-").records
    records.mkdir()
    (records / "mine.json").write_bytes(a_record().as_json())
    (records / "20260101T000000.000001-evolver-step_0001-0.json").write_bytes(a_record(role="evolver").as_json())
    (records / "20260101T000000.000001-tool-step_0001-0-1.json").write_text(json.dumps([]))
    training = maker.trained(paths)
    held, tally = lesson.held(training, lesson.records_of_calls(training.top))
    assert (dict(held.starts), held.missing) == ({"task": 1, "evolver": 1}, 2)
    assert dict(tally.on_host) == {"asked": 1}
