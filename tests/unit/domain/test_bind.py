"""Paths and binds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermit.domain.bind import Bind, absolute, contains

PARTS = st.lists(st.text("ab.- é\n", min_size=1, max_size=4).filter(lambda part: part not in (".", "..")), max_size=5)


def path_of(parts):
    return "/" + "/".join(parts)


@pytest.mark.parametrize("path", ["", "relative", "./a", "~", "a/b"])
def test_a_path_that_is_not_absolute_is_refused(path):
    with pytest.raises(ValueError, match="must be an absolute path"):
        absolute(path, what="it")


@pytest.mark.parametrize("path", ["/..", "/a/../b", "/a/..", "//../a"])
def test_a_path_that_climbs_is_refused(path):
    with pytest.raises(ValueError, match=r"'\.\.'"):
        absolute(path, what="it")


def test_a_path_with_a_nul_byte_is_refused():
    with pytest.raises(ValueError, match="NUL"):
        absolute("/a\0b", what="it")


def test_a_path_that_no_file_system_can_hold_is_refused():
    with pytest.raises(ValueError, match="surrogate"):
        absolute("/a\ud800", what="it")


@pytest.mark.parametrize(
    ("given_path", "normal"), [("/", "/"), ("//a", "/a"), ("/a//b/", "/a/b"), ("/a/./b", "/a/b"), ("/...", "/...")]
)
def test_a_path_has_one_normal_form(given_path, normal):
    assert absolute(given_path, what="it") == normal


@given(PARTS)
def test_the_normal_form_of_a_normal_path_is_itself(parts):
    once = absolute(path_of(parts), what="it")
    assert absolute(once, what="it") == once


@given(PARTS, PARTS)
def test_a_path_contains_exactly_what_begins_with_all_its_parts(outer, inner):
    expected = inner[: len(outer)] == outer
    assert contains(path_of(outer), path_of(inner)) is expected


@pytest.mark.parametrize(
    ("outer", "inner", "expected"), [("/a", "/ab", False), ("/", "/a", True), ("/a/b", "/a", False)]
)
def test_a_name_that_only_begins_alike_is_not_inside(outer, inner, expected):
    assert contains(outer, inner) is expected


def test_a_bind_is_read_only_unless_it_says_otherwise():
    assert Bind("/a", "/b").writable is False


def test_a_bind_keeps_its_paths_in_normal_form():
    assert Bind("//a/", "/b/./c") == Bind("/a", "/b/c")


@pytest.mark.parametrize("target", ["/", "//", "/./"])
def test_nothing_can_be_shown_as_the_root(target):
    with pytest.raises(ValueError, match="must not be the root"):
        Bind("/a", target)
