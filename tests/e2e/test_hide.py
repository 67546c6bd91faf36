"""A scoring module that lies among what the agent may import: covered for the agent, there for the judge."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.bwrap

AGENT = """
import os, sys
from pathlib import Path
from hermit import RunOutput

def run(task, adapter, params):
    sys.path.insert(0, params["bench"])
    import bench.solver
    try:
        from bench.scorer import EXPECTED
    except ImportError:
        EXPECTED = "hidden"
    texts = [path.read_text(errors="replace") for path in Path(params["bench"]).rglob("*") if path.is_file()]
    found = {
        "imported": EXPECTED, "solver": bench.solver.NAME, "read": any("forty-two" in text for text in texts),
        "variable": os.environ.get("HA_SANDBOX_HIDE", ""),
    }
    return RunOutput(output=found)
"""
JUDGE = """
import os, sys
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "bench_root"))
from bench.scorer import EXPECTED

def score(task, output):
    return {"score": float(EXPECTED == "forty-two"), "variable": os.environ.get("HA_SANDBOX_HIDE", "")}
"""
LINES = """
agent: {name: agent.py:run, timeout_min: 1}
judge: {path: judge.py, mode: MODE, collect: [.]}
environment: {read: [bench_root]}
"""


@pytest.fixture
def made(task_set: Callable[..., Any], request: pytest.FixtureRequest) -> Any:
    whole = task_set(AGENT, JUDGE, lines=LINES.replace("MODE", request.param))
    package = whole.root / "bench_root" / "bench"
    (package / "__pycache__").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "solver.py").write_text("NAME = 'solver'\n")
    (package / "scorer.py").write_text("EXPECTED = 'forty-two'\n")
    return whole


def score(made: Any, *more: str, **options: Any) -> dict[str, Any]:
    params = json.dumps({"bench": str(made.root / "bench_root")})
    said = made.eval(f"agent.params={params}", "--fresh", *more, **options)
    assert said.code == 0, said.err
    row: dict[str, Any] = made.rows[0]
    assert row["status"] == "ok", row
    return row


@pytest.mark.parametrize("made", ["shared", "separate"], indirect=True)
def test_a_hidden_module_is_covered_for_the_agent_and_there_for_its_judge(made: Any) -> None:
    row = score(made, "sandbox.hide=[bench.scorer]")
    assert row["output"] == {"imported": "hidden", "solver": "solver", "read": False, "variable": "bench.scorer"}
    assert (row["judge"]["score"], row["judge"]["extra"]) == (1.0, {"variable": ""})
    assert (made.root / "bench_root" / "bench" / "scorer.py").read_text() == "EXPECTED = 'forty-two'\n"


@pytest.mark.parametrize("made", ["separate"], indirect=True)
def test_planted_failure_a_module_that_is_not_hidden_is_read_by_the_agent(made: Any) -> None:
    row = score(made)
    assert (row["output"]["imported"], row["output"]["read"]) == ("forty-two", True)


@pytest.mark.parametrize("made", ["separate"], indirect=True)
def test_what_a_parent_process_hides_stays_hidden(made: Any) -> None:
    row = score(made, env={"HA_SANDBOX_HIDE": "bench.scorer"})
    assert (row["output"]["read"], row["output"]["variable"]) == (False, "bench.scorer")


@pytest.mark.parametrize("made", ["separate"], indirect=True)
def test_a_name_that_stands_for_nothing_is_recorded_and_refused_by_check(made: Any) -> None:
    row = score(made, "sandbox.hide=[bench.scoring]")
    records = [json.loads((made.records / name).read_text()) for name in row["records"]]
    assert [record["warnings"] for record in records] == [["hide: nothing is called bench.scoring here"], []]
    words = (
        "-m",
        "hermit",
        "check",
        "--config",
        str(made.config),
        "--no-probe",
        "--json",
        "sandbox.hide=[bench.scoring]",
        "container.runtime=local",
    )
    said = made.machine.run(*words)
    assert said.code == 3, said.err
    found = {finding["name"]: finding for finding in said.summary["findings"]}
    assert (found["sandbox.hide"]["level"], found["sandbox.hide"]["found"]) == (
        "unfit",
        "nothing is called bench.scoring here",
    )


@pytest.mark.parametrize("made", ["separate"], indirect=True)
@pytest.mark.parametrize(
    ("names", "words"), [("[hermit]", "hermit itself cannot be hidden"), ("['../x']", "names of modules")]
)
def test_what_cannot_be_hidden_is_refused_and_nothing_is_made(made: Any, names: str, words: str) -> None:
    said = made.eval(f"sandbox.hide={names}")
    assert (said.code, (made.root / "runs").exists()) == (2, False)
    assert words in said.err
