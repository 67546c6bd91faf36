"""Every start of a sandbox leaves its evidence, and no variable's value is in any file of a run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.bwrap

VALUE = "planted-7c1f-value"
AGENT = """
import os
from hermit import RunOutput
def run(task, adapter):
    open("answer", "w").write(str(len(os.environ["MODEL_KEY"])))
    return RunOutput(sorted(os.environ))
"""
JUDGE = "def score(task, output): return 1\n"
LINES = """
agent: {name: "agent.py:run"}
judge: {path: judge.py, mode: separate, collect: [answer]}
environment: {env: [MODEL_*], read: [books], resources: {memory_mb: 512, file_mb: 8, cpu_s: 20}}
"""


@pytest.fixture
def made(task_set: Callable[..., Any]) -> Any:
    found = task_set(AGENT, JUDGE, tasks=[{"id": "a/1"}, {"id": "b"}], lines=LINES)
    (found.root / "books").mkdir()
    return found


def evaluate(made: Any, *more: str) -> list[dict[str, Any]]:
    """Scores it with a secret in a variable that passes in."""
    said = made.eval(*more, env={"MODEL_KEY": VALUE, "OTHER_KEY": "not-passed"})
    assert said.code == 0, said.err
    assert VALUE not in said.out + said.err
    rows: list[dict[str, Any]] = made.rows
    return rows


def test_every_start_has_one_record_and_the_row_names_it(made: Any) -> None:
    rows = evaluate(made)
    named = [name for row in rows for name in row["records"]]
    assert len(named) == len(set(named)) == 4
    assert sorted(path.name for path in made.records.iterdir()) == sorted(named)
    for row in rows:
        roles = [json.loads((made.records / name).read_text())["role"] for name in row["records"]]
        assert roles == ["task", "judge"]


def test_a_record_says_what_was_shown_passed_bound_and_checked(made: Any) -> None:
    rows = evaluate(made)
    task, judge = (json.loads((made.records / name).read_text()) for name in rows[0]["records"])
    for record in (task, judge):
        assert (record["backend"], record["confined"], record["network"]) == ("bubblewrap", True, "isolated")
        assert record["version"][0].isdigit()
        assert "MODEL_KEY" in record["variables"]
        assert "OTHER_KEY" not in record["variables"]
        assert record["checks"]
        assert all(check["passed"] for check in record["checks"]), record["checks"]
        assert (record["ended"], record["empty"]) == ("exit 0", True)
        bounds = {bound["name"]: bound["value"] for bound in record["limits"] if bound["held_by"]}
        assert (bounds["memory_mb"], bounds["file_mb"], bounds["cpu_s"]) == (512, 8, 20)
    shown = {bind["target"] for bind in task["binds"]}
    assert {str(made.root / "agent.py"), str(made.root / "books")} <= shown
    assert not any(path.startswith(str(made.root / name)) for path in shown for name in ("data", "judge.py", "runs"))
    writable = [bind["target"] for bind in task["binds"] if bind["writable"]]
    assert len(writable) == 2
    assert str(made.root / ".logs") in writable
    assert str(made.root / "judge.py") in {bind["target"] for bind in judge["binds"]}


def test_no_value_of_a_variable_is_in_any_file_of_the_run(made: Any) -> None:
    rows = evaluate(made)
    assert all("MODEL_KEY" in row["output"] for row in rows), "the variable was there"
    holding = [
        path for path in (made.root / "runs").rglob("*") if path.is_file() and VALUE.encode() in path.read_bytes()
    ]
    assert holding == []


def test_a_start_that_failed_has_its_record_too(made: Any) -> None:
    (made.root / "state").mkdir()
    books = made.root / "books"
    said = made.eval(
        "--json", f"environment.read=[{books}]", "environment.write=[/usr/local]", env={"MODEL_KEY": VALUE}
    )
    assert said.code in (2, 4)
    if said.code == 4:
        assert said.summary["statuses"]["sandbox_error"] == 2


def test_an_unconfined_run_says_so_in_every_record_and_row(made: Any) -> None:
    rows = evaluate(made, "sandbox.enabled=false")
    assert {row["confined"] for row in rows} == {False}
    for path in made.records.iterdir():
        record = json.loads(path.read_text())
        assert (record["confined"], record["backend"], bool(record["reason"])) == (False, "unconfined", True)


def test_a_run_without_bubblewrap_is_refused_or_recorded_and_never_silently_weaker(made: Any, tmp_path: Any) -> None:
    (tmp_path / "empty").mkdir()
    variables = {"PATH": str(tmp_path / "empty"), "MODEL_KEY": VALUE}
    said = made.eval(env=variables)
    assert said.code == 3
    assert "bubblewrap is not installed" in said.err
    assert not made.results.exists()
    said = made.eval("--json", "sandbox.enforce=best_effort", env=variables)
    assert (said.code, said.summary["unconfined"]) == (0, 2)
