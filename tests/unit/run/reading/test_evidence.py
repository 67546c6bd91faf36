"""All that a run keeps of an attempt is found, in its bounds, whatever an agent made of it."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from hermit.run.reading import evidence


def sections(found: evidence.Evidence) -> dict[str, str]:
    return {section.title: section.text.head for section in found.sections}


def test_what_was_said_and_printed_is_shown_with_where_it_is(maker: Any, a_row: Any) -> None:
    judge = {"score": 0.5, "feedback": "half", "extra": {"expected": 9}}
    rows = [a_row("x"), a_row("t/1", judge=judge, output={"a": 1}, log="a log", error=None)]
    paths = maker.run(rows)
    logs = paths.logs("t/1", 0)
    logs.mkdir(parents=True)
    for name, data in (("agent.out", b"\xff\x00out"), ("agent.err", b"err"), ("judge.out", b""), ("judge.err", b"j")):
        (logs / name).write_bytes(data)
    run = maker.open(paths.root)
    found = evidence.of_attempt(run, run.results[0])
    assert sections(found) == {
        "Feedback of the judge": "half",
        "More of the judge": '{\n "expected": 9\n}',
        "Output": '{\n "a": 1\n}',
        "Log": "a log",
        "What the agent printed": r"\xff\x00out",
        "What the agent printed as errors": "err",
        "What the judge printed as errors": "j",
    }
    assert found.sections[0].path == "eval/none/results.jsonl, line 2"
    assert found.sections[-1].path == "eval/none/logs/t%2F1-0/judge.err"


def test_the_facts_of_a_row_are_told_and_what_says_nothing_is_left_out(maker: Any, a_row: Any) -> None:
    more = {
        "alone": True,
        "judged": "separate",
        "cost_usd": 0.25,
        "tokens": {"input": 3, "output": "many"},
        "dropped": {"link": 2},
        "missing": ["a", "b"],
        "judge_on_host": "",
        "left": {"entries": 1},
    }
    run = maker.opened([a_row("a", **more)])
    facts = {fact.name: fact.value for fact in evidence.of_attempt(run, run.results[0]).facts}
    assert facts == {
        "judged": "separate",
        "every process of the agent had ended": "yes",
        "cost": "$0.2500",
        "tokens": "input: 3, output: many",
        "missing for the judge": "a, b",
        "left behind": "link: 2",
        "left in environment.write": "entries: 1",
    }


def trajectory(maker: Any, a_row: Any, lines: list[bytes]) -> evidence.Evidence:
    paths = maker.run([a_row("a")])
    file = paths.messages("a", 0)
    file.parent.mkdir(parents=True)
    file.write_bytes(b"".join(line + b"\n" for line in lines))
    run = maker.open(paths.root)
    return evidence.of_attempt(run, run.results[0])


def test_a_trajectory_says_who_spoke_what_was_said_and_the_rest(maker: Any, a_row: Any) -> None:
    said = [
        {"role": "user", "content": "go"},
        {"type": "call", "text": "x", "arguments": {"n": 1}},
        {"role": "assistant", "content": [{"text": "parts"}]},
        "words",
        [1],
        None,
        {"role": 5},
    ]
    found = trajectory(maker, a_row, [json.dumps(each).encode() for each in said] + [b"no json \xff"])
    assert [(message.number, message.speaker, message.text.head) for message in found.messages] == [
        (1, "user", "go"),
        (2, "call", "x"),
        (3, "assistant", ""),
        (4, "", "words"),
        (5, "", "[\n 1\n]"),
        (6, "", ""),
        (7, "", ""),
        (8, "", r"no json \xff"),
    ]
    rest = [message.rest.head for message in found.messages]
    assert '"n": 1' in rest[1]
    assert '"parts"' in rest[2]
    assert '"role": 5' in rest[6]
    assert found.messages_left_out == 0


def test_a_long_trajectory_keeps_its_beginning_and_its_end(maker: Any, a_row: Any) -> None:
    found = trajectory(maker, a_row, [json.dumps({"role": "x", "content": str(n)}).encode() for n in range(500)])
    numbers = [message.number for message in found.messages]
    assert numbers == [*range(1, evidence.FIRST_MESSAGES + 1), *range(501 - evidence.LAST_MESSAGES, 501)]
    assert found.messages_left_out == 500 - len(numbers)


def test_a_torn_message_is_left_out(maker: Any, a_row: Any) -> None:
    found = trajectory(maker, a_row, [b'{"role": "x", "content": "whole"}'])
    assert len(found.messages) == 1


def test_files_beside_the_results_are_shown_and_no_link_fifo_or_secret_is_opened(
    maker: Any, a_row: Any, tmp_path: Any
) -> None:
    (tmp_path / "secret").write_text("secret")
    paths = maker.run([a_row("a")])
    logs = paths.agent_logs("a", 0)
    (logs / "deep").mkdir(parents=True)
    (logs / "deep" / "b.txt").write_text("b\x1b[2J")
    os.symlink(tmp_path / "secret", logs / "link")
    os.symlink(tmp_path, logs / "directory")
    os.mkfifo(logs / "fifo")
    with open(os.fsencode(logs) + b"/\xff\xe2\x80\xae.txt", "wb") as file:
        file.write(b"odd")
    run = maker.open(paths.root)
    found = {section.title: section.text.head for section in evidence.of_attempt(run, run.results[0]).files}
    assert found == {"agent-logs/deep/b.txt": r"b\x1b[2J", r"agent-logs/\xff\u202e.txt": "odd"}


def test_more_files_than_are_shown_are_said(maker: Any, a_row: Any) -> None:
    paths = maker.run([a_row("a")])
    logs = paths.agent_logs("a", 0)
    logs.mkdir(parents=True)
    for number in range(evidence.MOST_FILES + 5):
        (logs / f"{number:03}").write_text("x")
    run = maker.open(paths.root)
    files = evidence.of_attempt(run, run.results[0]).files
    assert len(files) == evidence.MOST_FILES + 1
    assert files[-1].title == "More files"


@pytest.mark.parametrize("size", [50_000_000])
def test_what_is_huge_is_read_to_a_bound_and_says_that_more_is_there(maker: Any, a_row: Any, size: int) -> None:
    paths = maker.run([a_row("a", output="o" * size)])
    logs = paths.logs("a", 0)
    logs.mkdir(parents=True)
    with (logs / "agent.out").open("wb") as file:
        file.truncate(1 << 40)  # a size that no disk has
    run = maker.open(paths.root)
    output, printed = evidence.of_attempt(run, run.results[0]).sections[-2:]
    assert output.text.left_out == size - len(output.text.head) - len(output.text.tail)
    assert (printed.text.rest, printed.text.tail) == ("more", "")
    assert len(output.text.head) + len(printed.text.head) < 200_000


def test_a_record_that_is_named_and_cannot_be_read_is_there_as_missing(maker: Any, a_row: Any, a_record: Any) -> None:
    names = ["good.json", "../secret\x1b", "gone.json"]
    run = maker.opened([a_row("a", records=names)], records={"good.json": a_record()})
    starts = evidence.of_attempt(run, run.results[0]).starts
    assert [(name, start is not None) for name, start in starts] == [
        ("good.json", True),
        (r"../secret\x1b", False),
        ("gone.json", False),
    ]
