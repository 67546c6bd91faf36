"""A launcher in the image: what it proves before anything runs, what it is shown, and how it ends."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import hermit
from hermit.domain.command import Command
from hermit.domain.limits import Limits
from hermit.domain.network import Forward
from hermit.domain.sandbox import Sandbox
from hermit.environ import snapshot
from hermit.errors import Interrupted, SandboxError
from hermit.oci import container as containers
from hermit.oci import engine as engines
from hermit.oci import strays
from hermit.oci.launcher import Launcher
from hermit.oci.life import Shape
from hermit.proc import capture
from hermit.sandbox import Place
from hermit.streams import Streams

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [pytest.mark.docker, pytest.mark.image]

WITHIN_S = 60.0
LIMITS = Limits(wall_s=WITHIN_S)


def shape(exchange: Path, **changes: Any) -> Shape:
    exchange.mkdir(exist_ok=True)
    image = engines.image_id(engines.find(snapshot()), "hermit")
    assert image is not None
    return Shape(**{"image": image, "name": "hermit", "exchange": str(exchange), "memory_mb": 1024, **changes})


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, engine: engines.Engine) -> Iterator[Launcher]:
    """One launcher for the tests that leave it as it was."""
    exchange = tmp_path_factory.mktemp("exchange")
    (exchange / "file").write_text("seen")
    with Launcher(engine, shape(exchange)) as launcher:
        yield launcher


@pytest.fixture
def launched(engine: engines.Engine, tmp_path: Path) -> Iterator[Callable[..., Launcher]]:
    """Starts launchers of the test's own."""
    with contextlib.ExitStack() as ends:
        yield lambda **changes: ends.enter_context(Launcher(engine, shape(tmp_path / "exchange", **changes)))


def run(launcher: Launcher, *argv: str, records: list[Any] | None = None, **more: Any) -> Any:
    keep = ([] if records is None else records).append
    sandbox = more.pop("sandbox", Sandbox(limits=LIMITS))
    variables = more.pop("variables", {})
    return Place(launcher).run(sandbox, Command(argv=argv), keep=keep, variables=variables, **more)


def names(engine: engines.Engine) -> list[str]:
    listed = capture([engine.program, "ps", "--all", "--format", "{{.Names}}"], timeout_s=WITHIN_S)
    return [name for name in listed.stdout.decode().split() if name.startswith("hermit-launcher-")]


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < deadline, f"never came: {what}"
        time.sleep(0.05)


def test_a_record_says_in_which_image_on_which_platform_and_by_which_engine_it_was_made(shared, engine):
    records: list[Any] = []
    assert run(shared, "true", records=records).code == 0
    (record,) = records
    assert (record.backend, record.confined, record.empty, record.ended) == ("bubblewrap", True, True, "exit 0")
    for word in ("hermit sha256:", engine.platform, engine.server):
        assert word in record.image
    assert all(check.passed for check in record.checks)
    assert len(record.checks) > 20


def test_what_starts_sandboxes_is_an_unprivileged_user_without_capabilities_or_network(shared, engine):
    (name,) = [name for name in names(engine) if name == shared.name]
    probe = "import os; print(os.getuid(), os.listdir('/sys/class/net'), open('/proc/1/status').read())"
    said = capture([engine.program, "exec", name, "/opt/hermit/bin/python", "-c", probe], timeout_s=WITHIN_S)
    words = said.stdout.decode()
    assert words.startswith(f"{shared.owner[0]} ['lo']")
    for line in ("CapPrm:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"):
        assert line in words
    refused = capture([engine.program, "exec", name, "touch", "/usr/new"], timeout_s=WITHIN_S)
    assert refused.code != 0
    inspected = capture([engine.program, "container", "inspect", name], timeout_s=WITHIN_S)
    host = json.loads(inspected.stdout)[0]["HostConfig"]
    assert (host["Memory"], host["PidsLimit"], host["AutoRemove"], host["Init"]) == (1024 << 20, 4096, True, True)
    assert host["CpusetCpus"] == ",".join(map(str, sorted(os.sched_getaffinity(0))))


def test_a_labelled_container_names_its_owner_and_its_machine(shared, engine):
    inspected = capture([engine.program, "container", "inspect", shared.name], timeout_s=WITHIN_S)
    labels = json.loads(inspected.stdout)[0]["Config"]["Labels"]
    assert dict(containers.labels("")).items() <= labels.items()
    assert labels[containers.OWNER_LABEL] == str(os.getpid())
    assert not strays.dead(labels)


def test_only_variables_that_pass_in_leave_this_process(shared, monkeypatch):
    sent: list[bytes] = []
    real = Launcher.run

    def spied(self, sandbox, command, **named):
        life = self._living()
        send = life.send

        def read(descriptors):
            sent.append(os.pread(descriptors[1], 1 << 20, 0))
            send(descriptors)

        monkeypatch.setattr(life, "send", read)
        return real(self, sandbox, command, **named)

    monkeypatch.setattr(Launcher, "run", spied)
    sandbox = Sandbox(env_allow=("MWM_*",), limits=LIMITS)
    seen = run(shared, "env", sandbox=sandbox, variables={"MWM_A": "passes-3fc2", "OTHER_KEY": "planted-9d81"})
    assert b"MWM_A=passes-3fc2" in seen.stdout.kept
    assert b"passes-3fc2" in sent[0]
    assert b"planted-9d81" not in sent[0]


def test_a_service_of_this_machine_is_reached_from_a_container_without_a_network(shared):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def serve() -> None:
            with contextlib.suppress(OSError):  # it is closed at the end
                while True:
                    there, _ = server.accept()
                    with there:
                        there.sendall(there.recv(100).upper())

        threading.Thread(target=serve, daemon=True).start()
        ask = f"import socket; s=socket.create_connection(('127.0.0.1', {port})); s.sendall(b'word'); print(s.recv(9))"
        records: list[Any] = []
        for given in ({"forwards": (Forward(port),)}, {"env": (("MODEL_URL", f"http://127.0.0.1:{port}/v1"),)}):
            sandbox = Sandbox(limits=LIMITS, **given)
            assert run(shared, "python3", "-c", ask, sandbox=sandbox, records=records).stdout.kept == b"b'WORD'\n"
        assert records[0].reaches == (f"{port} -> 127.0.0.1:{port}",)
        assert run(shared, "python3", "-c", ask).code == 1


def test_the_allowlist_proxy_of_this_machine_decides_for_a_sandbox_in_the_image(shared):
    sandbox = Sandbox(limits=LIMITS, allowed_hosts=("allowed.invalid",))
    ask = (
        "import os, socket; host = os.environ['HTTPS_PROXY'].rpartition('/')[2].split(':');"
        "s = socket.create_connection((host[0], int(host[1])));"
        "s.sendall(b'CONNECT other.invalid:443 HTTP/1.1\\r\\nHost: other.invalid:443\\r\\n\\r\\n'); print(s.recv(12))"
    )
    records: list[Any] = []
    said = run(shared, "python3", "-c", ask, sandbox=sandbox, records=records)
    assert said.stdout.kept == b"b'HTTP/1.1 403'\n"
    assert any("other.invalid" in line for line in records[0].decisions)
    assert ("an unlisted host is refused", True) in [(check.name, check.passed) for check in records[0].checks]


def test_streams_and_signals_of_the_caller_reach_the_command(shared, tmp_path):
    from hermit.signals import Caught

    reader, writer = os.pipe()
    ready, out = os.pipe()
    script = "trap 'echo heard; exit 5' USR1; echo up; while :; do sleep 0.05; done"
    found: list[Any] = []
    caught = Caught(reader)
    thread = threading.Thread(
        target=lambda: found.append(run(shared, "sh", "-c", script, streams=Streams(stdout=out, signals=caught)))
    )
    thread.start()
    assert os.read(ready, 10) == b"up\n"
    os.write(writer, bytes([10]))
    thread.join(WITHIN_S)
    assert (found[0].code, os.read(ready, 10)) == (5, b"heard\n")
    for descriptor in (reader, writer, ready, out):
        os.close(descriptor)


def test_what_fails_in_the_image_has_the_name_it_has_here(shared):
    with pytest.raises(SandboxError, match=r"does not exist here") as caught:
        run(shared, "true", sandbox=Sandbox(read=("/no/such/path",)))
    assert caught.value.cause == "missing source"
    assert not caught.value.again


def test_starts_leave_no_descriptor_on_either_side(shared, engine):
    count = ["sh", "-c", 'for p in /proc/[0-9]*; do [ "$(cat $p/comm)" = python ] && ls $p/fd; done | wc -l']
    run(shared, "true")
    here = len(os.listdir("/proc/self/fd"))
    there = capture([engine.program, "exec", shared.name, *count], timeout_s=WITHIN_S).stdout
    for _ in range(5):
        run(shared, "true")
    assert len(os.listdir("/proc/self/fd")) == here
    assert capture([engine.program, "exec", shared.name, *count], timeout_s=WITHIN_S).stdout == there


def test_a_container_that_is_killed_fails_the_starts_under_way_with_its_name_and_the_next_one_gets_a_fresh_one(
    launched, engine
):
    launcher = launched()
    first = launcher.name
    failures: list[SandboxError] = []
    records: list[Any] = []

    def wait_inside() -> None:
        try:
            run(launcher, "sleep", "600", sandbox=Sandbox(limits=Limits(wall_s=600)), records=records)
        except SandboxError as error:
            failures.append(error)

    threads = [threading.Thread(target=wait_inside) for _ in range(2)]
    for thread in threads:
        thread.start()
    asleep = [engine.program, "exec", first, "sh", "-c", "grep -lz ^sleep /proc/[0-9]*/cmdline | wc -l"]
    until(lambda: capture(asleep, timeout_s=WITHIN_S).stdout.strip() == b"2", "two commands that wait")
    capture([engine.program, "kill", first], timeout_s=WITHIN_S)
    for thread in threads:
        thread.join(WITHIN_S)
    assert [(error.cause, error.again) for error in failures] == [("container killed", True)] * 2
    assert [record.ended.splitlines()[0] for record in records] == [
        "SandboxError: hermit: the container was killed"
    ] * 2
    assert run(launcher, "true").code == 0
    assert launcher.name != first
    until(lambda: first not in names(engine), "the end of the first container")


def test_no_more_than_a_few_fresh_containers_take_the_place_of_lost_ones(launched, engine, monkeypatch):
    launcher = launched()
    monkeypatch.setattr("hermit.oci.launcher.MOST_FRESH", 0)
    launcher._life._ends.control.shutdown(socket.SHUT_RDWR)
    with pytest.raises(SandboxError, match="no other is tried") as caught:
        run(launcher, "true")
    assert (caught.value.cause, caught.value.again) == ("container lost", False)


def test_a_start_that_found_its_container_gone_is_made_in_a_fresh_one(launched):
    launcher = launched()
    first = launcher.name
    launcher._life._ends.control.shutdown(socket.SHUT_RDWR)
    records: list[Any] = []
    assert run(launcher, "true", records=records).code == 0
    assert launcher.name != first
    assert [record.ended for record in records] == ["exit 0"]


def test_the_engines_client_is_not_needed_while_the_container_lives(launched, engine):
    launcher = launched()
    name = launcher.name
    launcher._life._ends.process.kill()
    assert run(launcher, "true").code == 0
    launcher.__exit__()
    until(lambda: name not in names(engine), "the end of the container")


def test_a_container_whose_memory_is_full_is_no_failure_of_the_command(launched):
    launcher = launched(memory_mb=150)
    fill = "x = bytearray(400 << 20)"
    with pytest.raises(SandboxError, match="container was full") as caught:
        run(launcher, "python3", "-c", fill)
    assert (caught.value.cause, caught.value.again) == ("container memory", False)
    own = run(launcher, "python3", "-c", fill, sandbox=Sandbox(limits=Limits(wall_s=WITHIN_S, memory_mb=60)))
    assert own.code == 1


def test_a_start_that_is_given_up_ends_in_the_container_too(shared, engine):
    reader, writer = os.pipe()
    os.close(writer)
    with pytest.raises(Interrupted):
        run(shared, "sleep", "600", cancel=reader)
    os.close(reader)
    found = capture([engine.program, "exec", shared.name, "sh", "-c", "cat /proc/[0-9]*/cmdline"], timeout_s=WITHIN_S)
    assert b"sleep" not in found.stdout


HOST = """
import os, sys
sys.path[:0] = [{root!r}]
from hermit.domain.command import Command
from hermit.domain.sandbox import Sandbox
from hermit.oci import engine
from hermit.oci.launcher import Launcher
from hermit.oci.life import Shape
from hermit.sandbox import Place
found = engine.find(os.environ)
shape = Shape(image=engine.image_id(found, "hermit"), name="hermit", exchange={exchange!r}, memory_mb=512)
with Launcher(found, shape) as launcher:
    print(launcher.name, flush=True)
    Place(launcher).run(Sandbox(), Command(argv=("sleep", "600")), keep=print)
"""


def test_a_container_ends_by_itself_when_its_host_is_killed(engine, tmp_path):
    (tmp_path / "exchange").mkdir()
    program = HOST.format(root=str(Path(hermit.__file__).parents[1]), exchange=str(tmp_path / "exchange"))
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as host:
        assert host.stdout is not None
        name = host.stdout.readline().decode().strip()
        assert name in names(engine)
        host.kill()
    until(lambda: name not in names(engine), "the end of the container")
