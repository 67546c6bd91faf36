"""A work directory as an agent left it, and the empty place its copy goes to."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from hermit.handoff import budget
from hermit.handoff.collect import Collection, collect

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Tree:
    """The work and its copy."""

    work: Path
    into: Path

    @property
    def manifest(self) -> Path:
        """Where the copy's manifest is written, if one is wanted."""
        return self.work.parent / "manifest.jsonl"

    def copy(self, *paths: str, limits: budget.Budget = budget.DEFAULT, manifest: bool = False) -> Collection:
        """Collects these paths; everything unless some are given."""
        with self.manifest.open("wb") as file:
            written = file if manifest else None
            return collect(str(self.work), paths or ["."], into=str(self.into), limits=limits, manifest=written)

    def lines(self) -> list[dict[str, Any]]:
        """The lines of the manifest."""
        return [json.loads(line) for line in self.manifest.read_text(encoding="ascii").splitlines()]

    def copied(self) -> list[str]:
        """Every entry of the copy, relative to it."""
        return listed(self.into)

    def snapshot(self) -> dict[str, tuple[int, int, bytes]]:
        """Mode, modification time and content of everything in the work."""
        return {name: described(self.work / name) for name in listed(self.work)}


def listed(root: Path) -> list[str]:
    """Every entry below a directory, relative to it; no link is followed."""
    found = []
    for directory, names, files in os.walk(root):
        found += [os.path.relpath(os.path.join(directory, name), root) for name in (*names, *files)]
    return sorted(found)


def described(path: Path) -> tuple[int, int, bytes]:
    """Mode, modification time and content of one entry."""
    status = path.lstat()
    if stat.S_ISREG(status.st_mode):
        return status.st_mode, status.st_mtime_ns, path.read_bytes()
    return status.st_mode, status.st_mtime_ns, os.fsencode(os.readlink(path)) if path.is_symlink() else b""


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    made = Tree(tmp_path / "work", tmp_path / "into")
    made.work.mkdir()
    made.into.mkdir()
    return made
