"""A Chromium without a screen, spoken to over two pipes: it opens a page, says what it shows, and what it asked for.

The protocol is DevTools', a JSON document for each message, with a NUL behind it. The browser reads descriptor 3 and
writes descriptor 4. It keeps its profile in a directory of the test's own, and is gone with all its processes at the end.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATIENCE_S = 120
# Puts the two pipes where the browser looks for them, out of each other's way first, and becomes the browser.
BECOME = """
import fcntl, os, sys
pipes = [fcntl.fcntl(int(number), fcntl.F_DUPFD_CLOEXEC, 10) for number in sys.argv[1:3]]
os.dup2(pipes[0], 3)
os.dup2(pipes[1], 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""
OPTIONS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-default-browser-check"),
    *("--hide-scrollbars", "--window-size=1200,1600", "--remote-debugging-pipe"),
)


@dataclass
class Browser:
    """One browser with one page."""

    reads: int
    writes: int
    number: int = 0
    session: str | None = None
    waiting: bytes = b""
    events: list[dict[str, Any]] = field(default_factory=list)

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Sends a command and returns what the browser answers."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        message |= {"sessionId": self.session} if self.session else {}
        os.write(self.writes, json.dumps(message).encode() + b"\0")
        while True:
            said = self._next()
            if said.get("id") == self.number:
                assert "error" not in said, said
                result: dict[str, Any] = said["result"]
                return result
            self.events.append(said)

    def _next(self) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE_S
        while b"\0" not in self.waiting:
            ready, _, _ = select.select([self.reads], [], [], max(0, deadline - time.monotonic()))
            piece = os.read(self.reads, 1 << 16) if ready else b""
            if not piece:
                pytest.fail("the browser says nothing any more", pytrace=False)
            self.waiting += piece
        message, _, self.waiting = self.waiting.partition(b"\0")
        document: dict[str, Any] = json.loads(message)
        return document

    def open(self, page: Path) -> None:
        """Opens a file and waits until it is whole."""
        self.events.clear()
        self.ask("Page.navigate", url=page.as_uri())
        while not self.seen("Page.loadEventFired"):
            self.events.append(self._next())
        self.run("new Promise(done => requestAnimationFrame(() => setTimeout(done, 300)))")

    def seen(self, method: str) -> list[dict[str, Any]]:
        """What happened since the page was opened."""
        return [event["params"] for event in self.events if event.get("method") == method]

    def run(self, script: str) -> Any:
        """The value of a script of the test's; the page's policy does not concern it."""
        said = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in said, said
        return said["result"].get("value")

    def shows(self, selector: str) -> str:
        """The text of an element as a person sees it."""
        return str(self.run(f"document.querySelector({json.dumps(selector)}).innerText"))

    def picture(self) -> bytes:
        """The page as it looks."""
        return base64.b64decode(self.ask("Page.captureScreenshot")["data"])


@pytest.fixture
def home() -> Iterator[str]:
    """Where a browser keeps what it keeps: a socket too, whose path may have no more than 107 bytes."""
    made = tempfile.mkdtemp(prefix="hermit-browser-", dir="/tmp")
    yield made
    for _ in range(20):  # its last processes may still write
        shutil.rmtree(made, ignore_errors=True)
        if not os.path.exists(made):
            break
        time.sleep(0.1)


@pytest.fixture
def browser(home: str, chromium: str) -> Iterator[Browser]:
    to_browser, writes = os.pipe()
    reads, from_browser = os.pipe()
    argv = [chromium, *OPTIONS, f"--user-data-dir={home}/profile", "about:blank"]
    process = subprocess.Popen(
        [sys.executable, "-c", BECOME, str(to_browser), str(from_browser), *argv],
        pass_fds=(to_browser, from_browser),
        env={**os.environ, "TMPDIR": home, "HOME": home, "XDG_RUNTIME_DIR": home},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        os.close(to_browser)
        os.close(from_browser)
        made = Browser(reads, writes)
        target = made.ask("Target.createTarget", url="about:blank")["targetId"]
        made.session = made.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            made.ask(f"{domain}.enable")
        yield made
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        os.close(reads)
        os.close(writes)


@dataclass
class Server:
    """What hostile words point at: it notes every request, and answers with a script."""

    address: str
    asked: list[str]


@pytest.fixture
def server() -> Iterator[Server]:
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Type", "text/javascript")
            self.end_headers()
            self.wfile.write(b"window.owned = true")

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = Thread(target=listening.serve_forever)
        thread.start()
        yield Server(f"http://127.0.0.1:{listening.server_port}", asked)
        listening.shutdown()
        thread.join()
