"""What a host and a launcher say to each other arrives as it was said, and what was not said is not believed."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from hermit.domain import spec, wire
from hermit.domain.bind import Bind
from hermit.domain.command import Command, Outcome, Stream
from hermit.domain.limits import Limits
from hermit.domain.network import Forward, Network
from hermit.domain.pathmap import Layout
from hermit.domain.record import Check, Record
from hermit.domain.sandbox import Enforce, Sandbox
from hermit.errors import Interrupted, PlaceError, SandboxError

FULL = Sandbox(
    role="judge",
    read=("/srv/data", "/srv/odd \udcff name"),
    write=("/srv/work",),
    binds=(Bind("/a", "/b"), Bind("/c", "/d", writable=True)),
    cwd="/srv/work",
    allowed_hosts=("*.example.com",),
    forwards=(Forward(2000), Forward(3000, "/run/service")),
    env=(("NAME", 'a "value"\n\udcff'),),
    env_allow=("MWM_*",),
    limits=Limits(memory_mb=7, wall_s=1.5, pids=None, disk_mb=3, output_bytes=9),
    probes=("/secret",),
    framework=True,
    packages=("numpy",),
    hide=("torch",),
    layout=Layout("/a", "/b"),
    enforce=Enforce.BEST_EFFORT,
)
RECORD = Record(
    role="task",
    backend="bubblewrap",
    version="0.8",
    confined=True,
    image="hermit",
    binds=(Bind("/a", "/b", writable=True),),
    variables=("A", "B"),
    reaches=("2000 -> x",),
    limits=(("pids", 3, "nothing"), ("wall_s", 1.5, "clock")),
    warnings=("w",),
    checks=(Check("c", passed=True, detail="d"),),
    ended="exit 0",
    empty=True,
)


@pytest.mark.parametrize("sandbox", [Sandbox(), FULL, Sandbox(network=Network.OPEN)])
def test_a_request_arrives_as_it_was_made(sandbox):
    command = Command(worker="m:f", result_bytes=7)
    made = wire.Request(sandbox=sandbox, command=command, variables={"A": "b\udcff"}, gets=("stdin", "job"))
    assert wire.request(made.as_json()) == made


def test_the_document_of_a_sandbox_is_what_other_programs_write():
    sandbox = replace(FULL, env=(), read=("/srv/data",))
    assert spec.parsed(json.dumps(spec.document(sandbox)).encode()) == sandbox


@pytest.mark.parametrize(
    "answer",
    [
        wire.Answer(outcome=Outcome(code=3, wall_s=1.5, cpu_s=0.1, limit="memory", evidence="e"), record=RECORD),
        wire.Answer(outcome=Outcome(signal=9, timed_out=True, stderr=Stream(kept=b"\xff", total=1)), ended_by=2),
    ],
)
def test_an_outcome_and_its_record_arrive_as_they_were(answer):
    assert wire.answer(answer.as_json()) == answer


@pytest.mark.parametrize(
    "error",
    [
        SandboxError("what", where="where", cure="cure", cause="check"),
        Interrupted("given up"),
        PlaceError("no place", cure="cure"),
    ],
)
def test_a_failure_arrives_with_its_kind_its_cause_and_its_cure(error):
    told = wire.answer(wire.Answer(raised=error, record=RECORD).as_json())
    assert type(told.raised) is type(error)
    assert vars(told.raised) == vars(error)
    assert told.record == RECORD


OUTCOME = json.loads(wire.Answer(outcome=Outcome(code=0), record=RECORD).as_json())


def changed(part, **to):
    return json.dumps({**OUTCOME, part: {**OUTCOME[part], **to}}).encode()


FOREIGN = {"kind": "SystemExit", "what": "", "where": "", "cure": "", "cause": ""}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"", "Expecting value"),
        (b"[]", "without its parts"),
        (b"null", "without its parts"),
        (b"{}", "without its parts"),
        (b'{"outcome": null, "raised": null, "record": null, "ended_by": 0}', "and not both"),
        (changed("outcome", code="0"), "whose code is"),
        (changed("outcome", timed_out=None), "whose timed_out is"),
        (changed("outcome", result="forged"), "of other parts"),
        (changed("record", another=1), "of other parts"),
        (json.dumps({**OUTCOME, "outcome": None, "raised": FOREIGN}).encode(), "no known kind"),
        (b"[" * 100_000, "without its parts"),
    ],
)
def test_an_answer_that_no_launcher_gives_is_refused(line, why):
    with pytest.raises(ValueError, match=why):
        wire.answer(line)
