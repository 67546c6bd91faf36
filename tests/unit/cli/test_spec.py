"""`python -m hermit.spec` says what is wrong, by number, and ends with a code for it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from hermit.adapter import template as templates

if TYPE_CHECKING:
    from pathlib import Path


def ran(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The program, as a person starts it."""
    argv = [sys.executable, "-m", "hermit.spec", *words]
    return subprocess.run(argv, cwd=cwd, capture_output=True, text=True, check=False)


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    """An adapter as its template has it."""
    root = tmp_path / "mine"
    root.mkdir()
    templates.named("prompt-only").files.write(str(root))
    return root


@pytest.mark.bwrap
def test_an_adapter_that_passes_ends_with_0_and_one_that_does_not_with_1(adapter: Path, tmp_path: Path) -> None:
    good = ran("mine", "--root", "prompt-only@1", cwd=tmp_path)
    assert (good.returncode, good.stderr) == (0, "")
    assert good.stdout.splitlines()[0].split() == ["1", "ok", "files", "under", "rules"]
    (adapter / "README.md").write_text("changed")
    (adapter / "a\x1b[2Jb").write_text("x")
    bad = ran("mine", "--root", "prompt-only", cwd=tmp_path)
    assert bad.returncode == 1
    assert "4  README.md: it is fixed, and differs from the template's" in bad.stdout.splitlines()
    assert "\x1b" not in bad.stdout
    said = json.loads(ran("mine", "--root", "prompt-only", "--json", cwd=tmp_path).stdout)
    assert (said["passed"], said["confined"]) == (False, True)


@pytest.mark.bwrap
def test_a_template_may_be_a_directory(adapter: Path, tmp_path: Path) -> None:
    assert ran("mine", "--root", "mine", cwd=tmp_path).returncode == 0
    assert ran("mine", "--root", "./mine", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["mine"], "--root"),
        (["mine", "--root", "absent"], "there is no template 'absent'"),
        (["mine", "--root", "prompt-only@7"], "is here in version 1, not 7"),
        (["absent", "--root", "prompt-only"], "absent: it cannot be read: missing"),
        (["mine", "--root", "./empty"], "it is no template"),
    ],
)
def test_what_cannot_be_checked_ends_with_2_and_says_why(
    adapter: Path, tmp_path: Path, words: list[str], said: str
) -> None:
    (tmp_path / "empty").mkdir()
    found = ran(*words, cwd=tmp_path)
    assert found.returncode == 2
    assert said in found.stderr
    assert "-> " in found.stderr
