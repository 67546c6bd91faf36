"""A diff as a page shows it: each file with its lines by what they are, and bounded."""

from __future__ import annotations

from hermit.adapter import difference
from hermit.adapter.files import File, Files
from hermit.run.reading import change


def read(diff: str) -> change.Change:
    return change.read(diff, cut=False, path="step_0001/change.diff")


def test_every_file_and_every_line_is_what_the_trainer_wrote() -> None:
    before = Files({"a.md": File(b"one\ntwo\n"), "gone": File(b"x\n"), "run.sh": File(b"#!\n")})
    after = Files({"a.md": File(b"one\n--- two\n"), "new/b": File(b"+++ y"), "run.sh": File(b"#!\n", executable=True)})
    found = {file.path: file for file in read(difference.unified(before, after)).files}
    assert {path: (file.how, file.added, file.removed) for path, file in found.items()} == {
        "a.md": ("changed", 1, 1),
        "gone": ("removed", 0, 1),
        "new/b": ("added", 1, 0),
        "run.sh": ("changed", 0, 0),
    }
    assert [(line.kind, line.text) for line in found["a.md"].lines] == [
        ("place", "@@ -1,2 +1,2 @@"),
        ("same", " one"),
        ("removed", "-two"),
        ("added", "+--- two"),
    ]
    assert [line.kind for line in found["new/b"].lines] == ["place", "added", "remark"]
    assert [line.text for line in found["run.sh"].lines] == ["old mode 100644", "new mode 100755"]


def test_what_does_not_show_is_spelled_out() -> None:
    (file,) = read("diff --git a/x b/x\u202e\n--- a/x\n+++ b/x\n@@ @@\n+\x1b[2J\r\u202e\n").files
    assert file.path == r"x\u202e"
    assert file.lines[-1].text == r"+\x1b[2J\r\u202e"


def test_a_long_diff_is_cut_with_a_count() -> None:
    one = "diff --git a/{0} b/{0}\n--- a/{0}\n+++ b/{0}\n@@ @@\n" + "+line\n" * 999
    found = read("".join(one.format(number) for number in range(change.MOST_FILES + 2)))
    assert (len(found.files), found.more) == (change.MOST_FILES, 2)
    assert [len(file.lines) for file in found.files[:3]] == [1000, change.MOST_LINES - 1000, 0]
    assert [file.left_out for file in found.files[:3]] == [0, 2000 - change.MOST_LINES, 1000]
    assert all(file.added == 999 for file in found.files)
    (long,) = read("diff --git a/x b/x\n@@ @@\n+" + "y" * 10_000).files
    assert len(long.lines[-1].text) == change.MOST_LETTERS + 3


def test_what_is_no_diff_is_no_file() -> None:
    assert read("").files == read("some words\n+more\n").files == ()
