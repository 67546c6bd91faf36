"""What a learner asks of the trainer: its tools and whether to end, over HTTP on the loopback of its own sandbox."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Beyond the time that the trainer gives a tool: its own answer comes first.
GRACE_S = 30.0
MOST_ANSWER = 8 * 1024 * 1024
ASK_AGAIN_S = 0.5
CANCELLED = "cancelled"  # what is asked for; a tool's name has no dot and is posted to


class ToolError(RuntimeError):
    """A tool failed, or refused what it was given.

    Args:
        cause: ``argument``, ``path``, ``timeout``, ``result``, ``exception``, ``sandbox`` or another short word.
        error: What happened, on one line.
    """

    def __init__(self, cause: str, error: str) -> None:
        super().__init__(f"{cause}: {error}")
        self.cause = cause
        self.error = error


class Cancelled(RuntimeError):
    """The trainer wants the call to end."""


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A function of the trainer's that the learner may call, with one value of JSON in and one out.

    Args:
        name: Its name.
        url: Where it is.
        description: What it does.
        takes: The JSON Schema of what it is given.
        gives: The JSON Schema of what it returns.
        timeout_s: Seconds a call may take.
    """

    name: str
    url: str
    description: str = ""
    takes: Mapping[str, Any] = field(default_factory=dict)
    gives: Mapping[str, Any] = field(default_factory=dict)
    timeout_s: float = 60.0

    def __call__(self, argument: Any = None) -> Any:
        """Calls it; no argument is an empty object.

        Raises:
            ToolError: It failed, or refused what it was given.
            TypeError: The argument is no JSON.
        """
        body = json.dumps({} if argument is None else argument, allow_nan=False).encode()
        return asked(f"{self.url}/{quote(self.name)}", body=body, timeout_s=self.timeout_s + GRACE_S)


class Tools(Mapping[str, Tool]):
    """The tools of one call, by name.

    Args:
        tools: All of them.
    """

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools = {tool.name: tool for tool in tools}

    def __getitem__(self, name: str) -> Tool:
        if name not in self._tools:
            raise KeyError(f"there is no tool {name!r}; there are {', '.join(self._tools) or 'none'}")
        return self._tools[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)


class Cancel:
    """Whether the trainer wants this call to end, and how long it may still take before it is stopped.

    Args:
        url: Where the trainer is asked.
        left_s: Seconds that the call may take from now on; ``None`` for no bound.
    """

    def __init__(self, url: str, *, left_s: float | None) -> None:
        self._url = url
        self._end = None if left_s is None else time.monotonic() + left_s
        self._set = False
        self._asked = float("-inf")
        self._lock = threading.Lock()

    @property
    def left_s(self) -> float | None:
        """Seconds until the call is stopped; ``None`` for no bound."""
        return None if self._end is None else max(0.0, self._end - time.monotonic())

    def is_set(self) -> bool:
        """Whether to end; the trainer is asked now and then, however often this is called."""
        with self._lock:
            if not self._set and time.monotonic() - self._asked >= ASK_AGAIN_S:
                self._set = asked(f"{self._url}/{CANCELLED}", timeout_s=GRACE_S) is True
                self._asked = time.monotonic()
            return self._set

    def wait(self, seconds: float) -> bool:
        """Waits that long, or until the call is to end; whether it is."""
        end = time.monotonic() + seconds
        while not self.is_set() and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, ASK_AGAIN_S))
        return self._set

    def raise_if_set(self) -> None:
        """Ends the call where the trainer wants that.

        Raises:
            Cancelled: It does.
        """
        if self.is_set():
            raise Cancelled("the trainer wants this call to end")


def asked(url: str, *, body: bytes | None = None, timeout_s: float) -> Any:
    """What the trainer answers.

    Raises:
        ToolError: It says that it failed, or gives no answer that can be read.
    """
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=timeout_s)
    try:
        headers = {} if body is None else {"Content-Type": "application/json"}
        connection.request("GET" if body is None else "POST", place.path, body=body, headers=headers)
        said = json.loads(connection.getresponse().read(MOST_ANSWER))
    except (OSError, http.client.HTTPException, ValueError, RecursionError) as error:
        raise ToolError("endpoint", f"the trainer gave no answer: {type(error).__name__}: {error}") from None
    finally:
        connection.close()
    match said:
        case {"returned": value}:
            return value
        case {"failed": str() as cause, "error": str() as words}:
            raise ToolError(cause, words)
    raise ToolError("endpoint", "the trainer's answer is neither a value nor a failure")
