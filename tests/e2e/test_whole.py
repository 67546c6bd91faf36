"""An engine in a virtual machine, as on macOS: it has the paths of the config, and no scratch or socket of this machine.

The engine here is this machine's own. What makes it another one's is its client: every mount from the scratch shows an
empty directory in its place.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from typing import TYPE_CHECKING, Any

import pytest

from hermit.oci import container as containers
from hermit.proc import capture

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [pytest.mark.docker, pytest.mark.image]

PLANTED = {part: f"planted-{part}-51ce0a" for part in ("data", "answer", "split", "tests", "judge", "config", "key")}
CLIENT = """#!{python}
import json, os, re, sys
words = sys.argv[1:]
with open({log!r}, "a") as file:
    file.write(json.dumps(words) + "\\n")
if words[:1] == ["run"]:
    words = [re.sub("source={scratch}/[^,]*", "source={empty}", word) for word in words]
os.execv({program!r}, [{program!r}, *words])
"""
# Looks for what was planted in every file that can be read, and in what processes say of themselves.
LOOK = f"""
import os, stat
TOKENS = {{part: "planted-" + part + "-51ce0a" for part in {tuple(PLANTED)!r}}}
def look():
    found = set()
    for top, directories, files in os.walk("/"):
        if top in ("/usr", "/opt", "/sys", "/lib"):
            directories.clear()
            continue
        for path in (os.path.join(top, name) for name in files):
            try:
                if stat.S_ISREG(os.stat(path).st_mode) and os.stat(path).st_size < 1 << 20:
                    with open(path, "rb") as file:
                        data = file.read(1 << 20)
                    found.update(part for part, token in TOKENS.items() if token.encode() in data)
            except OSError:
                continue
    return sorted(found)
"""
AGENT = f"""
{LOOK}
from hermit import RunOutput
def run(task, adapter):
    open("work", "w").write("done")
    return RunOutput({{"id": task["id"], "saw": look(), "told": task.get("answer")}})
"""
JUDGE = f"""
# {PLANTED["judge"]}
import os
{LOOK}
def score(task, output):
    assert open(os.path.join(os.environ["HERMIT_WORK"], "work")).read() == "done"
    return {{"score": float(task["answer"].startswith("planted-answer-")), "feedback": ",".join(look())}}
"""
LINES = f"""
# {PLANTED["config"]}
agent: {{name: 'agent.py:run', concurrency: 2}}
judge: {{path: judge.py, tests: [tests], mode: separate, collect: [work]}}
"""


@pytest.fixture
def remote(task_set: Callable[..., Any], engine: Any, tmp_path: Path) -> tuple[Any, Path]:
    """A task set on a machine whose engine is another one's, and what its client was asked."""
    tasks = [{"id": name, "answer": PLANTED["answer"], "note": PLANTED["data"]} for name in "ab"]
    made = task_set(AGENT, JUDGE, tasks=tasks, lines=LINES)
    (made.root / "tests").mkdir()
    (made.root / "tests" / "expected").write_text(PLANTED["tests"])
    with (made.root / "data" / "test.txt").open("a") as file:
        file.write(f"# {PLANTED['split']}\n")
    log, empty = tmp_path / "asked", tmp_path / "empty"
    client = tmp_path / "bin" / "docker"
    client.parent.mkdir()
    empty.mkdir()
    values = {"python": sys.executable, "program": engine.program, "log": str(log), "empty": str(empty)}
    client.write_text(CLIENT.format(**values, scratch=made.machine.scratch))
    client.chmod(0o755)
    made.machine.more.update({"PATH": f"{client.parent}:{os.environ['PATH']}", "OTHER_KEY": PLANTED["key"]})
    return made, log


def words(made: Any, runtime: str) -> list[str]:
    local = made.words("--json")
    return [*local[: local.index("--runtime")], "--runtime", runtime, "--json"]


def test_an_engine_of_another_machine_is_refused_for_its_sandboxes_and_runs_the_whole_command(
    remote: tuple[Any, Path], engine: Any
) -> None:
    made, log = remote
    refused = made.machine.run(*words(made, "image"))
    assert refused.code == 3, refused.err
    assert "its engine has another machine's files" in refused.err
    assert "--runtime whole" in refused.err
    assert made.rows == []
    log.unlink()

    said = made.machine.run(*words(made, "whole"))
    assert said.code == 0, said.err
    assert (said.summary["mean_score"], said.summary["errors"], said.summary["complete"]) == (1.0, 0, True)
    for row in made.rows:
        # The agent is told its task and nothing more; what it is not told, no sandbox of it holds.
        assert row["output"]["saw"] == [], row
        assert row["judge"]["feedback"] == "judge,tests"
        assert (row["confined"], row["judged"], len(row["records"])) == (True, "separate", 2)

    (run,) = [line for line in map(json.loads, log.read_text().splitlines()) if line[0] == "run"]
    mounts = [word for word in run if word.startswith("type=bind,")]
    assert [word for word in mounts if not word.endswith(",readonly")] == [
        f"type=bind,source={made.root}/runs/one,target={made.root}/runs/one"
    ]
    assert not any(str(made.machine.scratch) in word or "docker.sock" in word for word in run)
    assert "OTHER_KEY" not in run
    for path in (made.results.parent, *made.results.parent.rglob("*")):
        assert (path.lstat().st_uid, path.lstat().st_gid) == (os.geteuid(), os.getegid()), path
    mine = [engine.program, "ps", "--all", "--quiet", "--filter", f"label={containers.RUN_LABEL}={made.root}/runs/one"]
    assert capture(mine, timeout_s=60).stdout == b""


def test_a_run_that_was_whole_in_the_image_goes_on_there(remote: tuple[Any, Path]) -> None:
    made, _ = remote
    assert made.machine.run(*words(made, "whole")).code == 0
    lines = made.results.read_bytes().splitlines(keepends=True)
    made.results.write_bytes(lines[0])
    shutil.rmtree(made.machine.scratch)
    made.machine.scratch.mkdir()
    said = made.machine.run(*words(made, "whole"))
    assert said.code == 0, said.err
    assert "1 of 2 attempts were made before" in said.err
    assert len(made.rows) == 2
