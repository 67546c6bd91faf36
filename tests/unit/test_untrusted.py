"""How the host looks at what somebody else made: no link, no wait, no size believed, any name."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import socket
from typing import TYPE_CHECKING, Any

import pytest

from hermit import untrusted
from hermit.untrusted import Kind, Refused

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WAYS = ("openat2", "step by step")


@pytest.fixture(params=WAYS)
def way(request: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to stay below a directory, with the same outcome."""
    if request.param == "step by step":
        monkeypatch.setattr(untrusted, "_openat2", lambda: None)
    return str(request.param)


@pytest.fixture
def root(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "d" / "e").mkdir(parents=True)
    (tmp_path / "d" / "e" / "answer").write_text("42")
    with untrusted.directory(str(tmp_path)) as descriptor:
        yield descriptor


@contextlib.contextmanager
def given_up_after(seconds: int) -> Iterator[None]:
    """Lets a test that waits for ever fail instead."""

    def give_up(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def reason(path: str, root: int) -> str:
    """Why it cannot be read."""
    before = os.listdir("/proc/self/fd")
    with pytest.raises(Refused) as caught:
        untrusted.read(path, at=root, most=100)
    assert len(os.listdir("/proc/self/fd")) == len(before)
    assert caught.value.path == path
    return caught.value.reason


def test_a_file_some_directories_below_is_read(root: int, way: str) -> None:
    assert untrusted.read("d/e/answer", at=root, most=100) == untrusted.Content(b"42", cut=False)


@pytest.mark.parametrize(
    "path", ["../x", "d/../d/e/answer", "..", ".", "", "/etc/passwd", "d//e/answer", "d/e/answer/"]
)
def test_a_path_that_could_lead_out_is_refused_whatever_is_there(root: int, way: str, path: str) -> None:
    assert reason(path, root) == "leaves"


def test_a_link_is_never_followed_wherever_it_stands(root: int, way: str, tmp_path: Path) -> None:
    (tmp_path / "etc").symlink_to("/etc")
    (tmp_path / "d" / "in").symlink_to("e")
    (tmp_path / "last").symlink_to("d/e/answer")
    (tmp_path / "zero").symlink_to("/dev/zero")
    (tmp_path / "magic").symlink_to("/proc/self/root")
    for path in ("etc/passwd", "d/in/answer", "last", "zero", "magic/etc/passwd"):
        assert reason(path, root) == "link"


def test_a_fifo_a_socket_and_a_device_are_named_and_nobody_waits_for_them(root: int, way: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "d" / "fifo")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "d" / "socket"))
        with given_up_after(30):
            assert [reason(f"d/{kind}", root) for kind in ("fifo", "socket")] == ["FIFO", "socket"]
    if os.geteuid() == 0:
        os.mknod(tmp_path / "d" / "zero", 0o020666, os.makedev(1, 5))
        assert reason("d/zero", root) == "device"


def test_what_is_missing_or_a_directory_is_named(root: int, way: str) -> None:
    assert reason("d/absent", root) == "missing"
    assert reason("absent/answer", root) == "missing"
    assert reason("d/e/answer/below", root) == "missing"
    assert reason("n" * 256, root) == "missing"
    assert reason("d/e", root) == "directory"


def test_no_more_is_read_than_was_asked_for_whatever_the_size(root: int, tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(100 << 30)
    assert untrusted.read("sparse", at=root, most=1000) == untrusted.Content(bytes(1000), cut=True)
    assert untrusted.read("d/e/answer", at=root, most=2) == untrusted.Content(b"42", cut=False)
    assert untrusted.read("d/e/answer", at=root, most=1) == untrusted.Content(b"4", cut=True)


def test_a_file_that_grows_while_it_is_read_comes_to_its_end(
    root: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads, path = os.read, tmp_path / "log"
    path.write_bytes(b"x")

    def growing(descriptor: int, count: int) -> bytes:
        with path.open("ab") as file:
            file.write(b"y" * 1000)
        return reads(descriptor, count)

    monkeypatch.setattr(os, "read", growing)
    content = untrusted.read("log", at=root, most=5000)
    assert (len(content.data), content.cut) == (5000, True)


@pytest.mark.parametrize("name", [b"a\nb", b"\xff\xfe", b"n" * 255, b"-rf", b"\x1b[31m"])
def test_any_name_is_listed_read_and_can_be_shown(root: int, tmp_path: Path, name: bytes) -> None:
    with open(os.path.join(os.fsencode(tmp_path), name), "wb") as file:
        file.write(b"\xff\0odd")
    listed = dict(untrusted.entries(root, most=10))
    assert listed[os.fsdecode(name)] is Kind.FILE
    content = untrusted.read(os.fsdecode(name), at=root, most=100)
    assert content.data == b"\xff\0odd"
    assert content.text == "\\xff\0odd"
    untrusted.shown(os.fsdecode(name)).encode("utf-8")


def test_a_name_is_one_part_of_a_path_and_nothing_else(root: int) -> None:
    for name in ("d/e", "..", ".", "", "/etc"):
        for look in (untrusted.open_file, untrusted.open_directory, untrusted.status, untrusted.link_text):
            with pytest.raises(Refused, match="leaves"):
                look(name, at=root)


def test_a_directory_to_start_from_is_no_link(tmp_path: Path) -> None:
    (tmp_path / "named").symlink_to("/etc")
    with pytest.raises(Refused, match="link"), untrusted.directory(str(tmp_path / "named")):
        pass


def test_more_entries_than_asked_for_are_not_listed(root: int, tmp_path: Path) -> None:
    for number in range(10):
        (tmp_path / str(number)).touch()
    with pytest.raises(untrusted.TooMany):
        untrusted.entries(root, most=10)
    assert len(untrusted.entries(root, most=11)) == 11
    assert len(untrusted.some_entries(root, most=3)) == 3


def test_the_text_of_a_link_is_read_and_that_of_nothing_else(root: int, tmp_path: Path) -> None:
    (tmp_path / "l").symlink_to("/nowhere")
    assert untrusted.link_text("l", at=root) == "/nowhere"
    with pytest.raises(Refused, match="directory"):
        untrusted.link_text("d", at=root)


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EPERM, errno.EAGAIN])
def test_a_kernel_or_a_filter_without_openat2_makes_no_difference(
    root: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refused(path: bytes, flags: int, at: int) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(untrusted, "_openat2", lambda: refused)
    (tmp_path / "etc").symlink_to("/etc")
    assert untrusted.read("d/e/answer", at=root, most=9).data == b"42"
    assert reason("etc/passwd", root) == "link"


def test_openat2_itself_is_asked_here_where_the_kernel_has_it(root: int, monkeypatch: pytest.MonkeyPatch) -> None:
    call = untrusted._openat2()
    assert call is not None
    try:
        os.close(call(b"d/e/answer", untrusted.READ, root))
    except OSError as error:
        pytest.skip(f"not on this kernel: {error.strerror}")
    monkeypatch.setattr(untrusted, "_step_by_step", lambda *_: pytest.fail("it was not needed"))
    assert untrusted.read("d/e/answer", at=root, most=9).data == b"42"
