"""What a cheat may leave: in its own work always, in the sandbox's scratch only where there is a sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermit.run.attack import cheats, forged
from hermit.run.attack.scene import Scene, content

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def test_a_cheat_that_nothing_confines_leaves_nothing_outside_its_work(tmp_path: Path, work: Path) -> None:
    scene = Scene({"id": "a"}, str(work), confined=False)
    scene.leave("inner/file", "x")
    scene.leave(str(tmp_path / "outside"), "x")
    scene.leave("../beside", "x")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["work"]
    assert (work / "inner" / "file").read_text() == "x"


def test_a_link_leads_nothing_out_of_the_work_where_nothing_confines_it(tmp_path: Path, work: Path) -> None:
    (work / "out").symlink_to(tmp_path)
    (tmp_path / "secret").write_text("kept")
    (work / "answer").symlink_to(tmp_path / "secret")
    scene = Scene({"id": "a"}, str(work), confined=False)
    scene.leave("out/file", "x")
    scene.leave("answer", "x")
    assert not (tmp_path / "file").exists()
    assert (tmp_path / "secret").read_text() == "kept"
    assert (work / "answer").read_text() == "x"


def test_a_cheat_in_a_sandbox_uses_its_scratch(tmp_path: Path, work: Path) -> None:
    Scene({"id": "a"}, str(work), confined=True).leave(str(tmp_path / "scratch"), "x")
    assert (tmp_path / "scratch").read_text() == "x"


@pytest.mark.parametrize("confined", [True, False])
def test_a_cheat_leaves_nothing_where_calls_share(tmp_path: Path, work: Path, *, confined: bool) -> None:
    shared = work / "shared"
    shared.mkdir()
    (shared / "answer").write_text("kept")
    scene = Scene({"id": "a"}, str(work), shared=(str(shared),), confined=confined)
    scene.leave("shared/answer", "x")
    scene.leave("shared/new/file", "x")
    assert [path.name for path in shared.iterdir()] == ["answer"]
    assert (shared / "answer").read_text() == "kept"


@pytest.mark.parametrize("name", [cheat.name for cheat in cheats.CHEATS if cheat.name != "survivor"])
def test_no_cheat_that_nothing_confines_changes_anything_but_its_work(
    tmp_path: Path, work: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    home = tmp_path / "home"
    for path in (home, tmp_path / "tests"):
        path.mkdir()
    secret = tmp_path / "tests" / "a"
    secret.write_text("expected")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("HERMIT_LOGS", str(home))
    scene = Scene(
        {"id": "a"}, str(work), targets=("answer", "out/solution.py"), functions=("f",), secrets=(str(secret),),
        tests=("tests/a", "a"), shown=(str(tmp_path / "tests"),), confined=False,
    )  # fmt: skip
    cheats.by_name(name).play(scene)
    assert list(home.iterdir()) == []
    assert secret.read_text() == "expected"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "tests", "work"]
    for path in work.rglob("*"):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)  # for whoever removes it


def test_the_likeliest_file_is_named_by_the_task_then_by_the_target_then_by_its_form(tmp_path: Path) -> None:
    scene = Scene({"id": "T/7"}, str(tmp_path))
    paths = ["/t/other.txt", "/t/answer.txt", "/t/T_7.json", "/t/T_70/answer.txt"]
    assert scene.likeliest("answer.txt", paths)[0] == "/t/T_7.json"
    assert scene.likeliest("answer.txt", paths[:2]) == ["/t/answer.txt", "/t/other.txt"]


def test_a_program_goes_where_programs_are_expected_and_else_everywhere(work: Path) -> None:
    Scene({"id": "a"}, str(work), targets=("answer", "solution.py")).program("pass")
    assert ((work / "answer").read_text(), (work / "solution.py").read_text()) == (forged.WRONG, "pass")
    Scene({"id": "a"}, str(work), targets=("answer",)).program("pass")
    assert (work / "answer").read_text() == "pass"


def test_only_regular_files_are_read_and_nothing_is_waited_for(work: Path) -> None:
    import os

    os.mkfifo(work / "fifo")
    (work / "zero").symlink_to("/dev/zero")
    assert [content(str(work / name)) for name in ("fifo", "zero", "absent", ".")] == [None] * 4
