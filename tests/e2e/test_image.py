"""The same in the image: what a plain container lacks is named with the command that cures it, and the results are equal."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.bwrap, pytest.mark.docker, pytest.mark.image, pytest.mark.serial]


def test_the_image_scores_the_example_as_this_machine_does(example: Any, tmp_path: Path) -> None:
    settings = ("data.test=data/smoke.txt",)
    inside = example.machine.run(*example.words("--runtime", "image", *settings))
    assert inside.code == 0, inside.err
    assert "sandboxes start in the images hermit and hermit-judge, by " in inside.err
    assert (inside.summary["mean_score"], inside.summary["errors"], inside.summary["tasks"]) == (1.0, 0, 10)
    in_image = {task_id: (row["status"], row["judge"]["score"]) for task_id, row in example.rows.items()}
    assert all(row["confined"] for row in example.rows.values())
    for path in (example.output, *example.output.rglob("*")):
        status = path.lstat()
        assert (status.st_uid, status.st_gid) == (os.geteuid(), os.getegid()), path
    local = example.eval(*settings, "--fresh")
    assert local.code == 0, local.err
    here = {task_id: (row["status"], row["judge"]["score"]) for task_id, row in example.rows.items()}
    assert here == in_image


def test_each_way_to_fail_has_the_same_name_in_the_image(example: Any) -> None:
    settings = ("agent.name=agent.py:broken", "agent.timeout_min=0.1", example.split(range(13)))
    assert example.machine.run(*example.words("--runtime", "image", *settings)).code == 0
    told = ("status", "phase", "cause", "missing", "dropped", "judged")
    inside = {task_id: [row[part] for part in told] for task_id, row in example.rows.items()}
    assert example.eval(*settings, "--fresh").code == 0
    assert {task_id: [row[part] for part in told] for task_id, row in example.rows.items()} == inside


def test_the_whole_command_runs_in_the_image_for_engines_in_virtual_machines(example: Any) -> None:
    split = example.split(range(4))
    said = example.machine.run(*example.words("--runtime", "whole", split))
    assert said.code == 0, said.err
    assert "with the whole command, because the runtime is whole" in said.err
    assert {row["status"] for row in example.rows.values()} == {"ok"}
    for path in (example.output, *example.output.rglob("*")):
        assert (path.lstat().st_uid, path.lstat().st_gid) == (os.geteuid(), os.getegid()), path
    whole = {task_id: (row["status"], row["judge"]["score"]) for task_id, row in example.rows.items()}
    assert example.machine.run(*example.words("--runtime", "image", split, "--fresh")).code == 0
    assert {task_id: (row["status"], row["judge"]["score"]) for task_id, row in example.rows.items()} == whole


def test_a_run_begun_here_goes_on_in_the_image(example: Any) -> None:
    split = example.split([0, 1, 2])
    assert example.eval(split).code == 0
    lines = example.results.read_bytes().splitlines(keepends=True)
    example.results.write_bytes(lines[0])
    said = example.machine.run(*example.words("--runtime", "image", split))
    assert said.code == 0, said.err
    assert "1 of 3 attempts were made before" in said.err
    assert len(example.rows) == 3


def test_a_run_in_the_image_leaves_its_report_here_and_ends_below_a_score_with_5(example: Any, tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    words = example.words("--runtime", "image", example.split([0, 1]), "--junit", str(report), "--fail-under", "1.5")
    said = example.machine.run(*words)
    assert said.code == 5, said.err
    assert "the mean score is 1.0000, below 1.5" in said.err
    assert 'tests="2" failures="0" errors="0"' in report.read_text()
    assert (report.stat().st_uid, report.stat().st_gid) == (os.geteuid(), os.getegid())


def check(engine: Any, directory: Path, *, command: str = "") -> subprocess.CompletedProcess[str]:
    """Runs ``hermit check`` in the image: plainly, or as the command line says."""
    argv = ["/bin/sh", "-c", command] if command else [engine.program, "run", "--rm", "hermit", "check"]
    return subprocess.run(argv, cwd=directory, capture_output=True, text=True, timeout=120, check=False)


def test_a_plain_container_is_told_what_it_lacks_and_the_command_it_prints_works(engine: Any, tmp_path: Path) -> None:
    plain = check(engine, tmp_path)
    assert plain.returncode == 6
    assert "seccomp" in plain.stdout
    assert "masked proc" in plain.stdout
    (command,) = {line.strip() for line in plain.stdout.splitlines() if line.strip().startswith("docker run ")}
    for forbidden in ("--privileged", "docker.sock", "seccomp=unconfined", "--user 0", "SYS_ADMIN"):
        assert forbidden not in command
    for wanted in ("--network none", "--read-only", "--cap-drop ALL", "no-new-privileges", "seccomp="):
        assert wanted in command
    cured = check(engine, tmp_path, command=command)
    assert cured.returncode == 0, cured.stdout + cured.stderr
    assert "This machine is fit." in cured.stdout


def test_the_printed_command_without_its_profile_or_its_proc_still_names_what_is_missing(
    engine: Any, tmp_path: Path
) -> None:
    plain = check(engine, tmp_path)
    (command,) = {line.strip() for line in plain.stdout.splitlines() if line.strip().startswith("docker run ")}
    for option, named in (
        ("--security-opt systempaths=unconfined", "masked proc"),
        ("--security-opt seccomp=hermit-seccomp.json", "seccomp"),
    ):
        assert option in command
        found = check(engine, tmp_path, command=command.replace(option, ""))
        assert found.returncode == 6
        rows = [line for line in found.stdout.splitlines() if line.startswith("missing")]
        assert any(named in row for row in rows), found.stdout
