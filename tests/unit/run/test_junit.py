"""A JUnit report is well-formed whatever agents and judges wrote, and tells their failures from ours."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermit.domain.attempt import Phase, Status
from hermit.domain.trial import JudgeResult
from hermit.errors import ConfigError
from hermit.run import junit
from hermit.run.report import Row
from hermit.run.results import Results

if TYPE_CHECKING:
    from pathlib import Path

# Of each element: its attributes, all of them needed, and what may stand in it.
SCHEMA: dict[str, tuple[set[str], set[str]]] = {
    "testsuites": ({"name", "tests", "failures", "errors", "time"}, {"testsuite"}),
    "testsuite": ({"name", "tests", "failures", "errors", "skipped", "time"}, {"testcase", "properties"}),
    "properties": (set(), {"property"}),
    "property": ({"name", "value"}, set()),
    "testcase": ({"classname", "name", "time"}, {"failure", "error", "system-out"}),
    "failure": ({"message", "type"}, set()),
    "error": ({"message", "type"}, set()),
    "system-out": (set(), set()),
}


def row(task_id: str, score: float | None = 1.0, *, status: Status = Status.OK, feedback: str = "", **more: Any) -> Row:
    judge = None if score is None else JudgeResult(score, feedback)
    return Row(id=task_id, repeat=more.pop("repeat", 0), status=status, judge=judge, **more)


def failed(task_id: str, status: Status, error: str = "why", *, phase: str = "agent", cause: str = "exception") -> Row:
    return row(task_id, None, status=status, error=error, phase=Phase(phase), cause=cause)


def report(directory: Path, *rows: Row) -> ET.Element:
    """The report of these rows, read back and held against the schema."""
    file = directory / "results.jsonl"
    file.unlink(missing_ok=True)
    with Results(file) as results:
        for one in rows:
            results.add(one.as_json())
    root = ET.fromstring(b"".join(junit.document(file, name="set/none", wall_s=2.5)))  # noqa: S314 - ours
    assert root.tag == "testsuites"
    for element in root.iter():
        attributes, children = SCHEMA[element.tag]
        assert set(element.attrib) == attributes
        assert {child.tag for child in element} <= children
        assert element.tag != "testcase" or len(element) <= 1
    cases = list(root.iter("testcase"))
    for holder in (root, root[0]):
        assert int(holder.attrib["tests"]) == len(cases) == len(rows)
        for kind in ("failure", "error"):
            assert int(holder.attrib[f"{kind}s"]) == len(list(root.iter(kind)))
    return root


def test_each_attempt_is_a_case_with_its_time(tmp_path: Path) -> None:
    root = report(tmp_path, row("a", wall_s=1.25), row("b", 0.5, repeat=1, wall_s=0.5))
    assert [(case.get("classname"), case.get("name"), case.get("time")) for case in root.iter("testcase")] == [
        ("set/none", "a", "1.250"),
        ("set/none", "b (attempt 2)", "0.500"),
    ]
    assert (root[0].get("name"), root[0].get("time"), root[0].get("skipped")) == ("set/none", "2.500", "0")


@pytest.mark.parametrize(
    ("one", "found"),
    [
        (row("a", 0.25, feedback="close"), ("failure", "score 0.25", "agent: score", "close")),
        (row("a", 0.0), ("failure", "score 0", "agent: score", None)),
        (failed("a", Status.AGENT_ERROR), ("failure", "agent_error (agent, exception)", "agent: exception", "why")),
        (
            failed("a", Status.TIMEOUT, cause="timeout"),
            ("failure", "timeout (agent, timeout)", "agent: timeout", "why"),
        ),
        (
            failed("a", Status.JUDGE_ERROR, phase="judge"),
            ("error", "judge_error (judge, exception)", "judge: exception", "why"),
        ),
        (
            failed("a", Status.SANDBOX_ERROR, phase="start", cause="check"),
            ("error", "sandbox_error (start, check)", "infrastructure: check", "why"),
        ),
    ],
)
def test_what_an_agent_did_is_a_failure_and_what_a_judge_or_we_did_an_error(
    tmp_path: Path, one: Row, found: tuple[str, str, str, str | None]
) -> None:
    root = report(tmp_path, one)
    (said,) = next(root.iter("testcase"))
    assert (said.tag, said.get("message"), said.get("type"), said.text) == found


def test_the_suite_counts_whose_doing_it_was(tmp_path: Path) -> None:
    ours = failed("c", Status.SANDBOX_ERROR, phase="start", cause="check")
    judges = failed("d", Status.JUDGE_ERROR, phase="judge")
    root = report(tmp_path, row("a"), row("b", 0.5), ours, judges, failed("e", Status.AGENT_ERROR))
    assert {one.get("name"): one.get("value") for one in root.iter("property")} == {
        "not passed: agent": "2",
        "not passed: judge": "1",
        "not passed: infrastructure": "1",
    }


def test_a_solved_attempt_passes_and_its_feedback_is_kept(tmp_path: Path) -> None:
    root = report(tmp_path, row("a", 1.0), row("b", 1.5, feedback="better than <asked>"))
    assert [(child.tag, child.text) for case in root.iter("testcase") for child in case] == [
        ("system-out", "better than <asked>")
    ]


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("]]></failure><testcase/>&amp;\"'", "]]></failure><testcase/>&amp;\"'"),
        ("a\x1b[2J\x00\x07b\x7f\x85", "a\\x1b[2J\\x00\\x07b\x7f\x85"),
        ("half \ud800 \ufffe \uffff whole \U0001f600", "half \\ud800 \\ufffe \\uffff whole \U0001f600"),
        ("one\ntwo\tthree\r\n", "one\ntwo\tthree\\r\n"),
    ],
)
def test_words_come_back_as_they_were_and_what_xml_cannot_hold_is_spelled_out(
    tmp_path: Path, said: str, read: str
) -> None:
    root = report(tmp_path, failed(said, Status.AGENT_ERROR, said), row("b", 0.0, feedback=said))
    assert [next(root.iter("failure")).text, root[0][2][0].text] == [read, read]
    assert root[0][1].get("name") == read


@given(said=st.text(st.characters(), max_size=40))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_words_break_the_report(tmp_path: Path, said: str) -> None:
    rows = [failed(said, Status.AGENT_ERROR, said), row(said, 0.5, feedback=said), row("c", feedback=said)]
    assert len(list(report(tmp_path, *rows).iter("testcase"))) == 3


def test_a_flood_of_feedback_is_cut_and_says_so(tmp_path: Path) -> None:
    text = report(tmp_path, row("a", 0.0, feedback="x" * 100_000))[0][1][0].text
    assert text is not None
    assert len(text) < 21_000
    assert text.endswith("and 80000 more characters, in results.jsonl")


def test_a_report_of_no_results_is_whole(tmp_path: Path) -> None:
    assert report(tmp_path)[0].get("tests") == "0"


def test_a_report_has_a_place_or_is_refused_before_anything_is_done(tmp_path: Path) -> None:
    (tmp_path / "old.xml").write_text('<?xml version="1.0"?><testsuites/>')
    (tmp_path / "empty.xml").touch()
    (tmp_path / "run.yaml").write_text("data: {}")
    for name in ("new.xml", "old.xml", "empty.xml"):
        junit.refuse_unwritable(tmp_path / name, shown=(("environment.read", f"{tmp_path}/shown"),))
    for name, words in (
        ("absent/new.xml", "is no directory"),
        (".", "is a directory"),
        ("run.yaml", "exists and is no XML"),
        ("run.yaml/new.xml", "is no directory"),
    ):
        with pytest.raises(ConfigError, match=words) as caught:
            junit.refuse_unwritable(tmp_path / name, shown=())
        assert caught.value.cure


def test_a_report_where_agents_would_read_the_judges_words_is_refused(tmp_path: Path) -> None:
    (tmp_path / "shown").mkdir()
    (tmp_path / "link").symlink_to("shown")
    for name in ("shown/new.xml", "link/new.xml"):
        with pytest.raises(ConfigError, match=re.escape("agents are shown")) as caught:
            junit.refuse_unwritable(tmp_path / name, shown=(("environment.read", f"{tmp_path}/shown"),))
        assert caught.value.where == "--junit and environment.read"
