"""The code of a callable's file: compiled once, with its assertions, and never run by the host."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hermit.agent import source


def test_a_files_assertions_are_kept(tmp_path):
    (tmp_path / "judge.py").write_text("assert False\n")
    with pytest.raises(AssertionError):
        exec(source.compiled(str(tmp_path / "judge.py"))[0])


def test_a_files_assertions_are_kept_by_a_host_that_drops_its_own(tmp_path):
    (tmp_path / "judge.py").write_text("assert False\n")
    program = f"from hermit.agent import source; exec(source.compiled({str(tmp_path / 'judge.py')!r})[0])"
    assert subprocess.run([sys.executable, "-O", "-c", program], capture_output=True, check=False).returncode == 1


def test_to_compile_a_file_does_not_run_it(tmp_path):
    (tmp_path / "agent.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    source.compiled(str(tmp_path / "agent.py"))
    assert not (tmp_path / "ran").exists()


def test_code_that_another_python_made_is_compiled_anew(tmp_path):
    (tmp_path / "agent.py").write_text("NAME = 1\n")
    assert source.loaded(b"\0\0\0\0rubbish", str(tmp_path / "agent.py")).co_names == ("NAME",)
