"""A template keeps its own rules, or is refused with each that it breaks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hermit.adapter import template as templates
from hermit.adapter.files import Reading
from hermit.adapter.spec import State, examined
from hermit.errors import ConfigError
from tests.unit.adapter.conftest import MANIFEST, SMALL, of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", templates.shipped())
def test_a_template_that_comes_with_hermit_is_an_adapter_of_itself(name: str) -> None:
    found = templates.named(name)
    assert found.manifest.template.id == name
    report = examined(Reading(found.files), found)
    assert [check.state for check in report.checks] == [State.PASSED] * 5 + [State.NOT_RUN]
    assert {"ADAPTER.md", "EVOLVER.md", "README.md"} <= set(found.files.paths)


def test_both_templates_come_with_it() -> None:
    assert templates.shipped() == ("prompt-only", "skills-and-tools")


def test_a_directory_is_a_template_too(directory: Path, small: Any) -> None:
    (directory / "__pycache__").mkdir()
    (directory / "__pycache__" / "check.pyc").write_bytes(b"x")
    found = templates.named(str(directory))
    assert found.files == small.files
    assert found.source == str(directory)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"adapter.yaml": None}, "it is no template: it has no adapter.yaml"),
        ({"adapter.yaml": "{"}, "not YAML"),
        ({"notes.txt": "x"}, "notes.txt: it is under no rule"),
        ({"ADAPTER.md": None}, "ADAPTER.md: it is exported, and is not there"),
        ({"ADAPTER.md": "x" * 101}, "ADAPTER.md: it has 101 bytes"),
        ({"check.py": None}, "check.py: check names it, and it is no text that is there"),
        ({"check.py": "x = 1"}, "check.py: check names check, which it does not define"),
        ({"adapter.yaml": MANIFEST.replace(", check.py]", "]"), "check.py": None}, "check names it"),
        (
            {"adapter.yaml": MANIFEST.replace(", check.py]", "]").replace("- tools.py", "- '*.py'")},
            "and it is not fixed",
        ),
        ({"adapter.yaml": MANIFEST + "evolver_tools: [more.py:run]\n"}, "more.py: evolver_tools names it"),
    ],
)
def test_a_template_that_breaks_its_own_rules_is_refused(changes: dict[str, Any], said: str) -> None:
    texts = {path: text for path, text in {**SMALL, **changes}.items() if text is not None}
    with pytest.raises(ConfigError) as caught:
        templates.of_files(of(texts), source="small")
    assert said in str(caught.value)
    assert caught.value.cure


def test_a_template_with_a_repository_in_it_is_refused(directory: Path) -> None:
    (directory / ".git").mkdir()
    with pytest.raises(ConfigError, match="it is a name of Git's own"):
        templates.load(str(directory))


@pytest.mark.parametrize(
    ("name", "said"), [("absent", "there is no template"), ("prompt-only@2", "in version 1, not 2")]
)
def test_a_template_that_is_not_here_is_refused_with_those_that_are(name: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        templates.named(name)
    assert "prompt-only" in caught.value.cure
