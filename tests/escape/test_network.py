"""What gets out of an isolated network, and into it: exactly what was declared."""

from __future__ import annotations

import http.server
import os
import socket
import socketserver
import threading
from typing import TYPE_CHECKING, Any

import pytest

from hermit.domain.command import Command
from hermit.domain.limits import Limits
from hermit.domain.network import Forward, Network
from hermit.domain.sandbox import Sandbox
from hermit.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hermit.domain.record import Record
    from hermit.sandbox import Place

pytestmark = pytest.mark.bwrap

ASK = """
import http.client, os, sys
for port in map(int, sys.argv[1:]):
    try:
        made = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        made.request("GET", "/x")
        print(port, made.getresponse().read().decode())
    except OSError as error:
        print(port, type(error).__name__)
"""
VIA = """
import http.client, os, sys
from urllib.parse import urlsplit
proxy = urlsplit(os.environ["http_proxy"])
for target in sys.argv[1:]:
    made = http.client.HTTPConnection(proxy.hostname, proxy.port, timeout=20)
    verb, url = ("CONNECT", target[4:]) if target.startswith("tls:") else ("GET", target)
    made.request(verb, url, headers={"Host": urlsplit(url).netloc or url})
    answer = made.getresponse()
    print(answer.status, answer.read().decode().split(";")[0].strip())
"""


class Server(http.server.BaseHTTPRequestHandler):
    """Says hello."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_: Any) -> None:
        return


class UnixServer(socketserver.ThreadingUnixStreamServer):
    """The same over a Unix socket."""

    daemon_threads = True

    def get_request(self) -> tuple[Any, Any]:
        connection, _ = self.socket.accept()
        return connection, ("unix", 0)


@pytest.fixture
def port() -> Iterator[int]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.fixture
def started(place: Place) -> Any:
    def start(program: str, *words: object, **sandbox: Any) -> tuple[str, Record]:
        records: list[Record] = []
        command = Command(argv=("python3", "-c", program, *map(str, words)))
        limits = Limits(wall_s=60)
        outcome = place.run(
            Sandbox(role="escape", limits=limits, **sandbox), command, keep=records.append, variables={}
        )
        assert outcome.code == 0, outcome.stderr.kept.decode()
        return outcome.stdout.kept.decode(), records[0]

    return start


def test_a_service_of_the_host_is_reached_through_its_forward_and_not_without(started: Any, port: int) -> None:
    assert started(ASK, port, forwards=(Forward(port),))[0] == f"{port} hello\n"
    assert started(ASK, port)[0] == f"{port} ConnectionRefusedError\n"


def test_only_the_declared_port_is_forwarded(started: Any, port: int) -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        said, record = started(ASK, port, other.server_port, forwards=(Forward(port),))
        other.shutdown()
    assert said == f"{port} hello\n{other.server_port} ConnectionRefusedError\n"
    assert record.reaches == (f"{port} -> 127.0.0.1:{port}",)


def test_a_local_url_in_a_variable_is_reached(started: Any, port: int) -> None:
    assert started(ASK, port, env=(("BASE_URL", f"http://localhost:{port}/v1"),))[0] == f"{port} hello\n"


def test_a_url_in_an_argument_opens_nothing(started: Any, port: int) -> None:
    said, record = started(ASK + f"\n# http://127.0.0.1:{port}/v1", port)
    assert (said, record.reaches) == (f"{port} ConnectionRefusedError\n", ())


def test_a_port_leads_to_a_unix_socket_of_the_host_whose_file_is_not_shown(started: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "model.sock")
    with UnixServer(path, Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        said, _ = started(ASK + f"\nprint(os.path.exists({path!r}))", 8123, forwards=(Forward(8123, path),))
        server.shutdown()
    assert said == "8123 hello\nFalse\n"


def test_two_sandboxes_have_one_service_each_on_the_same_port(started: Any, tmp_path: Path) -> None:
    class Named(Server):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(os.fsencode(self.server.server_address))  # type: ignore[arg-type]

    for name in ("a", "b"):
        path = str(tmp_path / name)
        with UnixServer(path, Named) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            assert started(ASK, 8123, forwards=(Forward(8123, path),))[0] == f"8123 {path}\n"
            server.shutdown()


def test_nobody_inside_can_accept_in_place_of_the_host(started: Any, port: int) -> None:
    steal = "import os; print(sorted(os.readlink(f'/proc/self/fd/{n}').split(':')[0] for n in os.listdir('/proc/self/fd') if int(n) > 2 and os.path.islink(f'/proc/self/fd/{n}')))"
    assert "socket" not in started(steal, forwards=(Forward(port),))[0]


def test_an_allowed_host_is_reached_and_every_other_one_is_refused_by_name(started: Any, port: int) -> None:
    urls = (f"http://127.0.0.1:{port}/x", "http://example.com/", f"http://localhost:{port}/", "tls:example.com:443")
    said, record = started(VIA, *urls, allowed_hosts=(f"127.0.0.1:{port}",))
    lines = said.splitlines()
    assert [line.split()[0] for line in lines] == ["200", "403", "403", "403"]
    assert "environment.allowed_hosts" in said or "example.com is not on the list" in lines[1]
    assert len(record.decisions) == 5, "the check's own request, and these four"
    assert {check.name: check.passed for check in record.checks}["an unlisted host is refused"]


def test_a_program_that_ignores_the_proxy_reaches_nothing(started: Any, port: int) -> None:
    direct = (
        "import socket\nmade = socket.socket(); made.settimeout(5)\n"
        f"print(made.connect_ex(('127.0.0.1', {port})) != 0)\n"
        "try:\n    print(socket.getaddrinfo('example.com', 443) == [])\nexcept OSError:\n    print('no name')\n"
    )
    assert started(direct, allowed_hosts=(f"127.0.0.1:{port}",))[0] == "True\nno name\n"


def test_planted_failure_a_proxy_that_passes_everything_fails_the_start(
    place: Place, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hermit.net import hosts

    anything = hosts.Rule(hosts.HostPattern.parse("hermit-check.invalid"))
    monkeypatch.setattr(hosts.Rules, "allows", lambda *_, **__: anything)
    sandbox = Sandbox(allowed_hosts=(f"127.0.0.1:{port}",), limits=Limits(wall_s=30))
    with pytest.raises(SandboxError, match="an unlisted host is refused"):
        place.run(sandbox, Command(argv=("true",)), keep=lambda _: None, variables={})


def test_a_service_that_has_gone_is_a_closed_connection_and_not_a_hang(started: Any) -> None:
    with socket.socket() as gone:
        gone.bind(("127.0.0.1", 0))
        number = gone.getsockname()[1]
    said, _ = started(ASK, number, forwards=(Forward(number),))
    assert said.split()[1] in ("RemoteDisconnected", "ConnectionResetError", "BadStatusLine")


def test_more_forwards_than_one_message_carries_are_all_served(place: Place) -> None:
    sandbox = Sandbox(forwards=tuple(Forward(port) for port in range(20000, 20300)), limits=Limits(wall_s=30))
    outcome = place.run(sandbox, Command(argv=("true",)), keep=lambda _: None, variables={})
    assert outcome.code == 0


def test_the_hosts_network_has_no_forwards(place: Place, port: int) -> None:
    records: list[Record] = []
    sandbox = Sandbox(network=Network.OPEN, limits=Limits(wall_s=30))
    place.run(sandbox, Command(argv=("true",)), keep=records.append, variables={"A": f"http://127.0.0.1:{port}"})
    assert records[0].reaches == ()


TRY = """
import socket, sys
for family, kind, address in (
    (socket.AF_INET, socket.SOCK_STREAM, "192.0.2.1"),
    (socket.AF_INET, socket.SOCK_DGRAM, "192.0.2.1"),
    (socket.AF_INET6, socket.SOCK_STREAM, "2001:db8::1"),
)[:int(sys.argv[1])]:
    try:
        socket.socket(family, kind).connect((address, 9))
    except OSError as error:
        print(error.strerror)
"""


def test_the_record_says_how_often_a_way_outside_was_tried_past_the_proxy(started: Any, port: int) -> None:
    """A program that ignores the variables of the proxy fails closed, and is told apart from one that needs nothing."""
    for tried in (0, 1, 3):
        said, record = started(TRY, tried, allowed_hosts=(f"127.0.0.1:{port}",))
        assert said == "Network is unreachable\n" * tried
        assert [warning.partition(" ")[0] for warning in record.warnings if "found no route" in warning] == (
            [str(tried)] if tried else []
        )
    assert not any("found no route" in warning for warning in started(TRY, 0, network=Network.OPEN)[1].warnings)
