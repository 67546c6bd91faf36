"""Hidden modules in real sandboxes: nothing of them gets in, and nothing is left on the host, however it ends."""

from __future__ import annotations

import os
import py_compile
import shutil
import signal
import subprocess

import pytest

from hermit.bwrap import cover, python, system
from hermit.bwrap.argv import File, Kernel, Scratch, Seal, Show, options
from hermit.domain.bind import Bind
from hermit.domain.network import Network
from hermit.domain.sandbox import Sandbox


@pytest.fixture
def tree(tmp_path):
    """A repository with hidden code in every form, some of it under two names, next to a module that stays."""
    root = tmp_path / "tree"
    for name in ("bench/__init__", "bench/scoring", "store/linked_1/__init__", "scorer", "quick", "source", "free"):
        path = root / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("FREE = 1\n" if name == "free" else "SECRET = 'x' 'yz'\n", encoding="utf-8")
    for name in ("scorer", "bench/scoring", "free"):
        py_compile.compile(str(root / f"{name}.py"), doraise=True)
    py_compile.compile(str(root / "source.py"), cfile=str(root / "coded.pyc"), doraise=True)
    (root / "source.py").unlink()
    (root / "linked").symlink_to("store/linked_1")
    os.link(root / "quick.py", root / "copy.txt")
    git = ("git", "-C", str(root), "-c", "user.name=t", "-c", "user.email=t@localhost")
    for words in (["init", "-q"], ["add", "-A", "-f"], ["commit", "-q", "-m", "all"]):
        subprocess.run([*git, *words], check=True, capture_output=True)
    return str(root)


def snapshot(root):
    """Everything below a directory: names, kinds, sizes, links."""
    return sorted(
        (
            os.path.join(above, name),
            os.lstat(os.path.join(above, name)).st_size,
            os.path.islink(os.path.join(above, name)),
        )
        for above, directories, files in os.walk(root)
        for name in (*directories, *files)
    )


NAMES = ("bench", "linked", "scorer", "quick", "coded")


def start(code, *binds, hidden):
    """Starts Python in bubblewrap with the binds and their covers; its output is a pipe."""
    sandbox = Sandbox(binds=binds)
    interpreter = python.current()
    fresh = (Kernel("proc"), Kernel("dev"), Scratch("/tmp", 1 << 20))
    shown = (*python.operations(interpreter, framework=False), *map(Show, sandbox.mounts))
    files = [operation for operation in system.operations(Network.ISOLATED) if not isinstance(operation, File)]
    plan = [*files, *fresh, *shown, *hidden, Seal("/")]
    with open(os.devnull, "wb") as status:
        spelled = options(sandbox, plan, status=status.fileno(), texts={})
        program = [shutil.which("bwrap"), *spelled, interpreter.executable, "-I", "-S", "-c", code]
        return subprocess.Popen(
            program,
            pass_fds=[status.fileno()],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )


def run(code, *binds, hidden):
    with start(code, *binds, hidden=hidden) as child:
        said, _ = child.communicate(timeout=60)
    assert child.returncode == 0, said
    return said.split()


def clean(tree):
    asked = ["git", "-C", tree, "status", "--porcelain", "--ignored"]
    return subprocess.run(asked, check=True, capture_output=True, text=True).stdout == ""


IMPORTS = """
import importlib, sys
sys.path[:0] = ["/shown"]
for name in ("bench", "bench.scoring", "linked", "scorer", "quick", "coded", "free"):
    try:
        module = importlib.import_module(name)
    except (ImportError, EOFError):
        continue
    if hasattr(module, "SECRET") or hasattr(module, "FREE"):
        print(name)
"""
# The source says it in two pieces, the byte code in one.
READS = """
import os
for top in ("/shown", "/again", "/part"):
    for above, _, files in os.walk(top, followlinks=True):
        for path in (os.path.join(above, name) for name in files):
            with open(path, "rb") as file:
                data = file.read()
            if b"'yz'" in data or b"xyz" in data:
                print(path)
"""
WRITES = """
import os
for path in ("/shown/bench/new", "/shown/bench/__init__.py", "/shown/scorer.py", "/shown/__pycache__/new", "/shown/new"):
    try:
        open(path, "w").close()
    except OSError:
        continue
    print(path)
for act in (lambda: os.rmdir("/shown/bench"), lambda: os.rename("/shown/bench", "/shown/b"), lambda: os.unlink("/shown/scorer.py")):
    try:
        act()
    except OSError:
        continue
    print("moved")
"""


@pytest.mark.bwrap
def test_inside_nothing_of_a_hidden_module_can_be_imported_and_the_others_can(tree):
    shown = Bind(tree, "/shown")
    hidden = cover.operations(cover.resolve(NAMES, [tree]), [shown])
    assert run(IMPORTS, shown, hidden=()) == ["bench", "bench.scoring", "linked", "scorer", "quick", "coded", "free"]
    assert run(IMPORTS, shown, hidden=hidden) == ["free"]
    assert clean(tree)


@pytest.mark.bwrap
def test_inside_neither_source_nor_byte_code_of_a_hidden_module_can_be_read_under_any_name(tree):
    binds = Bind(tree, "/shown"), Bind(tree, "/again"), Bind(f"{tree}/bench", "/part")
    hidden = cover.operations(cover.resolve(NAMES, [tree]), binds)
    readable = [os.path.relpath(path, "/shown") for path in run(READS, *binds, hidden=()) if path.startswith("/shown")]
    plain = ["bench/__init__.py", "bench/scoring.py", "coded.pyc", "copy.txt", "linked/__init__.py", "quick.py"]
    plain += ["scorer.py", "store/linked_1/__init__.py"]
    assert sorted(path for path in readable if "__pycache__" not in path) == plain
    assert any("__pycache__" in path for path in readable)
    assert run(READS, *binds, hidden=hidden) == []


@pytest.mark.bwrap
def test_inside_a_hidden_directory_cannot_be_written_moved_or_removed_even_below_a_writable_one(tree):
    before = snapshot(tree)
    for writable, wanted in ((False, []), (True, ["/shown/new"])):
        shown = Bind(tree, "/shown", writable=writable)
        hidden = cover.operations(cover.resolve(NAMES, [tree]), [shown])
        assert run(WRITES, shown, hidden=hidden) == wanted
    os.unlink(f"{tree}/new")
    assert snapshot(tree) == before
    assert clean(tree)


@pytest.mark.bwrap
@pytest.mark.parametrize("writable", [False, True])
def test_covering_leaves_nothing_on_the_host_when_bubblewrap_is_killed_while_the_command_runs(tree, writable):
    shown, before = Bind(tree, "/shown", writable=writable), snapshot(tree)
    hidden = cover.operations(cover.resolve(NAMES, [tree]), [shown])
    with start("import time; print('ready', flush=True); time.sleep(600)", shown, hidden=hidden) as child:
        assert child.stdout.readline() == "ready\n"
        child.send_signal(signal.SIGKILL)
        assert child.communicate(timeout=60)[0] == ""  # its end: every process of the sandbox has gone
    assert snapshot(tree) == before
    assert clean(tree)


@pytest.mark.bwrap
def test_covering_leaves_nothing_on_the_host_when_bubblewrap_is_killed_while_it_mounts(tree):
    shown, before = Bind(tree, "/shown", writable=True), snapshot(tree)
    hidden = cover.operations(cover.resolve(NAMES, [tree]), [shown])
    for turn in range(12):
        with start("pass", shown, hidden=hidden) as child:
            for _ in range(turn * 2000):  # a little later each turn
                pass
            # Its child too: bubblewrap's own death alone would leave one that has not begun to mount waiting forever.
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate(timeout=60)
    assert snapshot(tree) == before
    assert clean(tree)
