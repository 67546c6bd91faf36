"""JUnit XML of an evaluation: a suite, and a case for each attempt, as CI systems read it.

A solved attempt (score 1 or more) passes. One that is not, or whose agent failed, is a failure: the agent's. One that
the judge or a sandbox broke is an error: it says nothing of the agent. The type begins with whose it was, and the
properties of the suite count the attempts by that. Words of agents and judges are escaped, and a
character that XML cannot hold is spelled out.
"""

from __future__ import annotations

import os
import re
from enum import Enum
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape, quoteattr

from hermit.domain.attempt import Side, Status
from hermit.errors import ConfigError
from hermit.run.report import SOLVED, kept_rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MOST_WORDS = 20_000
# What XML 1.0 can hold; a carriage return would come back as a line feed.
_UNWRITABLE = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# An attribute's line feeds and tabs would come back as spaces.
_BREAKS = {"\n": "&#10;", "\t": "&#9;"}
_HEAD = b'<?xml version="1.0" encoding="utf-8"?>\n'


class Verdict(Enum):
    """What one attempt is to a CI system."""

    PASSED = "passed"
    FAILURE = "failure"
    ERROR = "error"


def verdict(row: dict[str, Any]) -> Verdict:
    """What a row of ``results.jsonl`` is to a CI system."""
    status = Status(row["status"])
    if status.failed_by in (Side.JUDGE, Side.INFRASTRUCTURE):
        return Verdict.ERROR
    solved = status is Status.OK and row["judge"] is not None and row["judge"]["score"] >= SOLVED
    return Verdict.PASSED if solved else Verdict.FAILURE


def why(row: dict[str, Any]) -> str:
    """Why an attempt did not pass, in a few words of ours: never the agent's or the judge's."""
    if row["status"] == Status.OK.value:
        return f"score {row['judge']['score']:g}"
    return f"{row['status']} ({row['phase']}, {row['cause']})"


def whose(row: dict[str, Any]) -> str:
    """Whose doing it was that an attempt did not pass: ``agent``, ``judge`` or ``infrastructure``."""
    return (Status(row["status"]).failed_by or Side.AGENT).value


def refuse_unwritable(path: Path, *, shown: tuple[tuple[str, str], ...]) -> None:
    """Refuses a file in whose place no report can be written, before anything is done.

    Args:
        path: The file, absolute.
        shown: Every path that a sandbox shows because the config says so, with the key that says it.

    Raises:
        ConfigError: It is a directory or no report of ours to replace, its directory is missing, or sandboxes see it.
    """
    cure = "name another file"
    if not os.access(path.parent, os.W_OK | os.X_OK) or not path.parent.is_dir():
        what = f"{path.parent} is no directory that can be written to"
        raise ConfigError(what, where="--junit", cure="make it, or name another file")
    if path.is_dir():
        raise ConfigError(f"{path} is a directory", where="--junit", cure=cure)
    if path.exists() and not _is_report(path):
        raise ConfigError(f"{path} exists and is no XML; it would be replaced", where="--junit", cure=cure)
    for key, top in shown:
        if path.resolve().is_relative_to(top):
            what = f"{path} lies in a path that agents are shown, and a report holds the words of judges"
            raise ConfigError(what, where=f"--junit and {key}", cure=cure)


def _is_report(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(5) in (b"<?xml", b"")
    except OSError:
        return False


def document(results: Path, *, name: str, wall_s: float) -> Iterator[bytes]:
    """The report, in pieces: the results are read twice and never held whole.

    Args:
        results: The file ``results.jsonl``.
        name: What was evaluated, the name of the suite.
        wall_s: Seconds that all of it took.
    """
    counts, sides = dict.fromkeys(Verdict, 0), {side.value: 0 for side in Side}
    for row in kept_rows(results):
        found = verdict(row)
        counts[found] += 1
        if found is not Verdict.PASSED:
            sides[whose(row)] += 1
    numbers = {
        "tests": sum(counts.values()),
        "failures": counts[Verdict.FAILURE],
        "errors": counts[Verdict.ERROR],
        "time": f"{wall_s:.3f}",
    }
    yield _HEAD + _tag("testsuites", {"name": "hermit eval", **numbers}) + b"\n"
    yield _tag("testsuite", {"name": name, **numbers, "skipped": 0}) + b"\n"
    properties = (_tag("property", {"name": f"not passed: {side}", "value": count}) for side, count in sides.items())
    yield b"<properties>" + b"".join(tag[:-1] + b"/>" for tag in properties) + b"</properties>\n"
    for row in kept_rows(results):
        yield _case(row, suite=name)
    yield b"</testsuite>\n</testsuites>\n"


def _case(row: dict[str, Any], *, suite: str) -> bytes:
    case = _tag("testcase", {"classname": suite, "name": title(row), "time": f"{row['wall_s']:.3f}"})
    found = verdict(row)
    if found is not Verdict.PASSED:
        reason = _tag(found.value, {"message": why(row), "type": f"{whose(row)}: {row['cause'] or 'score'}"})
        case += reason + _text(words(row)) + f"</{found.value}>".encode()
    elif words(row):
        case += b"<system-out>" + _text(words(row)) + b"</system-out>"
    return case + b"</testcase>\n"


def title(row: dict[str, Any]) -> str:
    """The name of one attempt: its task's, with a number from the second on."""
    return str(row["id"]) if not row["repeat"] else f"{row['id']} (attempt {row['repeat'] + 1})"


def words(row: dict[str, Any]) -> str:
    """What was said of an attempt: the reason of a failure, or the judge's feedback."""
    said = row["error"] if row["error"] is not None else (row["judge"] or {}).get("feedback", "")
    return str(said)


def _tag(element: str, attributes: dict[str, Any]) -> bytes:
    spelled = " ".join(f"{key}={quoteattr(writable(str(value)), _BREAKS)}" for key, value in attributes.items())
    return f"<{element} {spelled}>".encode()


def _text(said: str) -> bytes:
    more = len(said) - MOST_WORDS
    kept = said if more <= 0 else f"{said[:MOST_WORDS]}\n... and {more} more characters, in results.jsonl"
    return escape(writable(kept)).encode()


def writable(said: str) -> str:
    r"""The words with what XML cannot hold spelled out, such as ``\x1b`` and half a surrogate."""
    return _UNWRITABLE.sub(lambda found: ascii(found[0])[1:-1], said)
