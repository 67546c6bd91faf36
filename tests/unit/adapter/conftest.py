"""What the tests of adapters share: the templates that come with Hermit, one with a fixed directory, and directories of files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hermit.adapter import files as adapter_files
from hermit.adapter import template as templates
from hermit.adapter.files import File, Files
from hermit.adapter.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

MANIFEST = """\
template: {id: small, version: "2", contract: 1, name: A small one}
exports: {context: [more.md], skills: skills, agents: agents, tools: tools.py}
structure:
  learnable:
    - {path: ADAPTER.md, format: {text: true, max_bytes: 100}}
    - {path: skills/*/SKILL.md, format: {frontmatter: [description], max_files: 2}}
    - skills/**
    - {path: "agents/*.md", format: {frontmatter: true}}
    - tools.py
    - "*.md"
  fixed: [README.md, more.md, fixed/**, check.py]
check: check.py:check
"""
SMALL = {
    "adapter.yaml": MANIFEST,
    "ADAPTER.md": "Do it.\n",
    "README.md": "About it.\n",
    "more.md": "More of it.\n",
    "check.py": "def check(argument):\n    return []\n",
    "fixed/data/table.csv": "1,2\n",
    "skills/adding/SKILL.md": "---\ndescription: adds\n---\nAdd.\n",
    "tools.py": 'def add(argument):\n    """Adds."""\n    return argument["a"] + argument["b"]\n',
}


def of(texts: Mapping[str, str | bytes]) -> Files:
    """Files by their texts."""
    return Files({path: File(text.encode() if isinstance(text, str) else text) for path, text in texts.items()})


@pytest.fixture
def small() -> Any:
    """A small template with every kind of file."""
    return templates.of_files(of(SMALL), source="small")


@pytest.fixture
def reading(small: Any) -> Callable[..., Any]:
    """What a learner left: the small template with some files put in, and those without a text taken out."""

    def read(changes: Mapping[str, str | bytes | None] | None = None) -> Any:
        merged = {**SMALL, **(changes or {})}
        return adapter_files.Reading(of({path: text for path, text in merged.items() if text is not None}))

    return read


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """The small template as a directory."""
    root = tmp_path / "small"
    root.mkdir()
    of(SMALL).write(str(root))
    return root


@pytest.fixture
def made(small: Any, tmp_path: Path) -> Tree:
    """A tree of the small template."""
    return Tree.opened(str(tmp_path / "trees" / "small"), small, scrub=lambda data, _: data)
