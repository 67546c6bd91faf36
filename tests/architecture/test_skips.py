"""A test that was skipped has shown nothing: where it has to run, a missing tool fails it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

NEEDS_BROWSER = "tests/e2e/page/test_page.py::test_the_page_shows_what_the_run_came_to"
NEEDS_BUBBLEWRAP = "tests/unit/test_sandbox.py::test_the_preflight_is_the_evidence_of_a_sandbox_that_was_started"


@pytest.mark.parametrize(
    ("test", "needs", "ended"),
    [
        (NEEDS_BUBBLEWRAP, "", "1 skipped"),
        (NEEDS_BUBBLEWRAP, "bwrap", "1 error"),
        (NEEDS_BROWSER, "", "1 skipped"),
        (NEEDS_BROWSER, "chromium", "1 error"),
    ],
)
def test_a_skip_for_want_of_a_tool_is_a_failure_where_the_tool_is_needed(
    root: Path, tmp_path: Path, test: str, needs: str, ended: str
) -> None:
    env = {**os.environ, "PATH": str(tmp_path), "HERMIT_TEST_NEEDS": needs}
    argv = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", f"--basetemp={tmp_path}/t"]
    ran = subprocess.run([*argv, test], cwd=root, env=env, capture_output=True, text=True, check=False)
    # Not by its exit code: what others leave behind meanwhile would count as this session's.
    assert ran.stdout.splitlines()[-1].startswith(f"{ended} in "), ran.stdout
    assert (f"{needs} is needed here" in ran.stdout) is bool(needs)
