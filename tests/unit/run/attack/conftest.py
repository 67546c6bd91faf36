"""Task sets whose judges can be cheated, and one cheat at a time against them."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from hermit.run import place
from hermit.run.attack import campaign, cheats

if TYPE_CHECKING:
    from collections.abc import Callable

HONEST = "from hermit import RunOutput\ndef run(task, adapter):\n    {}\n    return RunOutput('done')\n"


@pytest.fixture
def attacked(run: Any) -> Callable[..., campaign.Attacked]:
    """Tries cheats against a judge, at one task, where the config says."""

    def attack(
        judge: str,
        *wanted: str,
        agent: str = "pass",
        row: dict[str, Any] | None = None,
        tests: dict[str, str] | None = None,
        settings: tuple[str, ...] = ("judge.mode=shared",),
        learn: bool = False,
        tasks: int = 1,
    ) -> campaign.Attacked:
        shutil.rmtree(run.root / "tests", ignore_errors=True)
        (run.root / "tests").mkdir()
        for name, text in (tests or {}).items():
            (run.root / "tests" / name).write_text(text)
        rows = [{"id": "a", **(row or {})}, {"id": "b", **(row or {})}]
        (run.root / "data" / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        (run.root / "data" / "test.txt").write_text("a\nb\n")
        (run.root / "judge.py").write_text(judge)
        (run.root / "agent.py").write_text(HONEST.format(agent))
        plan = run.plan("judge.tests=[tests]", *settings)
        chosen = campaign.chosen(wanted) if wanted else cheats.CHEATS
        return campaign.attack(plan, place.here(plan.config), wanted=chosen, tasks=tasks, learn=learn)

    return attack
