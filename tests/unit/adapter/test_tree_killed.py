"""A tree is what it was or what it shall be, whenever a process is killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from hermit.adapter import git, template, tree
from hermit.adapter.files import File
from hermit.adapter.tree import Tree
from tests.unit.adapter.test_tree import commit, keep, plain

if TYPE_CHECKING:
    from pathlib import Path


def test_a_command_that_outlives_a_killed_process_holds_the_tree_until_it_ends(
    small: Any, made: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a one could still move a branch that the next process has looked at."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "git"
    seen = tmp_path / "seen"
    program.write_text(
        f'#!/bin/sh\ncase "$*" in *fast-import*) ls -l /proc/$$/fd >> {seen};; esac\nexec {shutil.which("git")} "$@"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    commit(made, small.files.with_files({"ADAPTER.md": File(b"1")}))
    assert f"{made.directory}/hermit.lock" in seen.read_text()
    Tree.opened(str(tmp_path / "more" / "other"), small, scrub=keep)
    assert f"-> {tmp_path}/more\n" in seen.read_text()


def test_a_tree_that_was_half_made_is_made_whole(small: Any, tmp_path: Path) -> None:
    half = tmp_path / ".small.new"
    half.mkdir()
    (half / "config.lock").write_text("")
    (half / "HEAD").write_text("")
    os.utime(half / "config.lock", (1, 1))
    made = Tree.opened(str(tmp_path / "small"), small, scrub=keep)
    assert made.tags() == {"root": tree.root_commit(small).id}
    assert [path.name for path in tmp_path.iterdir()] == ["small"]


KILLED = """
import sys
from hermit.adapter import template
from hermit.adapter.files import File
from hermit.adapter.tree import Tree
small = template.named("prompt-only")
keep = lambda data, path: data
tree = Tree.opened(sys.argv[1], small, scrub=keep)
print("ready", flush=True)
for step in range(1000):
    tree.commit(small.files.with_files({"ADAPTER.md": File(b"%d" % step)}), run="one", message="x", when=step, scrub=keep)
"""


@pytest.mark.parametrize("after_s", [0.0, 0.03, 0.11, 0.4])
def test_a_process_that_was_killed_leaves_a_tree_that_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after_s: float
) -> None:
    monkeypatch.setattr(git, "STALE_S", 0.0)
    where = str(tmp_path / "t")
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, where], stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(after_s)
        os.killpg(process.pid, signal.SIGKILL)
    small = template.named("prompt-only")
    made = Tree.opened(where, small, scrub=keep)
    tip = made.tip("one")
    steps = len(made.history(tip)) - 1 if tip else 0
    if tip and steps:
        assert made.version(tip).files.get("ADAPTER.md") == b"%d" % (steps - 1)
    assert commit(made, small.files, step=5000).commit == made.tip("one")
    plain(made, "fsck", "--full")
