"""What anybody wrote can be shown: nothing hides in it, nothing acts, and it has an end."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermit.run.reading import words

ANY = st.text(st.characters(codec=None, exclude_categories=()))


@given(ANY)
def test_nothing_that_does_not_show_is_left(text: str) -> None:
    spelled = words.spelled(text)
    spelled.encode()
    for letter in set(spelled) - set("\n\t\u200c\u200d"):
        assert unicodedata.category(letter) not in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@given(ANY, st.integers(4, 60))
def test_a_line_is_one_line_and_no_longer_than_asked_for(text: str, most: int) -> None:
    line = words.line(text, most=most)
    assert len(line) <= most
    assert len(line.splitlines()) <= 1
    assert "\x1b" not in line


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("plain", "plain"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        ("a\x00b\rc\x85", r"a\x00b\rc\x85"),
        ("gnp\u202egpj.exe\u2066\u061c", r"gnp\u202egpj.exe\u2066\u061c"),
        ("\ud800", r"\ud800"),
        ("\u2028\ufeff\U000e0041", r"\u2028\ufeff\U000e0041"),
        ("日本\u3000語 שלום ক\u200cষ é", "日本\u3000語 שלום ক\u200cষ é"),
    ],
)
def test_what_does_not_show_is_spelled_and_letters_of_every_script_stay(text: str, spelled: str) -> None:
    assert words.spelled(text) == spelled


def test_a_long_text_keeps_its_beginning_and_its_end_and_says_how_much_is_left_out() -> None:
    cut = words.excerpt("a" * 10 + "b" * 100 + "c" * 5, head=10, tail=5)
    assert (cut.head, cut.left_out, cut.tail, cut.rest) == ("a" * 10, 100, "c" * 5, "characters")
    whole = words.excerpt("a" * 15, head=10, tail=5)
    assert (whole.head, whole.left_out, whole.tail) == ("a" * 15, 0, "")


def test_a_text_that_goes_on_where_it_was_read_has_no_end_and_says_so() -> None:
    for text in ("a" * 8, "a" * 80):
        cut = words.excerpt(text, more=True, head=10, tail=5)
        assert (cut.left_out, cut.tail, cut.rest) == (1, "", "more")


def test_the_first_line_that_says_something_is_the_one_that_is_shown() -> None:
    assert words.line("\n  \n  first \nsecond", most=20) == "first"
    assert words.line("a" * 30, most=10) == "aaaaaaa..."
    assert words.line("", most=10) == ""


@pytest.mark.parametrize(("value", "told"), [(None, ""), ("é", "é"), (0, "0"), ({"a": "é"}, '{\n "a": "é"\n}')])
def test_a_value_is_told_as_text(value: object, told: str) -> None:
    assert words.told(value) == told
