"""One whole command in an image, with an engine that is a script."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import hermit
from hermit.errors import PlaceError
from hermit.oci import whole
from hermit.oci.engine import Engine
from hermit.oci.whole import run

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")

# Answers image inspect, does what the test says for run, and writes down each command it is called with.
CLIENT = """#!/bin/sh
echo "$*" >> {log}
case "$1" in
    image) {image} ;;
    run) {run} ;;
    rm) {rm} ;;
    stop) {stop} ;;
esac
"""


class Client:
    def __init__(self, directory: Path) -> None:
        self.path = directory / "docker"
        self.log = directory / "log"
        self.write = directory / "run"
        self.write.mkdir()
        self.does()

    def does(self, *, run="exit 0", image="echo sha256:1", rm="exit 0", stop="exit 0"):
        self.path.write_text(CLIENT.format(log=self.log, run=run, image=image, rm=rm, stop=stop))
        self.path.chmod(0o755)

    @property
    def engine(self):
        return Engine(str(self.path), "28", "28", "linux/amd64")

    @property
    def called(self):
        return self.log.read_text().splitlines()

    def run(self, **changes):
        values = {"image": "hermit", "arguments": ["eval"], "read": [], "write": str(self.write)}
        return run(self.engine, **{**values, **changes})


@pytest.fixture
def client(tmp_path):
    return Client(tmp_path)


def test_the_code_of_the_command_inside_is_the_code_outside(client):
    client.does(run="exit 3")
    assert client.run() == 3


def test_every_path_is_shown_at_its_own_place_and_only_the_run_directory_is_writable(client, tmp_path):
    (tmp_path / "data").mkdir()
    client.run(
        read=[str(tmp_path / "data"), str(tmp_path / "data"), str(client.write)], arguments=["eval", "--config", "x"]
    )
    argv = client.called[1].split()
    mounts = [argv[at + 1] for at, part in enumerate(argv) if part == "--mount"]
    assert sorted(mounts) == [
        f"type=bind,source={tmp_path}/data,target={tmp_path}/data,readonly",
        f"type=bind,source={tmp_path}/run,target={tmp_path}/run",
    ]
    assert argv[-4:] == ["hermit", "eval", "--config", "x"]
    assert f"hermit.run={client.write}" in argv


class Screen(io.StringIO):
    def __init__(self, *, terminal):
        super().__init__()
        self.terminal = terminal

    def isatty(self):
        return self.terminal


@pytest.mark.parametrize(
    ("stdin", "stdout", "options"),
    [
        (False, False, []),
        (True, False, []),
        (False, True, ["--tty"]),
        (True, True, ["--interactive", "--tty"]),
    ],
)
def test_the_container_has_a_terminal_only_where_the_output_is_one(client, monkeypatch, stdin, stdout, options):
    monkeypatch.setattr(whole.sys, "stdin", Screen(terminal=stdin))
    monkeypatch.setattr(whole.sys, "stdout", Screen(terminal=stdout))
    client.run()
    assert [part for part in client.called[1].split() if part in ("--interactive", "--tty")] == options


def test_the_container_is_removed_by_its_name_at_the_end(client):
    client.run()
    argv = client.called[1].split()
    name = argv[argv.index("--name") + 1]
    assert client.called[2] == f"rm --force --volumes {name}"


@pytest.mark.parametrize("words", ["Error: No such container: x", "removal of container x is already in progress"])
def test_a_container_that_is_gone_already_is_no_failure(client, words):
    client.does(rm=f"echo '{words}' >&2; exit 1")
    assert client.run() == 0


def test_a_container_that_stays_is_named_with_the_command_that_removes_it(client):
    client.does(rm="echo 'device busy' >&2; exit 1")
    with pytest.raises(PlaceError, match=r"could not be removed: device busy") as caught:
        client.run()
    assert "rm --force hermit-run-" in caught.value.cure


def test_an_image_that_does_not_exist_starts_nothing(client):
    client.does(image="echo 'No such image: hermit' >&2; exit 1")
    with pytest.raises(PlaceError) as caught:
        client.run()
    assert caught.value.cure == "make image"
    assert len(client.called) == 1


def test_a_path_that_does_not_exist_starts_nothing(client, tmp_path):
    with pytest.raises(PlaceError, match="nowhere does not exist"):
        client.run(read=[str(tmp_path / "nowhere")])
    assert len(client.called) == 1


@pytest.mark.parametrize("path", ["/", "/usr", "/etc", "/proc", "/proc/self", "/dev/shm", "/sys/kernel"])
def test_a_path_that_would_cover_a_part_of_the_image_starts_nothing(client, path):
    with pytest.raises((PlaceError, ValueError), match=r"cover a part of the image|must not be the root"):
        client.run(read=[path])
    assert len(client.called) == 1


def test_a_refusal_of_the_engine_is_a_place_error(client):
    client.does(run="exit 125")
    with pytest.raises(PlaceError, match="refused to start"):
        client.run()
    assert client.called[-1].startswith("rm --force")


INTERRUPTED = """
import sys
sys.path[:0] = [{root!r}]
from hermit.oci.engine import Engine
from hermit.oci.whole import run
raise SystemExit(run(Engine({client!r}, "1", "1", "x"), image="hermit", arguments=[], read=[], write={write!r}))
"""


def test_an_interruption_given_twice_still_removes_the_container(client, tmp_path):
    # The client dies of the second one, as docker does when it is pressed, and removing takes a while.
    client.does(
        run=f"trap 'echo >> {tmp_path}/ints; [ $(wc -l < {tmp_path}/ints) = 2 ] && exit 130' INT; touch {tmp_path}/up; "
        "while :; do sleep 0.02; done",
        rm=f"touch {tmp_path}/removing; sleep 0.5; touch {tmp_path}/removed",
    )
    root = str(Path(hermit.__file__).parents[1])
    program = INTERRUPTED.format(root=root, client=str(client.path), write=str(client.write))
    child = subprocess.Popen([sys.executable, "-c", program], start_new_session=True, stderr=subprocess.PIPE)
    with child:
        wait_for(tmp_path / "up")
        for count in (1, 2):
            os.killpg(child.pid, signal.SIGINT)
            wait_until(lambda count=count: lines(tmp_path / "ints") >= count)
        wait_for(tmp_path / "removing")
        os.killpg(child.pid, signal.SIGINT)
        child.wait(timeout=20)
    assert (tmp_path / "removed").exists()
    assert child.returncode == 130


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_request_to_end_stops_the_container_and_then_removes_it(client, tmp_path, number):
    client.does(
        run=f"touch {tmp_path}/up; until [ -e {tmp_path}/stopped ]; do sleep 0.02; done; exit 143",
        stop=f"touch {tmp_path}/stopped",
    )
    root = str(Path(hermit.__file__).parents[1])
    program = INTERRUPTED.format(root=root, client=str(client.path), write=str(client.write))
    with subprocess.Popen([sys.executable, "-c", program]) as child:
        wait_for(tmp_path / "up")
        child.send_signal(number)
        assert child.wait(timeout=20) == 143
    assert [command.split()[0] for command in client.called] == ["image", "run", "stop", "rm"]


def lines(path):
    return len(path.read_text().splitlines()) if path.exists() else 0


def wait_for(path):
    wait_until(path.exists)


def wait_until(condition):
    for _ in range(1000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it never happened")


@as_root
def test_the_run_directory_is_lent_to_the_user_inside_and_comes_back(client):
    (client.write / "before").write_text("")
    client.does(
        run=f"stat -c %u:%g {client.write} {client.write}/before > {client.write}/seen; chown 1000 {client.write}/seen; exit 1"
    )
    assert client.run() == 1
    assert (client.write / "seen").read_text().split() == ["1000:1000", "1000:1000"]
    assert {path.stat().st_uid for path in (client.write, client.write / "before", client.write / "seen")} == {0}


@as_root
def test_the_run_directory_comes_back_after_a_failure_too(client):
    client.does(run="exit 125", rm="echo broken >&2; exit 1")
    with pytest.raises(PlaceError):
        client.run()
    assert client.write.stat().st_uid == 0
