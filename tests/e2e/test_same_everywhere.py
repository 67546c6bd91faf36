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
OF_A_START = ("role", "confined", "empty")
# 111 right answers, and four or five of each way to fail.
SETTINGS = ("agent.name=agent.py:broken", "agent.timeout_min=0.5", "agent.concurrency=4")


def told(row: dict[str, Any]) -> dict[str, Any]:
    """What a row says of its attempt; how many seconds an agent that hung had is nobody's result."""
    kept = {key: value for key, value in row.items() if key not in OWN}
    # Where a sandbox was started, and what its record is called, is what differs.
    kept["evidence"] = [{name: start[name] for name in OF_A_START} for start in row["evidence"]]
    return {**kept, "error": re.sub(r"after \d+\.\d s", "", str(row["error"])), "starts": len(row["records"])}


def counted(confinement: dict[str, Any]) -> dict[str, Any]:
    """How much is shown to have been confined; by which backend, and by how many checks, is the place's own."""
    return {name: confinement[name] for name in ("every", "scored", "proven", "starts", "records")}


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
    sums = [
        {**each, "wall_s": 0, "confinement": counted(each["confinement"])} for each in (said.summary, inside.summary)
    ]
    assert sums[0] == sums[1]
