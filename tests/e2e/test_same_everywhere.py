"""The whole example, in the image and on this machine: every row says the same, whichever way its attempt ended."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.bwrap, pytest.mark.docker, pytest.mark.image]

# Of each row, everything but how long it took and what its evidence is called.
OWN = ("wall_s", "records")
# 111 right answers, and four or five of each way to fail.
SETTINGS = ("agent.name=agent.py:broken", "agent.timeout_min=0.5", "agent.concurrency=4")


def told(row: dict[str, Any]) -> dict[str, Any]:
    """What a row says of its attempt; how many seconds an agent that hung had is nobody's result."""
    kept = {key: value for key, value in row.items() if key not in OWN}
    return {**kept, "error": re.sub(r"after \d+\.\d s", "", str(row["error"])), "starts": len(row["records"])}


def test_all_164_rows_are_the_same_in_the_image_and_on_this_machine(example: Any, tmp_path: Path) -> None:
    inside = example.machine.run(*example.words("--runtime", "image", *SETTINGS))
    assert inside.code == 0, inside.err
    local = replace(example, output=tmp_path / "local")
    said = local.eval(*SETTINGS)
    assert said.code == 0, said.err
    assert len(example.rows) == len(local.rows) == 164
    assert min(Counter(row["status"] for row in local.rows.values()).values()) >= 4
    pairs = {task: (told(row), told(example.rows[task])) for task, row in local.rows.items()}
    parts = ((task, part, row[part], other[part]) for task, (row, other) in pairs.items() for part in row)
    assert [each for each in parts if each[2] != each[3]] == []
    assert {**said.summary, "wall_s": 0} == {**inside.summary, "wall_s": 0}
