"""A format is what it says, for any bytes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermit.adapter import formats
from hermit.adapter.manifest import Format

HEADED = Format(frontmatter=("name",))


@pytest.mark.parametrize(
    ("data", "form", "said"),
    [
        (b"abc", Format(max_bytes=2), "it has 3 bytes; 2 are allowed"),
        (b"\xff", Format(text=True), "it is not UTF-8 text"),
        (b"a\0b", Format(text=True), "without control characters"),
        (b"a\x1b[31m", Format(text=True), "without control characters"),
        (b"a", HEADED, "it has no front matter"),
        (b"---\n---\n", HEADED, "it has no front matter"),
        (b"---\nname: a\n", HEADED, "its front matter has no end"),
        (b"---\nother: a\n---\n", HEADED, "its front matter lacks name"),
        (b"---\nname:\n---\n", HEADED, "its front matter lacks name"),
        (b"---\n- a\n---\n", HEADED, "its front matter is a list"),
        (b"---\nname: a\nname: b\n---\n", HEADED, "its front matter is wrong: line 3: name is given twice"),
        (b"---\nname: !!python/name:os.system\n---\n", HEADED, "its front matter is wrong"),
        (b"---\n" + b"a: b\n" * 4000 + b"---\n", HEADED, "its front matter has more than"),
        (b"\xff", HEADED, "it is not UTF-8 text"),
    ],
)
def test_what_is_out_of_form_is_told(data: bytes, form: Format, said: str) -> None:
    assert said in formats.unfit(data, form)


@pytest.mark.parametrize(
    ("data", "form"),
    [
        (b"\xff\0", Format()),
        (b"ab", Format(max_bytes=2)),
        ("日本\r\n\tx".encode(), Format(text=True)),
        (b"---\nname: a\n---\nbody", HEADED),
        (b"---\r\nname: a\r\n---", HEADED),
        (b"---\nname: 0\n---\n", HEADED),
        (b"---\nany: a\n---\n", Format(frontmatter=())),
    ],
)
def test_what_is_in_form_passes(data: bytes, form: Format) -> None:
    assert formats.unfit(data, form) == ""


@given(st.binary(max_size=200))
@settings(deadline=None)
def test_any_bytes_are_in_form_or_not(data: bytes) -> None:
    for form in (Format(), Format(text=True), HEADED, Format(frontmatter=())):
        formats.unfit(data, form)
        formats.unfit(b"---\n" + data + b"\n---\n", form)


@given(st.text(alphabet="-\n abc", max_size=60))
@settings(deadline=None)
def test_a_page_loses_nothing_of_its_text(text: str) -> None:
    assert text.endswith(formats.page(text).body)


def test_lines_of_dashes_in_the_body_are_its_own() -> None:
    page = formats.page("---\na: 1\n---\nx\n---\ny\n")
    assert (page.head, page.body) == ({"a": 1}, "x\n---\ny\n")
