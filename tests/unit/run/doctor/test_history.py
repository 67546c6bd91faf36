"""A history that holds more than HEAD is found wherever agents are shown it, by every way it can be kept."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from hermit import sandbox as sandboxes
from hermit.run.doctor import history
from hermit.run.doctor.history import Later, said

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hermit.sandbox import Place

GIT = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


def git(repository: Path, *words: str) -> str:
    """Runs git there as nobody in particular."""
    who = {f"GIT_{role}_{part}": "x@example.org" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
    alone = {"HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ["PATH"]}
    done = subprocess.run(
        ["git", "-C", str(repository), *words], env={**alone, **who}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A work tree with three commits, all of them in HEAD."""
    made = tmp_path / "shown" / "project"
    made.mkdir(parents=True)
    git(made, "init", "--quiet", "--initial-branch=main")
    git(made, "config", "core.logAllRefUpdates", "false")
    for number in range(3):
        (made / "file").write_text(f"{number}\n")
        git(made, "add", "file")
        git(made, "commit", "--quiet", "--message", str(number))
    return made


def by_branch(made: Path) -> None:
    git(made, "branch", "fix")
    git(made, "reset", "--quiet", "--hard", "HEAD~1")
    (made / ".git" / "ORIG_HEAD").unlink()


def by_tag_in_a_packed_file(made: Path) -> None:
    git(made, "tag", "v2")
    by_branch(made)
    git(made, "branch", "-D", "fix")
    git(made, "pack-refs", "--all")


def by_stash(made: Path) -> None:
    (made / "file").write_text("the solution\n")
    git(made, "stash")


def by_reflog(made: Path) -> None:
    git(made, "config", "core.logAllRefUpdates", "true")
    (made / "file").write_text("fix\n")
    git(made, "commit", "--quiet", "--all", "--message", "fix")
    git(made, "reset", "--quiet", "--hard", "HEAD~1")
    (made / ".git" / "ORIG_HEAD").unlink()


def by_orig_head(made: Path) -> None:
    git(made, "reset", "--quiet", "--hard", "HEAD~1")


def by_packed_objects(made: Path) -> None:
    git(made, "repack", "-a", "-d", "--quiet")
    by_orig_head(made)
    (made / ".git" / "ORIG_HEAD").unlink()


def by_a_loose_file(made: Path) -> None:
    (made / "file").write_text("the solution\n")
    git(made, "add", "file")
    git(made, "reset", "--quiet", "--hard")
    (made / ".git" / "ORIG_HEAD").unlink(missing_ok=True)


def by_another_head(made: Path) -> None:
    (made / ".git" / "HEAD").write_text("ref: refs/heads/unborn\n")


WAYS: dict[Callable[[Path], None], str] = {
    by_branch: "past HEAD: refs/heads/fix; not in HEAD: 1 blob, 1 commit, 1 tree",
    by_tag_in_a_packed_file: "past HEAD: refs/tags/v2; not in HEAD: 1 blob, 1 commit, 1 tree",
    by_stash: "past HEAD: refs/stash",
    by_reflog: "past HEAD: the reflog; not in HEAD: 1 blob, 1 commit, 1 tree",
    by_orig_head: "past HEAD: ORIG_HEAD; not in HEAD: 1 blob, 1 commit, 1 tree",
    by_packed_objects: "not in HEAD: 1 blob, 1 commit, 1 tree",
    by_a_loose_file: "not in HEAD: 1 blob",
    by_another_head: "past HEAD: refs/heads/main",
}


@GIT
@pytest.mark.bwrap
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_what_comes_after_head_is_found_however_it_is_kept(
    repository: Path, place: Place, way: Callable[[Path], None]
) -> None:
    way(repository)
    (finding,) = history.looked_into(str(repository / ".git"), place)
    assert WAYS[way] in finding.found
    assert (finding.ok, finding.needed, finding.id) == (False, False, "later_commits")
    assert "git clone" in finding.cure


@GIT
@pytest.mark.bwrap
def test_a_history_that_ends_at_head_is_none_and_what_is_staged_lies_there_anyway(
    repository: Path, place: Place
) -> None:
    git(repository, "tag", "v1", "HEAD~1")
    git(repository, "branch", "old", "HEAD~2")
    (repository / "file").write_text("staged\n")
    git(repository, "add", "file")
    assert history.looked_into(str(repository / ".git"), place) == []


@GIT
@pytest.mark.bwrap
def test_the_cure_cures(repository: Path, place: Place, tmp_path: Path) -> None:
    by_branch(repository)
    by_stash(repository)
    copy = tmp_path / "copy"
    git(tmp_path, "clone", "--quiet", "--no-local", "--single-branch", "--no-tags", str(repository), str(copy))
    git(copy, "remote", "remove", "origin")
    assert history.looked_into(str(copy / ".git"), place) == []


@GIT
@pytest.mark.bwrap
def test_a_repositorys_settings_start_no_program_on_the_host(repository: Path, place: Place, tmp_path: Path) -> None:
    mark = tmp_path / "started"
    by_branch(repository)
    for key in ("core.fsmonitor", "core.sshCommand", "core.pager", "diff.external"):
        git(repository, "config", key, f"touch {mark}")
    assert history.looked_into(str(repository / ".git"), place)
    assert not mark.exists()


@pytest.mark.bwrap
def test_a_repository_that_cannot_be_read_is_told_and_not_passed_over(tmp_path: Path, place: Place) -> None:
    for part in ("objects", "refs"):
        (tmp_path / part).mkdir()
    (tmp_path / "HEAD").write_text("nothing")
    (finding,) = history.looked_into(str(tmp_path), place)
    assert "nobody could look into it" in finding.found


@GIT
def test_without_a_sandbox_git_is_not_run_and_the_history_is_told(repository: Path) -> None:
    (finding,) = history.looked_into(str(repository / ".git"), sandboxes.unconfined("a test"))
    assert "git is not run outside one" in finding.found


def bare(path: Path) -> Path:
    for part in ("objects", "refs"):
        (path / part).mkdir(parents=True)
    (path / "HEAD").write_text("ref: refs/heads/main\n")
    return path


def names(run: Any, monkeypatch: pytest.MonkeyPatch, *overrides: str) -> list[str]:
    """The repositories that are looked into for this config."""
    seen: list[str] = []

    def note(path: str, where: Any) -> list[Any]:
        seen.append(os.path.relpath(path, run.root))
        return []

    class Confined:
        confined = True

    monkeypatch.setattr(history, "looked_into", note)
    place: Any = Confined()
    history.findings(run.config(*overrides), place)
    return sorted(seen)


def test_every_repository_below_or_around_a_declared_path_is_looked_into_and_no_other(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare(run.root / "read" / "a" / ".git")
    bare(run.root / "read" / "a" / ".git" / "modules" / "sub")
    bare(run.root / "read" / "b.git")
    bare(run.root / "write" / ".git")
    pack = bare(run.root / "other" / ".git") / "objects" / "pack"
    pack.mkdir()
    bare(run.root / "hidden" / ".git")
    (run.root / "read" / "link").symlink_to(run.root / "hidden")
    declared = ("environment.read=[read, other/.git/objects/pack]", "environment.write=[write]")
    assert names(run, monkeypatch, *declared) == [
        *("other/.git", "read/a/.git", "read/a/.git/modules/sub", "read/b.git", "write/.git")
    ]
    assert names(run, monkeypatch) == []


def test_where_nothing_is_confined_the_work_tree_of_the_task_set_is_looked_into(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare(run.root / ".git")
    assert names(run, monkeypatch) == []
    assert names(run, monkeypatch, "environment.runner=host") == [".git"]
    assert names(run, monkeypatch, "sandbox.enabled=false") == [".git"]


def test_a_tree_too_large_to_search_is_told(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (run.root / "read").mkdir()
    for number in range(5):
        (run.root / "read" / str(number)).touch()
    monkeypatch.setattr(history, "MOST_ENTRIES", 3)
    (finding,) = history.findings(run.config("environment.read=[read]"), sandboxes.unconfined("a test"))
    assert "the rest was not searched" in finding.found


def test_what_git_says_is_read_as_words_whatever_a_ref_is_called() -> None:
    assert said(b"name refs/x\x1b[2J\ncommit 3\nblob x\nnonsense\n") == Later(("refs/x[2J",), (("commit", 3),))
    assert not said(b"")
    assert str(Later(tuple("abcdefg"))) == "past HEAD: a, b, c, d, e and 2 more"
