"""A learner without a model: it knows which rule answers which feedback."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hermit.evolver import Evolver, StepResult

if TYPE_CHECKING:
    from hermit.evolver import Context

ANSWERS = {
    "the answer is not in capital letters": "- Answer in capital letters.",
    "there is no exclamation mark after the word": "- Put an exclamation mark after the word.",
    "the answer is not between two bars": "- Put the answer between two bars.",
}


class Learner(Evolver):
    """Reads what the judge said of the last step's tasks, and adds a rule for it to ``ADAPTER.md``."""

    def step(self, ctx: Context) -> StepResult:
        """One more rule, where one is missing."""
        page = ctx.workspace.adapter / "ADAPTER.md"
        text = page.read_text()
        said = [
            attempt["feedback"]
            for file in sorted((ctx.workspace.learning_material / "current" / "tasks").glob("*.json"))
            for attempt in json.loads(file.read_text())["attempts"]
        ]
        missing = [rule for feedback, rule in ANSWERS.items() if feedback in said and rule not in text]
        if not missing:
            return StepResult(summary="Nothing is wrong any more")
        page.write_text(f"{text.rstrip()}\n{missing[0]}\n")
        return StepResult(
            summary=f"Asked for it: {missing[0][2:]}", rationale=f"The judge said of {len(said)} attempts: {said[0]}"
        )
