"""What is decided about a start before anything is started."""

from __future__ import annotations

import os
import socket
from types import SimpleNamespace

import pytest

from hermit.bwrap import prepare
from hermit.domain.bind import Bind
from hermit.domain.sandbox import Sandbox
from hermit.errors import SandboxError


@pytest.fixture
def read_only(monkeypatch):
    """Every file system of this machine can only be read."""
    kernel = SimpleNamespace(**{**vars(os), "statvfs": lambda _: SimpleNamespace(f_flag=os.ST_RDONLY)})
    monkeypatch.setattr(prepare, "os", kernel)


def test_a_grant_for_writing_on_a_read_only_file_system_is_refused_with_its_path(read_only, tmp_path):
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "file"):
        with pytest.raises(SandboxError, match="is read-only here") as refused:
            prepare.refuse_read_only(Sandbox(binds=(Bind(str(path), "/x", writable=True),)))
        assert refused.value.cause == "read-only source"
        assert str(path) in refused.value.what


def test_a_grant_for_reading_may_lie_on_a_read_only_file_system(read_only, tmp_path):
    prepare.refuse_read_only(Sandbox(read=(str(tmp_path),)))


def test_a_socket_takes_what_is_written_to_it_wherever_it_lies(read_only, tmp_path):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        prepare.refuse_read_only(Sandbox(write=(str(tmp_path / "s"),)))


def test_a_grant_for_writing_on_a_file_system_that_can_be_written_is_accepted(tmp_path):
    prepare.refuse_read_only(Sandbox(write=(str(tmp_path),)))
