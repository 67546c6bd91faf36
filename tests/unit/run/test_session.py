"""A session gives an agent what its adapter exports, and an empty one stands for no adapter."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import hermit
from hermit.adapter import template as templates
from hermit.run.session import Session

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    """An adapter with all there is."""
    root = tmp_path / "adapter"
    root.mkdir()
    templates.named("skills-and-tools").files.write(str(root))
    return root


def test_a_session_gives_everything_that_is_exported(adapter: Path) -> None:
    session = hermit.Session(adapter)
    assert session.context.startswith("Read the whole task")
    assert session.skills["answering"].description.startswith("How to check an answer")
    assert session.skills["answering"].text.startswith("1. Read the task")
    assert session.roles["reviewer"].text.startswith("You are given a task")
    assert session.tools["count"].takes["required"] == ["text"]
    assert session.read("skills/answering/SKILL.md").startswith(b"---\n")
    assert session.problems == ()


def test_a_tool_is_called_in_a_process_of_its_own(adapter: Path) -> None:
    assert Session(adapter).call("count", {"text": "one two\n"}) == {"letters": 8, "words": 2, "lines": 1}


@pytest.mark.parametrize("name", ["absent", "_count", "__import__", "../count"])
def test_what_is_no_tool_is_not_called(adapter: Path, name: str) -> None:
    with pytest.raises(hermit.AdapterError, match="has no tool"):
        Session(adapter).call(name, {})


def test_a_tool_that_fails_says_so(adapter: Path) -> None:
    with pytest.raises(hermit.AdapterError, match="exception: KeyError: 'text'"):
        Session(str(adapter)).call("count", {})


def test_no_adapter_is_a_session_with_nothing_in_it() -> None:
    session = Session(None)
    assert (session.context, dict(session.skills), dict(session.roles), dict(session.tools)) == ("", {}, {}, {})
    with pytest.raises(hermit.AdapterError, match="has no tool"):
        session.call("count", {})
    with pytest.raises(hermit.AdapterError, match="has no file"):
        session.read("ADAPTER.md")


def test_a_directory_that_is_no_adapter_is_told(tmp_path: Path) -> None:
    with pytest.raises(hermit.AdapterError, match=r"no adapter: it has no adapter\.yaml"):
        _ = Session(tmp_path).context
    (tmp_path / "adapter.yaml").write_text("exports: 1")
    with pytest.raises(hermit.AdapterError, match=r"is no adapter: adapter\.yaml:1"):
        _ = Session(tmp_path).context


def test_what_is_broken_is_left_out_and_told(adapter: Path) -> None:
    (adapter / "ADAPTER.md").unlink()
    session = Session(adapter)
    assert session.context == ""
    assert session.problems == (("ADAPTER.md", "it is exported, and is not there"),)
