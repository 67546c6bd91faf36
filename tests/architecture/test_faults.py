"""Every fault of the list has its answer, and every test that is named for it exists."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# The faults that were collected; some numbers were given to reports that came to nothing.
FAULTS = {
    "A": (1, 2, 3, 5, 6, 8, 9, 10, 11, 13, 15, 16, 17, 18),
    "B": (1, 3, 5, 6, 8, 9, 10, 11, 13, 14, 15),
    "C": (1, 2, 3, 4, 5, 7, 8, 9, 10, 11),
    "D": (2, 3, 4),
    "E": (1, 2, 3, 5, 6),
    "F": (1, 2, 4, 5, 6, 7, 9, 10, 12, 13, 15, 16),
    "G": (1, 2, 3, 5, 6, 7, 9),
    "H": (1, 2, 3, 6, 7, 8),
    "I": (1, 2, 3, 6, 7, 8),
    "J": (1, 3, 4, 5, 6, 7),
    "K": (1,),
    "N": (1, 3, 5, 6),
}
ROW = re.compile(r"^\| ([A-Z]\d+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def rows(root: Path) -> dict[str, tuple[str, ...]]:
    """The table: for each fault what happened, the answer, and what shows it."""
    text = (root / "docs" / "faults.md").read_text(encoding="utf-8")
    found = [(match[0], match[1:]) for match in ROW.findall(text)]
    assert len(dict(found)) == len(found)
    return dict(found)


def missing(root: Path, named: list[tuple[str, str]]) -> list[str]:
    """Those of the named tests that do not exist."""
    known = {
        file: {
            node.name
            for node in ast.parse((root / file).read_text(encoding="utf-8")).body
            if isinstance(node, ast.FunctionDef)
        }
        for file in {file for file, _ in named}
        if (root / file).is_file()
    }
    return [f"{file}::{name}" for file, name in named if name not in known.get(file, set())]


def test_every_fault_has_an_answer_and_a_test_that_shows_it(root: Path) -> None:
    table = rows(root)
    assert list(table) == [f"{section}{number}" for section, numbers in FAULTS.items() for number in numbers]
    for fault, (happened, answer, shown) in table.items():
        assert len(happened) > 10, fault
        assert len(answer) > 10, fault
        assert TEST.findall(shown), fault
        assert re.fullmatch(r"(`[^`]+`(, )?)+", shown), f"{fault} is shown by something else than tests"


def test_every_test_that_is_named_for_a_fault_exists(root: Path) -> None:
    named = [test for _, _, shown in rows(root).values() for test in TEST.findall(shown)]
    assert len(named) > len(rows(root))
    assert missing(root, named) == []


def test_a_test_that_does_not_exist_is_seen(root: Path) -> None:
    here = "tests/architecture/test_faults.py"
    named = [
        (here, "test_surely_absent"),
        ("tests/absent.py", "test_a"),
        (here, "test_a_test_that_does_not_exist_is_seen"),
    ]
    assert missing(root, named) == [f"{here}::test_surely_absent", "tests/absent.py::test_a"]
