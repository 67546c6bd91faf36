"""Scores one HumanEval problem: 1.0 where all its tests pass, 0.0 with one line of feedback otherwise.

Theory of operation
-------------------
Two processes. The *judge*, this one, holds the tests and runs them. The *candidate*, a child made by ``fork`` before the
tests are read, holds ``solution.py`` and runs it. Two pipes join them; only JSON of plain values crosses::

    judge      fork; read the tests; "go" -->                 -- arguments -->            ... kill, reap
    candidate                                 load, answer -->                 <-- value

A pass is the judge's own conclusion from values that it decoded itself. What the candidate prints, patches, registers or
exits with happens in a process whose end means nothing, and an object with an ``__eq__`` of its own never arrives.

- "go" is sent when the judge holds the tests, so that nothing the candidate does to files can change them.
- The candidate keeps no descriptor but its two pipe ends: the judge's own result leaves by one that it must not have.
- Before "go" the candidate gives up every file but its work and those of the interpreter and the system (`hermit.shield`):
  it runs where the tests lie, in `host` mode beside all that the machine holds, and could answer with what they expect.
  A kernel without Landlock does not hold it; `extra.shielded` of the result says whether this one did.
- Hermit's worker has made this process undumpable, so that a process of the same user cannot trace it, write its memory
  or reopen its descriptors through ``/proc``; the candidate inherits that.
- Each wait has the same deadline, so a candidate that sleeps, or leaves a child that holds a pipe open, costs no more.
- The judge always kills the candidate and its session before it returns. Children in other sessions end with the sandbox.

On a kernel before 6.12 the candidate can still signal the judge, which spoils its own score.
"""

# A judgement takes 3 ms, and importing pathlib, typing, signal and contextlib would take 10: the judge does without.

from __future__ import annotations

import marshal
import os
import select
import stat
import sys
import time
from _frozen_importlib_external import MAGIC_NUMBER  # `importlib.util` has it too, at 2 ms

from hermit import JudgeResult, shield
from hermit.domain import codec  # JSON without the regular expressions that `json` imports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from types import CodeType, TracebackType
    from typing import Any, Self

    from hermit import RunOutput

TIME_LIMIT_S = 10.0
MAX_SOURCE_BYTES = 1024 * 1024
# A thousand times what any test expects, and too little for a dict of colliding keys to hold the judge up.
MAX_MESSAGE_BYTES = 256 * 1024
MAX_FEEDBACK_CHARACTERS = 200
TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "tests")
ANSWER = "solution.py"

SIGKILL = 9


class Failed(Exception):
    """In which way the candidate has failed (one word), and one line about it."""

    def __init__(self, outcome: str, feedback: str) -> None:
        super().__init__(feedback)
        self.outcome = outcome
        self.feedback = feedback


def score(task: dict[str, Any], output: RunOutput) -> JudgeResult:
    """The verdict on ``solution.py`` in the directory that the variable ``HERMIT_WORK`` names.

    Args:
        task: The row of the task; its ``id`` names the tests.
        output: Not read: the file is the answer.

    Raises:
        KeyError: ``HERMIT_WORK`` is not set: the judge does not run in a judge sandbox.
        FileNotFoundError: The problem's tests are not shown to the judge.
    """
    try:
        source = read_solution(os.environ["HERMIT_WORK"])
        with Candidate(source, task["entry_point"]) as candidate:
            check = read_tests(task, candidate)
            candidate.load()
            run_tests(check, candidate)
    except Failed as failed:
        return JudgeResult(0.0, failed.feedback, {"outcome": failed.outcome, "shielded": shield.version() > 0})
    return JudgeResult(1.0, "every test passed", {"outcome": "passed", "shielded": shield.version() > 0})


# What the judge reads


def read_solution(work: str) -> str:
    """The answer's text; never what a link or a special file stands for.

    Raises:
        Failed: There is no such regular file, or it is too large or not UTF-8.
    """
    try:
        # Without O_NONBLOCK, opening a FIFO would wait for a writer.
        descriptor = os.open(os.path.join(work, ANSWER), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise Failed("missing", f"there is no {ANSWER} in the work directory") from None
    except OSError as error:
        raise Failed("missing", f"{ANSWER} cannot be read as a regular file: {error.strerror}") from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Failed("missing", f"{ANSWER} is not a regular file")
        with open(descriptor, "rb", closefd=False) as file:
            content = file.read(MAX_SOURCE_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(content) > MAX_SOURCE_BYTES:
        raise Failed("too-large", f"{ANSWER} is larger than {MAX_SOURCE_BYTES} bytes")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Failed("encoding", f"{ANSWER} is not UTF-8: byte {error.start} is wrong") from None


def read_tests(task: dict[str, Any], candidate: Candidate) -> Callable[[Any], None]:
    """The problem's own ``check``; its helpers find the candidate under the entry point's name."""
    path = os.path.join(TESTS, f"{task['id'].replace('/', '_')}.py")
    namespace: dict[str, Any] = {"__name__": "tests"}
    exec(compiled(path), namespace)
    namespace[task["entry_point"]] = candidate.call
    check: Callable[[Any], None] = namespace["check"]
    return check


def compiled(path: str) -> CodeType:
    """The module at ``path``: what ``prepare.py`` compiled of it where that is for this interpreter, its text otherwise."""
    with open(f"{path}.code", "rb") as file:
        content = file.read()
    if content.startswith(MAGIC_NUMBER):
        code: CodeType = marshal.loads(content[len(MAGIC_NUMBER) :])  # noqa: S302 - the judge runs these tests either way
        return code
    with open(path, "rb") as file:
        text = file.read()
    # An interpreter that was started with -O would leave the assertions out.
    return compile(text, path, "exec", dont_inherit=True, optimize=0)


def run_tests(check: Callable[[Any], None], candidate: Candidate) -> None:
    """Returns where every test passes, and raises Failed where one does not."""
    try:
        check(candidate.call)
    except Failed:
        raise
    except AssertionError:
        raise Failed("assertion", f"a test failed on what call {candidate.calls} returned") from None
    except Exception as error:  # noqa: BLE001 - a test may choke in any way on a value of the wrong type
        words = f"a test could not use what call {candidate.calls} returned: {type(error).__name__}"
        raise Failed("exception", words) from None
    if candidate.broken is not None:  # a test that catches exceptions must not hide this one
        raise candidate.broken
    if candidate.calls == 0:
        raise RuntimeError("the tests never called the solution, so they prove nothing")


# The judge's side of the candidate


class Candidate:
    """A solution in a process of its own, from the start of a ``with`` block to its end."""

    def __init__(self, source: str, entry_point: str) -> None:
        self.calls = 0
        self.broken: Failed | None = None
        self._source = source
        self._entry_point = entry_point
        self._deadline = time.monotonic() + TIME_LIMIT_S
        self._pid = 0
        self._requests = self._replies = -1

    def __enter__(self) -> Self:
        requests, self._requests = os.pipe()
        self._replies, replies = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            serve(requests, replies, source=self._source, entry_point=self._entry_point)
        os.close(requests)
        os.close(replies)
        os.set_blocking(self._requests, False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()
        os.close(self._requests)
        os.close(self._replies)

    def load(self) -> None:
        """Lets the solution's own code run; raises Failed where it raises or does not define the function."""
        self._ask("go")

    def call(self, *args: Any) -> Any:
        """What the solution returns for these arguments; raises Failed where that is not a plain value in time."""
        self.calls += 1
        return self._ask(list(map(encode, args)))

    def _ask(self, request: Any) -> Any:
        if self.broken is not None:
            raise self.broken
        try:
            self._send(codec.dump(request) + b"\n")
            kind, content = read_reply(self._received())
        except Failed as failed:
            self.broken = failed
            raise
        if kind != "value":
            raise Failed(kind, content)
        return content

    def _send(self, message: bytes) -> None:
        while message:
            self._wait(self._requests, select.POLLOUT)
            try:
                message = message[os.write(self._requests, message) :]
            except BrokenPipeError:
                raise self._ended() from None

    def _received(self) -> bytes:
        message = bytearray()
        while not message.endswith(b"\n"):
            self._wait(self._replies, select.POLLIN)
            part = os.read(self._replies, 65536)
            if not part:
                raise self._ended()
            message += part
            if len(message) > MAX_MESSAGE_BYTES:
                raise Failed("protocol", "the solution sent more than a value may hold")
        return bytes(message)

    def _wait(self, descriptor: int, event: int) -> None:
        poll = select.poll()
        poll.register(descriptor, event)
        left_s = self._deadline - time.monotonic()
        if left_s <= 0 or not poll.poll(left_s * 1000):
            raise Failed("timeout", f"the tests did not end within {TIME_LIMIT_S:g} s")

    def _ended(self) -> Failed:
        return Failed("ended", f"the solution ended its process or closed its pipe ({self._end()})")

    def _end(self) -> str:
        """Kills and reaps the candidate once, and says how its process ended."""
        if self._pid == 0:
            return "killed"
        try:  # noqa: SIM105
            os.killpg(self._pid, SIGKILL)
        except (ProcessLookupError, PermissionError):  # it did not live to lead a session
            pass
        os.kill(self._pid, SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        self._pid = 0
        return f"exit code {code}" if code >= 0 else f"signal {-code}"


def read_reply(message: bytes) -> tuple[str, Any]:
    """The kind of a reply and its content, which is made of built-in types alone.

    Raises:
        Failed: The message is no reply.
    """
    try:
        kind, content = codec.load(message)
        if kind == "value":
            return kind, decode(content)
        if kind in ("syntax", "exception", "shield"):
            line = "".join(character for character in " ".join(content.split()) if character.isprintable())
            return kind, line[:MAX_FEEDBACK_CHARACTERS]
    except Exception:  # noqa: BLE001 - whatever these bytes do to a decoder, the candidate sent them
        raise Failed("protocol", "the solution sent something that is not a value") from None
    raise Failed("protocol", "the solution sent something that is not a reply")


# The candidate's process


def serve(requests: int, replies: int, *, source: str, entry_point: str) -> None:
    """Answers the judge's calls until it is killed; it never returns."""
    try:
        detach(keep=(requests, replies))
        with open(requests, "rb") as calls:
            try:
                shield.give_up_files(work=os.environ["HERMIT_WORK"], secret=TESTS)
            except OSError as error:
                send(replies, ["shield", f"the tests could not be kept from the solution: {error}"])
                return
            calls.readline()  # "go"
            function, reply = loaded(source, entry_point)
            send(replies, reply)
            for call in calls:
                send(replies, called(function, codec.load(call)))
    finally:
        # Not one handler, buffer or frame of the judge may run to its end in this copy of it.
        os._exit(0)


def detach(keep: Collection[int]) -> None:
    """Leads a session of its own, without a terminal, and holds no descriptor but the null device and ``keep``."""
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    # Whatever the judge's own stream objects write to, the candidate's write to nothing.
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
    low = 3
    for descriptor in sorted(keep):
        os.closerange(low, descriptor)
        low = descriptor + 1
    os.closerange(low, os.sysconf("SC_OPEN_MAX"))


def loaded(source: str, entry_point: str) -> tuple[Any, list[Any]]:
    """The solution's function and a reply without content, or ``None`` and a reply that says why there is none."""
    module = type(sys)("solution")
    sys.modules["solution"] = module  # dataclasses look their module up
    try:
        exec(compile(source, ANSWER, "exec", dont_inherit=True), module.__dict__)
    except SyntaxError as error:
        return None, ["syntax", f"{ANSWER} is not Python: {error}"]
    except BaseException as error:  # noqa: BLE001 - SystemExit ends nothing here
        return None, ["exception", f"loading {ANSWER} raised {describe(error)}"]
    function = module.__dict__.get(entry_point)
    if not callable(function):
        return None, ["exception", f"{ANSWER} does not define the function {entry_point}"]
    return function, ["value", None]


def called(function: Any, args: list[Any]) -> list[Any]:
    """The reply to one call."""
    try:
        value = function(*map(decode, args))
    except BaseException as error:  # noqa: BLE001 - SystemExit ends nothing here
        return ["exception", f"the solution raised {describe(error)}"]
    try:
        return ["value", encode(value)]
    except Exception as error:  # noqa: BLE001 - the value's own methods run here
        return ["exception", f"the solution returned what is not a plain value: {describe(error)}"]


def describe(error: BaseException) -> str:
    """An exception in a few words."""
    return f"{type(error).__name__}: {error}"[:MAX_FEEDBACK_CHARACTERS]


def send(descriptor: int, reply: list[Any]) -> None:
    """Sends one reply, or says in its place that the value is too large or cannot be written as JSON."""
    try:
        message = codec.dump(reply)
    except ValueError as error:  # an integer of more digits than Python converts, or too deep a value
        message = codec.dump(["exception", f"the solution returned what cannot be sent: {describe(error)}"])
    if len(message) >= MAX_MESSAGE_BYTES:
        message = codec.dump(["exception", f"the solution returned more than {MAX_MESSAGE_BYTES} bytes"])
    rest = message + b"\n"
    while rest:
        rest = rest[os.write(descriptor, rest) :]


# What both sides know

KINDS = (list, tuple, set, frozenset)


def encode(value: Any) -> Any:
    """A plain value as JSON, a container as a list that starts with its kind; raises TypeError for anything else."""
    if isinstance(value, float) and value - value != 0:  # JSON has no infinities and no NaN
        return ["float", repr(float(value))]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    for kind in KINDS:
        if isinstance(value, kind):
            return [kind.__name__, *map(encode, value)]
    if isinstance(value, dict):
        return ["dict", *([encode(key), encode(item)] for key, item in value.items())]
    if getattr(value, "ndim", None) == 0:  # a number of numpy equals the plain one, so a test would take it
        return encode(value.item())
    raise TypeError(f"an object of type {type(value).__name__}")


def decode(content: Any) -> Any:
    """The plain value that :func:`encode` wrote; raises some exception where it is not the work of ``encode``."""
    if isinstance(content, dict):
        raise TypeError("a bare object")
    if not isinstance(content, list):
        return content
    name, *items = content
    if name == "dict":
        return {decode(key): decode(item) for key, item in items}
    if name == "float":
        return float(items[0])
    for kind in KINDS:
        if kind.__name__ == name:
            return kind(map(decode, items))
    raise TypeError("a list without the name of a kind")
