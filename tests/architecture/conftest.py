"""The source of the package as syntax trees, and the files that make up the tree."""

from __future__ import annotations

import ast
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Module:
    """One module of the package."""

    name: str
    path: Path
    tree: ast.Module
    lines: int

    @property
    def place(self) -> str:
        """Its path below the package."""
        return str(self.path.relative_to(ROOT / "hermit"))

    def imports(self) -> Iterator[tuple[str, int, bool]]:
        """Every import, those inside functions included: the module, the line, and whether only for annotations."""
        for node, typing in _walk(self.tree, typing=False):
            if isinstance(node, ast.Import):
                for name in node.names:
                    yield name.name, node.lineno, typing
            elif isinstance(node, ast.ImportFrom) and node.module:
                for name in node.names:
                    yield f"{node.module}.{name.name}", node.lineno, typing


def _walk(node: ast.AST, *, typing: bool) -> Iterator[tuple[ast.AST, bool]]:
    for child in ast.iter_child_nodes(node):
        yield child, typing
        for_types = isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING"
        yield from _walk(child, typing=typing or for_types)


@pytest.fixture(scope="session")
def modules() -> list[Module]:
    """Every module of the package."""
    found = []
    for path in sorted((ROOT / "hermit").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found.append(Module(name, path, ast.parse(text), text.count("\n")))
    assert len(found) > 40
    return found


@pytest.fixture(scope="session")
def tracked() -> list[Path]:
    """Every file of the tree that is under version control, or would be with the next commit."""
    argv = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(argv, cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("this tree is no git checkout")
    paths = [ROOT / name.decode() for name in listed.stdout.split(b"\0") if name]
    return [path for path in paths if path.is_file() and not path.is_symlink()]


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the tree."""
    return ROOT
