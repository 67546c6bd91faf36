"""The trainer's tools, as a learner calls them: each call checked, bounded, logged and metered.

A service of this process's own listens on a Unix socket, to which a port of the learner's sandbox leads. A call runs in a thread;
where it takes too long, or the learner's call ends before it, its descriptor becomes readable, which ends what it started.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as TooLate
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import unquote

from hermit.agent.result import Failure
from hermit.domain import codec
from hermit.errors import Interrupted, SandboxError
from hermit.handoff import scrub
from hermit.handoff.collect import collect
from hermit.handoff.redact import Found, Redactor
from hermit.handoff.remove import remove
from hermit.net.service import MOST_CONNECTIONS, Answer, Request, Service, loopback_listener, unix_listener
from hermit.roles.evolver import TOOL_PORT
from hermit.run.named_paths import Refused, resolved
from hermit.run.served import Meter, Returned

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hermit.domain.sandbox import Sandbox
    from hermit.run.served import Served

MOST_ARGUMENT = 1024 * 1024
MOST_RESULT = 4 * 1024 * 1024
MOST_CALLS = 10_000  # in one call of the learner: each leaves a row
CANCELLED = "cancelled"
NOT_FOUND, BAD_REQUEST, TOO_MANY, FAILED, TIMED_OUT = 404, 400, 429, 502, 504
STATUS = {
    "argument": BAD_REQUEST,
    "path": BAD_REQUEST,
    "timeout": TIMED_OUT,
    "unknown": NOT_FOUND,
    "too many": TOO_MANY,
}


class Endpoint:
    """Serves tools to one call of the learner, from its start to its end.

    Args:
        tools: What is served.
        redactor: Takes the keys out of everything that goes in.
        copies: A directory on the host for what the paths of a call name.
        agent_logs: The directory on the host that the learner sees as its ``agent-logs``.
        log: Takes a row for each call.
        lend: Is told of each directory that the learner is shown from now on.
        confined: Whether the learner runs in a sandbox; else the endpoint is on the machine's own loopback.
    """

    def __init__(
        self,
        tools: tuple[Served, ...],
        *,
        redactor: Redactor,
        copies: str,
        agent_logs: str,
        log: Callable[[dict[str, Any]], None],
        lend: Callable[[str], None] = lambda _: None,
        confined: bool = True,
    ) -> None:
        self.meters: dict[str, Meter] = {}
        self.socket = self.url = ""
        self.found = Found()
        self.broken: Exception | None = None
        self._tools = {tool.name: tool for tool in tools}
        if len(self._tools) < len(tools):
            twice = Counter(tool.name for tool in tools).most_common(1)[0][0]
            raise ValueError(f"two tools have the name {twice}")
        self._redactor, self._log, self._lend, self._confined = redactor, log, lend, confined
        self._copies, self._agent_logs = copies, agent_logs
        self._sandbox: Sandbox | None = None
        self._cancelled = threading.Event()
        self._lock = threading.Lock()
        self._number = 0
        self._prefix = ""
        self._ends = contextlib.ExitStack()
        self._stops: set[int] = set()
        self._over = False

    @property
    def told(self) -> list[dict[str, Any]]:
        """What the learner is told of the tools."""
        return [tool.told for tool in self._tools.values()]

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as ends:
            if self._confined:
                private = tempfile.mkdtemp(prefix="hermit-tools-")
                ends.callback(os.rmdir, private)
                listener, self.socket = ends.enter_context(unix_listener(private))
                self.url = f"http://127.0.0.1:{TOOL_PORT}"
            else:
                # Anybody of this machine can reach that port: only the learner is told the word in front of the path.
                listener, port = ends.enter_context(loopback_listener())
                self._prefix = f"/{secrets.token_urlsafe(18)}"
                self.url = f"http://127.0.0.1:{port}{self._prefix}"
            self._pool = ThreadPoolExecutor(MOST_CONNECTIONS, thread_name_prefix="tool")
            ends.callback(self._pool.shutdown)
            ends.enter_context(Service(listener, self._answer, most_body=MOST_ARGUMENT))
            ends.callback(self._give_up)  # the first to be done: whoever works for a call that is over ends
            self._ends = ends.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._ends.close()
        if kind is None and self.broken is not None:
            raise self.broken

    def serve(self, sandbox: Sandbox) -> None:
        """Serves whoever is in this sandbox from now on: what it shows is what can be named."""
        self._sandbox = sandbox

    @property
    def sandbox(self) -> Sandbox:
        """The learner's sandbox."""
        assert self._sandbox is not None  # noqa: S101 - no tool is called before it is known
        return self._sandbox

    def cancel(self) -> None:
        """Tells the learner that its call is to end; it is up to it to do so before it is stopped."""
        self._cancelled.set()

    def _give_up(self) -> None:
        with self._lock:
            self._over = True
            for stop in self._stops:
                os.close(stop)
            self._stops.clear()

    def _answer(self, request: Request) -> Answer:
        if not request.path.startswith(f"{self._prefix}/"):
            return _failed(Failure("unknown", "there is nothing here"))
        name = unquote(request.path.removeprefix(f"{self._prefix}/"))
        if request.method == "GET":
            if name == CANCELLED:
                return Answer(200, {"returned": self._cancelled.is_set()})
            return Answer(200, {"returned": self.told}) if not name else _failed(_unknown(name, self._tools))
        began = time.monotonic()
        with self._lock:
            self._number += 1
            number = self._number
        if number > MOST_CALLS:
            return _failed(Failure("too many", f"one call of a learner calls {MOST_CALLS} tools at most"))
        known = name in self._tools and self._sandbox is not None
        value = self._call(name, request.body, number) if known else _unknown(name, self._tools)
        answer, size = self._sized(name, value)
        with self._lock:
            self._note(name, value, answer, size=size, number=number, took=time.monotonic() - began, given=request.body)
        return answer

    def _call(self, name: str, body: bytes, number: int) -> Returned | Failure:
        """One call; everything that was copied for it is gone afterwards."""
        copies = f"{self._copies}/{number}"
        try:
            os.mkdir(copies, 0o700)
            tool, sandbox = self._tools[name], self.sandbox
            returned = self._waited(tool, resolved(tool, _argument(tool, body), sandbox, copies=copies))
            return self._with_logs(returned, copies) if isinstance(returned, Returned) else returned
        except Refused as refused:
            return refused.failure
        except Interrupted:
            return Failure("cancelled", f"nobody waits for {name} any more")
        except SandboxError as error:
            self._note_broken(error)
            return Failure("sandbox", "the sandbox of the tool failed; the trainer knows")
        except Exception as error:  # noqa: BLE001 - the trainer is told at the end, and the learner goes on
            self._note_broken(error)
            return Failure("internal", "the tool failed, by no fault of what it was given; the trainer knows")
        finally:
            remove(copies)

    def _waited(self, tool: Served, argument: dict[str, Any]) -> Returned | Failure:
        """What the tool returns, or that it took too long: then it is told that nobody waits any more."""
        reader, writer = os.pipe()
        with self._lock:
            self._stops.add(writer)
            over = self._over
        try:
            if over:
                raise Interrupted("the call of the learner is over")
            running = self._pool.submit(tool.call, argument, reader)
            try:
                return running.result(timeout=tool.timeout_s)
            except TooLate:
                self._end(writer)
                with contextlib.suppress(Exception):  # it was given up, and says so in its own way
                    running.result()
                return Failure("timeout", f"{tool.name} was stopped after {tool.timeout_s:g} s")
        finally:
            self._end(writer)
            os.close(reader)

    def _end(self, writer: int) -> None:
        with self._lock:
            if writer in self._stops:
                self._stops.discard(writer)
                os.close(writer)

    def _with_logs(self, returned: Returned, copies: str) -> Returned:
        """Copies the logs of what a tool ran to where the learner sees them, without a key, and says where."""
        if returned.logs is None:
            return returned
        made = f"{copies}/logs"
        os.mkdir(made)
        collect(returned.logs, ["."], into=made)
        scrub.tree(self._redactor, made, found=self.found)
        with self._lock:  # those of earlier calls of the learner stay
            shown = f"{self._agent_logs}/{len(os.listdir(self._agent_logs)) + 1:04d}"
            os.mkdir(shown, 0o755)
        collect(made, ["."], into=shown)
        self._lend(shown)
        value = returned.value if isinstance(returned.value, dict) else {"value": returned.value}
        return replace(returned, value={**value, "logs": self.sandbox.paths.inside(shown)})

    def _sized(self, name: str, value: Returned | Failure) -> tuple[Answer, int]:
        """The answer without a key in it, and its size; one that is too long is a failure."""
        if isinstance(value, Failure):
            return _failed(self._scrubbed(value)), 0
        try:
            clean = self._redactor.value(value.value, found=self.found, where=f"tool {name}")
            size = len(codec.dump(clean))
        except (TypeError, ValueError) as error:
            return _failed(Failure("result", f"what {name} returned is no JSON: {error}")), 0
        if size > MOST_RESULT:
            return _failed(Failure("result", f"{name} returned {size} bytes; {MOST_RESULT} are passed on")), size
        return Answer(200, {"returned": clean}), size

    def _scrubbed(self, failure: Failure) -> Failure:
        return replace(failure, error=self._redactor.text(failure.error, found=self.found, where="tool", cut=True))

    def _note(
        self,
        name: str,
        value: Returned | Failure,
        answer: Answer,
        *,
        size: int,
        number: int,
        took: float,
        given: bytes,
    ) -> None:
        failed = answer.document.get("failed")
        row = {
            "call": number,
            "tool": name if name in self._tools else "unknown",
            "status": failed or "ok",
            "error": answer.document.get("error", ""),
            "seconds": round(took, 3),
            "bytes_in": len(given),
            "bytes_out": size,
            "cost_usd": value.cost_usd if isinstance(value, Returned) else 0.0,
        }
        self.meters.setdefault(str(row["tool"]), Meter()).add(row)
        self._log(row)

    def _note_broken(self, error: Exception) -> None:
        with self._lock:
            self.broken = self.broken or error


def _failed(failure: Failure) -> Answer:
    return Answer(STATUS.get(failure.cause, FAILED), {"failed": failure.cause, "error": failure.error})


def _unknown(name: str, tools: Mapping[str, Served]) -> Failure:
    return Failure("unknown", f"there is no tool {name!r:.80}; there are {', '.join(tools)}")


def _argument(tool: Served, body: bytes) -> dict[str, Any]:
    """What a tool is given: an object, with the defaults of its schema for what it leaves out."""
    try:
        given = codec.load(body) if body.strip() else {}
    except ValueError as error:
        raise Refused("argument", f"what {tool.name} is given is no JSON: {error}") from None
    if not isinstance(given, dict):
        raise Refused("argument", f"{tool.name} takes an object, not {json.dumps(given)[:80]}")
    said = tool.takes.get("properties", {})
    argument = {**{name: schema["default"] for name, schema in said.items() if "default" in schema}, **given}
    wrong = tool.unfit(argument)
    if wrong:
        raise Refused("argument", f"{tool.name} cannot take it: {wrong}")
    return argument
