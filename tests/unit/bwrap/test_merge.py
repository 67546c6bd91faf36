"""A directory in which everything is covered is covered as one, and no other directory is."""

from __future__ import annotations

import os

import pytest

from hermit.bwrap import cover
from hermit.bwrap.argv import Empty
from hermit.domain.bind import Bind

NAMES = [f"scorer_{number}" for number in range(4)]


def tree(tmp_path, *names):
    """Makes files below a directory that also holds one that is free; returns it as text."""
    for name in ("free.py", *names):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("SECRET = 1\n", encoding="utf-8")
    return str(tmp_path)


def covers(root, names, *binds, covered=()):
    """The covers as pairs: the place, and whether it becomes an empty directory."""
    made = cover.operations(cover.resolve(names, [root]), binds or [Bind(root, "/t")], covered=covered)
    return [(made.path, True) if isinstance(made, Empty) else (made.bind.target, False) for made in made]


def modules(package):
    """The hidden modules of a package: their names, and their files."""
    return [f"{package.replace('/', '.')}.{name}" for name in NAMES], [f"{package}/{name}.py" for name in NAMES]


def test_a_directory_that_holds_nothing_else_has_one_cover(tmp_path):
    names, files = modules("package")
    assert covers(tree(tmp_path, *files), names) == [("/t/package", True)]


def test_a_directory_that_holds_something_else_keeps_a_cover_for_each(tmp_path):
    names, files = modules("package")
    made = covers(tree(tmp_path, *files, "package/data.txt"), names)
    assert made == [(f"/t/{file}", False) for file in files]


def test_a_link_to_something_hidden_is_something_else(tmp_path):
    names, files = modules("package")
    root = tree(tmp_path, *files)
    os.symlink("scorer_0.py", f"{root}/package/link")
    assert len(covers(root, names)) == 4


def test_the_cache_beside_hidden_files_goes_with_them(tmp_path):
    names, files = modules("package")
    root = tree(tmp_path, *files, "package/__pycache__/scorer_0.cpython-311.pyc")
    assert covers(root, names) == [("/t/package", True)]


def test_directories_are_merged_upwards_as_long_as_they_hold_nothing_else(tmp_path):
    outer, inner = modules("a/b"), modules("a/b/c/d")
    root = tree(tmp_path, *outer[1], *inner[1])
    assert covers(root, [*outer[0], *inner[0]]) == [("/t/a", True)]
    (tmp_path / "a" / "free.py").touch()
    assert covers(root, [*outer[0], *inner[0]]) == [("/t/a/b", True)]


def test_one_cover_is_not_replaced_by_a_longer_one(tmp_path):
    names, files = modules("package")
    assert covers(tree(tmp_path, files[0]), names[:1]) == [(f"/t/{files[0]}", False)]


def test_what_a_bind_begins_with_stays(tmp_path):
    names, files = modules("package")
    root = tree(tmp_path, *files)
    made = covers(root, names, Bind(f"{root}/package", "/p"))
    assert made == [(f"/p/{name}.py", False) for name in NAMES]


@pytest.mark.parametrize("owner", ["/t/package/scorer_1.py", "/t/package/scorer_1.py/below"])
def test_a_directory_in_which_something_of_its_own_is_shown_is_not_merged(tmp_path, owner):
    names, files = modules("package")
    root = tree(tmp_path, *files)
    shown = covers(root, names, Bind(root, "/t"), Bind(f"{root}/free.py", owner))
    assert ("/t/package", True) not in shown
    assert len(shown) in (3, 4)


def test_a_directory_that_can_be_written_is_not_merged(tmp_path):
    names, files = modules("package")
    root = tree(tmp_path, *files, "package/__pycache__/scorer_0.cpython-311.pyc")
    made = covers(root, names, Bind(root, "/t", writable=True))
    assert made == [("/t/package/__pycache__", True), *((f"/t/{file}", False) for file in files)]


def test_a_directory_that_cannot_be_listed_is_not_merged(tmp_path, monkeypatch):
    names, files = modules("package")
    root = tree(tmp_path, *files)
    resolved = cover.resolve(names, [root])

    def refuse(_):
        raise PermissionError

    monkeypatch.setattr(os, "listdir", refuse)
    assert len(cover.operations(resolved, [Bind(root, "/t")])) == 4


def test_each_bind_is_merged_for_itself(tmp_path):
    names, files = modules("package")
    root = tree(tmp_path, *files)
    made = covers(root, names, Bind(root, "/a"), Bind(root, "/b"), Bind(f"{root}/package", "/c"))
    assert made == [("/a/package", True), ("/b/package", True), *((f"/c/{name}.py", False) for name in NAMES)]
