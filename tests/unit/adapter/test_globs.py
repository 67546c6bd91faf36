"""What is not spelled is not meant."""

from __future__ import annotations

import fnmatch

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hermit.adapter import globs
from hermit.adapter.globs import Glob

NAME = st.text(alphabet="abAB.é-", min_size=1, max_size=4).filter(
    lambda name: name not in (".", "..") and name[-1] != "."
)
PATH = st.lists(NAME, min_size=1, max_size=4).map("/".join)
PART = st.text(alphabet="abAB.é-*?", min_size=1, max_size=4).filter(lambda part: "**" not in part)
PATTERN = st.lists(st.one_of(PART, st.just("**")), min_size=1, max_size=4).map("/".join)


def glob(text: str) -> Glob:
    """A pattern, where it is one."""
    try:
        return Glob(text)
    except ValueError:
        assume(False)
        raise


@pytest.mark.parametrize(
    ("pattern", "fits", "fails"),
    [
        ("a.md", ["a.md"], ["b/a.md", "A.md", "a.mdx", "aXmd", "a.md/b"]),
        ("*.md", ["a.md", "日.md"], ["b/a.md", ".md", ".a.md"]),
        ("?.md", ["a.md"], ["ab.md", "..md"]),
        ("skills/*/SKILL.md", ["skills/a/SKILL.md"], ["skills/SKILL.md", "skills/a/b/SKILL.md", "skills/.a/SKILL.md"]),
        (
            "skills/**",
            ["skills/a", "skills/a/b/c"],
            ["skills", "skillsx/a", "skills/.a", "skills/a/.b/c", "a/skills/b"],
        ),
        ("**/x", ["x", "a/x", "a/b/x"], ["x/a", ".a/x"]),
        ("a/**/x", ["a/x", "a/b/c/x"], ["a", "x", "b/a/x", "a/.b/x"]),
        ("**", ["a", "a/b"], [".a", "a/.b"]),
        (".config/*", [".config/a"], [".config/.a", "config/a"]),
        (".*", [".a"], ["a"]),
    ],
)
def test_a_pattern_means_what_it_spells(pattern: str, fits: list[str], fails: list[str]) -> None:
    found = Glob(pattern)
    assert [path for path in fits if not found.matches(path)] == []
    assert [path for path in fails if found.matches(path)] == []


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "/a",
        "a/",
        "a//b",
        "../a",
        "a/..",
        "a**",
        "**a/b",
        ".git/*",
        "a\nb",
        "a\\b",
        "[ab]:",
        "*a*b*c*",
        "x" * 201,
        "**/**/**/a",
    ],
)
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        Glob(pattern)


@given(PATTERN, PATH)
@settings(deadline=None)
def test_a_pattern_fits_as_it_does_elsewhere_save_for_leading_dots(pattern: str, path: str) -> None:
    found = glob(pattern)
    if found.matches(path):
        parts, names = pattern.split("/"), path.split("/")
        assert any(_aligned(parts, names))
        spelled = sum(part.startswith(".") for part in parts)
        assert sum(name.startswith(".") for name in names) <= spelled


def _aligned(parts: list[str], names: list[str]) -> list[bool]:
    """The textbook meaning of the pattern, with no care for dots."""
    if not parts:
        return [not names]
    if parts[0] == "**":
        if len(parts) == 1:
            return [bool(names)]
        return [fits for at in range(len(names) + 1) for fits in _aligned(parts[1:], names[at:])]
    return [bool(names) and fnmatch.fnmatchcase(names[0], parts[0]) and any(_aligned(parts[1:], names[1:]))]


@given(PATTERN, PATH)
@settings(deadline=None)
def test_every_directory_above_a_file_that_fits_is_reached(pattern: str, path: str) -> None:
    found = glob(pattern)
    if found.matches(path):
        steps = path.split("/")
        assert all(found.reaches("/".join(steps[:count])) for count in range(1, len(steps)))


def test_a_directory_that_no_file_can_fit_below_is_not_reached() -> None:
    assert not Glob("skills/*/a").reaches("agents")
    assert not Glob("skills/*/a").reaches("skills/x/a")
    assert Glob("skills/*/a").reaches("skills/x")
    assert not Glob("a.md").reaches("a.md")
    assert not Glob("**/a").reaches(".x")


def test_no_path_makes_a_pattern_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A path of a learner's against the worst pattern that is one: how often a name is looked at, not for how long."""
    looked = []
    fits = globs._fits
    monkeypatch.setattr(globs, "_fits", lambda *words, **more: looked.append(1) or fits(*words, **more))
    assert not Glob("**/*a*a*/**/x").matches("/".join(["a" * 120] * 16))
    assert len(looked) < 10_000
