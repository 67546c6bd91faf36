"""Why a container ended: told by what its engine says of it, and by the code it ended with."""

from __future__ import annotations

import os
import socket
import subprocess
from typing import TYPE_CHECKING

import pytest

from hermit.errors import PlaceError
from hermit.oci.engine import Engine
from hermit.oci.launcher import Launcher
from hermit.oci.life import Life, Shape, _Ends

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CLIENT = """#!/bin/sh
case "$1" in
    events) {events} ;;
    *) exit 0 ;;
esac
"""


@pytest.fixture
def ended(tmp_path, monkeypatch) -> Iterator[Callable[..., Life]]:
    """Makes the life of a container whose client has ended; no container is started."""
    opened = []

    def make(*, code: int, events: str = "exit 0", words: bytes = b"") -> Life:
        client = tmp_path / "docker"
        client.write_text(CLIENT.format(events=events))
        client.chmod(0o755)
        complaints = os.memfd_create("complaints")
        os.write(complaints, words)
        process = subprocess.Popen(["/bin/sh", "-c", f"exit {code}"])
        near, far = socket.socketpair()
        opened.extend((near, far))
        monkeypatch.setattr(Life, "_begun", lambda _: _Ends(near, process, complaints))
        shape = Shape(image="sha256:1", name="hermit", exchange=str(tmp_path), memory_mb=77)
        return Life(Engine(str(client), "1", "1", "linux/amd64"), shape)

    yield make
    for each in opened:
        each.close()


@pytest.mark.parametrize(
    ("ending", "cause", "again", "told"),
    [
        ((137, "echo 'oom '; echo 'die 137'", b""), "container memory", False, "77 MiB"),
        ((137, "echo 'kill '; echo 'die 137'", b""), "container killed", True, "was killed"),
        ((137, "exit 0", b""), "container killed", True, "was killed"),
        ((1, "echo 'die 1'", b"a last line\n"), "container gone", True, "by itself with 1: a last line"),
        ((125, "exit 0", b"error waiting for container: unexpected EOF\n"), "engine", True, "unexpected EOF"),
        ((137, "exit 1", b""), "engine", True, "does not answer"),
    ],
)
def test_a_container_that_ended_is_told_by_the_cause_of_it(ended, ending, cause, again, told):
    code, events, words = ending
    life = ended(code=code, events=events, words=words)
    error = life.obituary()
    life.close()
    assert (error.cause, error.again) == (cause, again)
    assert told in error.what
    assert error.cure


def test_the_engine_is_asked_once_however_many_starts_were_lost(ended, tmp_path):
    life = ended(code=137, events=f"echo asked >> {tmp_path}/asked; echo 'kill '")
    errors = [life.obituary() for _ in range(3)]
    life.close()
    assert len({id(error) for error in errors}) == 3
    assert (tmp_path / "asked").read_text() == "asked\n"


@pytest.mark.parametrize(
    ("answer", "again"),
    [
        ("echo sha256:1", True),
        ("echo 'Error: No such image: sha256:1' >&2; exit 1", False),
        ("echo 'Cannot connect to the Docker daemon' >&2; exit 1", True),
    ],
    ids=["it is here", "it is gone", "the engine is away"],
)
def test_a_fresh_container_is_asked_for_again_unless_its_image_is_gone(tmp_path, answer, again):
    client = tmp_path / "docker"
    client.write_text(f"#!/bin/sh\n{answer}\n")
    client.chmod(0o755)
    shape = Shape(image="sha256:1", name="hermit", exchange=str(tmp_path))
    launcher = Launcher(Engine(str(client), "1", "1", "linux/amd64"), shape)
    assert launcher._may_pass(PlaceError("it did not start")) is again
    assert not launcher._may_pass(ValueError("a fault of ours"))
