"""The files of a run: each has one name, a name is one component, and a file is whole or not there."""

from __future__ import annotations

import os
import stat
from datetime import datetime, tzinfo
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hermit.errors import HermitError
from hermit.run import paths
from hermit.run.paths import RunPaths, file_name, run_name, write_atomically

IDS = st.text(min_size=1, max_size=300)
ODD = [
    "..",
    ".",
    "../../etc/passwd",
    "a/b",
    "a%2Fb",
    "%2E",
    "-rf",
    "line\nbreak",
    "\x00",
    "~",
    "CON",
    "é",
    "e\u0301",
    " ",
]


@given(IDS)
@example("..")
@example("." * 200)
@example("\x00/\n")
@example("é" * 300)
def test_any_id_is_one_short_component_of_a_path(task_id: str) -> None:
    name = file_name(task_id)
    assert "/" not in name
    assert "\0" not in name
    assert name not in ("", ".", "..")
    assert not name.startswith(".")
    assert len(os.fsencode(f"20260101T000000.000000-judge-{name}-999.json")) <= 255
    assert name.isascii()
    assert name.isprintable()


@given(IDS, IDS)
@example("a/b", "a%2Fb")
@example(".a", "%2Ea")
@example("é", "e\u0301")
@example("A", "a")
@example("x" * 130, "x" * 131)
def test_two_ids_never_share_a_name(one: str, other: str) -> None:
    assert (file_name(one) == file_name(other)) == (one == other)


def test_odd_ids_each_have_a_name_of_their_own_that_the_file_system_takes(tmp_path: Path) -> None:
    for task_id in ODD:
        (tmp_path / file_name(task_id)).touch(exist_ok=False)
    assert len(os.listdir(tmp_path)) == len(ODD)


def test_a_long_id_never_meets_the_name_that_a_short_one_was_given() -> None:
    long = file_name("x" * 500)
    assert file_name(long) != long


@pytest.mark.parametrize(
    ("given_name", "agent", "name"),
    [
        ("mine", "agent.py:run", "mine"),
        (None, "agent.py:reference", "humaneval-reference"),
        (None, "/a/b.py:run", "humaneval-run"),
        (None, "react", "humaneval-react"),
    ],
)
def test_a_run_is_named_as_asked_or_by_its_directory_and_agent(given_name: str | None, agent: str, name: str) -> None:
    assert run_name(given=given_name, config=Path("/x/humaneval/run.yaml"), agent=agent) == name


@pytest.mark.parametrize("directory", ["/", "/..", "/...", "/a b", "/é", "/-"])
def test_a_derived_name_is_one_component(directory: str) -> None:
    name = run_name(given=None, config=Path(directory) / "run.yaml", agent="agent.py:run")
    assert "/" not in name
    assert name.strip(".")


def test_the_tree_is_the_one_that_is_documented() -> None:
    found = RunPaths(Path("/runs/one"), "none")
    assert str(found.results) == "/runs/one/eval/none/results.jsonl"
    assert str(found.summary) == "/runs/one/eval/none/summary.json"
    assert str(found.lock) == "/runs/one/eval/none/lock.json"
    assert str(found.logs("a/b", 2)) == "/runs/one/eval/none/logs/a%2Fb-2"
    assert found.new_record("task", "a/b", 0).parent == Path("/runs/one/sandbox")
    assert found.new_record("task", "a/b", 0).name.endswith("-task-a%2Fb-0.json")


def test_a_written_file_replaces_the_old_one_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "summary.json"
    write_atomically(file, b"old")
    write_atomically(file, b"new")
    assert file.read_bytes() == b"new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    assert os.listdir(file.parent) == ["summary.json"]


@pytest.mark.parametrize("broken", ["fdopen", "fchmod", "replace"])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    file = tmp_path / "summary.json"
    write_atomically(file, b"old")

    def fail(*given: object) -> None:
        if broken == "fdopen":
            os.close(given[0])  # type: ignore[arg-type]
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, broken, fail)
    with pytest.raises(HermitError, match="No space left"):
        write_atomically(file, b"new")
    monkeypatch.undo()
    assert file.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["summary.json"]


def test_a_reader_sees_the_old_or_the_new_and_never_half(tmp_path: Path) -> None:
    file = tmp_path / "summary.json"
    old, new = b"o" * 300_000, b"n" * 300_000
    write_atomically(file, old)
    pid = os.fork()
    if pid == 0:
        try:
            for _ in range(20):
                write_atomically(file, new)
                write_atomically(file, old)
        finally:
            os._exit(0)
    seen = set()
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        seen.add(file.read_bytes())
    assert seen <= {old, new}


def test_two_records_never_share_a_name_even_where_the_clock_stands_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Still(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Still:
            return cls(2026, 1, 1, tzinfo=tz)

    monkeypatch.setattr(paths, "datetime", Still)
    found = RunPaths(tmp_path, "none")
    names = []
    for _ in range(3):
        path = found.new_record("task", "a", 0)
        write_atomically(path, b"{}", lasting=False)
        names.append(path.name)
    stem = "20260101T000000.000000-task-a-0"
    assert names == [f"{stem}.json", f"{stem}-1.json", f"{stem}-2.json"]
