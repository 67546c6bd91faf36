"""Whatever an agent, its judge or a failure does with a key, no file of the run and nothing on the screen holds it."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.bwrap

VALUE = "sk-planted/7c1f+value-of-a-key"
SHORT = "s3cr3t-x"
OTHER = "host-only-secret-0123456789"
VARIABLES = {"MODEL_API_KEY": VALUE, "SHORT_TOKEN": SHORT, "UNRELATED_SECRET": OTHER}
AGENT = """
import base64, os, sys
from hermit import RunOutput
def run(task, adapter):
    key = os.environ["MODEL_API_KEY"]
    coded = base64.b64encode(b"user:" + key.encode()).decode()
    logs = os.environ["HERMIT_LOGS"]
    os.makedirs(os.path.join(logs, "dir-" + os.environ["SHORT_TOKEN"]))
    with open(os.path.join(logs, "dir-" + os.environ["SHORT_TOKEN"], "trace.bin"), "wb") as file:
        file.write(bytes(range(256)) + key.encode() + bytes(range(256)) + coded.encode())
    open("answer-" + os.environ["SHORT_TOKEN"], "w").write(key)
    print("out", key, coded, key.encode().hex())
    print("err", key, os.environ["SHORT_TOKEN"], task["other"], file=sys.stderr)
    if task["id"] == "fails":
        raise RuntimeError("refused with " + key + " and " + coded)
    if task["id"] == "flood":
        sys.stdout.write("x" * (1048576 - 4 - len("out") - len(coded) - 2 * len(key) - len(key) - 10) + key * 3)
    return RunOutput({"key": key, key: 1}, log=coded, messages=[{"role": "user", "content": key}], extra={"t": [key]})
"""
JUDGE = """
def score(task, output):
    print(output.output)
    if task["id"] == "misjudged":
        raise ValueError(output.log)
    return {"score": 1, "feedback": output.log, "seen": output.messages, "raw": output.output["key"] == task["expected"]}
"""
LINES = """
agent: {name: "agent.py:run", params: {also: "sk-planted/7c1f+value-of-a-key"}}
judge: {path: judge.py, mode: separate, collect: ["."]}
environment: {env: [MODEL_API_KEY, SHORT_TOKEN]}
"""


def coded() -> list[bytes]:
    """Every form of the keys that the agent wrote, and the beginning of one."""
    raw = VALUE.encode()
    inside = [base64.b64encode(b"user:" + raw)[8:-4], raw.hex().encode(), raw, raw[:12]]
    return [*inside, SHORT.encode(), OTHER.encode(), json.dumps(VALUE).replace("/", "\\/")[1:-1].encode()]


@pytest.fixture
def made(task_set: Callable[..., Any]) -> Any:
    tasks = [{"id": name, "other": OTHER, "expected": VALUE} for name in ("fine", "fails", "flood", "misjudged")]
    return task_set(AGENT, JUDGE, tasks=tasks, lines=LINES)


def holding(made: Any) -> dict[str, list[bytes]]:
    """The files and names of the run in which a key stands."""
    found = {}
    for path in (made.root / "runs").rglob("*"):
        data = path.name.encode() + b"\n" + (path.read_bytes() if path.is_file() else b"")
        held = [form for form in coded() if form in data]
        if held:
            found[str(path.relative_to(made.root))] = held
    return found


@pytest.mark.parametrize("confined", [True, False])
def test_no_form_of_a_key_is_in_any_file_or_name_of_a_run_or_on_the_screen(made: Any, confined: bool) -> None:
    said = made.eval(f"sandbox.enabled={str(confined).lower()}", env=VARIABLES)
    assert said.code == 0, said.err
    assert holding(made) == {}
    assert [form for form in coded() if form in (said.out + said.err).encode()] == []
    rows = {row["id"]: row for row in made.rows}
    assert rows["fine"]["output"] == {"key": "<MODEL_API_KEY>", "<MODEL_API_KEY>": 1}
    assert rows["fine"]["judge"]["extra"]["raw"] is True, "the judge got what the agent handed back"
    assert "<MODEL_API_KEY>" in rows["fine"]["judge"]["feedback"]
    assert (rows["fails"]["status"], rows["misjudged"]["status"]) == ("agent_error", "judge_error")
    assert rows["fails"]["error"].startswith("RuntimeError: refused with <MODEL_API_KEY> and ")
    logs = made.results.parent / "logs"
    assert b"<MODEL_API_KEY>" in (logs / "flood-0" / "agent.out").read_bytes()[-200:]
    kept = logs / "fails-0" / "agent-logs" / "dir-<SHORT_TOKEN>" / "trace.bin"
    assert kept.read_bytes().startswith(bytes(range(256)) + b"<MODEL_API_KEY>" + bytes(range(256)))
    assert "<UNRELATED_SECRET>" in (logs / "fine-0" / "agent.err").read_text()


def test_the_report_of_a_run_counts_what_was_scrubbed_where(made: Any) -> None:
    assert made.eval(env=VARIABLES).code == 0
    lines = (made.results.parent / "redaction.jsonl").read_text().splitlines()
    report = {line["id"]: line for line in map(json.loads, lines)}
    assert set(report) == {"fine", "fails", "flood", "misjudged"}
    scrubbed = report["fails"]["scrubbed"]
    assert scrubbed["agent.out"] == {"MODEL_API_KEY": 3}
    assert scrubbed["agent.err"] == {"MODEL_API_KEY": 1, "SHORT_TOKEN": 1, "UNRELATED_SECRET": 1}
    assert scrubbed["results.jsonl: error"] == {"MODEL_API_KEY": 2}
    assert scrubbed["dir-<SHORT_TOKEN>/trace.bin"] == {"MODEL_API_KEY": 2}
    assert scrubbed["the name dir-<SHORT_TOKEN>"] == {"SHORT_TOKEN": 1}


def test_a_key_that_was_never_there_is_found_in_none_of_it_and_a_run_without_one_has_no_report(made: Any) -> None:
    """The planted failure: what the agent wrote is in the files, where nobody says that it is a key."""
    renamed = AGENT.replace("MODEL_API_KEY", "MODEL_NAME").replace("SHORT_TOKEN", "MODEL_SIZE")
    (made.root / "agent.py").write_text(renamed)
    variables = {"MODEL_NAME": VALUE, "MODEL_SIZE": SHORT}
    assert made.eval("environment.env=[MODEL_NAME, MODEL_SIZE]", env=variables).code == 0
    held = {form for forms in holding(made).values() for form in forms}
    assert set(coded()) - held == {json.dumps(VALUE).replace("/", "\\/")[1:-1].encode()}
    assert not (made.results.parent / "redaction.jsonl").exists()


def test_a_refusal_on_the_screen_holds_no_key(made: Any) -> None:
    said = made.eval(
        "environment.env=[]",
        f"environment.read=[{made.root}/{VALUE.replace('/', '-')}]",
        env={"PATH_KEY": VALUE.replace("/", "-")},
    )
    assert said.code == 2
    assert "<PATH_KEY> does not exist" in said.err


SHARES = """
import os
from hermit import RunOutput
def run(task, adapter, params):
    key = os.environ["MODEL_API_KEY"]
    state = params["state"]
    os.makedirs(os.path.join(state, "of-" + os.environ["SHORT_TOKEN"]), exist_ok=True)
    with open(os.path.join(state, "of-" + os.environ["SHORT_TOKEN"], task["id"]), "w") as file:
        file.write("kept " + key)
    os.symlink("/etc/" + os.environ["SHORT_TOKEN"], os.path.join(state, "way-" + task["id"]))
    return RunOutput(sorted(os.listdir(state)))
"""


def test_what_calls_share_is_theirs_while_they_run_and_has_no_key_at_the_end(task_set: Callable[..., Any]) -> None:
    lines = "agent: {name: 'agent.py:run', concurrency: 1}\njudge: {path: judge.py}\n"
    lines += "environment: {env: [MODEL_API_KEY, SHORT_TOKEN], write: [state]}\n"
    made = task_set(SHARES, "def score(task, output): return 1\n", tasks=[{"id": "a"}, {"id": "b"}], lines=lines)
    state = made.root / "state"
    state.mkdir()
    (made.root / "outside").write_text(VALUE)
    (state / "out").symlink_to(made.root / "outside")
    assert made.eval(f"agent.params.state={state}", env=VARIABLES).code == 0
    names = sorted(str(path.relative_to(state)) for path in state.rglob("*"))
    assert names == ["of-<SHORT_TOKEN>", "of-<SHORT_TOKEN>/a", "of-<SHORT_TOKEN>/b", "out", "way-a", "way-b"]
    assert (state / "of-<SHORT_TOKEN>" / "b").read_text() == "kept <MODEL_API_KEY>"
    assert (state / "way-a").readlink().name == "<SHORT_TOKEN>"
    assert (made.root / "outside").read_text() == VALUE, "no link is followed"
    report = [json.loads(line) for line in (made.results.parent / "redaction.jsonl").read_text().splitlines()]
    shared = next(line for line in report if "environment.write" in line)
    assert shared["scrubbed"]["of-<SHORT_TOKEN>/a"] == {"MODEL_API_KEY": 1}
