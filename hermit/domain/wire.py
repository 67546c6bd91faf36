"""What a host and a launcher in an image say to each other, as JSON and back: requests, answers, the greeting.

A launcher is our own code in a closed container, but whoever broke out of a sandbox there could speak in its place: an
answer is read as strictly as anything that crosses a wall, and is worth what the container is worth.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from hermit.domain import spec
from hermit.domain.bind import Bind
from hermit.domain.command import Command, Outcome, Stream
from hermit.domain.record import Check, Record
from hermit.errors import HermitError, Interrupted, PlaceError, SandboxError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermit.domain.sandbox import Sandbox

# Raised by a start, and told by their names; anything else is an error of ours.
RAISED: dict[str, type[HermitError]] = {each.__name__: each for each in (SandboxError, Interrupted, PlaceError)}
# What of an outcome is told; its output and its result have left by descriptors of their own.
TOLD = ("code", "signal", "timed_out", "limit", "evidence", "wall_s", "cpu_s", "max_rss_mb")
_KINDS: dict[str, tuple[type, ...]] = {
    "code": (int, type(None)),
    "signal": (int,),
    "timed_out": (bool,),
    "limit": (str,),
    "evidence": (str,),
    "wall_s": (int, float),
    "cpu_s": (int, float, type(None)),
    "max_rss_mb": (int, float, type(None)),
}


@dataclass(frozen=True, kw_only=True)
class Request:
    """One start that is asked for.

    Args:
        sandbox: The sandbox.
        command: What runs; its input and its job come by descriptors.
        variables: The host's variables that may pass in, and no others.
        gets: What each descriptor is that comes with the request, after the two every request has.
        processor: The processor of the thread that asks.
    """

    sandbox: Sandbox
    command: Command
    variables: Mapping[str, str]
    gets: tuple[str, ...]
    processor: int = 0

    def as_json(self) -> bytes:
        """The request as one document."""
        command = self.command
        document = {
            "sandbox": spec.document(self.sandbox),
            "argv": command.argv,
            "worker": command.worker,
            "result_bytes": command.result_bytes,
            "variables": dict(self.variables),
            "gets": self.gets,
            "processor": self.processor,
        }
        return json.dumps(document).encode("ascii")


def request(data: bytes) -> Request:
    """The request of a document.

    Raises:
        ValueError: It is none.
    """
    document = json.loads(data)
    command = Command(argv=tuple(document["argv"]), worker=document["worker"], result_bytes=document["result_bytes"])
    return Request(
        sandbox=spec.restored(document["sandbox"]),
        command=command,
        variables=document["variables"],
        gets=tuple(document["gets"]),
        processor=document["processor"],
    )


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came of a start.

    Args:
        outcome: How the command ended, without its output; ``None`` where the start failed.
        raised: Why it failed; ``None`` where it did not.
        record: The evidence; ``None`` where nothing was started.
        ended_by: The signal that ended the start before its command was there; 0 where none did.
    """

    outcome: Outcome | None = None
    raised: HermitError | None = None
    record: Record | None = None
    ended_by: int = 0

    def as_json(self) -> bytes:
        """The answer as one line."""
        document: dict[str, Any] = {
            "outcome": self.outcome and _outcome_document(self.outcome),
            "raised": self.raised and failure_document(self.raised),
            "record": self.record and record_document(self.record),
            "ended_by": self.ended_by,
        }
        return json.dumps(document).encode("ascii") + b"\n"


def answer(line: bytes) -> Answer:
    """The answer of one line.

    Raises:
        ValueError: It is none.
    """
    try:
        document = json.loads(line)
        found = Answer(
            outcome=document["outcome"] and _outcome(document["outcome"]),
            raised=document["raised"] and failure(document["raised"]),
            record=document["record"] and record(document["record"]),
            ended_by=int(document["ended_by"]),
        )
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"an answer without its parts: {type(error).__name__}: {error}") from None
    if (found.outcome is None) == (found.raised is None):
        raise ValueError("an answer is an outcome or a failure, and not both")
    return found


def _outcome_document(outcome: Outcome) -> dict[str, Any]:
    # What could not be started says so on a standard error that nobody else has written to.
    return {**{name: getattr(outcome, name) for name in TOLD}, "stderr": outcome.stderr.kept.decode("latin-1")}


def _outcome(document: dict[str, Any]) -> Outcome:
    words = document.pop("stderr").encode("latin-1")
    if set(document) != set(TOLD):
        raise ValueError(f"an outcome of other parts: {sorted(document)}")
    for name, value in document.items():
        if not isinstance(value, _KINDS[name]):
            raise ValueError(f"an outcome whose {name} is {value!r:.80}")  # noqa: TRY004 - it is about a document
    return Outcome(**document, stderr=Stream(kept=words, total=len(words)))


def failure_document(error: HermitError) -> dict[str, str]:
    """A failure as it is told."""
    return {
        "kind": type(error).__name__,
        "what": error.what,
        "where": error.where,
        "cure": error.cure,
        "cause": getattr(error, "cause", ""),
    }


def failure(document: dict[str, Any]) -> HermitError:
    """The failure that was told.

    Raises:
        ValueError: It is of no kind that a start has.
    """
    kind = RAISED.get(str(document["kind"]))
    what, where, cure, cause = (str(document[name]) for name in ("what", "where", "cure", "cause"))
    if kind is None:
        raise ValueError(f"a failure of no known kind: {document['kind']!r:.80}")
    if kind is SandboxError:
        return SandboxError(what, where=where, cure=cure, cause=cause)
    return kind(what, where=where, cure=cure)


def record_document(given: Record) -> dict[str, Any]:
    """A record as it is told."""
    return {
        **vars(given),
        "binds": [(bind.source, bind.target, bind.writable) for bind in given.binds],
        "checks": [(check.name, check.passed, check.detail) for check in given.checks],
    }


def record(document: dict[str, Any]) -> Record:
    """The record that was told.

    Raises:
        ValueError: It has other parts than a record.
    """
    if set(document) != {field.name for field in fields(Record)}:
        raise ValueError(f"a record of other parts: {sorted(document)}")
    parts: dict[str, Any] = {
        **{name: tuple(value) if isinstance(value, list) else value for name, value in document.items()},
        "binds": tuple(Bind(*bind) for bind in document["binds"]),
        "checks": tuple(Check(*check) for check in document["checks"]),
        "limits": tuple((name, value, held_by) for name, value, held_by in document["limits"]),
    }
    return Record(**parts)
