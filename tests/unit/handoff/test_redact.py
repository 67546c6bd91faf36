"""No key stays in what a run keeps, in whatever form it stands there, and nothing else is changed."""

from __future__ import annotations

import base64
import io
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermit.handoff import redact
from hermit.handoff.redact import Found, Key, Redactor, keys_of

if TYPE_CHECKING:
    from collections.abc import Callable

VALUE = "sk-Zq7/planted+9x_Value=42"
MARK = b"<MODEL_API_KEY>"


@pytest.fixture(params=["with the extra", "without it"])
def make(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Redactor]:
    """Makes a redactor, with the fast search and with the one of the standard library."""
    if request.param == "without it":
        monkeypatch.setattr(redact, "fast_search", lambda: None)
    else:
        assert redact.fast_search() is not None, "`make setup` installs it"

    def redactor(**keys: str) -> Redactor:
        given = keys or {"MODEL_API_KEY": VALUE}
        return Redactor(Key(name, value) for name, value in given.items())

    return redactor


def written(value: str) -> dict[str, bytes]:
    raw = value.encode()
    found = {
        "raw": raw,
        "in a header": b"Authorization: Bearer " + raw + b"\r\n",
        "hex": raw.hex().encode(),
        "HEX": raw.hex().upper().encode(),
        "URL": quote(value, safe="").encode(),
        "URL with small letters": quote(value, safe="")
        .replace("%2F", "%2f")
        .replace("%2B", "%2b")
        .replace("%3D", "%3d")
        .encode(),
        "JSON": json.dumps({"key": value}).encode(),
        "JSON with an escaped slash": json.dumps(value).replace("/", "\\/").encode(),
        "JSON in JSON": json.dumps(json.dumps({"key": value})).encode(),
    }
    for before in (b"", b"a", b"ab"):
        for after in (b"", b"!", b"!!"):
            whole = before + raw + after
            found[f"base64 of {whole!r}"] = base64.b64encode(whole)
            found[f"URL-safe base64 of {whole!r}"] = base64.urlsafe_b64encode(whole)
    return found


@pytest.mark.parametrize("form", written(VALUE))
def test_every_form_of_a_key_is_replaced(make: Callable[..., Redactor], form: str) -> None:
    text = written(VALUE)[form]
    scrubbed = make().data(b"before " + text + b" after")
    assert MARK in scrubbed
    assert VALUE.encode() not in scrubbed
    assert scrubbed.startswith(b"before ")
    assert scrubbed.endswith(b" after")


def test_a_key_with_quotes_lines_and_letters_beyond_ascii_is_found_in_json(make: Callable[..., Redactor]) -> None:
    value = 'pass"word\\with\nlines-äöü-日本-𝄞'
    redactor = make(ODD_SECRET=value)
    for ascii_only in (True, False):
        scrubbed = redactor.data(json.dumps({"said": value}, ensure_ascii=ascii_only).encode())
        assert json.loads(scrubbed) == {"said": "<ODD_SECRET>"}


@pytest.mark.parametrize("shift", range(-40, 4, 3))
@pytest.mark.parametrize("form", ["raw", "hex", "base64 of b'" + "a" + VALUE + "'"])
def test_a_key_over_the_border_of_two_pieces_is_found(make: Callable[..., Redactor], shift: int, form: str) -> None:
    text = written(VALUE)[form]
    before, after = b"x" * (redact.PIECE + shift), b"y" * redact.PIECE
    scrubbed = make().data(before + text + after)
    assert scrubbed.startswith(before)
    assert scrubbed.endswith(after)
    assert MARK in scrubbed[len(before) - 1 : -len(after)]
    assert len(scrubbed) < len(before + text + after)


def test_keys_that_touch_hold_or_begin_like_each_other_are_all_replaced(make: Callable[..., Redactor]) -> None:
    redactor = make(A_KEY="abcdefgh12345678", B_KEY="abcdefgh12345678ZZ", C_KEY="12345678ZZtop-secret")
    assert redactor.data(b"abcdefgh12345678abcdefgh12345678ZZ") == b"<A_KEY><B_KEY>"
    assert redactor.data(b"-12345678ZZtop-secret-") == b"-<C_KEY>-"
    assert b"abcdefgh12345678" not in redactor.data(b"abcdefgh12345678ZZtop-secret")


def test_the_ending_of_one_key_does_not_hide_another_that_begins_in_it(make: Callable[..., Redactor]) -> None:
    redactor = make(A_KEY="aaaaaaaa-shared-ending", B_KEY="d-ending-and-further")
    assert redactor.data(b"x-shared-ending-and-further") == b"x-share<B_KEY>"


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.binary(min_size=6, max_size=24).map(lambda raw: base64.b32encode(raw).decode().strip("=")),
        min_size=1,
        max_size=4,
        unique=True,
    ),
    st.lists(st.one_of(st.integers(0, 3), st.binary(max_size=40)), max_size=12),
    st.integers(1, 97),
)
def test_no_key_is_left_wherever_it_stands_and_however_the_text_is_cut(
    values: list[str], parts: list[Any], piece: int
) -> None:
    text = b"".join(values[part % len(values)].encode() if isinstance(part, int) else part for part in parts)
    redactor = Redactor(Key(f"K{number}_KEY", value) for number, value in enumerate(values))
    before, redact.PIECE = redact.PIECE, piece
    try:
        scrubbed = redactor.data(text)
    finally:
        redact.PIECE = before
    assert not any(value.encode() in scrubbed for value in values)
    assert scrubbed == redactor.data(text), "the size of the pieces changes nothing"


def test_what_holds_no_key_is_left_as_it_is(make: Callable[..., Redactor]) -> None:
    data = bytes(range(256)) * 40 + b"sk-Zq7/planted+9x_Value=43 MODEL_API_KEY"
    assert make().data(data) == data
    text = "half a pair \ud800 and 日本"
    assert make().text(text) == text
    value = {"a": [1, 2.5, None, True, "x", {"b": text}]}
    assert make().value(value) == value


def test_binary_data_changes_only_where_a_key_stands(make: Callable[..., Redactor]) -> None:
    before, after = bytes(range(256)), bytes(reversed(range(256)))
    assert make().data(before + VALUE.encode() + after) == before + MARK + after


def test_names_of_a_mapping_and_numbers_are_searched_too(make: Callable[..., Redactor]) -> None:
    redactor = make(NUMBER_KEY="1234567890123456", MODEL_API_KEY=VALUE)
    scrubbed = redactor.value({f"x{VALUE}": [1234567890123456, 7]})
    assert scrubbed == {"x<MODEL_API_KEY>": ["<NUMBER_KEY>", 7]}
    document = redactor.document(b'{"n": 1234567890123456}')
    assert json.loads(document) == {"n": "<NUMBER_KEY>"}, "it stays JSON"


@pytest.mark.parametrize("length", [8, 12, len(VALUE) - 1])
def test_a_text_that_was_cut_keeps_no_beginning_and_no_end_of_a_key(make: Callable[..., Redactor], length: int) -> None:
    raw = VALUE.encode()
    assert make().data(b"text " + raw[:length], cut=True) == b"text " + MARK
    assert make().data(raw[-length:] + b" text", cut=True) == MARK + b" text"
    assert make().data(b"text " + raw[:length]) == b"text " + raw[:length]


def test_a_report_counts_and_never_holds_a_value(make: Callable[..., Redactor]) -> None:
    found = Found()
    redactor = make(A_KEY="first-value-of-a-key", B_KEY="second-value-of-a-key")
    redactor.data(b"first-value-of-a-key, first-value-of-a-key, second-value-of-a-key", found=found, where="log")
    redactor.data(b"nothing", found=found, where="other")
    assert found.as_json() == {"scrubbed": {"log": {"A_KEY": 2, "B_KEY": 1}}, "not_searched": [], "unreadable": []}
    assert "value-of-a-key" not in repr(keys_of({"A_KEY": "first-value-of-a-key"}, passes=lambda _: False))


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_what_is_written_through_has_no_key_however_it_is_cut(make: Callable[..., Redactor], size: int) -> None:
    target, found, text = io.BytesIO(), Found(), b"before " + VALUE.encode() + b" after " + VALUE.encode()
    with make().through(target, found=found, where="manifest") as file:
        for at in range(0, len(text), size):
            file.write(text[at : at + size])
    assert target.getvalue() == b"before " + MARK + b" after " + MARK
    assert found.as_json()["scrubbed"] == {"manifest": {"MODEL_API_KEY": 2}}


@pytest.mark.parametrize(
    ("name", "value", "passed", "is_key"),
    [
        ("MODEL_API_KEY", "x" * 16, False, True),
        ("MODEL_KEY", "x" * 16, False, True),
        ("HF_TOKEN", "x" * 16, False, True),
        ("APP_SECRET", "x" * 16, False, True),
        ("app_secret", "x" * 16, False, True),
        ("MODEL_API_KEY", "x" * 15, False, False),
        ("MODEL_API_KEY", "x" * 15, True, True),
        ("MODEL_API_KEY", "", True, False),
        ("MODEL_API_KEY", " \n", True, False),
        ("KEYBOARD", "x" * 16, True, False),
        ("PATH", "x" * 16, True, False),
    ],
)
def test_a_key_is_a_variable_named_like_one_and_long_or_passed_on(
    name: str, value: str, passed: bool, is_key: bool
) -> None:
    assert bool(keys_of({name: value}, passes=lambda _: passed)) is is_key


def test_a_value_of_two_variables_has_one_name_and_space_around_it_does_not_hide_it() -> None:
    found = keys_of({"B_KEY": "0123456789abcdef\n", "A_KEY": "0123456789abcdef"}, passes=lambda _: False)
    assert found == (Key("A_KEY", "0123456789abcdef"),)


def test_without_a_key_nothing_is_done() -> None:
    nothing = Redactor(())
    assert not nothing
    assert nothing.data(b"abc" * 10, cut=True) == b"abc" * 10
    assert nothing.document(b"not even JSON") == b"not even JSON"
