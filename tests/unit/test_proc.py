"""Host processes."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
import threading
import time

import pytest

from hermit import proc
from hermit.errors import SandboxError


def gone(pid):
    """Whether a process has ended; it may take a moment to be reaped by whoever adopted it."""
    for _ in range(200):
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                if file.read().rpartition(b")")[2].split()[0] == b"Z":
                    return True
        except FileNotFoundError:
            return True
        time.sleep(0.01)
    return False


def test_what_a_command_writes_and_its_code_are_kept():
    found = proc.capture(["sh", "-c", "cat; echo err >&2; exit 3"], timeout_s=20, stdin=b"in")
    assert (found.code, found.stdout, found.stderr) == (3, b"in", b"err\n")


def test_a_signal_is_a_negative_code():
    assert proc.capture(["sh", "-c", "kill -TERM $$"], timeout_s=20).code == -signal.SIGTERM


def test_a_command_has_only_the_environment_it_is_given():
    found = proc.capture(["/usr/bin/env"], timeout_s=20, env={"A": "1"})
    assert found.stdout == b"A=1\n"


def test_no_shell_reads_an_argument():
    assert proc.capture(["echo", "$HOME; `id` *"], timeout_s=20).stdout == b"$HOME; `id` *\n"


def test_a_program_that_does_not_exist_is_an_error():
    with pytest.raises(FileNotFoundError):
        proc.capture(["no-such-program-here"], timeout_s=20)


def test_a_timeout_kills_the_whole_group(tmp_path):
    source = f"sleep 86.3 & echo $! > {tmp_path}/pid; trap '' TERM; wait"
    with pytest.raises(TimeoutError, match=r"did not end within 0\.5 s"):
        proc.capture(["sh", "-c", source], timeout_s=0.5)
    assert gone((tmp_path / "pid").read_text().strip())


def test_a_process_that_left_the_group_does_not_keep_a_timeout_waiting(tmp_path):
    # It holds the output open from a session of its own, where no kill of the group reaches it.
    source = (
        "import os, sys, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        f"    open('{tmp_path}/pid', 'w').write(str(os.getpid()))\n"
        "    time.sleep(4)\n"
        f"    open('{tmp_path}/waited', 'w')\n"
        "    os._exit(0)\n"
        "time.sleep(60)\n"
    )
    with pytest.raises(TimeoutError):
        proc.capture([sys.executable, "-c", source], timeout_s=1)
    came_back_first = not (tmp_path / "waited").exists()
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert came_back_first


def test_a_command_that_is_interrupted_is_killed(tmp_path, monkeypatch):
    def interrupt(self, *_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "communicate", interrupt)
    killed = []
    end = proc.kill_group
    monkeypatch.setattr(proc, "kill_group", lambda pid: (killed.append(pid), end(pid)))
    with pytest.raises(KeyboardInterrupt):
        proc.capture(["sleep", "60"], timeout_s=20)
    assert gone(killed[0])


def test_the_last_words_are_the_last_line_that_says_anything():
    assert proc.Finished(("x",), 1, b"", b"first\n last \n\n").last_words == "last"
    assert proc.Finished(("x",), 1, b"", b" \n").last_words == "x ended with 1"
    assert proc.Finished(("x",), 1, b"", b"\xff").last_words == "\N{REPLACEMENT CHARACTER}"


def test_killing_a_group_that_is_gone_is_no_error():
    process = subprocess.Popen(["true"], start_new_session=True)
    process.wait()
    proc.kill_group(process.pid)


def test_a_spawned_process_has_no_environment_no_other_descriptor_and_a_session_of_its_own():
    source = "import os; print(dict(os.environ), os.getcwd(), os.getsid(0) == os.getpid(), os.path.exists('/proc/self/fd/%d'))"
    reader, writer = os.pipe()
    os.set_inheritable(reader, True)
    with open(os.devnull, "r+b") as nothing:
        process = proc.spawn(
            [sys.executable, "-I", "-c", source % reader],
            stdin=nothing.fileno(),
            stdout=writer,
            stderr=nothing.fileno(),
            pass_fds=(),
        )
    os.close(writer)
    with os.fdopen(reader) as file:
        said = file.read()
    process.wait()
    assert said.endswith("/ True False\n")
    assert "PATH" not in said


def test_a_thread_keeps_to_one_processor_and_may_use_all_again_afterwards():
    allowed = os.sched_getaffinity(0)
    seen = []

    def fail():
        with proc.on_one_processor():
            seen.extend([set(proc.processors()), os.sched_getaffinity(0)])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert os.sched_getaffinity(0) == allowed == set(proc.processors())
    assert seen[0] == seen[1] == {proc.processors()[0]}


def test_threads_take_the_processors_in_turn():
    def taken():
        with proc.on_one_processor():
            return min(os.sched_getaffinity(0))

    found = []
    for _ in range(len(os.sched_getaffinity(0))):
        thread = threading.Thread(target=lambda: found.append(taken()))
        thread.start()
        thread.join()
    assert sorted(found) == sorted(os.sched_getaffinity(0))


@pytest.mark.parametrize(("words", "code"), [("exit 3", 3), ("kill -KILL $$", 137)])
def test_an_attached_command_ends_with_the_code_a_shell_would_give(words, code):
    assert proc.attached(["sh", "-c", words]) == code


# What the kernel passes to a program; the values are this machine's own


HERE = "the tool sandbox"
LONGEST = 32 * os.sysconf("SC_PAGE_SIZE") - 1  # the kernel's MAX_ARG_STRLEN, without the NUL


def passes(argv, env):
    """Whether the kernel passes them to a program."""
    try:
        return proc.capture(["/bin/true", *argv], timeout_s=20, env=env).code == 0
    except OSError as refused:
        assert refused.errno == errno.E2BIG  # noqa: PT017 - any other would be a failure of the test
        return False


@pytest.mark.parametrize("text", ["p", "\N{SNOWMAN}", "\udcff"])
@pytest.mark.parametrize("more", [0, 1])
def test_the_longest_argument_and_variable_that_the_kernel_passes_are_let_through_and_no_longer_one(text, more):
    size, width = LONGEST + more, len(os.fsencode(text))
    argument = text * (size // width) + "x" * (size % width)
    variable = "v" * (size - len("NAME="))
    for argv, env in (((argument,), {}), ((), {"NAME": variable})):
        assert passes(argv, env) is not bool(more)
        if more:
            with pytest.raises(SandboxError, match=f"has {size} bytes, and the kernel passes {LONGEST} at most"):
                proc.refuse_oversized(argv, env, where=HERE)
        else:
            proc.refuse_oversized(argv, env, where=HERE)


def test_what_is_too_long_is_named_with_a_cure():
    with pytest.raises(SandboxError) as refused:
        proc.refuse_oversized(("echo", "short", "p" * (LONGEST + 1)), {}, where=HERE)
    assert str(refused.value).startswith("the tool sandbox: argument 2 of the command has ")
    assert (refused.value.cause, "a file" in refused.value.cure) == ("declaration", True)
    with pytest.raises(SandboxError, match="the variable KEY has") as refused:
        proc.refuse_oversized(("echo",), {"KEY": "secret" * LONGEST}, where=HERE)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("stack", "most"), [(8 << 20, 2 << 20), (64 << 20, 6 << 20), (resource.RLIM_INFINITY, 6 << 20), (1 << 16, 1 << 17)]
)
def test_all_together_have_a_bound_that_follows_the_stacks(monkeypatch, stack, most):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (stack, stack))
    piece = "p" * 1015  # 1024 with its NUL and the pointer to it
    proc.refuse_oversized([piece] * (most // 1024), {}, where=HERE)
    with pytest.raises(SandboxError, match=f"bytes together, and the kernel passes {most} at most"):
        proc.refuse_oversized([piece] * (most // 1024), {"N": ""}, where=HERE)


def test_what_is_refused_for_all_together_is_what_the_kernel_refuses():
    stack = resource.getrlimit(resource.RLIMIT_STACK)[0]
    if stack == resource.RLIM_INFINITY:
        stack = 64 << 20
    count = min(6 << 20, stack // 4) // 1024
    piece = "p" * 1015
    assert passes([piece] * (count - 1), {})  # the program's own name needs a little
    assert not passes([piece] * count, {})
    with pytest.raises(SandboxError):
        proc.refuse_oversized(["/bin/true", *[piece] * count], {}, where=HERE)


def test_a_logged_command_says_what_it_says_to_everybody_and_its_last_words_are_known(capfd, tmp_path):
    words = ["sh", "-c", "echo out; pwd; seq 100000 >&2; echo $NAME >&2; exit 3"]
    code, last = proc.logged(words, env={"NAME": "why", "PATH": os.environ["PATH"]}, cwd=str(tmp_path))
    said = capfd.readouterr()
    assert (code, last) == (3, "why")
    assert said.out.split() == ["out", str(tmp_path)]
    assert said.err.endswith("100000\nwhy\n")
