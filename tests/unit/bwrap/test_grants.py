"""What a sandbox is granted is opened once, held, and handed to a bubblewrap that takes it."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import subprocess
import sys

import pytest

from hermit import proc
from hermit.bwrap import grants
from hermit.bwrap.launch import Bubblewrap
from hermit.bwrap.python import current
from hermit.domain.bind import Bind
from hermit.domain.command import Command
from hermit.domain.sandbox import Sandbox
from hermit.errors import SandboxError

HERE = "the tool sandbox"


def held():
    """How many descriptors this process holds."""
    return len(os.listdir("/proc/self/fd"))


def bind(source):
    return Bind(str(source), "/given")


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "file").write_text("data")
    (tmp_path / "directory").mkdir()
    (tmp_path / "link").symlink_to("file")
    return tmp_path


@pytest.mark.parametrize("name", ["file", "directory", "link", ""])
def test_a_source_is_held_as_the_file_it_leads_to(tree, name):
    with grants.opened([bind(tree / name)], where=HERE) as (grant,):
        status = os.stat(tree / name)
        assert (grant.device, grant.inode) == (status.st_dev, status.st_ino)
        assert os.path.samestat(os.fstat(grant.descriptor), status)


def test_what_is_held_can_be_neither_read_nor_inherited(tree):
    with grants.opened([bind(tree / "file")], where=HERE) as (grant,):
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.read(grant.descriptor, 1)
        assert fcntl.fcntl(grant.descriptor, fcntl.F_GETFD) & fcntl.FD_CLOEXEC


def test_what_was_opened_stays_the_same_file_whatever_has_its_name(tree):
    with grants.opened([bind(tree / "file")], where=HERE) as (grant,):
        os.unlink(tree / "file")
        for turn in range(50):  # a file system may give a number that is free to the next file
            (tree / f"file{turn}").write_text("other")
            assert os.stat(tree / f"file{turn}").st_ino != grant.inode
        assert stat.S_ISREG(os.fstat(grant.descriptor).st_mode)


def test_everything_is_let_go_in_the_end_and_after_a_failure(tree):
    before = held()
    with grants.opened([bind(tree / name) for name in ("file", "link")], where=HERE):
        assert held() == before + 2
    assert held() == before
    with pytest.raises(SandboxError), grants.opened([bind(tree / "file"), bind(tree / "none")], where=HERE):
        pass
    assert held() == before


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("none", "none does not exist here"),
        ("file/below", "file/below does not exist here"),
        ("dangling", "dangling is a link that leads nowhere"),
        ("circle", "circle cannot be looked up: Too many levels of symbolic links"),
    ],
)
def test_a_source_that_is_not_there_is_refused_by_its_name(tree, name, said):
    (tree / "dangling").symlink_to("nowhere")
    (tree / "circle").symlink_to("circle")
    with pytest.raises(SandboxError, match=said) as refused, grants.opened([bind(tree / name)], where=HERE):
        pass
    assert (refused.value.cause, refused.value.where) == ("missing source", HERE)
    assert refused.value.cure


def test_a_source_that_may_not_be_looked_up_is_refused_with_the_reason(tree, monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(SandboxError, match="cannot be looked up: Permission denied"):
        grants.opened([bind(tree / "file")], where=HERE).__enter__()


# A process of its own: its bounds and its streams are changed.
IN_A_PROCESS = """
import os, resource, sys
from hermit.bwrap import grants
from hermit.domain.bind import Bind
soft, hard, count = map(int, sys.argv[2:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
binds = [Bind(sys.argv[1], f"/given/{number}") for number in range(count)]
os.close(0)
try:
    with grants.opened(binds, where="here") as granted:
        pipes = [os.pipe() for _ in range(20)]
        print(len(granted), min(grant.descriptor for grant in granted), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
except Exception as error:
    print(type(error).__name__, error)
"""


def in_a_process(source, *numbers):
    words = [sys.executable, "-c", IN_A_PROCESS, str(source), *map(str, numbers)]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def test_a_few_change_nothing_of_the_process_and_none_takes_the_number_of_a_stream(tree):
    assert in_a_process(tree, 200, 4000, 60) == "60 3 200\n"


def test_thousands_raise_the_processs_own_bound_as_far_as_they_need(tree):
    count, lowest, bound = map(int, in_a_process(tree, 200, 4000, 3000).split())
    assert (count, lowest) == (3000, 3)
    assert 3020 < bound < 4000


def test_more_than_the_process_may_ever_hold_are_refused_with_a_cure(tree):
    said = in_a_process(tree, 100, 200, 300)
    assert said.startswith("SandboxError here: no descriptor is left for ")
    assert "ulimit -n" in said


# What bubblewrap is started with, by its version


class Enough(BaseException):
    """Everything about the start is known."""


@pytest.fixture
def started(monkeypatch):
    """What a bubblewrap of some version is started with: its options, and for each descriptor passed its file."""

    def start(version, sandbox):
        found = {}

        def spawn(argv, *, pass_fds, **_):
            options = os.pread(int(argv[2]), 1 << 20, 0).decode().split("\0")
            found.update(options=options, files={number: os.fstat(number) for number in pass_fds})
            raise Enough

        monkeypatch.setattr(proc, "spawn", spawn)
        bubblewrap = Bubblewrap("/usr/bin/bwrap", version, current())
        with pytest.raises(Enough):
            bubblewrap.run(sandbox, Command(argv=("true",)), environ={}, keep=lambda _: None)
        return found["options"], found["files"]

    return start


def around(options, word):
    """The option that ends with a word, whole."""
    at = options.index(word)
    return options[at - 2 : at + 1]


@pytest.mark.parametrize("version", ["0.10.0", "0.12.0", "1.0"])
def test_a_newer_bubblewrap_is_handed_what_was_opened(tree, started, version):
    binds = Bind(str(tree / "link"), "/given"), Bind(str(tree / "directory"), "/granted", writable=True)
    options, files = started(version, Sandbox(binds=binds))
    for (option, number, target), source in (
        (around(options, "/given"), "file"),
        (around(options, "/granted"), "directory"),
    ):
        assert option == ("--bind-fd" if target == "/granted" else "--ro-bind-fd")
        assert os.path.samestat(files[int(number)], os.stat(tree / source))


@pytest.mark.parametrize("version", ["0.8.0", "0.9.1", "unheard-of"])
def test_an_older_bubblewrap_is_told_the_path_and_inherits_nothing(tree, started, version):
    options, files = started(version, Sandbox(binds=(Bind(str(tree / "link"), "/given"),)))
    assert around(options, "/given") == ["--ro-bind", str(tree / "link"), "/given"]
    assert not any(os.path.samestat(status, os.stat(tree / "file")) for status in files.values())
