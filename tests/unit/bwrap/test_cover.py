"""What hidden names stand for, on trees made up by the test, and that no sandbox shows it under any name."""

from __future__ import annotations

import importlib.machinery
import os
import sys
import zipfile

import pytest

from hermit.bwrap import cover
from hermit.bwrap.argv import Empty
from hermit.domain.bind import Bind

ABI = importlib.machinery.EXTENSION_SUFFIXES[0]


def write(root, *names, text="SECRET = 'the answer'\n"):
    """Makes files, and directories where a name ends in a slash; returns the root as text."""
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            path.mkdir()
        else:
            path.write_text(text, encoding="utf-8")
    return str(root)


def found(root, name, *more):
    """What one name stands for under the roots, relative to the first: directories, files, caches."""
    resolved = cover.resolve([name], [str(root), *map(str, more)])
    groups = (resolved.directories, resolved.files, resolved.caches)
    return tuple([os.path.relpath(path, root) for path in group] for group in groups)


def covers(resolved, *binds, covered=()):
    """The covers as pairs: the place, and whether it becomes an empty directory."""
    made = cover.operations(resolved, binds, covered=covered)
    for operation in made:
        assert isinstance(operation, Empty) or operation.bind == Bind(cover.empty_file(), operation.bind.target)
    return [(made.path, True) if isinstance(made, Empty) else (made.bind.target, False) for made in made]


# The forms of a module


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (["scorer/__init__.py", "scorer/rules.py"], (["scorer"], [], [])),
        (["scorer/__init__.pyc"], (["scorer"], [], [])),
        (["scorer/__init__" + ABI], (["scorer"], [], [])),
        (["scorer/rules.py"], (["scorer"], [], [])),
        (["scorer.py"], ([], ["scorer.py"], [])),
        (["scorer.pyc"], ([], ["scorer.pyc"], [])),
        (["scorer" + ABI], ([], ["scorer" + ABI], [])),
        (["scorer.abi3.so", "scorer.pyi", "scorer.pyx"], ([], ["scorer.abi3.so", "scorer.pyi", "scorer.pyx"], [])),
        (["scorer.so"], ([], ["scorer.so"], [])),
        (["scorer.py", "__pycache__/scorer.cpython-311.pyc"], ([], ["scorer.py"], ["__pycache__"])),
        (["scorer.py", "__pycache__/"], ([], ["scorer.py"], ["__pycache__"])),
        (["__pycache__/scorer.cpython-311.pyc"], ([], [], ["__pycache__"])),
        (["scorer/__init__.py", "scorer.py"], (["scorer"], ["scorer.py"], [])),
        (["scorer/__init__.py", "__pycache__/other.cpython-311.pyc"], (["scorer"], [], [])),
    ],
)
def test_a_module_is_found_in_each_of_its_forms(tmp_path, names, wanted):
    write(tmp_path, *names, "other.py", "scorers.py", "scorer2/__init__.py", "scorer.txt", "scorer.old.py")
    assert found(tmp_path, "scorer") == wanted


def test_a_dotted_name_is_found_below_its_packages(tmp_path):
    write(tmp_path, "bench/__init__.py", "bench/scoring.py", "bench/__pycache__/", "bench/agent.py", "scoring.py")
    assert found(tmp_path, "bench.scoring") == ([], ["bench/scoring.py"], ["bench/__pycache__"])


def test_nothing_is_imported_to_find_a_name(tmp_path, monkeypatch):
    trap = "raise AssertionError('imported')\n"
    write(tmp_path, "trap_package/__init__.py", "trap_package/inner/__init__.py", "trap_package/inner/x.py", text=trap)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert found(tmp_path, "trap_package.inner.x") == ([], ["trap_package/inner/x.py"], [])
    assert "trap_package" not in sys.modules


def test_a_namespace_package_is_found_in_every_root(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    write(one, "space/a.py")
    write(two, "space/b.py", "space/inner/c.py")
    assert found(one, "space", two) == (["space", "../two/space"], [], [])
    assert found(one, "space.b", two) == ([], ["../two/space/b.py"], [])
    assert found(one, "space.inner", two) == (["../two/space/inner"], [], [])


def test_a_name_is_found_in_every_root_and_not_in_the_first_alone(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    write(one, "scorer/__init__.py")
    write(two, "scorer.py")
    assert found(one, "scorer", two) == (["scorer"], ["../two/scorer.py"], [])


def test_case_matters(tmp_path):
    root = write(tmp_path, "Scorer.py")
    assert cover.resolve(["scorer"], [root]).unknown == ("scorer",)


def test_a_name_that_stands_for_nothing_is_unknown_and_the_others_are_found(tmp_path):
    root = write(tmp_path, "scorer.py")
    resolved = cover.resolve(["no_such", "scorer", "scorer.inner", "scorer"], [root, str(tmp_path / "missing")])
    assert resolved.names == ("no_such", "scorer", "scorer.inner")
    assert resolved.unknown == ("no_such", "scorer.inner")
    assert resolved.files == (f"{root}/scorer.py",)


def test_without_names_nothing_is_hidden(tmp_path):
    resolved = cover.resolve([], [write(tmp_path, "scorer.py")])
    assert resolved == cover.Resolved()
    assert covers(resolved, Bind(str(tmp_path), "/t")) == []


@pytest.mark.parametrize(
    "name", ["../scorer", "a/b", "..", ".", "", "a..b", ".a", "a.", "a\0", "a b", "*", "a\n", "-a"]
)
def test_what_is_no_name_is_refused(tmp_path, name):
    with pytest.raises(ValueError, match="hide takes names of modules"):
        cover.resolve([name], [str(tmp_path)])


def test_a_root_that_is_not_absolute_is_refused():
    with pytest.raises(ValueError, match="a root of the module path"):
        cover.resolve(["scorer"], [""])


def test_an_archive_that_holds_a_hidden_module_is_hidden_whole(tmp_path):
    for name in ("holds.zip", "other.egg"):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("bench/scoring.py" if name == "holds.zip" else "bench/agent.py", "")
    roots = [str(tmp_path / "holds.zip"), str(tmp_path / "other.egg")]
    assert cover.resolve(["bench.scoring"], roots).files == (roots[0],)


def test_directories_of_hidden_files_without_a_cache_are_named(tmp_path):
    root = write(tmp_path, "scorer.py", "bench/scoring.py", "bench/__pycache__/")
    assert cover.resolve(["scorer", "bench.scoring"], [root]).uncached == (root,)


# Installed and editable distributions


def test_a_distribution_is_found_by_what_its_record_lists(tmp_path):
    site = tmp_path / "lib" / "site"
    write(tmp_path, "bin/my-bench")
    record = (
        "my_bench/__init__.py,sha256=x,3\nmy_bench/data/answers.json,,\nmy_rules.py,,\n__pycache__/my_rules.cpython-311.pyc,,\n"
        'space/mine/__init__.py,,\nspace/loose.json,,\n"odd,""name.py",,\n../../bin/my-bench,,\nmy_bench-1.0.dist-info/RECORD,,\n'
    )
    write(site, "my_bench/__init__.py", "my_bench/data/answers.json", "my_rules.py", "space/mine/__init__.py")
    write(site, "space/theirs/__init__.py", "space/loose.json", 'odd,"name.py', "__pycache__/my_rules.cpython-311.pyc")
    write(site, "my_bench-1.0.dist-info/RECORD", text=record)
    files = ["my_rules.py", 'odd,"name.py', "space/loose.json"]
    assert found(site, "My.Bench") == (["my_bench", "space/mine"], files, ["__pycache__"])


def test_a_distribution_without_a_record_is_found_by_its_top_level_names(tmp_path):
    write(tmp_path, "PyThing-2.0-py3.11.egg-info/top_level.txt", text="thing\n_thing\n../escape\n")
    write(tmp_path, "thing/__init__.py", "_thing" + ABI, "other.py")
    assert found(tmp_path, "pything") == (["thing"], ["_thing" + ABI], [])


def test_a_name_that_is_a_module_stands_for_the_module_and_not_for_a_distribution(tmp_path):
    write(tmp_path, "bench-1.0.dist-info/RECORD", text="bench/__init__.py,,\nbench_env/__init__.py,,\n")
    write(tmp_path, "bench/__init__.py", "bench_env/__init__.py")
    assert found(tmp_path, "bench") == (["bench"], [], [])


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        ("__editable__.bench-1.0.pth", "# a comment\n{checkout}\n"),
        ("bench.pth", "import sys; sys.exit(1)\n{checkout}"),
        ("bench.egg-link", "{checkout}\n."),
        (
            "__editable___bench_1_0_finder.py",
            "import sys\nMAPPING: dict[str, str] = {{'bench': '{checkout}/bench'}}\nX = 1\n",
        ),
        ("__editable___bench_1_0_finder.py", "NAMESPACES = {{'bench': ['{checkout}/bench', '/none']}}\n"),
    ],
)
def test_an_editable_install_is_followed_to_its_checkout(tmp_path, entry, text):
    site, checkout = tmp_path / "site", tmp_path / "checkout"
    write(checkout, "bench/__init__.py", "bench/scoring.py", "bench.egg-info/top_level.txt", text="bench")
    write(site, entry, text=text.format(checkout=checkout))
    assert found(site, "bench") == (["../checkout/bench"], [], [])
    assert found(site, "bench.scoring") == ([], ["../checkout/bench/scoring.py"], [])


def test_an_editable_module_of_one_file_is_found(tmp_path):
    site, checkout = tmp_path / "site", tmp_path / "checkout"
    write(checkout, "scorer.py", "unrelated.py")
    write(site, "__editable___s_finder.py", text=f"MAPPING = {{\n 'scorer': '{checkout}/scorer.py',\n}}\n")
    assert found(site, "scorer") == ([], ["../checkout/scorer.py"], [])


def test_an_editable_distribution_is_found_by_its_own_name(tmp_path):
    site, checkout = tmp_path / "site", tmp_path / "checkout"
    write(checkout, "src/bench/__init__.py")
    write(site, "__editable__.my_bench-1.0.pth", text=f"{checkout}/src\n")
    write(
        site, "my_bench-1.0.dist-info/RECORD", text="__editable__.my_bench-1.0.pth,,\nmy_bench-1.0.dist-info/RECORD,,\n"
    )
    write(site, "my_bench-1.0.dist-info/top_level.txt", text="bench\n")
    assert found(site, "my-bench") == (["../checkout/src/bench"], [], [])


@pytest.mark.parametrize(
    "text", ["MAPPING = {'a': open('/x')}", "MAPPING = {", "MAPPING = {1, 2}", "\0", "x\0y\n/none\n"]
)
def test_a_broken_finder_or_path_file_is_no_failure(tmp_path, text):
    root = write(tmp_path, "__editable___x_finder.py", "x.pth", text=text)
    assert cover.resolve(["scorer"], [root]).unknown == ("scorer",)


def test_names_that_are_no_utf_8_are_read_from_metadata(tmp_path):
    write(tmp_path, "my_bench/__init__.py", "loose\udcff.py", "my_bench-1.0.dist-info/RECORD")
    (tmp_path / "my_bench-1.0.dist-info" / "RECORD").write_bytes(b"my_bench/__init__.py,,\nloose\xff.py,,\n")
    assert found(tmp_path, "my-bench") == (["my_bench"], ["loose\udcff.py"], [])


# Covers: every name that a hidden path is shown by


def test_a_directory_becomes_an_empty_one_and_a_file_an_empty_file_beside_an_empty_cache(tmp_path):
    root = write(tmp_path, "bench/__init__.py", "scorer.py", "__pycache__/scorer.cpython-311.pyc")
    resolved = cover.resolve(["bench", "scorer"], [root])
    assert covers(resolved, Bind(root, "/t")) == [("/t/__pycache__", True), ("/t/bench", True), ("/t/scorer.py", False)]
    assert os.path.getsize(cover.empty_file()) == 0


def test_a_path_that_is_bound_twice_is_covered_twice(tmp_path):
    root = write(tmp_path, "bench/__init__.py")
    resolved = cover.resolve(["bench"], [root])
    assert covers(resolved, Bind(root, root), Bind(root, "/x"), Bind(f"{root}/bench", "/y/z")) == sorted(
        [("/x/bench", True), ("/y/z", True), (f"{root}/bench", True)], key=lambda made: (made[0].count("/"), made[0])
    )


def test_a_bind_of_a_part_of_a_hidden_directory_is_covered_whole(tmp_path):
    root = write(tmp_path, "bench/data/answers.json", "bench/rules.py")
    binds = Bind(f"{root}/bench/data", "/d"), Bind(f"{root}/bench/rules.py", "/r.py")
    assert covers(cover.resolve(["bench"], [root]), *binds) == [("/d", True), ("/r.py", False)]


def test_what_no_bind_shows_needs_no_cover(tmp_path):
    root = write(tmp_path, "bench/__init__.py", "other/", "bench2/")
    resolved = cover.resolve(["bench"], [root])
    assert covers(resolved, Bind(f"{root}/other", "/o"), Bind(f"{root}/bench2", "/b"), Bind("/no/such", "/n")) == []


def test_a_symlinked_package_is_covered_where_it_really_lies(tmp_path):
    root = write(tmp_path, "store/bench-1/__init__.py", "site/")
    os.symlink("../store/bench-1", tmp_path / "site" / "bench")
    resolved = cover.resolve(["bench"], [f"{root}/site"])
    assert resolved.directories == (f"{root}/site/bench",)
    assert covers(resolved, Bind(root, "/t")) == [("/t/store/bench-1", True)]
    assert covers(resolved, Bind(f"{root}/store", "/s"), Bind(f"{root}/site", "/t")) == [("/s/bench-1", True)]


def test_a_source_that_is_a_link_or_lies_behind_one_is_covered(tmp_path):
    root = write(tmp_path, "real/bench/__init__.py", "real/scorer.py")
    os.symlink("real", tmp_path / "link")
    os.symlink("real/scorer.py", tmp_path / "link.py")
    resolved = cover.resolve(["bench", "scorer"], [f"{root}/real"])
    binds = Bind(f"{root}/link", "/a"), Bind(f"{root}/link/bench", "/b"), Bind(f"{root}/link.py", "/c")
    assert covers(resolved, *binds) == [("/b", True), ("/c", False), ("/a/bench", True), ("/a/scorer.py", False)]


def test_a_root_that_is_a_link_is_searched_and_covered(tmp_path):
    root = write(tmp_path, "lib/bench/__init__.py")
    os.symlink("lib", tmp_path / "lib64")
    resolved = cover.resolve(["bench"], [f"{root}/lib64", f"{root}/lib"])
    assert covers(resolved, Bind(root, "/t")) == [("/t/lib/bench", True)]


def test_a_hard_link_under_the_roots_is_hidden_with_its_cache(tmp_path):
    root = write(tmp_path, "bench/rules.py", "scorer.py", "other/__pycache__/", "other/free.py")
    os.link(tmp_path / "bench" / "rules.py", tmp_path / "other" / "copy.txt")
    os.link(tmp_path / "scorer.py", tmp_path / "alias.py")
    resolved = cover.resolve(["bench", "scorer"], [root])
    assert resolved.files == (f"{root}/alias.py", f"{root}/other/copy.txt", f"{root}/scorer.py")
    assert covers(resolved, Bind(root, "/t")) == [
        ("/t/alias.py", False),
        ("/t/bench", True),
        ("/t/scorer.py", False),
        ("/t/other/__pycache__", True),
        ("/t/other/copy.txt", False),
    ]


def test_an_empty_file_that_was_linked_to_save_space_hides_nothing_else(tmp_path):
    root = write(tmp_path, "bench/__init__.py", text="")
    write(tmp_path, "other/")
    os.link(tmp_path / "bench" / "__init__.py", tmp_path / "other" / "__init__.py")
    assert found(root, "bench") == (["bench"], [], [])


def test_hidden_paths_inside_hidden_directories_are_covered_by_them(tmp_path):
    root = write(tmp_path, "bench/scoring.py", "bench/__pycache__/", "bench/inner/__init__.py")
    resolved = cover.resolve(["bench.scoring", "bench", "bench.inner"], [root])
    assert covers(resolved, Bind(root, "/t"), Bind(f"{root}/bench/inner", "/t/bench/inner")) == [("/t/bench", True)]


def test_a_hidden_path_behind_another_bind_or_an_empty_directory_is_not_covered(tmp_path):
    root = write(tmp_path, "site/bench/scoring.py", "free/")
    resolved = cover.resolve(["bench.scoring"], [f"{root}/site"])
    assert covers(resolved, Bind(root, "/t"), Bind(f"{root}/free", "/t/site/bench")) == []
    assert covers(resolved, Bind(root, "/t"), covered=["/t/site"]) == []
    assert covers(resolved, Bind(root, "/t"), covered=["/t/sit"]) == [("/t/site/bench/scoring.py", False)]


def test_something_else_inside_a_hidden_directory_is_refused(tmp_path):
    root = write(tmp_path, "site/bench/out/", "free/")
    with pytest.raises(ValueError, match="/t/bench/out cannot be shown inside /t/bench, which is hidden"):
        covers(
            cover.resolve(["bench"], [f"{root}/site"]), Bind(f"{root}/site", "/t"), Bind(f"{root}/free", "/t/bench/out")
        )


def test_a_hidden_path_that_has_gone_is_refused_and_not_made(tmp_path):
    root = write(tmp_path, "scorer.py")
    resolved = cover.resolve(["scorer"], [root])
    os.unlink(tmp_path / "scorer.py")
    with pytest.raises(ValueError, match=r"scorer\.py was to be hidden and has gone"):
        covers(resolved, Bind(root, "/t"))


def test_a_hidden_file_in_a_writable_directory_without_a_cache_is_refused(tmp_path):
    root = write(tmp_path, "scorer.py")
    resolved = cover.resolve(["scorer"], [root])
    with pytest.raises(
        ValueError, match=r"/t/scorer\.py is hidden, and lies in a writable directory without __pycache__"
    ):
        covers(resolved, Bind(root, "/t", writable=True))
    assert covers(resolved, Bind(root, "/t")) == [("/t/scorer.py", False)]
    assert os.listdir(root) == ["scorer.py"]
    write(tmp_path, "__pycache__/")
    resolved = cover.resolve(["scorer"], [root])
    assert covers(resolved, Bind(root, "/t", writable=True)) == [("/t/__pycache__", True), ("/t/scorer.py", False)]


def test_a_hidden_path_that_is_itself_shown_writable_is_refused(tmp_path):
    root = write(tmp_path, "bench/work/")
    with pytest.raises(ValueError, match="is hidden, and cannot be shown writable at /w"):
        covers(cover.resolve(["bench"], [root]), Bind(f"{root}/bench/work", "/w", writable=True))


def test_thousands_of_hidden_modules_and_binds_have_a_cover_each(tmp_path):
    names = [f"scorer_{number}" for number in range(1500)]
    root = write(tmp_path, *(f"{name}.py" for name in names), "free/")
    binds = [Bind(root, "/t"), *(Bind(f"{root}/free", f"/f/{number}") for number in range(1500))]
    made = covers(cover.resolve(names, [root]), *binds)
    assert made == sorted((f"/t/{name}.py", False) for name in names)


# The variable that hands the names on
