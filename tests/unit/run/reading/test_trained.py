"""A training run that is read: its steps, where it stopped, what is torn, and the place of each evaluated version."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hermit.errors import ConfigError
from hermit.run.reading import load, trained

if TYPE_CHECKING:
    from pathlib import Path


def test_each_finished_step_is_what_its_line_says(maker: Any, step_line: Any) -> None:
    training = maker.trained(
        maker.training([step_line(1, 0.25, checkpoint="t/1", ends_epoch=True), step_line(2, 0.75)])
    )
    first, second = training.steps
    assert (first.title, first.number, first.epoch, first.ends_epoch, first.tasks) == ("step 1", 1, 1, True, ("a", "b"))
    assert (first.mean_score, first.kind, first.changed, first.checkpoint) == (0.25, "kept", True, "t/1")
    assert (second.said.status, second.said.summary.head, second.said.rationale.head) == (
        "done",
        "changed 2",
        "it was wrong",
    )
    assert (training.end, training.commit, training.ended) == (3, second.commit, False)


def test_a_step_has_the_interval_of_its_own_summary_and_of_no_other(maker: Any, step_line: Any, a_row: Any) -> None:
    paths = maker.training([step_line(1, 0.5), step_line(2, 0.75)])
    for number in (1, 2):
        maker.step(paths.step(number), rows=[a_row("a", 1.0), a_row("b", 0.0)])
    assert [step.interval for step in maker.trained(paths).steps] == [(0.25, 0.75), None]


@pytest.mark.parametrize(
    "broken",
    [
        b"no json",
        b"[]",
        b'{"step": 7}',
        b"[" * 100_000,
        *(
            json.dumps(
                {"step": 7, "epoch": 1, "adapter": "a", "commit": "c", "outcome": "kept", "learner": {}, **wrong}
            ).encode()
            for wrong in (
                {"step": -1},
                {"step": True},
                {"step": "1"},
                {"step": 10**12},
                {"epoch": None},
                {"outcome": "<b>"},
                {"outcome": []},
                {"commit": None},
                {"learner": []},
                {"mean_score": "1"},
                {"mean_score": float("nan")},
                {"mean_score": 1e300},
                {"mean_score": 10**400},
            )
        ),
    ],
)
def test_a_line_that_is_no_step_is_named_and_left_out(maker: Any, step_line: Any, broken: bytes) -> None:
    paths = maker.training([step_line(1)])
    whole = paths.steps.read_bytes()
    paths.steps.write_bytes(whole + broken + b"\n" + json.dumps(step_line(2)).encode() + b"\n")
    training = maker.trained(paths)
    assert [step.number for step in training.steps] == [1, 2]
    assert training.notes == ("line 2 of steps.jsonl is no step, and is left out",)


def test_a_torn_last_line_is_left_out_without_a_word(maker: Any, step_line: Any) -> None:
    paths = maker.training([step_line(1), step_line(2)])
    paths.steps.write_bytes(paths.steps.read_bytes()[:-20])
    training = maker.trained(paths)
    assert [(step.number, step.kind) for step in training.steps] == [(1, "kept"), (2, "unfinished")]
    assert training.notes == ()


def test_the_step_that_is_being_made_is_shown_as_far_as_it_is_there(maker: Any, step_line: Any, a_row: Any) -> None:
    paths = maker.training([step_line(1)])
    maker.step(paths.step(2), rows=[a_row("a", 0.5)])
    training = maker.trained(paths)
    assert [(step.title, step.kind, step.mean_score) for step in training.steps] == [
        ("step 1", "kept", 0.5),
        ("step 2", "unfinished", None),
    ]
    with training.attempts(training.steps[1]) as run:
        assert [result.id for result in run.results] == ["a"]
    assert [step.number for step in training.scored] == [1]


def test_a_call_that_has_no_line_yet_counts_with_what_it_left(maker: Any, step_line: Any) -> None:
    paths = maker.training([step_line(1)])
    maker.step(paths.step(2))
    paths.step(2).call.mkdir()
    kept = {"failure": {"cause": "timeout", "error": "too long"}, "result": None, "meters": {}, "wall_s": 3}
    (paths.step(2).call / "answer.json").write_text(json.dumps(kept))
    step = maker.trained(paths).steps[1]
    assert (step.said.status, step.said.error.head, step.spent.all.seconds) == ("failed", "timeout: too long", 3.0)


def test_the_learners_last_call_is_the_last_step(maker: Any, whole_training: Any) -> None:
    last = maker.trained(whole_training).steps[-1]
    assert (last.title, last.key, last.kind, last.changed, last.said.summary.head) == (
        "finalize",
        "final",
        "kept",
        True,
        "The end",
    )


def test_a_version_stands_where_the_run_stood_on_it(maker: Any, whole_training: Any) -> None:
    training = maker.trained(whole_training)
    found = {each.selector: each.at for each in training.evaluations}
    # Steps 4 to 6 began with the version that step 3 made; that of the last call stands behind the last step.
    assert found == {"final": (7, 7), "none": None, "root": (1, 1), "step_0003": (4, 6)}
    assert training.end == 7


def test_what_it_cost_is_told_by_who_spent_it(maker: Any, step_line: Any) -> None:
    tools = {"check_spec": {"calls": 2, "failed": 1, "seconds": 0.5, "cost_usd": 0.1, "unknown_cost": 1}}
    spent = maker.trained(maker.training([step_line(1, learner={"tools": tools}), step_line(2)])).spent
    assert (spent.attempts.usd, spent.attempts.tokens, spent.attempts.seconds, spent.attempts.calls) == (
        1.0,
        20,
        6.0,
        4,
    )
    assert (spent.learner.usd, spent.learner.tokens, spent.learner.seconds) == (0.5, 200, 3.5)
    assert vars(spent.tools["check_spec"]) == {
        "usd": 0.1,
        "tokens": 0,
        "seconds": 0.5,
        "unknown": 1,
        "calls": 2,
        "failed": 1,
    }
    assert (spent.all.usd, spent.all.seconds, spent.all.unknown) == (pytest.approx(1.6), 10.0, 3)


def test_what_is_no_number_costs_nothing(maker: Any, step_line: Any) -> None:
    odd = {"cost_usd": "much", "tokens": -5, "unknown_cost": None}
    meter = {"seconds": float("inf"), "cost_usd": 10**400, "calls": True}
    line = step_line(1, rollouts=odd, learner={"usage": [], "tools": {"t": meter, "u": 5}, "wall_s": None}, wall_s=-1)
    whole = maker.trained(maker.training([line])).spent.all
    assert (whole.usd, whole.tokens, whole.seconds, whole.unknown) == (0.0, 0, 0.0, 0)


def test_the_budget_is_that_of_the_last_step(maker: Any, step_line: Any) -> None:
    first = step_line(1, budget={"usd": 5.0, "tokens": None, "hours": None})
    second = step_line(2, budget={"usd": 9.0, "tokens": 100, "hours": "x"})
    assert maker.trained(maker.training([first, second])).budget == {"usd": 9.0, "tokens": 100.0}
    assert maker.trained(maker.training([step_line(1)], name="old")).budget == {}


def test_a_directory_is_a_training_run_by_what_lies_in_it(maker: Any, step_line: Any, a_row: Any) -> None:
    paths = maker.training([step_line(1)])
    maker.step(paths.step(1), rows=[a_row("a")])
    maker.run([a_row("a")], name="trained", selector="final")
    evaluation = maker.run([a_row("a")], name="scored")
    assert trained.found(paths.root)
    assert not trained.found(paths.root / "eval" / "final")
    assert not trained.found(paths.step(1).evaluation)
    assert not trained.found(evaluation.root)
    with load.opened(paths.step(1).evaluation) as run:
        assert (run.name, run.lock["hermit"]) == ("trained/step_0001", "0.1.0")
    with load.opened(paths.root / "eval" / "final") as run:
        assert run.name == "trained/final"
    rollout = paths.step(1).rollout(1)
    rollout.evaluation.mkdir(parents=True)
    rollout.results.write_text(json.dumps(a_row("a")) + "\n")
    with load.opened(rollout.evaluation) as run:
        assert run.name == "trained/step_0001/run_agent/1"


def test_a_training_run_of_which_nothing_is_there_yet_is_one_refusal(maker: Any) -> None:
    paths = maker.training([])
    with pytest.raises(ConfigError, match="no attempt has ended yet") as caught, trained.opened(paths.root):
        pass
    assert "run the same command again" in caught.value.cure


def test_steps_that_lead_elsewhere_are_not_read(maker: Any, step_line: Any, tmp_path: Path) -> None:
    paths = maker.training([step_line(1)])
    (tmp_path / "secret").write_text(json.dumps(step_line(1, learner={"summary": "secret"})) + "\n")
    paths.steps.unlink()
    paths.steps.symlink_to(tmp_path / "secret")
    training = maker.trained(paths)
    assert [(step.kind, step.said.summary.head) for step in training.steps] == [("unfinished", "")]
