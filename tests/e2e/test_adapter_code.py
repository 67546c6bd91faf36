"""Code of the adapter runs in a strict sandbox inside the agent's: it has no key, no work and no network of the agent's."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.bwrap

LINES = """
agent: {name: "agent.py:run", timeout_min: 2, params: {}}
judge: {path: judge.py, mode: shared}
environment: {read: [books], env: [MODEL_API_KEY]}
"""
TOOLS = """
import os
def look(argument):
    def write(path):
        try:
            open(os.path.join(path, "planted"), "w")
            return True
        except OSError:
            return False
    here = os.path.dirname(os.path.abspath(__file__))
    return {
        "there": [path for path in argument["paths"] if os.path.lexists(path)],
        "wrote": [path for path in [here, *argument["paths"]] if os.path.isdir(path) and write(path)],
        "variables": sorted(os.environ),
        "own": sorted(os.listdir(here)),
        "said": argument["said"],
    }
def fail(argument): raise ValueError("why")
"""
AGENT = """
import os, subprocess, sys
from hermit import AdapterError, RunOutput, call_adapter
def run(task, adapter, params):
    tools = str(adapter / "tools.py")
    paths = [os.getcwd(), os.environ["HERMIT_LOGS"], *params["paths"]]
    seen = call_adapter(tools, "look", argument={"paths": paths, "said": "日本"})
    try:
        call_adapter(adapter / "tools.py", "fail", argument=None)
        failed = ""
    except AdapterError as error:
        failed = str(error)
    try:
        call_adapter(__file__, "run")
        foreign = ""
    except AdapterError as error:
        foreign = str(error)
    spec = os.environ.get("HA_ADAPTER_SANDBOX", "")
    door = ""
    if spec:
        words = [sys.executable, "-m", "hermit.sandbox", spec, "--", "sh", "-c", 'cat "$0"/tools.py | wc -l; ls "$1" 2>&1 | wc -l; env']
        door = subprocess.run([*words, str(adapter), params["paths"][0]], capture_output=True, text=True).stdout
    return RunOutput({"seen": seen, "failed": failed, "foreign": foreign, "door": door, "paths": paths})
"""
JUDGE = "import os\ndef score(task, output): return {'score': 1, 'variables': sorted(os.environ)}\n"


@pytest.fixture
def made(task_set: Callable[..., Any]) -> Any:
    found = task_set(AGENT, JUDGE, lines=LINES)
    (found.root / "books").mkdir()
    (found.root / "mine").mkdir()
    (found.root / "mine" / "ADAPTER.md").write_text("an adapter")
    (found.root / "mine" / "tools.py").write_text(TOOLS)
    return found


def evaluated(made: Any, *more: str) -> dict[str, Any]:
    params = json.dumps({"paths": [str(made.root / "books")]})
    words = made.words(f"agent.params={params}", *more)
    words[words.index("--adapter") + 1] = str(made.root / "mine")
    said = made.machine.run(*words, env={"MODEL_API_KEY": "not-for-an-adapter-0123"})
    assert said.code == 0, said.err
    (results,) = (made.root / "runs" / "one" / "eval").glob("*/results.jsonl")
    row: dict[str, Any] = json.loads(results.read_text())
    assert row["status"] == "ok", row["error"]
    return row


def test_the_adapters_code_has_nothing_of_the_agents_but_what_it_is_given(made: Any) -> None:
    row = evaluated(made)
    output = row["output"]
    seen = output["seen"]
    assert (seen["there"], seen["wrote"]) == ([], [])
    assert not set(seen["variables"]) - {"HOME", "LANG", "LC_CTYPE", "PATH", "TMPDIR", "USER"}
    assert seen["own"] == ["ADAPTER.md", "tools.py"]
    assert seen["said"] == "日本"
    assert output["failed"] == "exception: ValueError: why"
    assert output["foreign"] == f"{made.root}/agent.py is no file of the adapter"
    lines = output["door"].splitlines()
    assert lines[0].strip() == str(TOOLS.count("\n")), "the front door takes the same sandbox"
    assert not any(line.startswith(("MODEL_API_KEY", "HERMIT_WORK")) for line in lines)
    assert len(row["records"]) == 2, "a strict start keeps no record"
    assert "HA_ADAPTER_SANDBOX" not in row["judge"]["extra"]["variables"]


def test_without_a_sandbox_the_adapters_code_sees_what_the_agent_sees(made: Any) -> None:
    """The planted failure: the same code, where nothing is confined, finds all of it."""
    output = evaluated(made, "sandbox.enabled=false")["output"]
    assert output["seen"]["there"] == output["paths"]
    assert output["seen"]["wrote"]
    assert "MODEL_API_KEY" in output["seen"]["variables"]
