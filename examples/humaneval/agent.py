"""Three agents without a model: one that is always right, one that never is, and one that fails in every way.

An agent is a function ``run(task, adapter) -> RunOutput``. It runs in a sandbox, in a work directory of its own that
is also its current directory; the answer is the file ``solution.py`` there, and the judge reads nothing else.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermit import RunOutput

if TYPE_CHECKING:
    from collections.abc import Callable

REFERENCE = Path(__file__).resolve().parent / "data" / "reference"
ANSWER = Path("solution.py")
RIGHT = "right"
# Four of the 164 problems fall to each way to fail, and the rest is answered right.
CYCLE = 41
MB = 1_000_000


def reference(task: dict[str, Any], adapter: Path | None) -> RunOutput:
    """The canonical program is the answer.

    Raises:
        FileNotFoundError: The sandbox does not show the canonical programs.
    """
    program = REFERENCE / f"{task['id'].replace('/', '_')}.py"
    if not program.is_file():
        raise FileNotFoundError(
            f"{program} is not shown in this sandbox: run prepare.py, and name data/reference in environment.read"
        )
    return _answer(program.read_text(encoding="utf-8"))


def empty(task: dict[str, Any], adapter: Path | None) -> RunOutput:
    """The answer is a stub: the prompt alone, a function whose body is its docstring."""
    return _answer(task["prompt"])


def broken(task: dict[str, Any], adapter: Path | None) -> RunOutput:
    """Fails in the way that :func:`way_of` names for this problem, or answers right."""
    way = way_of(task["id"])
    return dict(WAYS)[way](task, adapter) if way != RIGHT else reference(task, adapter)


def way_of(task_id: str) -> str:
    """How ``broken`` treats this problem: a name in ``WAYS``, or ``right``."""
    place = int(task_id.rpartition("/")[2]) % CYCLE
    return WAYS[place][0] if place < len(WAYS) else RIGHT


def _answer(program: str) -> RunOutput:
    ANSWER.write_text(program, encoding="utf-8")
    return RunOutput(output=program)


def _raise(task: dict[str, Any], adapter: Path | None) -> RunOutput:
    raise RuntimeError("this agent raises an exception")


def _exit(task: dict[str, Any], adapter: Path | None) -> RunOutput:
    sys.exit(3)


def _exit_at_once(task: dict[str, Any], adapter: Path | None) -> RunOutput:
    os._exit(5)


def _die_of_kill(task: dict[str, Any], adapter: Path | None) -> RunOutput:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("SIGKILL left this process alive")


def _die_of_segv(task: dict[str, Any], adapter: Path | None) -> RunOutput:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # no core file in the work directory
    signal.signal(signal.SIGSEGV, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGSEGV)
    raise AssertionError("SIGSEGV left this process alive")


def _hang(task: dict[str, Any], adapter: Path | None) -> RunOutput:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(3600)


def _return_a_list(task: dict[str, Any], adapter: Path | None) -> Any:
    return ["not", "a", "RunOutput"]


def _return_a_set(task: dict[str, Any], adapter: Path | None) -> RunOutput:
    return RunOutput(output="", extra={"seen": {1, 2, 3}})


def _flood(task: dict[str, Any], adapter: Path | None) -> RunOutput:
    line = b"x" * 999 + b"\n"
    for _ in range(50):
        block = memoryview(line * 1000)
        while block:
            block = block[os.write(1, block) :]
    return reference(task, adapter)


def _write_bad_utf8(task: dict[str, Any], adapter: Path | None) -> RunOutput:
    ANSWER.write_bytes(b"\xff\xfe def f(): pass\n")
    return RunOutput(output=None)


def _return_too_much(task: dict[str, Any], adapter: Path | None) -> RunOutput:
    return RunOutput(output="x" * (100 * MB))


def _leave_a_grandchild(task: dict[str, Any], adapter: Path | None) -> RunOutput:
    # It keeps the agent's standard output open: whoever waits for the end of that stream waits for an hour.
    left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"], start_new_session=True)
    answer = reference(task, adapter)
    answer.extra["left_running"] = left.pid
    return answer


# The order gives each way its problems: HumanEval/0, /41, /82 and /123 fall to the first.
WAYS: tuple[tuple[str, Callable[[dict[str, Any], Path | None], RunOutput]], ...] = (
    ("exception", _raise),
    ("sys-exit", _exit),
    ("os-exit", _exit_at_once),
    ("sigkill", _die_of_kill),
    ("sigsegv", _die_of_segv),
    ("hang", _hang),
    ("wrong-type", _return_a_list),
    ("not-json", _return_a_set),
    ("flood", _flood),
    ("bad-utf8", _write_bad_utf8),
    ("too-large", _return_too_much),
    ("grandchild", _leave_a_grandchild),
)
