"""A version of an adapter is scored by its name, and an agent gets of it what it exports, its tools in a sandbox of their own."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from hermit.adapter import template as templates
from hermit.adapter.files import File, Reading
from hermit.adapter.tree import ROOT_WHEN, Tree
from hermit.domain.sandbox import Enforce
from hermit.run.adapter_check import Strict, check_spec
from tests.contract.places import placed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.bwrap

LINES = """
agent: {name: "agent.py:run", timeout_min: 2}
judge: {path: judge.py}
template: skills-and-tools
environment: {env: [MODEL_API_KEY]}
"""
AGENT = """
import os
from hermit import AdapterError, RunOutput, Session
def run(task, adapter):
    session = Session(adapter)
    try:
        counted = session.call("count", {"text": "a b"})
    except AdapterError as error:
        counted = str(error)
    return RunOutput({
        "context": session.context,
        "skills": {name: skill.description for name, skill in session.skills.items()},
        "roles": sorted(session.roles),
        "tools": sorted(session.tools),
        "counted": counted,
        "listed": sorted(os.listdir(adapter)) if adapter else [],
        "git": os.path.lexists("%(tree)s"),
    })
"""
JUDGE = "def score(task, output): return 1\n"
SEES = 'import os\n\ndef count(argument):\n    """Counts."""\n    return sorted(os.environ)\n'


@pytest.fixture
def made(task_set: Callable[..., Any]) -> Any:
    found = task_set(AGENT, JUDGE, lines=LINES)
    tree = str(found.root / "runs" / "trees" / "skills-and-tools")
    (found.root / "agent.py").write_text(AGENT % {"tree": tree})
    template = templates.named("skills-and-tools")
    kept = Tree.opened(tree, template, scrub=lambda data, _: data)
    files = template.files.with_files({"ADAPTER.md": File(b"Learned.\n"), "tools.py": File(SEES.encode())})
    version = kept.commit(files, run="one", message="x", when=ROOT_WHEN + 1, scrub=lambda data, _: data)
    kept.tag("one", "final", commit=version.commit)
    return found


def output(made: Any, adapter: str, name: str, *more: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the agent handed back, and the summary."""
    words = made.words(*more)
    words[words.index("--adapter") + 1] = adapter
    said = made.machine.run(*words, env={"MODEL_API_KEY": "not-for-an-adapter-0123"})
    assert said.code == 0, said.err
    directory = made.root / "runs" / "one" / "eval" / name
    row = json.loads((directory / "results.jsonl").read_text().splitlines()[0])
    assert row["status"] == "ok", row["error"]
    return row["output"], json.loads((directory / "summary.json").read_text())


def test_the_root_and_the_end_of_a_run_are_scored_by_their_names(made: Any) -> None:
    root, summary = output(made, "root", "root")
    assert root["context"].startswith("Read the whole task")
    assert list(root["skills"]) == ["answering"]
    assert (root["roles"], root["tools"]) == (["reviewer"], ["count"])
    assert root["counted"] == {"letters": 3, "words": 2, "lines": 1}
    assert ".git" not in root["listed"]
    assert not root["git"], "no sandbox shows the tree"
    final, other = output(made, "final", "final")
    assert final["context"] == "Learned."
    assert not set(final["counted"]) - {"HOME", "LANG", "LC_CTYPE", "PATH", "TMPDIR", "USER"}
    assert summary["commit"] != other["commit"]


def test_without_an_adapter_the_same_agent_has_nothing_of_one(made: Any) -> None:
    found, summary = output(made, "none", "none")
    assert (found["context"], found["skills"], found["tools"], found["listed"]) == ("", {}, [], [])
    assert found["counted"] == "the adapter has no tool 'count'; it has none"
    assert summary["commit"] is None


def test_a_tree_with_a_hook_in_it_is_refused_and_the_hook_does_not_run(made: Any) -> None:
    hooks = made.root / "runs" / "trees" / "skills-and-tools" / "hooks"
    hooks.mkdir()
    shutil.copy("/bin/true", hooks / "post-checkout")
    words = made.words()
    words[words.index("--adapter") + 1] = "final"
    said = made.machine.run(*words, env={"MODEL_API_KEY": "not-for-an-adapter-0123"})
    assert said.code == 2
    assert "no tree of Hermit's: it holds hooks" in said.err


@pytest.mark.docker
@pytest.mark.image
def test_an_adapter_is_checked_in_the_image_as_on_this_machine(tmp_path: Path) -> None:
    template = templates.named("skills-and-tools")
    broken = template.files.with_files({"tools.py": File(b"def count(argument): pass\nraise ValueError(__file__)\n")})
    said = {}
    for backend in ("bubblewrap", "launcher"):
        scratch = tmp_path / backend
        scratch.mkdir()
        with placed(backend, str(scratch)) as place:
            where = Strict(place, Enforce.REQUIRED, str(scratch))
            good, bad = (check_spec(Reading(files), template, where=where) for files in (template.files, broken))
        said[backend] = [good.passed, *(problem.reason.partition("/")[0] for problem in bad.failed[0].problems)]
        assert list(scratch.glob("check-*")) == []
    assert said["launcher"] == said["bubblewrap"] == [True, "it does not run: exception: ValueError: "]
