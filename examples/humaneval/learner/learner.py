"""A learner without a model: it knows which rule helps against which failure, and writes those that are needed into a skill."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from hermit.evolver import Evolver, StepResult

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermit.evolver import Context

SKILL = "skills/programs/SKILL.md"
HEAD = """\
---
name: programs
description: How to write down a Python program. Use it with every task that asks for one.
---
Go over the program before you hand it in:

"""
# What the judge's outcome is, what its feedback says, and the rule that helps. The first that fits is a failure's own.
LESSONS = (
    ("syntax", "", "- Indent with spaces, never with a tab."),
    ("exception", "does not define the function", "- Give the function the name that the task gives it."),
    ("exception", "NameError", "- Begin with the imports that the prompt begins with."),
    ("exception", "returned", "- End the function with a return of its value."),
    ("assertion", "returned", "- End the function with a return of its value."),
)


class Learner(Evolver):
    """Reads how the last step's programs failed, and adds a rule to the skill for each failure that has one."""

    def step(self, ctx: Context) -> StepResult:
        """The rules that are missing, the most needed one first."""
        skill = ctx.workspace.adapter / SKILL
        text = skill.read_text(encoding="utf-8") if skill.exists() else HEAD
        attempts = list(attempts_in(ctx))
        failures = Counter(lesson for attempt in attempts if (lesson := lesson_of(attempt)) is not None)
        missing = [rule for rule, _ in failures.most_common() if rule not in text.splitlines()]
        if not missing:
            return StepResult(summary="No failure asks for another rule")
        skill.parent.mkdir(parents=True, exist_ok=True)
        skill.write_text(text + "".join(f"{rule}\n" for rule in missing), encoding="utf-8")
        told = "\n".join(
            f"{failures[rule]} of {len(attempts)} attempts failed for want of it: {rule[2:]}" for rule in missing
        )
        return StepResult(summary=" ".join(rule[2:] for rule in missing), rationale=told)


def attempts_in(ctx: Context) -> Iterator[dict[str, Any]]:
    """What the learning material says of each attempt of the last step."""
    for file in sorted((ctx.workspace.learning_material / "current" / "tasks").glob("*.json")):
        yield from json.loads(file.read_text(encoding="utf-8"))["attempts"]


def lesson_of(attempt: dict[str, Any]) -> str | None:
    """The rule that helps against a failure; ``None`` where there was none, or no rule is known."""
    outcome = attempt["extra"].get("outcome")
    return next((rule for kind, words, rule in LESSONS if kind == outcome and words in attempt["feedback"]), None)
