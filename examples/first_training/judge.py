"""Scores an answer 1.0 where it has the form, and says the first thing that is wrong otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hermit import RunOutput


def score(task: dict[str, Any], output: RunOutput) -> dict[str, Any]:
    """The verdict on one answer."""
    answer, word = output.output, task["word"]
    if not isinstance(answer, str) or word.upper() not in answer:
        return {"score": 0.0, "feedback": "the answer is not in capital letters"}
    if f"{word.upper()}!" not in answer:
        return {"score": 0.0, "feedback": "there is no exclamation mark after the word"}
    if answer != f"|{word.upper()}!|":
        return {"score": 0.0, "feedback": "the answer is not between two bars"}
    return {"score": 1.0, "feedback": "as it has to be"}
