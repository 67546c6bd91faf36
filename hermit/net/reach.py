"""What an isolated network reaches: forwards to services of the host, and a proxy that knows a list of hosts.

Everything is served by one bridge of this start's own, from listening sockets that the relay makes inside and hands
out. A start that reaches nothing pays nothing: the bridge's libraries are imported when they are needed.
"""

from __future__ import annotations

import contextlib
import re
import socket
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hermit.domain.network import FIRST_PORT, Forward, Network
from hermit.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hermit.domain.sandbox import Sandbox
    from hermit.net.bridge import Bridge, Target

# A URL of this machine in a variable: a model server, a meter. One in an argument opens nothing: a prompt may hold it.
# A scheme is short: without a bound, each word of a long value is read to the value's end.
LOCAL_URL = re.compile(
    r"\b[a-z][a-z0-9+.-]{0,31}://(?:[^/\s@]*@)?(?:127\.0\.0\.1|localhost)(?::(\d{1,5}))?(?![\w.-])", re.IGNORECASE
)
PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
MOST_DECISIONS = 100_000
FIRST_PROXY_PORT = 3128


@dataclass(frozen=True)
class Reach:
    """What one start reaches.

    Args:
        forwards: Ports that lead to services of the host.
        hosts: The patterns of the hosts that the proxy knows.
        proxy: The proxy's port; 0 where there is none.
        warnings: Local URLs whose port cannot be had inside.
    """

    forwards: tuple[Forward, ...] = ()
    hosts: tuple[str, ...] = ()
    proxy: int = 0
    warnings: tuple[str, ...] = ()

    @property
    def ports(self) -> list[int]:
        """Every port that is served inside, the proxy's last."""
        return [forward.port for forward in self.forwards] + ([self.proxy] if self.proxy else [])

    @property
    def lines(self) -> tuple[str, ...]:
        """The same for a record."""
        return (*map(str, self.forwards), *self.hosts)

    @property
    def variables(self) -> dict[str, str]:
        """What tells programs about the proxy, in both cases of the letters."""
        if not self.proxy:
            return {}
        named = dict.fromkeys(PROXY_VARIABLES, f"http://127.0.0.1:{self.proxy}")
        named["NO_PROXY"] = "127.0.0.1,localhost"
        return {**named, **{name.lower(): value for name, value in named.items()}}


def of(sandbox: Sandbox, env: Mapping[str, str]) -> Reach:
    """What a sandbox reaches with these variables: what it names, and every local URL among their values."""
    if sandbox.network is Network.OPEN:
        return Reach()
    forwards = {forward.port: forward for forward in sandbox.forwards}
    warnings = []
    for name in sorted(env):
        for found in LOCAL_URL.finditer(env[name]):
            port = int(found.group(1)) if found.group(1) else 0
            if port in forwards:
                continue
            try:
                forwards[port] = Forward(port)
            except ValueError:
                warnings.append(f"network: the URL in {name} has no port from {FIRST_PORT} on, and leads nowhere")
    proxy = 0
    if sandbox.allowed_hosts:
        proxy = next(
            port for port in range(FIRST_PROXY_PORT, FIRST_PROXY_PORT + len(forwards) + 1) if port not in forwards
        )
    ordered = tuple(forwards[port] for port in sorted(forwards))
    return Reach(ordered, sandbox.allowed_hosts, proxy, tuple(warnings))


@dataclass
class Server:
    """Serves what one start reaches, from the moment its relay hands the listening sockets out.

    Args:
        reach: What is reached.
        targets: Where each port leads, in the order of ``reach.ports``.
        bridge: What carries the bytes.
        decisions: What the proxy has decided so far.
    """

    reach: Reach
    targets: list[Target]
    bridge: Bridge
    decisions: list[str] = field(default_factory=list)
    _served: int = 0

    def take(self, channel: socket.socket) -> bool:
        """Takes the sockets that a message of the relay holds, serves them, and says so; whether more may come.

        Raises:
            SandboxError: More came than was asked for.
        """
        data, descriptors, _, _ = socket.recv_fds(channel, 1, 256)
        listeners = [socket.socket(fileno=descriptor) for descriptor in descriptors]
        if not data and not listeners:
            return False
        if self._served + len(listeners) > len(self.targets):
            for listener in listeners:
                listener.close()
            raise SandboxError("the relay handed out more sockets than it was asked for", cause="relay")
        for listener in listeners:
            self.bridge.serve(listener, self.targets[self._served])
            self._served += 1
        channel.send(b"A")
        return True

    def ended(self) -> tuple[str, ...]:
        """Ends every connection, and what the proxy has decided: a decision is told when its connection is over."""
        self.bridge.close()
        return tuple(self.decisions)


@contextlib.contextmanager
def served(reach: Reach, environ: Mapping[str, str]) -> Iterator[Server | None]:
    """A server for what is reached, ``None`` where nothing is; all its connections end with it.

    Raises:
        SandboxError: A host pattern is none, or the host's own proxy cannot be used.
    """
    if not reach.ports:
        yield None
        return
    from hermit.net.bridge import Bridge, Tcp, Unix  # noqa: PLC0415 - asyncio costs more than a closed sandbox
    from hermit.net.hosts import Rules  # noqa: PLC0415
    from hermit.net.proxy import Proxy  # noqa: PLC0415
    from hermit.net.upstream import upstream_from_environ  # noqa: PLC0415

    targets: list[Target] = [
        Unix(forward.socket) if forward.socket else Tcp("127.0.0.1", forward.port) for forward in reach.forwards
    ]
    with Bridge() as bridge:
        server = Server(reach, targets, bridge)
        if reach.proxy:
            try:
                rules, upstream = Rules.parse(list(reach.hosts)), upstream_from_environ(environ)
            except ValueError as error:
                raise SandboxError(str(error), where="the proxy of the sandbox", cause="declaration") from None
            decided = server.decisions
            targets.append(
                Proxy(rules=rules, log=lambda decision: _keep(decided, decision.as_json()), upstream=upstream)
            )
        yield server


def _keep(decisions: list[str], line: str) -> None:
    if len(decisions) < MOST_DECISIONS:
        decisions.append(line)
