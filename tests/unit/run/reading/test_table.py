"""The table has a line for each task, and the document one for each attempt."""

from __future__ import annotations

from typing import Any

from hermit.run.reading import table


def test_a_task_is_one_line_with_what_its_attempts_came_to(maker: Any, a_row: Any) -> None:
    rows = [
        a_row("a"),
        a_row("b", 0.5),
        a_row("b", 1.0, repeat=1, wall_s=1.5),
        a_row("c", None, status="sandbox_error", error="it broke"),
        a_row("d\x1b", None, error="\n\x1b[2Jfirst\nsecond"),
    ]
    run = maker.opened(rows)
    assert [(line.task, line.kind, line.came_to, line.score, line.wall_s, line.words) for line in table.lines(run)] == [
        ("a", "solved", "solved", 1.0, 0.5, "seen"),
        ("b", "mixed", "1 solved, 1 partly solved", 0.75, 1.0, "seen"),
        ("c", "sandbox_error", "sandbox error", None, 0.5, "it broke"),
        (r"d\x1b", "agent_error", "agent error", 0.0, 0.5, r"\x1b[2Jfirst"),
    ]


def test_the_document_says_what_came_of_the_run_and_of_each_attempt(maker: Any, a_row: Any, a_record: Any) -> None:
    rows = [a_row("a", records=["r.json"]), a_row("b", None)]
    run = maker.opened(rows, summary={"attempts": 2, "repeats": 1, "tasks": 3}, records={"r.json": a_record()})
    document = table.document(run)
    assert (document["run"], document["selector"]) == ("one", "none")
    summary = document["summary"]
    assert (summary["mean_score"], summary["solved_once"], summary["errors"], summary["tasks"]) == (0.5, 1, 1, 3)
    assert document["isolation"]["checks_passed"] == 1
    assert [(each["id"], each["status"], each["score"], each["solved"]) for each in document["attempts"]] == [
        ("a", "ok", 1.0, True),
        ("b", "agent_error", 0.0, False),
    ]
