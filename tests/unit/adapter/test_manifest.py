"""A manifest means one thing or is refused with the line of what is wrong; its fixed sections are compared byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermit.adapter import manifest

GOOD = b"""\
# A comment.
template: {id: small, version: 1.5}
exports:
  context: [a.md]
  skills: s

structure:
  learnable:
    - ADAPTER.md
    - {path: "s/**", format: {max_bytes: 10, max_files: 2, text: true, frontmatter: [name]}}
  fixed: [README.md]
check: check.py:look
evolver_tools: [tools/a.py:run]
origin: {run: one}
"""


def problems(data: bytes) -> list[str]:
    """What is wrong with a manifest, as a person is told."""
    found, wrong = manifest.read(data)
    assert (found is None) is bool(wrong)
    return [str(each) for each in wrong]


def test_a_manifest_is_read_whole() -> None:
    found, wrong = manifest.read(GOOD)
    assert wrong == ()
    assert found is not None
    assert found.template == manifest.Identity("small", "1.5", 1, "")
    assert found.exports == manifest.Exports(("ADAPTER.md", "a.md"), "s", "", "")
    first, second = found.structure.learnable
    assert (first.glob.text, first.format) == ("ADAPTER.md", manifest.Format())
    assert second.format == manifest.Format(10, 2, text=True, frontmatter=("name",))
    assert (found.check, found.evolver_tools, found.origin) == ("check.py:look", ("tools/a.py:run",), {"run": "one"})


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (b"exports:\n", b"export:\n", "export: not a known key; the nearest is exports"),
        (b"{id: small,", b"{id: Small,", "template.id: expected lower-case letters, digits and dashes, found 'Small'"),
        (b"version: 1.5", b"version: [1]", "template.version: expected text, found a list"),
        (b"version: 1.5", b"contract: 2, version: 1", "template.contract: expected 1, the contract"),
        (b"[a.md]", b"[../a.md]", "exports.context: expected a path in the adapter, without '..'"),
        (b"[a.md]", b"a.md", "exports.context: expected a list, found 'a.md'"),
        (b"skills: s", b"skills: /s", "exports.skills: expected a path in the adapter"),
        (b"skills: s", b"tools: sub/tools.py", "exports.tools: expected a Python file beside the manifest"),
        (b'"s/**"', b'"../s"', "structure.learnable.path: expected a relative path"),
        (b"max_bytes: 10", b"max_bytes: 0", "format.max_bytes: expected a whole number of at least 1, found 0"),
        (b"text: true", b"text: 1", "format.text: expected true or false, found 1"),
        (b"frontmatter: [name]", b"frontmatter: name", "format.frontmatter: expected a list, found 'name'"),
        (b"check.py:look", b"look", "check: expected file.py:function, with a file of the template, found 'look'"),
        (b"check.py:look", b"../check.py:look", "check: expected file.py:function"),
        (b"tools/a.py:run", b"tools/a.py", "evolver_tools: expected file.py:function"),
        (b"{run: one}", b"[]", "origin: expected a mapping, found a list"),
        (b"origin:", b"'origin':", "origin: expected a section that begins a line of its own"),
        (b"# A comment.", b"--- # one", "expected one document without directives and document marks"),
        (b"# A comment.", b"%YAML 1.1", ""),
        (b"{id: small,", b"{id: small, id: big,", "id is given twice"),
        (b"{run: one}", b"!!python/object:os.system {}", "the tag"),
        (b"{run: one}", b"\xff", "not UTF-8"),
        (b"{run: one}", b"{", "not YAML"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(old: bytes, new: bytes, said: str) -> None:
    assert GOOD.count(old) >= 1
    found = problems(GOOD.replace(old, new, 1))
    assert any(said in each for each in found), found
    line = GOOD[: GOOD.index(old)].count(b"\n") + 1
    assert any(each.startswith(f"adapter.yaml:{line}") for each in found) or said in ("", "not YAML") or "marks" in said


def test_what_must_be_there_is_missed() -> None:
    assert {each.split(": ", 1)[1].split(",")[0] for each in problems(b"{}")} >= {
        "template: expected a mapping",
        "structure: expected a mapping",
    }
    assert problems(b"- a")
    assert problems(b"template:\n" + b"#" * manifest.MOST_BYTES)


@given(st.binary(max_size=300))
@settings(deadline=None)
def test_no_bytes_are_more_than_wrong(data: bytes) -> None:
    problems(data)
    problems(GOOD + data)
    manifest.sections(data)


def test_only_the_origin_may_differ() -> None:
    before, _ = manifest.read(GOOD)
    assert before is not None
    other, _ = manifest.read(GOOD.replace(b"{run: one}", b"\n  run: two\n  step: 3\n"))
    assert other is not None
    assert other.changed(before) == ()
    for old, new, name in (
        (b"version: 1.5", b"version:  1.5", "template"),  # one space more: the same value, other bytes
        (b"skills: s", b"skills: t", "exports"),
        (b"fixed: [README.md]", b"fixed: [README.md] # none", "structure"),
        (b"check: check.py:look\n", b"", "check"),
        (b"run]", b"walk]", "evolver_tools"),
    ):
        changed, _ = manifest.read(GOOD.replace(old, new))
        assert changed is not None, old
        assert changed.changed(before) == (name,)


def test_bytes_that_stay_and_mean_something_else_are_seen() -> None:
    """An alias takes its value from elsewhere: from the origin, which may change."""
    aliased = GOOD.replace(b"origin: {run: one}\n", b"").replace(b"skills: s", b"skills: *place")
    one, other = (manifest.read(b"origin: {at: &place %b}\n" % place + aliased)[0] for place in (b"s", b"t"))
    assert one is not None
    assert other is not None
    assert one.source == other.source
    assert other.changed(one) == ("exports",)


def test_a_fixed_pattern_comes_before_a_learnable_one_and_the_first_rule_that_fits_is_a_files_own() -> None:
    found, _ = manifest.read(
        b"template: {id: a, version: 1}\nstructure:\n  learnable: [{path: '*.md', format: {max_bytes: 1}}, '**']\n  fixed: [A.md]\n"
    )
    assert found is not None
    structure = found.structure
    assert structure.rule("A.md") is None
    assert structure.holds("A.md")
    assert [getattr(structure.rule(path), "glob", None) for path in ("b.md", "b.txt")] == [
        rule.glob for rule in structure.learnable
    ]
    assert structure.rule("adapter.yaml") is None
    assert structure.holds("adapter.yaml")
