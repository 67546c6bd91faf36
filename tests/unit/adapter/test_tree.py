"""A tree keeps versions as they were made; nothing that somebody put into a repository, or a version, is run or followed."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermit.adapter import names, objects, template, tree
from hermit.adapter.files import File, Files
from hermit.adapter.objects import Commit
from hermit.adapter.tree import ROOT_WHEN, Tree
from hermit.errors import ConfigError, HermitError


def keep(data: bytes, _path: str) -> bytes:
    """No key is known."""
    return data


def plain(made: Tree, *words: str) -> str:
    """What a person's own Git says of the tree."""
    argv = ["git", "-c", "safe.directory=*", f"--git-dir={made.directory}", *words]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def commit(made: Tree, files: Files, *, run: str = "one", step: int = 1, scrub: Any = keep) -> Any:
    """The next version of a run."""
    return made.commit(files, run=run, message=f"Step {step}", when=ROOT_WHEN + step, scrub=scrub)


def test_the_root_is_the_template_and_the_same_everywhere(small: Any, made: Tree, tmp_path: Path) -> None:
    root = made.find("root")
    assert made.version(root).files == small.files
    assert root == tree.root_commit(small).id
    other = Tree.opened(str(tmp_path / "elsewhere"), small, scrub=keep)
    assert other.find("root") == root
    assert Tree.opened(made.directory, small, scrub=keep).tags() == {"root": root}
    assert plain(made, "fsck", "--full", "--strict") == ""
    assert list((tmp_path / "trees").iterdir()) == [Path(made.directory)]


def test_the_same_changes_give_the_same_ids_whatever_the_machine_says(
    small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = []
    for name in ("a", "b"):
        monkeypatch.setenv("GIT_AUTHOR_NAME", name)
        monkeypatch.setenv("GIT_AUTHOR_DATE", "2001-01-01T00:00:00")
        monkeypatch.setenv("GIT_COMMITTER_EMAIL", f"{name}@example.org")
        monkeypatch.setenv("TZ", {"a": "Asia/Tokyo", "b": "UTC"}[name])
        made = Tree.opened(str(tmp_path / name), small, scrub=keep)
        first = commit(made, small.files.with_files({"ADAPTER.md": File(b"1")}))
        second = commit(made, small.files.with_files({"skills/x/a": File(b"2", executable=True)}), step=2)
        ids.append((first.commit, second.commit))
        assert made.history(second.commit) == (second.commit, first.commit, made.find("root"))
    assert ids[0] == ids[1]


LETTERS = st.characters(exclude_categories=names.INVISIBLE, exclude_characters='\\:*?"<>|/. ')
# In any case no name of Git's, of a device or of the trainer's: those have tests of their own.
NAMES = st.text(LETTERS, max_size=8).map(lambda name: f"_{name}")
FILES = st.dictionaries(
    st.lists(NAMES, min_size=1, max_size=3).map("/".join),
    st.builds(File, st.binary(max_size=60), st.booleans()),
    max_size=6,
)


@given(st.lists(FILES, min_size=1, max_size=3))
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])  # each calls Git many times
def test_any_files_come_back_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, versions: list[dict[str, File]]
) -> None:
    small = template.named("prompt-only")
    made = Tree.opened(str(tmp_path_factory.mktemp("trees") / "t"), small, scrub=keep)
    for step, found in enumerate(versions):
        files = Files({path: file for path, file in found.items() if path not in names.collisions(found)})
        version = commit(made, files, step=step)
        assert made.version(version.commit) == version
        assert version.files == files
        assert plain(made, "rev-parse", f"{version.commit}^{{tree}}").strip() == objects.tree_id(files)


@pytest.mark.parametrize(
    "path", [".git/hooks/post-commit", "sub/.GIT/config", "git~1", "../out", "a\nb", "a.", ".gitmodules", "CARD.md"]
)
def test_no_name_that_means_something_to_git_is_committed(small: Any, made: Tree, path: str) -> None:
    with pytest.raises(ValueError, match="no file of an adapter"):
        commit(made, small.files.with_files({path: File(b"x")}))
    assert made.tip("one") is None


def test_no_two_names_that_some_systems_take_for_one_are_committed(small: Any, made: Tree) -> None:
    with pytest.raises(ValueError, match="cannot be beside"):
        commit(made, small.files.with_files({"adapter.md": File(b"x")}))


def test_content_that_speaks_to_git_is_content(small: Any, made: Tree, tmp_path: Path) -> None:
    """Attributes name filters, and a stream of a version could end early: both are bytes of a file and nothing else."""
    said = {
        "ADAPTER.md": b"deleteall\ndone\nreset refs/tags/root\nfrom 0000000000000000000000000000000000000000\n",
        "skills/a/attributes": b"* filter=evil text eol=crlf ident\n",
        "skills/a/text": b"one\r\ntwo\n$Id$\n",
        "skills/a/-q 'quoted'": b"x",
    }
    version = commit(made, small.files.with_files({path: File(data) for path, data in said.items()}))
    assert made.version(version.commit).files == version.files
    assert made.find("root") == tree.root_commit(small).id


def test_keys_are_scrubbed_before_a_commit_in_files_names_and_words(small: Any, made: Tree) -> None:
    def scrub(data: bytes, _path: str) -> bytes:
        return data.replace(b"sk-secret-0123456789", b"<API_KEY>")

    files = small.files.with_files(
        {"ADAPTER.md": File(b"use sk-secret-0123456789"), "skills/sk-secret-0123456789": File(b"x")}
    )
    version = made.commit(files, run="one", message="found sk-secret-0123456789", when=1, scrub=scrub)
    assert version.files.get("ADAPTER.md") == b"use <API_KEY>"
    assert "found <API_KEY>" in version.message
    held = subprocess.run(
        ["git", f"--git-dir={made.directory}", "log", "-p", "--all", "--raw"], capture_output=True, check=True
    )
    assert b"sk-secret" not in held.stdout
    found = [path for path in Path(made.directory).rglob("*") if path.is_file() and b"sk-secret" in path.read_bytes()]
    assert found == []


def test_a_template_that_holds_a_key_makes_no_tree(small: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds the value of a key"):
        Tree.opened(str(tmp_path / "t"), small, scrub=lambda data, _: data.replace(b"Do it", b"<K>"))
    assert list(tmp_path.iterdir()) == []


def test_selectors_name_one_version_or_are_refused(small: Any, made: Tree) -> None:
    version = commit(made, small.files.with_files({"ADAPTER.md": File(b"1")}))
    tag = made.tag("one", "step-0001", commit=version.commit)
    for name in (tag, f"refs/tags/{tag}", version.commit, version.commit[:8]):
        assert made.find(name) == version.commit
    for name in (
        "one/step-0002",
        "0" * 40,
        version.commit[:6],
        "HEAD",
        "refs/heads/one",
        "one",
        "--all",
        "root^{tree}",
        "",
    ):
        with pytest.raises(ConfigError, match="no version"):
            made.find(name)


@pytest.mark.parametrize(
    "name", ["root", "final", "none", "HEAD", "a/b", ".a", "a..b", "a.lock", "a.", "", "-a", "a b", "x" * 81]
)
def test_a_run_that_cannot_name_a_branch_is_refused(small: Any, made: Tree, name: str) -> None:
    with pytest.raises(ConfigError, match="cannot name a branch"):
        commit(made, small.files, run=name)
    with pytest.raises(ConfigError, match="cannot name a branch"):
        made.tag(name, "final", commit=made.find("root"))


def test_a_run_goes_on_from_its_own_past_alone(small: Any, made: Tree) -> None:
    one = commit(made, small.files.with_files({"ADAPTER.md": File(b"1")}))
    two = commit(made, small.files.with_files({"ADAPTER.md": File(b"2")}), step=2)
    made.begin("one", one.commit)
    assert made.tip("one") == one.commit
    again = commit(made, small.files.with_files({"ADAPTER.md": File(b"2")}), step=2)
    assert again.commit == two.commit, "the same step again is the same version"
    with pytest.raises(ConfigError, match="never was at"):
        made.begin("one", commit(made, small.files, run="two").commit)


def test_the_tree_of_another_template_is_refused(small: Any, made: Tree) -> None:
    with pytest.raises(ConfigError, match="not the template prompt-only 1"):
        Tree.opened(made.directory, template.named("prompt-only"), scrub=keep)


def foreign_commit(made: Tree, tree_line: str) -> str:
    """A commit made past Hermit, whose directory is given as a line for mktree."""

    def run(*words: str, stdin: str = "") -> str:
        argv = ["git", f"--git-dir={made.directory}", "-c", "user.name=x", "-c", "user.email=x", *words]
        return subprocess.run(argv, input=stdin, text=True, capture_output=True, check=True).stdout.strip()

    blob = run("hash-object", "-w", "--stdin", stdin="/etc/passwd")
    directory = run("mktree", "--missing", stdin=tree_line.format(blob=blob))
    return run("commit-tree", directory, "-m", "x")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("120000 blob {blob}\tlink\n", "a link"),
        ("160000 commit 1111111111111111111111111111111111111111\tmodule\n", "another repository"),
        ("100644 blob {blob}\ta\\b\n", "no file of an adapter"),
        ("100644 blob {blob}\ta\n100644 blob {blob}\tA\n", "cannot be beside"),
        ("100644 blob 1111111111111111111111111111111111111111\ta\n", "an object is missing"),
    ],
)
def test_a_version_that_hermit_never_made_is_not_read(made: Tree, line: str, said: str) -> None:
    with pytest.raises(HermitError, match=said):
        made.version(foreign_commit(made, line))


def test_what_is_larger_than_an_adapter_is_not_read(made: Tree, small: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    version = commit(made, small.files.with_files({"ADAPTER.md": File(b"x" * 5000)}))
    monkeypatch.setattr("hermit.adapter.files.MOST_BYTES", 4000)
    with pytest.raises(HermitError, match="larger than any"):
        made.version(version.commit)


def test_a_damaged_object_is_told(made: Tree, small: Any) -> None:
    version = commit(made, small.files.with_files({"ADAPTER.md": File(b"x" * 5000)}))
    for path in [*Path(made.directory, "objects").rglob("*")]:
        if path.is_file() and path.parent.name != "info":
            path.chmod(0o644)
            data = bytearray(path.read_bytes())
            data[len(data) // 2] ^= 0xFF
            path.write_bytes(bytes(data))
    with pytest.raises(HermitError):
        made.version(version.commit)


def test_something_else_is_never_made_a_tree(small: Any, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    with pytest.raises(ConfigError, match="something else than a tree"):
        Tree.opened(str(tmp_path / "mine"), small, scrub=keep)
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "x"


def test_a_directory_that_git_would_not_write_is_not_read(made: Tree, tmp_path: Path) -> None:
    """Two files of one name, of which some programs take the first and some the last."""
    store = ["git", f"--git-dir={made.directory}", "hash-object", "-w", "--literally", "--stdin", "-t"]
    ids = [
        subprocess.run([*store, "blob"], input=data, capture_output=True, check=True).stdout.decode().strip()
        for data in (b"one", b"two")
    ]
    rows = b"".join(b"100644 a\0" + bytes.fromhex(each) for each in ids)
    directory = subprocess.run([*store, "tree"], input=rows, capture_output=True, check=True).stdout.decode().strip()
    words = Commit(directory, (), 1, "x\n").encoded()
    commit_id = subprocess.run([*store, "commit"], input=words, capture_output=True, check=True).stdout.decode().strip()
    with pytest.raises(HermitError, match="not those it was made of"):
        made.version(commit_id)
