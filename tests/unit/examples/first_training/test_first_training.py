from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING

import pytest

from hermit import RunOutput
from hermit.adapter import template

from .conftest import EXAMPLE

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    from .conftest import Desk

TASK = {"id": "amber", "word": "amber"}


def adapter_with(directory: Path, *lines: str) -> Path:
    """An adapter of the example's template whose page holds these lines."""
    directory.mkdir(exist_ok=True)
    template.named("prompt-only").files.write(str(directory))
    (directory / "ADAPTER.md").write_text("\n".join(("Read the task.", *lines)))
    return directory


def test_without_an_adapter_the_agent_answers_with_the_bare_word(agent: ModuleType) -> None:
    assert agent.run(TASK, None).output == "amber"


def test_the_agent_does_what_each_rule_of_the_page_asks_for(agent: ModuleType, tmp_path: Path) -> None:
    rules = list(agent.RULES)
    answers = [agent.run(TASK, adapter_with(tmp_path / str(n), *rules[:n])).output for n in range(4)]
    assert answers == ["amber", "AMBER", "AMBER!", "|AMBER!|"]


def test_the_agent_leaves_alone_what_it_does_not_know(agent: ModuleType, tmp_path: Path) -> None:
    assert agent.run(TASK, adapter_with(tmp_path, "- Answer in verse.")).output == "amber"


@pytest.mark.parametrize(
    ("answer", "score", "words"),
    [
        ("amber", 0.0, "not in capital letters"),
        (None, 0.0, "not in capital letters"),
        ("AMBER", 0.0, "no exclamation mark"),
        ("AMBER!", 0.0, "not between two bars"),
        ("|AMBER!| or |BIRCH!|", 0.0, "not between two bars"),
        ("|AMBER!|", 1.0, "as it has to be"),
    ],
)
def test_the_judge_says_the_first_thing_that_is_wrong(
    judge: ModuleType, answer: str | None, score: float, words: str
) -> None:
    verdict = judge.score(TASK, RunOutput(answer))
    assert verdict["score"] == score
    assert words in verdict["feedback"]


def test_the_learner_answers_each_feedback_with_a_rule_that_the_agent_knows(
    agent: ModuleType, judge: ModuleType, learner: ModuleType, desk: Desk
) -> None:
    assert list(learner.ANSWERS.values()) == list(agent.RULES)
    given = {judge.score(TASK, RunOutput(answer))["feedback"] for answer in ("amber", "AMBER", "AMBER!")}
    assert set(learner.ANSWERS) == given


def test_the_learner_adds_one_rule_a_step_and_none_twice(learner: ModuleType, desk: Desk) -> None:
    desk.say(*reversed(learner.ANSWERS))
    summaries = [learner.Learner().step(desk.context).summary for _ in range(4)]
    assert desk.page.read_text().splitlines() == ["Read the task.", *learner.ANSWERS.values()]
    assert summaries[-1] == "Nothing is wrong any more"


def test_the_learner_leaves_the_page_where_nothing_is_wrong(learner: ModuleType, desk: Desk) -> None:
    desk.say("as it has to be", "as it has to be")
    learner.Learner().step(desk.context)
    assert desk.page.read_text() == "Read the task.\n"


def test_no_word_is_both_trained_on_and_tested_with() -> None:
    words = [json.loads(line)["id"] for line in (EXAMPLE / "tasks.jsonl").read_text().splitlines()]
    splits = [(EXAMPLE / name).read_text().splitlines() for name in ("train.txt", "test.txt")]
    assert sorted(itertools.chain(*splits)) == sorted(words)
