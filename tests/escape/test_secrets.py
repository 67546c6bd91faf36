"""A secret of the run is shown under no name: not its own, not by a link, a bind, a directory above it or a part of it."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from hermit.domain.bind import Bind
from hermit.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.escape.conftest import Range

pytestmark = pytest.mark.bwrap

READ = """
def attack(path):
    return "the answer" in open(path).read()
"""
UNSEEN = ('if "secrets" in orders', "if False")


def shown_as(field: Range, what: str) -> tuple[dict[str, object], str]:
    """Changes to a sandbox that show the secret under a name nobody probes for, and that name."""
    secret = field.secret
    way = secret.parent.parent / "way"
    if what == "the file":
        way.symlink_to(secret)
        return {"binds": (Bind(str(way), "/innocent"),)}, "/innocent"
    if what == "the directory above it":
        way.symlink_to(secret.parent)
        return {"binds": (Bind(str(way), "/innocent"),)}, f"/innocent/{secret.name}"
    way.symlink_to(secret)  # a part of a secret directory
    return {"binds": (Bind(str(way), "/innocent"),), "probes": (str(secret.parent),)}, "/innocent"


@pytest.mark.parametrize("what", ["the file", "the directory above it", "a part of it"])
def test_a_secret_under_another_name_ends_the_start(
    field: Range, what: str, edited: Callable[[dict[str, tuple[str, str]]], Range]
) -> None:
    changes, name = shown_as(field, what)
    with pytest.raises(SandboxError) as refused:
        field.attack(READ, name, sandbox=field.sandbox(**changes))
    assert refused.value.cause == "check"
    assert "secrets absent by any other name" in str(refused.value)
    blind = edited({"inside/checks.py": UNSEEN})
    assert blind.attack(READ, name, sandbox=field.sandbox(**changes)) is True, (
        "the attack fails anyway: it proves nothing"
    )


def test_a_secret_that_was_put_in_the_place_of_a_granted_directory_ends_the_start(
    field: Range, edited: Callable[[dict[str, tuple[str, str]]], Range]
) -> None:
    """The directory that holds it was renamed after the plan was made: no name of it is probed any more."""
    held = field.secret.parent
    sandbox = field.sandbox(probes=(str(held / field.secret.name), str(held.parent / "later" / "answers.jsonl")))
    field.shown.rename(held.parent / "away")
    (held.parent / "later").symlink_to(held)
    held.rename(field.shown)
    (held.parent / "later").unlink()
    (held.parent / "later").symlink_to(field.shown)
    name = field.shown / field.secret.name
    with pytest.raises(SandboxError, match="secrets absent by any other name"):
        field.attack(READ, name, sandbox=sandbox)
    blind = edited({"inside/checks.py": UNSEEN})
    assert blind.attack(READ, name, sandbox=sandbox) is True


REFUSE = """
def attack():
    from hermit.errors import ConfigError
    from hermit.roles.secrets import Secret, refuse_declared
    secrets = [Secret("/one/tasks.jsonl", "data.tasks"), Secret("/one/tests", "judge.tests")]
    for path, relation in (("/two", "holds"), ("/two/tasks.jsonl", "is"), ("/two/tests/a", "lies"), ("/three", "lies")):
        try:
            refuse_declared([("environment.read", path)], secrets)
        except ConfigError as error:
            if f" {relation}" not in error.what:
                raise SystemExit(error.what)
            continue
        return True
    refuse_declared([("environment.read", "/two/books")], secrets)
    return False
"""


def test_a_bind_mount_of_a_secret_is_refused_by_the_config(field: Range) -> None:
    """A sandbox is a machine with bind mounts of one directory at several places, and needs no root to be made."""
    data = field.shown
    for name in ("tests/a", "books"):
        (data / name).mkdir(parents=True)
    (data / "tasks.jsonl").write_text("{}")
    (data / "tests" / "a" / "one").write_text("1")
    binds = (Bind(str(data), "/one"), Bind(str(data), "/two"), Bind(str(data / "tests" / "a"), "/three"))
    sandbox = replace(field.sandbox(read=(), binds=binds), framework=True)
    assert field.attack(REFUSE, sandbox=sandbox) is False


def test_the_same_mounts_would_pass_by_their_names_alone(
    field: Range, edited: Callable[[dict[str, tuple[str, str]]], Range]
) -> None:
    data = field.shown
    (data / "tasks.jsonl").write_text("{}")
    sandbox = replace(field.sandbox(read=(), binds=(Bind(str(data), "/one"), Bind(str(data), "/two"))), framework=True)
    blind = edited({"bwrap/places.py": ("return _by_number(shown, hidden) or _by_mount(shown, hidden)", 'return ""')})
    assert blind.attack(textwrap.dedent(REFUSE), sandbox=sandbox) is True
