"""A path of the host is told by its name inside: in the arguments, in the variables and as the working directory."""

from __future__ import annotations

import pytest

from hermit.domain.bind import Bind
from hermit.domain.command import Command
from hermit.domain.limits import Limits
from hermit.domain.pathmap import Layout
from hermit.domain.sandbox import Sandbox

pytestmark = pytest.mark.bwrap

TELL = (
    "import os, sys; print(open(sys.argv[1]).read(), os.environ['ADAPTER'], os.getcwd(), os.path.exists(sys.argv[2]))"
)


def test_a_program_finds_what_it_is_told_of_under_its_name_inside(place, tmp_path):
    (tmp_path / "adapter").mkdir()
    (tmp_path / "adapter" / "skill.md").write_text("words")
    (tmp_path / "secret").write_text("mine")
    sandbox = Sandbox(
        binds=(Bind(str(tmp_path / "adapter"), "/w/adapter"),),
        layout=Layout(str(tmp_path), "/w"),
        cwd=str(tmp_path / "adapter"),
        env=(("ADAPTER", f"{tmp_path}/adapter:{tmp_path}/adapter/skill.md"),),
        limits=Limits(wall_s=30),
    )
    argv = ("python3", "-c", TELL, f"{tmp_path}/adapter/skill.md", f"{tmp_path}/secret")
    outcome = place.run(sandbox, Command(argv=argv), keep=lambda _: None, variables={})
    assert outcome.stdout.kept == b"words /w/adapter:/w/adapter/skill.md /w/adapter False\n", outcome.stderr.kept
