"""The table of protections keeps up with the code."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def test_every_protection_of_the_table_stands_once_where_it_is_said_to(root: Path) -> None:
    table = tomllib.loads((root / "tests" / "mutants.toml").read_text(encoding="utf-8"))
    stale = [
        f"{file}: {name}"
        for file, section in table.items()
        for name, old, *_ in section["mutants"]
        if (root / file).read_text(encoding="utf-8").count(old) != 1
    ]
    assert stale == []
