"""The names of what a run hides."""

from __future__ import annotations

import pytest

from hermit.domain import hide


def test_names_go_through_the_environment_and_back():
    names = ("bench.scoring", "my-bench", "_private")
    assert hide.from_environment(hide.to_environment(names)) == names
    assert hide.from_environment("") == ()
    assert hide.from_environment(" a, b\n") == ("a", "b")


@pytest.mark.parametrize("value", ["a,../b", "/etc/passwd", "a,b\0"])
def test_a_variable_that_holds_something_else_than_names_is_refused(value):
    with pytest.raises(ValueError, match="hide takes names of modules"):
        hide.from_environment(value)


def test_the_variable_only_adds():
    assert hide.merged(("a", "b"), ("b", "c")) == ("a", "b", "c")
    assert hide.merged((), ("c",)) == ("c",)
    assert hide.merged(("a",), ()) == ("a",)
