"""Each of the checks that run no code finds its own kind of fault, and nothing else does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hermit.adapter import files as adapter_files
from hermit.adapter.spec import MOST_PROBLEMS, Check, Problem, State, examined
from tests.unit.adapter.conftest import MANIFEST

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def failed(report: Any) -> dict[int, list[str]]:
    """What failed, by number: the paths."""
    return {check.number: [problem.path for problem in check.problems] for check in report.failed}


SKILL = "---\ndescription: x\n---\n"
FAULTS = [
    ({"notes.txt": "x"}, {1: ["notes.txt"]}),
    ({"ADAPTER.md": "x" * 101}, {2: ["ADAPTER.md"]}),
    ({"skills/b/SKILL.md": SKILL, "skills/c/SKILL.md": SKILL}, {2: ["skills/c/SKILL.md"]}),
    ({"skills/adding/SKILL.md": "Add."}, {2: ["skills/adding/SKILL.md"], 5: ["skills/adding/SKILL.md"]}),
    ({"adapter.yaml": None}, {3: ["adapter.yaml"]}),
    ({"adapter.yaml": MANIFEST.replace("check: check.py:check", "")}, {3: ["adapter.yaml"]}),
    ({"adapter.yaml": MANIFEST.replace("- skills/**", "- '**'")}, {3: ["adapter.yaml"]}),
    ({"adapter.yaml": "{"}, {3: ["adapter.yaml"]}),
    ({"README.md": "x"}, {4: ["README.md"]}),
    ({"README.md": None}, {4: ["README.md"]}),
    ({"fixed/new": "x"}, {4: ["fixed/new"]}),
    ({"check.py": "def check(argument): return []"}, {4: ["check.py"]}),
    ({"ADAPTER.md": None}, {5: ["ADAPTER.md"]}),
    ({"tools.py": "def"}, {5: ["tools.py"]}),
]


@pytest.mark.parametrize(("changes", "found"), FAULTS)
def test_a_fault_is_found_by_its_own_check(
    small: Any, reading: Callable[..., Any], changes: Any, found: dict[int, list[str]]
) -> None:
    assert failed(examined(reading(changes), small)) == found


def test_what_a_learner_may_change_passes(small: Any, reading: Callable[..., Any]) -> None:
    changes = {
        "ADAPTER.md": "Do it well.\n",
        "skills/adding/SKILL.md": None,
        "skills/other/SKILL.md": SKILL,
        "skills/other/deep/data.bin": b"\0",
        "agents/a.md": SKILL,
        "tools.py": "",
        "NOTES.md": "x",
        "adapter.yaml": MANIFEST + "origin: {run: one}\n",
    }
    report = examined(reading(changes), small)
    assert failed(report) == {}
    assert [check.state for check in report.checks] == [State.PASSED] * 5 + [State.NOT_RUN]
    assert not report.passed, "what was not run has not passed"


def test_an_execute_bit_counts_as_a_change(small: Any) -> None:
    flipped = {path: adapter_files.File(file.data, executable=True) for path, file in small.files.by_path.items()}
    report = examined(adapter_files.Reading(adapter_files.Files(flipped)), small)
    assert failed(report) == {3: ["adapter.yaml"], 4: ["README.md", "check.py", "fixed/data/table.csv", "more.md"]}


def test_what_was_left_behind_fails_the_first_check(small: Any, directory: Path) -> None:
    (directory / "link").symlink_to("/etc/passwd")
    (directory / ".git").mkdir()
    reading = adapter_files.read(str(directory), structure=small.manifest.structure)
    assert failed(examined(reading, small)) == {1: [".git", "link"]}


def test_a_report_is_a_document_of_bounded_size() -> None:
    check = Check.of(1, [Problem(f"{number}", "x" * 10_000) for number in range(1000)], more=5)
    assert len(check.problems) == MOST_PROBLEMS
    said = check.as_json()
    assert (said["number"], said["name"], said["state"], said["more"]) == (1, "files under rules", "failed", 905)
    assert {len(problem["reason"]) for problem in said["problems"]} == {500}
    assert Check.of(2, []).as_json() == {"number": 2, "name": "formats", "state": "passed", "problems": []}
