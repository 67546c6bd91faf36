"""All that a run keeps of one attempt: its words, its trajectory, its files, and the records of its starts."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hermit import untrusted
from hermit.run.reading import isolation, words
from hermit.run.reading.words import Excerpt, excerpt, told

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from hermit.run.reading.isolation import Start
    from hermit.run.reading.load import Result, Run, Top

# What is read of a file at most; a stream of a worker is kept to 1 MiB.
MOST_READ = 4 << 20
# Of a trajectory: messages at its beginning and at its end, and characters of each.
FIRST_MESSAGES, LAST_MESSAGES = 60, 20
MOST_OF_A_MESSAGE = (4_000, 1_000)
MOST_FILES = 40
MOST_OF_A_FILE = (4_000, 1_000)
DEEPEST = 8
STREAMS = (("agent", "out"), ("agent", "err"), ("judge", "out"), ("judge", "err"))
SPEAKERS = ("role", "type", "name")
SAID = ("content", "text")


@dataclass(frozen=True)
class Section:
    """A text with a title, and where the whole of it is."""

    title: str
    text: Excerpt
    path: str


@dataclass(frozen=True)
class Message:
    """One step of a trajectory: who spoke, what was said, and everything else of it."""

    number: int
    speaker: str
    text: Excerpt
    rest: Excerpt


@dataclass(frozen=True)
class Fact:
    """Something of the row that is worth a line."""

    name: str
    value: str


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """One attempt in full.

    Args:
        facts: What the row says in a word or a number.
        sections: What was said: error, feedback, output, log, and what was printed.
        messages: The trajectory; its middle is left out where it is long.
        messages_left_out: How many messages of it.
        messages_path: Where the whole of it is.
        files: What the agent logged, and what the judge got.
        starts: The record of each start, with its name; ``None`` where it cannot be read.
    """

    facts: tuple[Fact, ...]
    sections: tuple[Section, ...]
    messages: tuple[Message, ...]
    messages_left_out: int
    messages_path: str
    files: tuple[Section, ...]
    starts: tuple[tuple[str, Start | None], ...]


def of_attempt(run: Run, result: Result, *, row: dict[str, Any] | None = None) -> Evidence:
    """All that is kept of one attempt.

    Args:
        run: The run.
        result: The attempt.
        row: Its row, where it has been read.
    """
    row = run.row(result) if row is None else row
    messages, left_out = _messages(run, result)
    return Evidence(
        facts=tuple(_facts(row)),
        sections=tuple(section for section in (*_said(run, row, result), *_printed(run, result)) if section.text),
        messages=messages,
        messages_left_out=left_out,
        messages_path=run.top.below(run.paths.messages(result.id, result.repeat)),
        files=tuple(_logged(run, result)),
        starts=tuple((words.spelled(name), isolation.start(run.top, name)) for name in result.records),
    )


def summary_words(row: dict[str, Any]) -> str:
    """What was said of an attempt: the reason of a failure, or the judge's feedback."""
    said = row.get("error") or (row["judge"] or {}).get("feedback", "")
    return told(said)


def _said(run: Run, row: dict[str, Any], result: Result) -> Iterator[Section]:
    where = f"{run.top.below(run.paths.results)}, line {result.number}"
    judge = row["judge"] or {}
    said = [
        ("Error", row.get("error")),
        ("Feedback of the judge", judge.get("feedback")),
        ("More of the judge", judge.get("extra") or None),
        ("Output", row.get("output")),
        ("Log", row.get("log")),
    ]
    for title, value in said:
        yield Section(title, excerpt(told(value)), where)


def _printed(run: Run, result: Result) -> Iterator[Section]:
    directory = run.paths.logs(result.id, result.repeat)
    for who, stream in STREAMS:
        path = directory / f"{who}.{stream}"
        content = run.top.read(path, most=MOST_READ)
        if content is not None:
            title = f"What the {who} printed" + (" as errors" if stream == "err" else "")
            yield Section(title, excerpt(content.text, more=content.cut), run.top.below(path))


def _messages(run: Run, result: Result) -> tuple[tuple[Message, ...], int]:
    """The trajectory, and how many messages of its middle are left out."""
    content = run.top.read(run.paths.messages(result.id, result.repeat), most=MOST_READ)
    lines = [] if content is None else content.data.split(b"\n")[:-1]
    numbered = list(enumerate(lines, 1))
    left_out = max(0, len(numbered) - FIRST_MESSAGES - LAST_MESSAGES)
    if left_out:
        numbered = numbered[:FIRST_MESSAGES] + numbered[-LAST_MESSAGES:]
    cut = 1 if content is not None and content.cut else 0
    return tuple(_message(number, line) for number, line in numbered), left_out + cut


def _message(number: int, line: bytes) -> Message:
    head, tail = MOST_OF_A_MESSAGE
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return Message(number, "", excerpt(untrusted.shown(line), head=head, tail=tail), Excerpt(""))
    if not isinstance(said, dict):
        return Message(number, "", excerpt(told(said), head=head, tail=tail), Excerpt(""))
    speaker = next((name for name in SPEAKERS if isinstance(said.get(name), str)), None)
    content = next((name for name in SAID if isinstance(said.get(name), str)), None)
    rest = {
        name: value for name, value in said.items() if name not in (speaker, content) and value not in (None, [], {})
    }
    return Message(
        number,
        words.line(said[speaker], most=40) if speaker else "",
        excerpt(said[content] if content else "", head=head, tail=tail),
        excerpt(told(rest) if rest else "", head=head, tail=tail),
    )


def _logged(run: Run, result: Result) -> Iterator[Section]:
    """The beginning of what lies in the attempt's directory beside what was printed, file by file."""
    known = {f"{who}.{stream}" for who, stream in STREAMS} | {run.paths.messages(result.id, result.repeat).name}
    return files_below(run.top, run.paths.logs(result.id, result.repeat), beside=known)


def files_below(top: Top, directory: Path, *, beside: Collection[str] = ()) -> Iterator[Section]:
    """The beginning of each file below a directory of a run, by its path there.

    Args:
        top: The run's directory, open.
        directory: The directory.
        beside: Files of it that are shown elsewhere.
    """
    head, tail = MOST_OF_A_FILE
    found = 0
    for name in _names(top, directory, depth=0):
        if name in beside:
            continue
        found += 1
        if found > MOST_FILES:
            yield Section("More files", excerpt(f"No more than {MOST_FILES} files are shown."), top.below(directory))
            return
        content = top.read(directory / name, most=MOST_READ)
        if content is not None:
            text = excerpt(content.text, more=content.cut, head=head, tail=tail)
            path = untrusted.shown(top.below(directory / name))
            yield Section(words.spelled(untrusted.shown(name), keeps=""), text, path)


def _names(top: Top, directory: Path, *, depth: int, above: str = "") -> Iterator[str]:
    """Every regular file below a directory of the run, by its path there; no more than are shown are looked for."""
    try:
        inner = untrusted.open_directory_beneath(top.below(directory / above), at=top.descriptor)
        with untrusted.closing(inner) as here:
            entries = sorted(untrusted.some_entries(here, most=MOST_FILES + len(STREAMS) + 2), key=_bytes)
    except (OSError, ValueError):
        return
    for name, kind in entries:
        if kind is untrusted.Kind.FILE:
            yield f"{above}{name}"
        elif kind is untrusted.Kind.DIRECTORY and depth < DEEPEST:
            yield from _names(top, directory, depth=depth + 1, above=f"{above}{name}/")


def _bytes(entry: tuple[str, Any]) -> bytes:
    return os.fsencode(entry[0])


def _facts(row: dict[str, Any]) -> Iterator[Fact]:
    """What the row says in a few words; what says nothing is left out."""
    alone = {True: "yes", False: "no"}.get(row.get("alone"), "")  # type: ignore[arg-type]
    facts = [
        ("phase", row.get("phase")),
        ("cause", row.get("cause")),
        ("judged", row.get("judged")),
        ("judge on the host", row.get("judge_on_host")),
        ("agent on the host", row.get("on_host")),
        ("every process of the agent had ended", alone),
        ("cost", None if row["cost_usd"] is None else f"${row['cost_usd']:.4f}"),
        ("tokens", _counts(row.get("tokens"))),
        ("tokens a second", row.get("api_speed")),
        ("missing for the judge", ", ".join(map(str, row.get("missing") or ()))),
        ("left behind", _counts(row.get("dropped"))),
        ("collected", _counts(row.get("collected"))),
        ("left in environment.write", _counts(row.get("left"))),
    ]
    for name, value in facts:
        if value not in (None, ""):
            yield Fact(name, words.line(str(value), most=300))


def _counts(value: Any) -> str:
    if not isinstance(value, dict):
        return ""
    return ", ".join(f"{name}: {told(count)}" for name, count in value.items())
