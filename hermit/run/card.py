"""``CARD.md``: what the last adapter of a run is and how it came about, for people, beside the adapter itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermit.adapter.checkout import check_out
from hermit.run.paths import write_atomically

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermit.adapter.tree import Tree
    from hermit.handoff.redact import Redactor
    from hermit.run.training import TrainPlan

MOST_WORDS = 200


def write(plan: TrainPlan, tree: Tree, lines: Sequence[dict[str, Any]], *, commit: str, redactor: Redactor) -> None:
    """Checks the last version out, and writes its card beside it.

    Raises:
        OSError: It cannot be written.
        untrusted.Refused: Something in the checkout is in the way.
    """
    check_out(tree, plan.name, at=str(plan.paths.checkout), version=tree.version(commit))
    words = redactor.text(text(plan, lines, commit=commit)).encode("utf-8", "replace")
    write_atomically(
        plan.paths.card, words, made_in=plan.paths.root
    )  # a version has no rule about what grows beside it


def text(plan: TrainPlan, lines: Sequence[dict[str, Any]], *, commit: str) -> str:
    """The card."""
    identity = plan.template.manifest.template
    agent, model = plan.config.agent.name.rpartition("/")[2], plan.config.model
    facts = [
        ("version", f"`{commit}`"),
        ("template", f"{identity.id} {identity.version}"),
        ("learner", plan.learner.method.name),
        ("agent", agent + (f", {model}" if model else "")),
        ("trained on", f"{len(plan.rollouts.tasks)} tasks, {len(lines)} of {len(plan.batches)} steps"),
        ("config", f"`{plan.lock['digest'][:16]}`, Hermit {plan.lock['hermit']}"),
    ]
    head = "\n".join(f"- {name}: {value}" for name, value in facts)
    rows = "\n".join(_row(line) for line in lines)
    return f"""# {plan.name}

{head}

The score of a step is that of the adapter it began with. Scores on tasks that were trained on say little: `hermit eval
--adapter final` scores this version on the test split.

| step | epoch | score | what became of the change | what the learner says |
|---|---|---|---|---|
{rows}
"""


def _row(line: dict[str, Any]) -> str:
    score = line.get("mean_score")
    words = " ".join(line["learner"]["summary"].split()) or line["learner"]["error"]
    said = "".join(letter if letter.isprintable() else " " for letter in words)[:MOST_WORDS]
    cells = [str(line["step"]), str(line["epoch"]), "" if score is None else f"{score:.4g}", line["outcome"]]
    return "| " + " | ".join([*cells, said.replace("|", "\\|").replace("<", "&lt;")]) + " |"
