"""A name means one file on every file system, and nothing to Git."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermit.adapter import names

GIT = [
    *(".git", ".GIT", ".gIt", ".git ", ".git.", ".gitmodules", ".gitattributes", ".gitignore", "git~1", "GIT~27"),
    *("\uff0egit", ".\uff47\uff49\uff54", ".g\u200cit", ".git\u200d", "\ufeff.git", ".git::$INDEX_ALLOCATION"),
]
WRONG = [
    *("", ".", "..", "a/b", "a\0b", "a\nb", "a\tb", "a\x7fb", "a\x1b[31mb", "\udcff", "a\u202eb", "a\u200bb"),
    *(
        "a.",
        "a ",
        " a",
        "a\\b",
        "a:b",
        "a?",
        "a*",
        "<a>",
        "a|b",
        '"a"',
        "CON",
        "nul.md",
        "com1.txt",
        "x" * 129,
        "ü" * 65,
    ),
]


@pytest.mark.parametrize("name", GIT + WRONG)
def test_a_name_that_could_be_read_as_another_is_none(name: str) -> None:
    assert names.wrong_name(name)


@pytest.mark.parametrize(
    "name", ["a", "ADAPTER.md", "a b.txt", ".hidden", "日本.md", "ü", "a.b.c", "git", "x.git", "~a", "-rf"]
)
def test_an_ordinary_name_is_one(name: str) -> None:
    assert names.wrong_name(name) == ""


@pytest.mark.parametrize(
    "path",
    ["../a", "a/../b", "/a", "a//b", "a/./b", "a/", "sub/.git/config", "CARD.md", "card.MD", "/".join("a" * 17), ""],
)
def test_a_path_that_leads_elsewhere_is_none(path: str) -> None:
    assert names.wrong_path(path)


@given(st.text(max_size=40))
@settings(deadline=None)
def test_whatever_passes_is_one_name_of_ordinary_letters(name: str) -> None:
    if names.wrong_name(name):
        return
    assert "/" not in name
    assert "\0" not in name
    assert name not in ("", ".", "..")
    assert name.encode().decode() == name
    assert name.isprintable() or "\u3000" in name or any(unicodedata.category(one) in ("Zs", "Cn") for one in name)
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        assert not unicodedata.normalize(form, name).casefold().rstrip(" .").startswith(".git")


@given(
    st.text(alphabet="aAbBéÉeßsS\u0301/", min_size=1, max_size=8),
    st.text(alphabet="aAéÉeßsS\u0301/", min_size=1, max_size=8),
)
@settings(deadline=None)
def test_two_paths_that_fold_into_one_are_never_both_kept(one: str, other: str) -> None:
    kept = [path for path in (one, other) if path not in names.collisions([one, other])]
    spelled: dict[str, str] = {}
    for path in kept:
        steps = path.split("/")
        for count in range(1, len(steps) + 1):
            way = "/".join(steps[:count])
            assert spelled.setdefault(names.folded(way), way) == way


@pytest.mark.parametrize(
    ("paths", "lost"),
    [
        (["a.md", "A.md"], {"A.md": "a.md"}),
        (["skills/x", "Skills/y"], {"Skills/y": "skills"}),
        (["é", "e\u0301"], {"e\u0301": "é"}),
        (["a", "a/b"], {"a/b": "a"}),
        (["a/b", "a"], {"a": "a"}),
        (["a/b", "A"], {"A": "a"}),
        (["a/b", "a/c", "b/a"], {}),
    ],
)
def test_the_first_of_two_that_cannot_be_beside_each_other_is_kept(paths: list[str], lost: dict[str, str]) -> None:
    assert names.collisions(paths) == lost
