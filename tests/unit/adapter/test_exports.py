"""What an agent gets is read from the files, and what is broken is told and left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hermit.adapter.exports import AdapterTool, exported

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def gives(small: Any, reading: Callable[..., Any]) -> Callable[..., Any]:
    """What the small template gives with some files changed."""
    return lambda changes=None: exported(reading(changes).files, small.manifest.exports)


def test_everything_exported_is_given(gives: Callable[..., Any]) -> None:
    found = gives(
        {
            "agents/critic.md": "---\ndescription: doubts\ntemperature: 1\n---\nDoubt it.\n",
            "skills/adding/table.csv": "1",
            "tools.tools.json": '{"add": {"takes": {"type": "object"}}}',
        }
    )
    assert found.context == {"ADAPTER.md": "Do it.\n", "more.md": "More of it.\n"}
    (skill,) = found.skills.values()
    assert (skill.name, skill.description, skill.text, skill.files) == (
        "adding",
        "adds",
        "Add.",
        ("skills/adding/table.csv",),
    )
    (role,) = found.roles.values()
    assert (role.name, role.description, role.text, role.settings) == (
        "critic",
        "doubts",
        "Doubt it.",
        {"temperature": 1},
    )
    assert found.tools == {"add": AdapterTool("add", "Adds.", {"type": "object"}, {})}
    assert found.problems == ()


@pytest.mark.parametrize(
    ("changes", "path", "said"),
    [
        ({"ADAPTER.md": None}, "ADAPTER.md", "it is exported, and is not there"),
        ({"ADAPTER.md": b"\xff"}, "ADAPTER.md", "it is not UTF-8"),
        ({"skills/adding/SKILL.md": None, "skills/adding/a": "x"}, "skills/adding", "a skill has a SKILL.md"),
        ({"skills/adding/SKILL.md": "no head"}, "skills/adding/SKILL.md", "no description"),
        ({"skills/adding/SKILL.md": "---\ndescription: [1]\n---\n"}, "skills/adding/SKILL.md", "no description"),
        ({"skills/adding/SKILL.md": "---\nname: x\ndescription: a\n---\n"}, "skills/adding/SKILL.md", "another skill"),
        ({"agents/a.md": "x"}, "agents/a.md", "no description"),
        ({"tools.py": None}, "tools.py", "it is exported, and is not there"),
        ({"tools.py": "def f(:"}, "tools.py", "it is not Python"),
        ({"tools.py": "(" * 5000}, "tools.py", "it is not Python"),
        ({"tools.py": "def f(): pass"}, "tools.py", "the tool f does not take one argument"),
        ({"tools.py": "def f(a, b): pass"}, "tools.py", "the tool f does not take one argument"),
        ({"tools.py": "def f(a, *, b): pass"}, "tools.py", "the tool f does not take one argument"),
        ({"tools.py": "async def f(a): pass"}, "tools.py", "asynchronous"),
        ({"tools.tools.json": "["}, "tools.tools.json", "it is not JSON"),
        ({"tools.tools.json": '{"add": []}'}, "tools.tools.json", "it is no object of"),
        ({"tools.tools.json": '{"add": {"takes": 1}}'}, "tools.tools.json", "it is no object of"),
    ],
)
def test_what_is_broken_is_told(gives: Callable[..., Any], changes: Any, path: str, said: str) -> None:
    assert any(where == path and said in why for where, why in gives(changes).problems), gives(changes).problems


def test_tools_are_found_without_running_a_line_of_them(gives: Callable[..., Any]) -> None:
    code = 'import os\nos._exit(3)\ndef _own(a): pass\nclass C: pass\ndef a(x=1, *more): pass\ndef b(*x): "Says \\d."\n'
    assert set(gives({"tools.py": code}).tools) == {"a", "b"}
