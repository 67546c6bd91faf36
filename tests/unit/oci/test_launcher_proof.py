"""What a launcher proves before anything runs; an engine that shows something else than was meant is refused."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from hermit import proc
from hermit.environ import snapshot
from hermit.errors import PlaceError
from hermit.oci import container as containers
from hermit.oci import engine as engines
from hermit.oci.launcher import Launcher
from hermit.oci.life import Shape
from hermit.proc import capture

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.docker, pytest.mark.image]


def shape(exchange: Path, **changes: Any) -> Shape:
    exchange.mkdir(exist_ok=True)
    image = engines.image_id(engines.find(snapshot()), "hermit")
    assert image is not None
    return Shape(**{"image": image, "name": "hermit", "exchange": str(exchange), "memory_mb": 1024, **changes})


def names(engine: engines.Engine) -> list[str]:
    listed = capture([engine.program, "ps", "--all", "--format", "{{.Names}}"], timeout_s=60)
    return [name for name in listed.stdout.decode().split() if name.startswith("hermit-launcher-")]


# An engine that shows something else than it was asked to: another machine's files, or a virtual one's.
ELSEWHERE = """#!{python}
import os, sys
words = sys.argv[1:]
if words[:1] == ["run"]:
    words = [word.replace("source={asked},", "source={shown},") for word in words]
os.execv({program!r}, [{program!r}, *words])
"""


def elsewhere(engine, tmp_path, *, asked, shown):
    client = tmp_path / "docker"
    client.write_text(ELSEWHERE.format(python=sys.executable, program=engine.program, asked=asked, shown=shown))
    client.chmod(0o755)
    return engines.Engine(str(client), engine.client, engine.server, engine.platform)


def refusal(engine, given):
    with pytest.raises(PlaceError) as caught, Launcher(engine, given):
        pass
    return caught.value


def test_an_engine_that_shows_another_directory_is_refused_before_anything_runs(engine, tmp_path):
    given = shape(tmp_path / "exchange")
    (tmp_path / "empty").mkdir()
    found = refusal(elsewhere(engine, tmp_path, asked=given.exchange, shown=tmp_path / "empty"), given)
    assert "shows another file in place of" in found.what
    assert "--runtime local" in found.cure


def test_an_engine_that_shows_another_file_at_a_declared_path_is_refused(engine, tmp_path):
    for name in ("declared", "other"):
        (tmp_path / name).write_text("the same")
    given = shape(tmp_path / "exchange", read=(str(tmp_path / "declared"),))
    found = refusal(elsewhere(engine, tmp_path, asked=tmp_path / "declared", shown=tmp_path / "other"), given)
    assert found.where == str(tmp_path / "declared")
    assert "another machine's files" in found.what


def test_an_engine_in_a_virtual_machine_is_told_by_its_sockets_and_sent_to_the_whole_command(
    engine, tmp_path, monkeypatch
):
    """Its containers see this machine's files, and connect to none of its sockets."""
    given = shape(tmp_path / "exchange")
    mirror = tmp_path / "mirror"
    client = elsewhere(engine, tmp_path, asked=given.exchange, shown=mirror)
    real = proc.companion

    def mirrored(argv, *, stderr):
        shutil.copytree(given.exchange, mirror, ignore=lambda _, found: [name for name in found if name == "socket"])
        subprocess.run(["chmod", "-R", "a+rwX", str(mirror)], check=True)
        return real(argv, stderr=stderr)

    monkeypatch.setattr(proc, "companion", mirrored)
    found = refusal(client, given)
    assert "virtual machine" in found.what
    assert "--runtime whole" in found.cure


def test_an_engine_that_maps_users_is_refused(engine, tmp_path, monkeypatch):
    monkeypatch.setattr(containers, "user_inside", lambda uid, gid: (4321, 4321) if uid == 0 else (uid, gid))
    given = shape(tmp_path / "exchange")
    client = tmp_path / "docker"
    client.write_text(f'#!/bin/sh\nexec {engine.program} $(echo "$@" | sed s/4321:4321/4322:4322/)\n')
    client.chmod(0o755)
    (tmp_path / "exchange").chmod(0o777)
    found = refusal(engines.Engine(str(client), engine.client, engine.server, engine.platform), given)
    assert "belongs to" in found.what


def test_a_file_that_another_user_left_is_not_believed(engine, tmp_path, monkeypatch):
    """As an engine does that maps the container's user to another one, who may write there all the same."""
    real = os.lstat
    foreign = os.stat_result((0o100644, 1, 1, 1, 4322, 4322, 0, 0, 0, 0))

    def owned(path):
        return foreign if str(path).endswith("/written") else real(path)

    monkeypatch.setattr("hermit.oci.life.os.lstat", owned)
    found = refusal(engine, shape(tmp_path / "exchange"))
    assert "belongs to 4322:4322" in found.what
    assert "--runtime local" in found.cure


def test_an_image_that_cannot_start_a_launcher_says_so(engine, tmp_path):
    given = shape(tmp_path / "exchange", image="hermit-no-such-image", name="hermit-no-such-image")
    assert "does not exist here" in refusal(engine, given).what


def test_what_was_refused_leaves_no_container_and_no_file(engine, tmp_path):
    before = names(engine)
    given = shape(tmp_path / "exchange")
    (tmp_path / "empty").mkdir()
    refusal(elsewhere(engine, tmp_path, asked=given.exchange, shown=tmp_path / "empty"), given)
    assert names(engine) == before
    assert list((tmp_path / "exchange").iterdir()) == []
