"""Every way to a pass that is not a right answer; the title is the guarantee."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from contextlib import suppress
from typing import Any

import pytest

from .conftest import EXAMPLE, TEST, Bench, in_a_fork, load

JUDGE = load(EXAMPLE / "judge.py")
WRONG = "def double(value):\n    return 0\n"


def assert_fails(bench: Bench, source: str, outcome: str) -> None:
    verdict = bench.verdict(source)
    assert (verdict.score, verdict.outcome) == (0.0, outcome)


# Ending early


def test_a_candidate_that_can_answer_nobody_ends_at_once_and_never_goes_on_as_the_judge() -> None:
    def serve() -> str:
        requests, asked = os.pipe()
        answers, replies = os.pipe()
        os.write(asked, b"go\n")
        os.close(answers)
        marker, marked = os.pipe()
        pid = os.fork()
        if pid == 0:
            kept = os.dup2(marked, 1 + max(requests, replies, marked))
            try:
                JUDGE.detach = lambda keep: None
                JUDGE.serve(requests, replies, source="", entry_point="absent")
            finally:
                os.write(kept, b"it went on")
                os._exit(0)
        os.close(marked)
        os.waitpid(pid, 0)
        return os.read(marker, 100).decode()

    assert in_a_fork(serve) == ""


def test_ending_the_process_with_success_at_import_is_no_pass(bench: Bench) -> None:
    assert_fails(bench, "import os\nos._exit(0)\n", "ended")


def test_ending_the_process_with_success_in_a_call_is_no_pass(bench: Bench) -> None:
    assert_fails(bench, "import os\ndef double(value):\n    os._exit(0)\n", "ended")


def test_leaving_by_system_exit_is_no_pass(bench: Bench) -> None:
    assert_fails(bench, "import sys\nsys.exit(0)\n", "exception")
    assert_fails(bench, "import sys\ndef double(value):\n    sys.exit(0)\n", "exception")


def test_an_exit_handler_never_runs(bench: Bench) -> None:
    trace = bench.root / "work" / "trace"
    handler = f"import atexit\natexit.register(lambda: open({str(trace)!r}, 'w').close())\n"
    assert_fails(bench, handler + WRONG, "assertion")
    assert not trace.exists()


def test_disarming_exit_does_not_let_the_solution_play_the_judge(bench: Bench) -> None:
    disarmed = (
        "import os, sys\nos._exit = lambda code: None\ndef double(value):\n    os.close(3)\n    os.closerange(3, 99)\n"
    )
    assert bench.verdict(disarmed).score == 0.0
    assert bench.verdict("import os\nos._exit = lambda code: None\nos.closerange(3, 99)\n").score == 0.0


def test_a_solution_that_loses_its_pipes_does_not_run_on_as_a_second_judge(bench: Bench) -> None:
    trace = bench.root / "work" / "trace"
    bench.solution.write_text("import os\ndef double(value):\n    os.closerange(3, 1000)\n    return 4\n")

    def traced() -> dict[str, Any]:
        try:
            return bench.score()
        finally:
            with trace.open("a") as file:
                file.write("left\n")

    assert in_a_fork(traced)["outcome"] == "ended"
    assert trace.read_text() == "left\n"


def test_an_exception_that_breaks_when_it_is_shown_is_no_pass(bench: Bench) -> None:
    source = (
        "class E(Exception):\n    def __str__(self):\n        raise SystemExit(0)\ndef double(value):\n    raise E\n"
    )
    assert bench.verdict(source).score == 0.0


# Lying values


@pytest.mark.parametrize(
    ("kind", "made", "outcome"),
    [
        ("object", "Liar()", "exception"),
        ("int", "Liar(7)", "assertion"),
        ("float", "Liar(7)", "assertion"),
        ("str", "Liar('x')", "assertion"),
        ("list", "Liar([7])", "assertion"),
        ("dict", "Liar(x=7)", "assertion"),
    ],
)
def test_an_object_that_equals_everything_arrives_as_what_it_is(
    bench: Bench, kind: str, made: str, outcome: str
) -> None:
    liar = f"class Liar({kind}):\n    def __eq__(self, other):\n        return True\n    __hash__ = None\n"
    assert_fails(bench, f"{liar}def double(value):\n    return {made}\n", outcome)


def test_a_lying_result_of_a_comparison_does_not_arrive(bench: Bench) -> None:
    source = "class L:\n    ndim = 0\n    def item(self):\n        return L()\ndef double(value):\n    return L()\n"
    assert_fails(bench, source, "exception")


def test_a_value_nested_too_deep_is_no_value(bench: Bench) -> None:
    source = "def double(value):\n    deep = []\n    for _ in range(100_000):\n        deep = [deep]\n    return deep\n"
    assert_fails(bench, source, "exception")


def test_a_value_that_holds_itself_is_no_value(bench: Bench) -> None:
    assert_fails(bench, "def double(value):\n    ring = []\n    ring.append(ring)\n    return ring\n", "exception")


def test_a_value_of_a_hundred_megabytes_does_not_reach_the_judge(bench: Bench) -> None:
    verdict = bench.verdict("def double(value):\n    return 'x' * 100_000_000\n")
    assert (verdict.score, verdict.outcome) == (0.0, "exception")
    assert "more than" in verdict.feedback


def test_an_integer_of_too_many_digits_is_no_value(bench: Bench) -> None:
    assert_fails(bench, "def double(value):\n    return 10 ** 50_000\n", "exception")


# Patching


def test_patched_builtins_change_nothing_for_the_tests(bench: Bench) -> None:
    patches = (
        "import builtins\nbuiltins.AssertionError = ValueError\nbuiltins.isinstance = lambda *a: True\n"
        "builtins.abs = lambda x: 0\nbuiltins.len = lambda x: 0\nbuiltins.compile = lambda *a, **k: None\n"
    )
    assert bench.verdict(patches + WRONG).score == 0.0


def test_patched_modules_change_nothing_for_the_tests(bench: Bench) -> None:
    patches = (
        "import json, os, sys\njson.loads = lambda text: ['value', 4]\nos.read = None\n"
        "for module in list(sys.modules.values()):\n"
        "    for name in ('run_tests', 'score', 'read_reply', 'JudgeResult'):\n"
        "        if hasattr(module, name):\n            setattr(module, name, lambda *a, **k: None)\n"
    )
    assert bench.verdict(patches + WRONG).score == 0.0


def test_walking_the_stack_to_the_judge_finds_a_copy_that_changes_nothing(bench: Bench) -> None:
    source = (
        "import sys\nframe = sys._getframe()\nwhile frame:\n"
        "    frame.f_globals['run_tests'] = lambda *a: None\n    frame.f_globals['MAX_MESSAGE_BYTES'] = 0\n"
        "    frame.f_globals['read_reply'] = lambda m: ('value', 4)\n    frame = frame.f_back\n"
    )
    assert bench.verdict(source + WRONG).score == 0.0


def test_overwriting_the_tests_comes_too_late(unshielded: Bench) -> None:
    easy = unshielded.prepare.compiled("def check(candidate):\n    candidate(2)\n", "easy")
    assert_fails(unshielded, f"open({str(unshielded.code)!r}, 'wb').write({easy!r})\n" + WRONG, "assertion")


# Files

LOOKING = (
    "import ast\nknown = {{}}\nwhy = ''\ntry:\n"
    "    for node in ast.walk(ast.parse(open({tests!r}).read())):\n"
    "        if isinstance(node, ast.Compare):\n"
    "            try:\n                known[repr(ast.literal_eval(node.left.args[0]))] = ast.literal_eval(node.comparators[0])\n"
    "            except (AttributeError, ValueError):\n                pass\n"
    "except OSError as error:\n    why = str(error)\n"
    "def double(value):\n    return known.get(repr(value), 6) if not why else why\n"
)


def needs_landlock(bench: Bench) -> None:
    if not bench.judge.shield.version():
        pytest.skip("this kernel has no Landlock")


def test_a_solution_cannot_read_its_tests(bench: Bench) -> None:
    needs_landlock(bench)
    assert_fails(bench, LOOKING.format(tests=str(bench.tests)), "assertion")


def test_planted_failure_a_solution_that_can_read_its_tests_passes(unshielded: Bench) -> None:
    assert unshielded.verdict(LOOKING.format(tests=str(unshielded.tests))).outcome == "passed"


def test_a_program_that_a_solution_starts_reads_no_more_than_it(bench: Bench) -> None:
    needs_landlock(bench)
    source = (
        f"import subprocess\nsaid = subprocess.run(['/bin/cat', {str(bench.tests)!r}], stdin=0, capture_output=True)\n"
        "fine = said.returncode == 1 and b'ermission' in said.stderr and not said.stdout\n"
        "def double(value):\n    return value * 2 if fine else str(said)\n"
    )
    assert bench.verdict(source).outcome == "passed"


def test_a_solution_still_imports_the_standard_library_and_writes_to_its_own_work(bench: Bench) -> None:
    source = (
        "import colorsys, decimal, json, os, statistics\nmine = os.path.join(os.environ['HERMIT_WORK'], 'mine')\n"
        "open(mine, 'w').write('x')\ndef double(value):\n    return value * 2 if open(mine).read() == 'x' else 0\n"
    )
    assert bench.verdict(source).outcome == "passed"


# The pipes


def test_a_solution_holds_no_descriptor_but_the_null_device_and_its_two_pipes(unshielded: Bench) -> None:
    source = (
        "import os\nopen_now = [os.readlink(f'/proc/self/fd/{n}') for n in os.listdir('/proc/self/fd')"
        " if os.path.exists(f'/proc/self/fd/{n}')]\n"
        "fine = sorted(open_now)[:3] == ['/dev/null'] * 3 and sum(n.startswith('pipe:') for n in open_now) == 2"
        " and len(open_now) == 5\n"
        "def double(value):\n    return value * 2 if fine else repr(open_now)\n"
    )
    assert unshielded.verdict(source).outcome == "passed"


def test_closing_every_descriptor_is_no_pass(bench: Bench) -> None:
    assert_fails(bench, "import os\nos.closerange(0, 1000)\n" + WRONG, "ended")
    assert bench.verdict("import os\ndef double(value):\n    os.closerange(0, 1000)\n    return 4\n").score == 0.0


WRITE_ALL = "import os\ndef write_all(data):\n    for n in range(3, 64):\n        try:\n            os.write(n, data)\n        except OSError:\n            pass\n"


@pytest.mark.parametrize(
    "garbage", ["b'garbage\\n'", "b'\\xff' * 100", "b'[' * 100_000 + b'\\n'", "b'[\"passed\", 1.0]\\n'"]
)
def test_garbage_on_the_pipe_is_no_pass(bench: Bench, garbage: str) -> None:
    assert bench.verdict(f"{WRITE_ALL}write_all({garbage})\n{WRONG}").score == 0.0


def test_replies_sent_ahead_are_no_pass(bench: Bench) -> None:
    ahead = """b'["value", null]\\n' * 9"""
    assert bench.verdict(f"{WRITE_ALL}write_all({ahead})\n{WRONG}").score == 0.0


def test_a_reply_without_an_end_is_cut_off(bench: Bench) -> None:
    assert_fails(bench, f"{WRITE_ALL}while True:\n    write_all(b'x' * 65536)\n", "protocol")


def test_a_reply_that_comes_byte_by_byte_is_a_timeout(hurried: Bench) -> None:
    assert_fails(
        hurried, f"{WRITE_ALL}import time\nwhile True:\n    write_all(b'x')\n    time.sleep(0.05)\n", "timeout"
    )


# Processes


def test_a_solution_that_ignores_signals_and_never_answers_is_a_timeout(hurried: Bench) -> None:
    source = (
        "import signal, time\nfor n in range(1, 32):\n    try:\n        signal.signal(n, signal.SIG_IGN)\n"
        "    except OSError:\n        pass\ndef double(value):\n    while True:\n        time.sleep(60)\n"
    )
    assert_fails(hurried, source, "timeout")


def test_twenty_children_are_gone_when_the_judge_returns(bench: Bench) -> None:
    pids = bench.root / "work" / "pids"
    source = (
        f"import os, time\nfor _ in range(20):\n    if os.fork() == 0:\n        with open({str(pids)!r}, 'a') as f:\n"
        "            print(os.getpid(), file=f, flush=True)\n        time.sleep(3600)\n"
        f"while not os.path.exists({str(pids)!r}) or open({str(pids)!r}).read().count('\\n') < 20:\n    time.sleep(0.01)\n"
    )
    assert_fails(bench, source + WRONG, "assertion")
    assert len(pids.read_text().split()) == 20
    assert all(_is_gone(int(pid)) for pid in pids.read_text().split())


def test_a_grandchild_in_its_own_session_that_holds_the_pipes_does_not_hold_up_the_judge(hurried: Bench) -> None:
    pid = hurried.root / "work" / "pid"
    source = (
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n"
        f"    with open({str(pid)!r}, 'w') as f:\n        f.write(str(os.getpid()))\n    time.sleep(3600)\n"
        f"while not (os.path.exists({str(pid)!r}) and open({str(pid)!r}).read()):\n    time.sleep(0.01)\nos._exit(0)\n"
    )
    try:
        assert_fails(hurried, source, "timeout")
    finally:
        with suppress(ProcessLookupError):
            os.kill(int(pid.read_text()), signal.SIGKILL)


REACH = (
    "import os\nreached = []\njudge = f'/proc/{os.getppid()}'\n"
    "try:\n    reached.append(os.listdir(judge + '/fd'))\nexcept OSError:\n    pass\n"
    "try:\n    reached.append(open(judge + '/mem', 'r+b'))\nexcept OSError:\n    pass\n"
    "def double(value):\n    return 0 if reached else value * 2\n"
)


def as_a_plain_user(bench: Bench, *, dumpable: bool) -> dict[str, Any]:
    """The verdict reached by a user without privileges: root passes every check that the kernel makes.

    Hermit's worker makes a judge undumpable before it calls it; here the test does.
    """
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    ctypes.CDLL(None).prctl(4, int(dumpable), 0, 0, 0)  # PR_SET_DUMPABLE
    verdict: dict[str, Any] = bench.score()
    return verdict


def test_the_judges_memory_and_descriptors_are_out_of_reach(unshielded: Bench) -> None:
    unshielded.solution.write_text(REACH)
    assert in_a_fork(lambda: as_a_plain_user(unshielded, dumpable=False))["outcome"] == "passed"


def test_planted_failure_a_dumpable_judge_is_within_reach(unshielded: Bench) -> None:
    unshielded.solution.write_text(REACH)
    assert in_a_fork(lambda: as_a_plain_user(unshielded, dumpable=True))["outcome"] == "assertion"


# It looks for the mark in all of its own memory; the pattern itself does not match.
SEARCH = (
    "import re\nfound = False\nwith open('/proc/self/mem', 'rb', 0) as memory:\n"
    "    for line in open('/proc/self/maps'):\n"
    "        span, rights = line.split()[:2]\n"
    "        start, end = (int(n, 16) for n in span.split('-'))\n"
    "        if 'rw' in rights and '[v' not in line:\n"
    "            memory.seek(start)\n"
    "            try:\n                found = found or bool(re.search(rb'zqx[0-9]{12}', memory.read(end - start)))\n"
    "            except OSError:\n                pass\n"
    "def double(value):\n    return 0 if found else value * 2\n"
)


def mark_the_tests(bench: Bench) -> None:
    """Puts a mark into the tests that no memory but that of a finished fork has ever held."""

    def write() -> bool:
        mark = "".join(str(byte % 10) for byte in os.urandom(12))
        bench.set_problem(test=f"{TEST}MARK = 'zqx{mark}'\n")
        return True

    assert in_a_fork(write) is True


def test_a_solutions_memory_does_not_hold_the_tests(unshielded: Bench) -> None:
    mark_the_tests(unshielded)
    assert unshielded.verdict(SEARCH).outcome == "passed"


def test_planted_failure_a_judge_that_reads_the_tests_first_shows_them(unshielded: Bench) -> None:
    mark_the_tests(unshielded)
    unshielded.solution.write_text(SEARCH)

    def read_first() -> dict[str, Any]:
        held = unshielded.code.read_bytes()
        return {**unshielded.score(), "held": len(held)}

    assert in_a_fork(read_first)["outcome"] == "assertion"


def _is_gone(pid: int) -> bool:
    """Whether the process ended; killed orphans may take a moment to be reaped."""
    for _ in range(500):
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                state = file.read().rpartition(b")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state in (b"Z", b"X"):
            return True
        time.sleep(0.01)
    return False
