"""Everything Hermit fails with has one exit code, and the tree of them is complete."""

from __future__ import annotations

import re

import pytest

from hermit import errors
from hermit.errors import ExitCode, HermitError, SandboxError

CLASSES = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Exception)]


@pytest.mark.parametrize("kind", CLASSES)
def test_the_tree_names_every_class_with_its_exit_code(kind):
    named = dict(re.findall(r"(\w+(?:Error|ed))\s+(\d+)\s", errors.__doc__))
    assert named[kind.__name__] == str(int(kind.exit_code))


def test_the_tree_names_no_class_that_is_gone():
    named = re.findall(r"(\w+(?:Error|ed))\s+\d+\s", errors.__doc__)
    assert sorted(named) == sorted(kind.__name__ for kind in CLASSES)


def test_no_two_classes_share_an_exit_code():
    codes = [kind.exit_code for kind in CLASSES]
    assert len(set(codes)) == len(codes)


@pytest.mark.parametrize("code", list(ExitCode))
def test_every_exit_code_is_explained(code):
    assert re.search(rf"\b{int(code)}\b", errors.__doc__)


@pytest.mark.parametrize("kind", CLASSES)
def test_every_failure_says_what_where_and_what_to_do(kind):
    assert str(kind("it broke", where="run.yaml:3", cure="mend it")) == "run.yaml:3: it broke\n  -> mend it"
    assert str(kind("it broke")) == "it broke"


def test_a_failure_of_a_sandbox_has_a_named_cause():
    assert SandboxError("x").cause == "unknown"
    assert SandboxError("x", cause="check").cause == "check"


def test_one_handler_catches_them_all():
    assert all(issubclass(kind, HermitError) for kind in CLASSES)
