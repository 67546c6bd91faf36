"""The lists that pin every package say what was resolved, and read the same again."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

import hermit
from hermit.errors import PlaceError
from hermit.oci.images import checkout, lock

IMAGES = Path(hermit.__file__).parents[1] / "images"


def test_a_list_holds_each_version_with_every_hash_in_one_order():
    packages = {"b": ("2", {"ff", "00"}), "a": ("1", {"11"})}
    text = lock.pinned(packages, head=["# head"])
    assert text == "# head\na==1 \\\n    --hash=sha256:11\nb==2 \\\n    --hash=sha256:00 \\\n    --hash=sha256:ff\n"
    assert checkout.locked(text) == {"a": "1", "b": "2"}


@pytest.mark.parametrize("file", [lock.BASE, lock.JUDGE, lock.DEBIAN_LOCK])
def test_the_lists_here_are_such_as_the_command_writes(file):
    text = (IMAGES / file).read_text(encoding="utf-8")
    head = lock.HEADS[file]
    assert tuple(text.splitlines()[: len(head)]) == head
    if file != lock.DEBIAN_LOCK:
        hashes = dict(
            re.findall(r"^([\w.-]+)==[^\n]*\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", text, re.MULTILINE)
        )
        versions = checkout.locked(text)
        packages = {name: (versions[name], set(re.findall(r"sha256:(\w+)", found))) for name, found in hashes.items()}
        assert lock.pinned(packages, head=head) == text


def test_the_judges_list_repeats_nothing_of_the_bases():
    base, judge = (checkout.locked((IMAGES / file).read_text(encoding="utf-8")) for file in (lock.BASE, lock.JUDGE))
    assert base.keys() & judge.keys() == set()
    assert {"pytest", "hypothesis", "scikit-learn"} <= judge.keys()


def test_a_package_without_a_wheel_for_another_architecture_is_said_and_left_out(monkeypatch):
    said = []

    def report(_site, wanted, **_):
        if "torch==1" in wanted:
            raise PlaceError("ERROR: No matching distribution found for torch==1")
        return [{"metadata": {"name": word.partition("==")[0]}} for word in wanted]

    monkeypatch.setattr(lock, "_report", report)
    found = lock._exactly(SimpleNamespace(say=said.append), {"torch": "torch==1", "a": "a==2"}, machine="other")
    assert [one["metadata"]["name"] for one in found] == ["a"]
    assert said == ["torch has no wheel for other"]


def test_a_failure_of_another_kind_is_not_taken_for_a_missing_wheel(monkeypatch):
    def report(*_, **__):
        raise PlaceError("ERROR: the index does not answer")

    monkeypatch.setattr(lock, "_report", report)
    with pytest.raises(PlaceError, match="does not answer"):
        lock._exactly(None, {"a": "a==2"}, machine="other")
