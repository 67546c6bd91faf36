"""An agent without a model: it says the word of its task, in the form that the adapter asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermit import RunOutput, Session

if TYPE_CHECKING:
    from pathlib import Path

# What a line of the adapter may ask for, and how it is done.
RULES = {
    "- Answer in capital letters.": str.upper,
    "- Put an exclamation mark after the word.": "{}!".format,
    "- Put the answer between two bars.": "|{}|".format,
}


def run(task: dict[str, Any], adapter: Path | None) -> RunOutput:
    """The word, after every rule that the adapter holds, in the adapter's order."""
    answer = task["word"]
    for line in Session(adapter).context.splitlines() if adapter is not None else ():
        answer = RULES.get(line.strip(), str)(answer)
    said = [{"role": "user", "content": task["word"]}, {"role": "assistant", "content": answer}]
    return RunOutput(answer, cost_usd=0.0, messages=said)
