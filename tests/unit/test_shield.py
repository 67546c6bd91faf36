"""What a process that gave its files up can still open, and that nothing takes it back."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from hermit import shield

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.skipif(not shield.version(), reason="this kernel has no Landlock")


def in_a_fork(action: Callable[[], Any]) -> Any:
    """What ``action`` says in a fork of this process; what it raises, in words."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            said = action()
        except BaseException as error:  # noqa: BLE001 - this copy of pytest must not go on
            said = f"{type(error).__name__}: {error}"
        os.write(write, json.dumps(said).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as stream:
        text = stream.read()
    os.waitpid(pid, 0)
    return json.loads(text)


def opens(path: Path | str, mode: str = "r") -> bool:
    try:
        with open(path, mode):
            return True
    except PermissionError:
        return False


@pytest.fixture
def places(tmp_path: Path) -> tuple[str, str]:
    """A work directory, and a secret beside it."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "mine").write_text("mine")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "a").write_text("secret")
    return str(tmp_path / "work"), str(tmp_path / "tests")


def test_nothing_is_left_but_the_system_the_interpreter_and_the_work(places: tuple[str, str]) -> None:
    work, secret = places

    def looked() -> list[bool]:
        held = shield.give_up_files(work=work, secret=secret)
        __import__("colorsys")
        return [
            held,
            opens(f"{work}/mine"),
            opens(f"{work}/new", "w"),
            opens(os.__file__),
            opens(f"{secret}/a"),
            opens(f"{secret}/new", "w"),
            opens("/etc/passwd"),
            opens("/proc/self/maps"),
        ]

    assert in_a_fork(looked) == [True, True, True, True, False, False, False, False]
    assert sorted(os.listdir(secret)) == ["a"]


def test_a_link_in_the_work_and_a_second_way_there_lead_to_no_secret(places: tuple[str, str]) -> None:
    work, secret = places
    os.symlink(f"{secret}/a", f"{work}/link")

    def looked() -> list[bool]:
        shield.give_up_files(work=work, secret=secret)
        try:
            os.link(f"{secret}/a", f"{work}/second")
        except OSError:
            return [opens(f"{work}/link"), os.path.exists(f"{work}/second")]
        return [True, True]

    assert in_a_fork(looked) == [False, False]


def test_a_program_that_it_starts_opens_no_more_and_nothing_takes_it_back(places: tuple[str, str]) -> None:
    work, secret = places

    def looked() -> list[Any]:
        shield.give_up_files(work=work, secret=secret)
        again = shield.give_up_files(work=secret, secret=work)
        said = subprocess.run(
            [sys.executable, "-c", f"open({secret + '/a'!r})"], check=False, capture_output=True, stdin=0
        )
        return [again, said.returncode, b"PermissionError" in said.stderr]

    assert in_a_fork(looked) == [True, 1, True]


@pytest.mark.skipif(shield.version() < 6, reason="this kernel's Landlock has no say over signals")
def test_it_connects_to_nothing_and_signals_nobody_else(places: tuple[str, str]) -> None:
    work, secret = places
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def tried() -> list[str]:
            shield.give_up_files(work=work, secret=secret)
            said = []
            for move in (lambda: socket.create_connection(("127.0.0.1", port), 5), lambda: os.kill(os.getppid(), 0)):
                try:
                    move()
                    said.append("done")
                except PermissionError:
                    said.append("refused")
            return said

        assert in_a_fork(tried) == ["refused", "refused"]


def test_a_secret_that_can_be_opened_all_the_same_is_told(places: tuple[str, str]) -> None:
    work, _ = places
    said = in_a_fork(lambda: shield.give_up_files(work=work, secret=f"{work}/mine"))
    assert said.startswith("OSError: ")
    assert "can be opened all the same" in said


def test_a_directory_of_the_interpreter_that_holds_a_secret_is_not_shown(
    places: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    work, secret = places
    monkeypatch.setattr(sys, "prefix", os.path.dirname(secret))

    def looked() -> list[bool]:
        held = shield.give_up_files(work=work, secret=secret)
        __import__("colorsys")
        return [held, opens(f"{secret}/a")]

    assert in_a_fork(looked) == [True, False]


def test_without_landlock_nothing_changes_and_it_says_so(
    places: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    work, secret = places
    monkeypatch.setattr(shield, "version", lambda: 0)
    assert in_a_fork(lambda: [shield.give_up_files(work=work, secret=secret), opens(f"{secret}/a")]) == [False, True]
