"""Two runs are compared over what both have; what cannot be compared is refused, and what differs is named."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from hermit.errors import ConfigError
from hermit.run.reading import compare

LOCK = {
    "hermit": "0.1.0",
    "settings": {"agent": {"name": "agent.py:a", "params": {"model": "x"}}, "judge": {"mode": "host"}},
    "contents": {"data.tasks": "t1", "judge.path": "j1", "judge.tests": ["d"]},
}


def lock(**changed: str) -> dict[str, Any]:
    made = copy.deepcopy(LOCK)
    for key, value in changed.items():
        part: Any = made
        *above, last = key.replace("__", ".").split("/")
        for name in above:
            part = part[name]
        part[last] = value
    return made


def test_tasks_are_won_lost_the_same_or_in_one_alone(maker: Any, a_row: Any) -> None:
    before = maker.opened([a_row("a", 0.0), a_row("b", 1.0), a_row("c", 0.5), a_row("d")], name="x")
    after = maker.opened([a_row("a", 1.0), a_row("b", None), a_row("c", 0.5), a_row("e")], name="y")
    found = compare.compared(before, after)
    assert [(pair.task, pair.word, pair.changed) for pair in found.pairs] == [
        ("a", "won", False),
        ("b", "lost", True),
        ("c", "same", False),
    ]
    assert found.only == (("d",), ("e",))
    assert found.means == (0.5, 0.5)
    assert found.paired is not None
    assert (found.paired.won, found.paired.lost, found.paired.same) == (1, 1, 1)
    assert [pair.task for pair in found.differing] == ["a", "b"]
    assert found.pairs[1].came_to == ("solved", "agent error")


def test_several_attempts_at_a_task_are_one_pair_of_their_means(maker: Any, a_row: Any) -> None:
    before = maker.opened([a_row("a", 0.0), a_row("a", 1.0, repeat=1)], name="x")
    after = maker.opened([a_row("a", 1.0), a_row("a", 1.0, repeat=1), a_row("a", 1.0, repeat=2)], name="y")
    (pair,) = compare.compared(before, after).pairs
    assert (pair.before, pair.after, pair.difference) == (0.5, 1.0, 0.5)
    assert pair.came_to == ("1 solved, 1 not solved", "3 solved")
    assert not pair.changed


def test_a_task_that_sandboxes_broke_has_no_score_and_is_in_no_mean(maker: Any, a_row: Any) -> None:
    before = maker.opened([a_row("a", 1.0), a_row("b", 1.0)], name="x")
    after = maker.opened([a_row("a", None, status="sandbox_error"), a_row("b", 0.0)], name="y")
    found = compare.compared(before, after)
    assert found.pairs[0].word == "no score"
    assert found.means == (1.0, 0.0)
    assert any("1 tasks have no score" in warning for warning in found.warnings)
    assert found.as_json()["no_score"] == ["a"]


def test_where_no_task_has_a_score_in_both_there_is_no_mean(maker: Any, a_row: Any) -> None:
    broken = a_row("a", None, status="sandbox_error")
    found = compare.compared(maker.opened([broken], name="x"), maker.opened([a_row("a")], name="y"))
    assert (found.means, found.paired) == (None, None)
    assert found.as_json()["difference"] is None


def test_what_ran_is_compared_setting_by_setting_and_digest_by_digest(maker: Any, a_row: Any, a_record: Any) -> None:
    records = {"r.json": a_record(image="hermit 2")}
    changed = lock(**{"settings/agent/params": {"model": "y", "new": 1}, "hermit": "0.2.0"})
    before = maker.opened([a_row("a")], name="x", lock=LOCK)
    after = maker.opened([a_row("a", records=["r.json"])], name="y", lock=changed, records=records)
    found = compare.compared(before, after)
    assert {(change.what, change.before, change.after) for change in found.changes} == {
        ("hermit", "0.1.0", "0.2.0"),
        ("settings.agent.params.model", "x", "y"),
        ("settings.agent.params.new", "-", "1"),
        ("started in", "-", "hermit 2"),
        ("held by", "-", "bubblewrap 0.8.0"),
    }


@pytest.mark.parametrize(
    "changed",
    [
        {"contents/judge__path": "j2"},
        {"contents/judge__tests": ["e"]},
        {"settings/judge/mode": "shared"},
    ],
)
def test_another_judge_is_warned_of(maker: Any, a_row: Any, changed: dict[str, Any]) -> None:
    before = maker.opened([a_row("a")], name="x", lock=LOCK)
    found = compare.compared(before, maker.opened([a_row("a")], name="y", lock=lock(**changed)))
    assert any("the judges differ" in warning for warning in found.warnings)
    same = compare.compared(before, maker.opened([a_row("a")], name="z", lock=LOCK))
    assert not any("the judges differ" in warning for warning in same.warnings)


def test_runs_of_other_tasks_are_refused_also_where_their_ids_are_the_same(maker: Any, a_row: Any) -> None:
    before = maker.opened([a_row("a")], name="x", lock=LOCK)
    after = maker.opened([a_row("a")], name="y", lock=lock(**{"contents/data__tasks": "t2"}))
    with pytest.raises(ConfigError, match=r"data\.tasks holds other tasks"):
        compare.compared(before, after)


def test_runs_with_no_task_in_common_are_refused(maker: Any, a_row: Any) -> None:
    with pytest.raises(ConfigError, match="no task has results in both"):
        compare.compared(maker.opened([a_row("a")], name="x"), maker.opened([a_row("b")], name="y"))


def test_one_run_is_not_compared_with_itself(maker: Any, a_row: Any) -> None:
    run = maker.opened([a_row("a")])
    with pytest.raises(ConfigError, match="named twice"):
        compare.compared(run, maker.open(run.paths.evaluation))


def test_a_run_that_does_not_say_what_it_ran_is_compared_and_warned_of(maker: Any, a_row: Any) -> None:
    before = maker.opened([a_row("a", confined=False)], name="x", lock=None)
    found = compare.compared(before, maker.opened([a_row("a")], name="y"))
    assert any("x/none does not say what ran" in warning for warning in found.warnings)
    assert any("1 attempts of x/none ran without a sandbox" in warning for warning in found.warnings)
    assert any("y/none is not complete" in warning for warning in found.warnings)
