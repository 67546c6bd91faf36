"""Whatever a learner left, what remains after the repair passes, and each thing that was repaired is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermit.adapter import files as adapter_files
from hermit.adapter import names
from hermit.adapter.repair import repaired
from hermit.adapter.spec import examined
from tests.unit.adapter.conftest import MANIFEST, SMALL, of
from tests.unit.adapter.test_spec import FAULTS, SKILL, failed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PATHS = [
    *SMALL,
    *("notes.txt", "fixed/new", "skills/b/SKILL.md", "skills/c/SKILL.md", "skills/b/x", "skills/b", "agents/a.md"),
    *(
        "README.MD",
        "readme.md",
        "Fixed/data/table.csv",
        "skills/ADDING/SKILL.md",
        "agents",
        "fixed",
        "tools.tools.json",
    ),
]
TEXTS = st.sampled_from(
    ["", "x", SKILL, "x" * 101, MANIFEST, MANIFEST + "origin: {a: 1}\n", "def f(): pass", "{}", b"\xff"]
)


def done(found: Any) -> dict[str, str]:
    """What was done to which path."""
    return {repair.path: repair.done for repair in found.repairs}


@given(st.dictionaries(st.sampled_from(PATHS), st.one_of(st.none(), TEXTS)), st.booleans())
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
def test_whatever_was_left_passes_after_the_repair_and_what_was_right_stays(
    small: Any, changes: dict[str, Any], grown: bool
) -> None:
    merged = {path: text for path, text in {**SMALL, **changes}.items() if text is not None}
    lost = names.collisions(sorted(merged))
    reading = adapter_files.Reading(
        of({path: text for path, text in merged.items() if path not in lost}),
        tuple(adapter_files.Dropped(path, other) for path, other in lost.items()),
    )
    before = small.files.with_files({"skills/b/SKILL.md": adapter_files.File(SKILL.encode())} if grown else {})
    found = repaired(reading, small, before=before)
    found.files.refuse()
    assert failed(examined(adapter_files.Reading(found.files), small)) == {}
    told = {repair.path for repair in found.repairs}
    kept = {path for path in reading.files.paths if path not in told}
    assert all(found.files.get(path) == reading.files.get(path) for path in kept)
    if not failed(examined(reading, small)):
        assert found.files == reading.files
        assert found.repairs == ()


@pytest.mark.parametrize(("changes", "faults"), FAULTS)
def test_each_fault_is_taken_back_and_told(
    small: Any, reading: Callable[..., Any], changes: Any, faults: dict[int, list[str]]
) -> None:
    found = repaired(reading(changes), small, before=small.files)
    assert set(done(found)) == {path for paths in faults.values() for path in paths}
    assert failed(examined(adapter_files.Reading(found.files), small)) == {}


def test_a_manifest_is_put_back_with_what_it_says_of_its_origin(small: Any, reading: Callable[..., Any]) -> None:
    changed = MANIFEST.replace("check: check.py:check\n", "") + "origin:\n  run: one\n  step: 3\n"
    found = repaired(reading({"adapter.yaml": changed}), small, before=small.files)
    assert found.files.get("adapter.yaml") == (MANIFEST + "origin:\n  run: one\n  step: 3\n").encode()
    assert done(found) == {"adapter.yaml": "restored"}


def test_a_file_that_was_right_before_is_what_it_was(small: Any, reading: Callable[..., Any]) -> None:
    before = reading({"ADAPTER.md": "Better.\n"}).files
    found = repaired(reading({"ADAPTER.md": b"\0"}), small, before=before)
    assert found.files.get("ADAPTER.md") == b"Better.\n"
    assert done(found) == {"ADAPTER.md": "taken back"}


def test_of_too_many_the_new_ones_go(small: Any, reading: Callable[..., Any]) -> None:
    before = reading({"skills/z/SKILL.md": SKILL}).files
    found = repaired(reading({"skills/z/SKILL.md": SKILL, "skills/b/SKILL.md": SKILL}), small, before=before)
    assert done(found) == {"skills/b/SKILL.md": "dropped"}


def test_what_a_learner_plants_is_dropped_counted_and_told(
    small: Any, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapter_files, "MOST_TOLD", 3)
    (directory / ".git").mkdir()
    (directory / ".git" / "hooks").mkdir()
    (directory / "skills" / "link").symlink_to("/etc/passwd")
    for number in range(10):
        (directory / f"junk{number}.bin").write_text("x")
    reading = adapter_files.read(str(directory), structure=small.manifest.structure)
    found = repaired(reading, small, before=small.files)
    assert found.files == small.files
    said = found.as_json()
    assert len(said["repairs"]) == 3
    assert said["repairs"][0] == {"path": ".git", "done": "dropped", "reason": "it is a name of Git's own"}
    assert sum(said["more_repairs"].values()) == 9
