"""An adapter is frozen once, and its digest says what it holds."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from hermit.errors import ConfigError
from hermit.handoff.freeze import digest, freeze

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    root = tmp_path / "adapter"
    (root / "skills" / "one").mkdir(parents=True)
    (root / "ADAPTER.md").write_text("be brief")
    (root / "skills" / "one" / "SKILL.md").write_text("a skill")
    (root / "link").symlink_to("ADAPTER.md")
    return root


def frozen(adapter: Path, into: Path) -> str:
    into.mkdir()
    return freeze(str(adapter), into=str(into)).digest


def test_a_later_edit_does_not_reach_the_frozen_copy(adapter: Path, tmp_path: Path) -> None:
    frozen(adapter, tmp_path / "copy")
    (adapter / "ADAPTER.md").write_text("changed")
    assert (tmp_path / "copy" / "ADAPTER.md").read_text() == "be brief"


def test_the_adapter_is_untouched_and_its_copy_has_its_digest(adapter: Path, tmp_path: Path) -> None:
    before = digest(str(adapter))
    assert frozen(adapter, tmp_path / "copy") == before
    assert digest(str(adapter)) == before


def test_an_adapter_named_by_a_link_is_frozen_as_what_it_leads_to(adapter: Path, tmp_path: Path) -> None:
    (tmp_path / "named").symlink_to(adapter)
    assert frozen(tmp_path / "named", tmp_path / "copy") == digest(str(adapter))


CHANGES: dict[str, Callable[[Path], object]] = {
    "content": lambda root: (root / "ADAPTER.md").write_text("be long"),
    "name": lambda root: (root / "ADAPTER.md").rename(root / "ADAPTER.txt"),
    "executable": lambda root: (root / "ADAPTER.md").chmod(0o755),
    "place": lambda root: (root / "skills" / "one" / "SKILL.md").rename(root / "skills" / "SKILL.md"),
    "file": lambda root: (root / "empty").touch(),
    "directory": lambda root: (root / "empty").mkdir(),
    "kind": lambda root: os.replace(shutil.copy(root / "ADAPTER.md", root / "file"), root / "link"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_the_digest_changes_with_what_is_held(adapter: Path, change: str) -> None:
    before = digest(str(adapter))
    CHANGES[change](adapter)
    assert digest(str(adapter)) != before


def test_the_digest_does_not_change_with_times_or_owners_of_a_copy(adapter: Path) -> None:
    before = digest(str(adapter))
    os.utime(adapter / "ADAPTER.md", (1, 1))
    (adapter / "ADAPTER.md").chmod(0o640)
    assert digest(str(adapter)) == before


def test_two_trees_that_differ_only_in_where_a_links_text_ends_have_two_digests(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for root, text, name in ((one, "x", "yb"), (two, "xy", "b")):
        root.mkdir()
        (root / "a").symlink_to(text)
        (root / name).write_text("same")
    assert digest(str(one)) != digest(str(two))


def test_names_that_are_not_utf8_have_a_digest(tmp_path: Path) -> None:
    with open(os.path.join(os.fsencode(tmp_path), b"\xff"), "wb"):
        pass
    with_it = digest(str(tmp_path))
    os.unlink(os.path.join(os.fsencode(tmp_path), b"\xff"))
    assert digest(str(tmp_path)) != with_it


def test_an_adapter_that_is_not_there_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the adapter cannot be copied") as caught:
        frozen(tmp_path / "absent", tmp_path / "copy")
    assert caught.value.where == str(tmp_path / "absent")


def test_an_adapter_too_deep_to_be_read_is_refused(adapter: Path) -> None:
    inner = adapter
    for _ in range(130):
        inner = inner / "d"
        inner.mkdir()
    with pytest.raises(OSError, match="more than 128 deep"):
        digest(str(adapter))


def test_a_fifo_in_an_adapter_has_a_digest_and_nobody_waits_for_it(adapter: Path) -> None:
    before = digest(str(adapter))
    os.mkfifo(adapter / "fifo")
    assert digest(str(adapter)) != before
