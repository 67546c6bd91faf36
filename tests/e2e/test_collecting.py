"""What a separate judge gets of a hostile agent's work, in whole runs: files, counted and named, and nothing that leads out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from blake3 import blake3

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.bwrap

LINES = "agent: {name: 'agent.py:run', timeout_min: 1}\njudge: {path: judge.py, mode: separate, collect: [.]}\n"

JUDGE = """
import os, stat
def score(task, output):
    found = {}
    for root, names, files in os.walk(os.fsencode(os.environ["HERMIT_WORK"])):
        for name in names + files:
            status = os.lstat(os.path.join(root, name))
            found[repr(name)] = [stat.S_IFMT(status.st_mode), stat.S_IMODE(status.st_mode), status.st_nlink]
    return {"score": 1.0, "found": found}
"""

LEAVES_EVERYTHING = r"""
import os, socket
from hermit import RunOutput
def run(task, adapter):
    open("answer", "w").write("42")
    os.mkfifo("fifo")
    socket.socket(socket.AF_UNIX).bind("socket")
    os.symlink("/dev/zero", "zero")
    os.symlink("../../../../etc/passwd", "out")
    os.symlink("answer", "stays")
    for name in (b"line\nbreak", b"\xff\xfe", b"n" * 255, b"ANSWER"):
        open(name, "w").close()
    open("suid", "w").close()
    os.chmod("suid", 0o6755)
    os.link("answer", "again")
    os.makedirs(".git/hooks")
    open(".git/hooks/post-checkout", "w").write("#!/bin/sh\ntouch /tmp/planted\n")
    os.chmod(".git/hooks/post-checkout", 0o755)
    open("closed", "w").write("closed")
    os.chmod("closed", 0)
    os.mkdir("sealed")
    os.chmod("sealed", 0)
    try:
        os.setxattr("answer", "user.planted", b"x")
        attributes = 1
    except OSError:
        attributes = 0
    try:
        os.mknod("device", 0o020666, os.makedev(1, 5))
        devices = 1
    except OSError:
        devices = 0
    return RunOutput([attributes, devices])
"""


def test_a_judge_gets_files_and_links_that_stay_and_the_rest_is_counted(task_set: Callable[..., Any]) -> None:
    made = task_set(LEAVES_EVERYTHING, JUDGE, lines=LINES)
    assert made.eval().code == 0
    (row,) = made.rows
    assert row["status"] == "ok", row
    attributes, devices = row["output"]
    assert devices == 0
    dropped = row["dropped"]
    assert dropped.pop("extended attribute", 0) == 2 * attributes  # the same file by two names
    unreadable = dropped.pop("unreadable", 0)  # of root's host process nothing is
    assert unreadable in (0, 2)
    assert dropped == {"FIFO": 1, "socket": 1, "link that leaves": 2, "setuid bit": 1, "setgid bit": 1}
    found = row["judge"]["extra"]["found"]
    assert {mode for kind, mode, _ in found.values() if kind != 0o120000} <= {0o600, 0o700}
    assert {kind for kind, _, _ in found.values()} == {0o100000, 0o040000, 0o120000}
    assert not {repr(name) for name in (b"fifo", b"socket", b"zero", b"out")} & set(found)
    assert {
        repr(name) for name in (b"line\nbreak", b"\xff\xfe", b"n" * 255, b"again", b"stays", b"post-checkout")
    } <= set(found)
    assert found[repr(b"again")][2] == 1
    assert row["collected"]["same_but_case"] == 1
    assert row["collected"]["entries"] == len(found)


def test_the_manifest_beside_a_rows_logs_names_what_the_judge_got_by_its_content(task_set: Callable[..., Any]) -> None:
    made = task_set(LEAVES_EVERYTHING, JUDGE, lines=LINES)
    assert made.eval().code == 0
    (row,) = made.rows
    (manifest,) = made.root.rglob("collected.jsonl")
    assert row["collected"]["digest"] == blake3(manifest.read_bytes()).hexdigest()
    lines = [json.loads(line) for line in manifest.read_text(encoding="ascii").splitlines()]
    assert len(lines) == row["collected"]["entries"]
    (answer,) = [line for line in lines if line["path"] == "answer"]
    assert answer == {
        "path": "answer",
        "kind": "file",
        "bytes": 2,
        "executable": False,
        "blake3": blake3(b"42").hexdigest(),
    }


HUGE = {
    "apparent_bytes": "open('sparse', 'w').truncate(100 << 30)",
    "depth": "[(os.mkdir('d'), os.chdir('d')) for _ in range(300)]",
}


@pytest.mark.parametrize("name", ["apparent_bytes", "depth"])
def test_more_than_a_copy_takes_is_the_agents_failure_and_names_the_budget(
    task_set: Callable[..., Any], name: str
) -> None:
    agent = (
        f"import os\nfrom hermit import RunOutput\ndef run(task, adapter):\n    {HUGE[name]}\n    return RunOutput(1)\n"
    )
    made = task_set(agent, JUDGE, lines=LINES)
    assert made.eval("environment.resources.file_mb=200000").code == 0
    (row,) = made.rows
    assert (row["status"], row["phase"], row["cause"], row["judge"]) == ("agent_error", "collect", "collect", None)
    assert f"budget: {name}" in row["error"]
    assert row["collected"] is None
    assert list(made.root.rglob("*collected.jsonl*")) == []


READS = """
import os
from hermit import untrusted
def score(task, output):
    found = {}
    with untrusted.directory(os.environ["HERMIT_WORK"]) as work:
        for name in ("answer", "fifo", "zero", "tests", "grows"):
            try:
                content = untrusted.read(name, at=work, most=1000)
                found[name] = [len(content.data), content.cut]
            except untrusted.Refused as refused:
                found[name] = refused.reason
    return {"score": 1.0, "found": found}
"""
LEAVES_TRAPS = """
import os
from hermit import RunOutput
def run(task, adapter, params):
    open("answer", "w").write("42")
    os.mkfifo("fifo")
    os.symlink("/dev/zero", "zero")
    os.symlink(params["secret"], "tests")
    open("grows", "w").truncate(1 << 20)
    return RunOutput(1)
"""


@pytest.mark.parametrize("mode", ["host", "shared", "separate"])
def test_a_judge_reads_what_an_agent_left_without_following_waiting_or_believing(
    task_set: Callable[..., Any], mode: str
) -> None:
    lines = LINES.replace("mode: separate, collect: [.]", f"tests: [tests], mode: {mode}, collect: [.]")
    made = task_set(LEAVES_TRAPS, READS, lines=lines)
    (made.root / "tests").mkdir()
    (made.root / "tests" / "a").write_text("secret")
    params = json.dumps({"secret": str(made.root / "tests" / "a")})
    assert made.eval(f"agent.params={params}", "environment.resources.file_mb=2000").code == 0
    (row,) = made.rows
    assert row["status"] == "ok", row
    gone = {"fifo": "missing", "zero": "missing", "tests": "missing"}
    there = {"fifo": "FIFO", "zero": "link", "tests": "link"}
    wanted = {"answer": [2, False], "grows": [1000, True], **(gone if mode == "separate" else there)}
    assert row["judge"]["extra"]["found"] == wanted
