"""A run is opened by its name or an evaluation's; what is torn is left out, and what is no run is one refusal."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from hermit.errors import ConfigError
from hermit.run.reading import load

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_a_run_is_found_by_its_directory_by_an_evaluation_and_over_a_link(maker: Any, a_row: Any) -> None:
    paths = maker.run([a_row("a")])
    link = paths.root.parent / "latest"
    link.symlink_to(paths.root)
    for where in (paths.root, paths.evaluation, link):
        assert maker.open(where).name == "one/none"


def test_where_several_evaluations_are_they_are_named_and_one_of_them_is_asked_for(maker: Any, a_row: Any) -> None:
    maker.run([a_row("a")])
    paths = maker.run([a_row("a", 0.0)], selector="mine")
    with pytest.raises(ConfigError, match="several evaluations: mine, none"), load.opened(paths.root):
        pass
    assert maker.open(paths.evaluation).results[0].score == 0


def test_attempts_stand_by_the_numbers_in_their_ids_and_the_tries_at_a_task_together(maker: Any, a_row: Any) -> None:
    rows = [a_row("t/10"), a_row("t/9", repeat=1), a_row("t/9"), a_row("t"), a_row("2"), a_row("t/9b")]
    found = [(result.id, result.repeat) for result in maker.opened(rows).results]
    assert found == [("2", 0), ("t", 0), ("t/9", 0), ("t/9", 1), ("t/9b", 0), ("t/10", 0)]


def test_the_last_row_of_an_attempt_counts(maker: Any, a_row: Any) -> None:
    run = maker.opened([a_row("a", 0.0), a_row("b"), a_row("a", 1.0)])
    assert [(result.id, result.score) for result in run.results] == [("a", 1.0), ("b", 1.0)]
    assert run.tally.mean == 1.0


def test_a_row_is_read_again_whole(maker: Any, a_row: Any) -> None:
    run = maker.opened([a_row("b", output="é\ud800" * 50), a_row("a", output=[1, None])])
    assert [run.row(result)["output"] for result in run.results] == [[1, None], "é\ud800" * 50]


def test_the_results_are_read_whole_up_to_whatever_byte_they_were_torn_at(maker: Any, a_row: Any) -> None:
    paths = maker.run([a_row("a"), a_row("b")])
    whole = paths.results.read_bytes()
    first = whole.index(b"\n") + 1
    for end in range(first, len(whole) + 1):
        paths.results.write_bytes(whole[:end])
        with load.opened(paths.root) as run:
            assert len(run.results) == 1 + (end >= len(whole) - 1)


@pytest.mark.parametrize(
    "line",
    [
        b"no json",
        b"[]",
        b"{}",
        b"\xff\xfe",
        b"[" * 5000,
        *(
            json.dumps({"repeat": 0, "id": "a", "status": "ok", "judge": None, "cost_usd": None, **wrong}).encode()
            for wrong in (
                {"status": "fine"},
                {"id": 1},
                {"id": "\ud800"},
                {"repeat": "0"},
                {"judge": {"score": "1"}},
                {"judge": {"score": float("nan")}},
                {"judge": [1]},
                {"cost_usd": float("inf")},
                {"wall_s": "long"},
                {"records": [1]},
                {"records": 5},
            )
        ),
    ],
)
def test_a_line_that_is_no_row_is_refused_by_its_number(maker: Any, a_row: Any, line: bytes) -> None:
    paths = maker.run([a_row("a"), a_row("b")])
    first, second = paths.results.read_bytes().splitlines()
    paths.results.write_bytes(b"\n".join((first, line, second, b"")))
    with pytest.raises(ConfigError, match="no row of results") as caught, load.opened(paths.root):
        pass
    assert caught.value.where.endswith("results.jsonl, line 2")


def test_a_row_of_an_earlier_version_is_read(maker: Any) -> None:
    old = {"repeat": 0, "id": "a", "status": "timeout", "judge": None, "cost_usd": 0.25}
    (result,) = maker.opened([old], lock=None).results
    assert not result.confined  # it does not say so
    assert (result.score, result.wall_s, result.phase, result.records, result.cost_usd) == (0.0, 0.0, "", (), 0.25)


def test_an_attempt_that_a_sandbox_broke_has_no_score(maker: Any, a_row: Any) -> None:
    run = maker.opened([a_row("a", None, status="sandbox_error"), a_row("b", 0.5)])
    assert [result.score for result in run.results] == [None, 0.5]
    assert run.tally.mean == 0.5


def test_a_summary_of_another_state_is_not_believed(maker: Any, a_row: Any) -> None:
    assert maker.opened([a_row("a")], name="x", summary={"attempts": 1, "wall_s": 3}).summary["wall_s"] == 3
    assert maker.opened([a_row("a")], name="y", summary={"attempts": 2, "wall_s": 3}).summary == {}


@pytest.mark.parametrize("text", ["", "[]", "{", "\x00", "[" * 5000])
def test_a_run_without_a_lock_or_a_summary_that_can_be_read_is_read_without(maker: Any, a_row: Any, text: str) -> None:
    paths = maker.run([a_row("a")])
    for path in (paths.lock, paths.summary):
        path.write_text(text)
    run = maker.open(paths.root)
    assert (run.lock, run.summary) == ({}, {})


def _fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


@pytest.mark.parametrize(
    ("what", "words"),
    [
        (lambda paths: paths.results.unlink(), "no evaluation of this run has results"),
        (lambda paths: paths.results.write_text(""), "no attempt has ended yet"),
        (lambda paths: paths.results.write_text('{"id": "a"'), "no attempt has ended yet"),
        (lambda paths: _fifo(paths.results), "cannot be read: FIFO"),
        (lambda paths: _link(paths.results), "cannot be read: link"),
        (lambda paths: paths.evaluation.parent.rename(paths.root / "no"), "there is no run here"),
        (lambda paths: paths.root.rename(paths.root.with_name("no")), "it is missing"),
    ],
)
def test_what_is_no_run_is_one_refusal_that_says_what_to_name(
    maker: Any, a_row: Any, what: Callable[[Any], Any], words: str
) -> None:
    paths = maker.run([a_row("a")])
    what(paths)
    with pytest.raises(ConfigError, match=words) as caught, load.opened(paths.root):
        pass
    assert caught.value.cure


def test_a_file_of_the_run_that_leads_elsewhere_is_not_read(maker: Any, a_row: Any, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    paths = maker.run([a_row("a")])
    run = maker.open(paths.root)
    link = paths.logs("a", 0) / "agent.out"
    link.parent.mkdir(parents=True)
    link.symlink_to(tmp_path / "secret")
    assert run.top.read(link, most=100) is None
    for name in ("../../secret", "/etc/passwd", "a\0b", "\ud800", "", ".."):
        assert run.top.read(paths.records / name, most=100) is None


@pytest.mark.parametrize(
    ("summary", "found"),
    [
        ({}, None),
        ({"mean_score": 0.5, "mean_interval": {"low": 0.25, "high": 0.75, "level": 0.95}}, (0.25, 0.75)),
        ({"mean_interval": {"low": "a", "high": None}}, None),
        ({"mean_interval": [0.25, 0.75]}, None),
    ],
)
def test_an_interval_is_taken_from_the_summary_where_there_is_one(summary: Any, found: Any) -> None:
    assert load.interval(summary) == found
