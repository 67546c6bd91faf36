"""No key stays in what a run keeps, in whatever form it stands there, and nothing else is changed."""

from __future__ import annotations

import base64
import gzip
import io
import json
import os
import stat
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermit.handoff import redact
from hermit.handoff.redact import Found, Key, Redactor, keys_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

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


def test_a_tree_is_scrubbed_in_contents_names_and_links(make: Callable[..., Redactor], tmp_path: Path) -> None:
    value = VALUE.replace("/", "-")
    root = tmp_path / "logs"
    deep = root / "a" / f"dir-{value}"
    deep.mkdir(parents=True)
    (deep / f"{value}.txt").write_text(f"once {value} twice {value}")
    (deep / "<MODEL_API_KEY>.txt").write_text("taken")
    (root / "plain").write_bytes(bytes(range(256)))
    (root / "run.sh").write_text(value)
    (root / "run.sh").chmod(0o700)
    (root / "way").symlink_to(f"a/{value}")
    before = (root / "plain").stat()
    found = Found()
    make(MODEL_API_KEY=value).tree(str(root), found)
    names = {str(path.relative_to(root)) for path in root.rglob("*")}
    moved = "a/dir-<MODEL_API_KEY>"
    assert names == {
        "a",
        moved,
        f"{moved}/<MODEL_API_KEY>.txt",
        f"{moved}/<MODEL_API_KEY>.txt.2",
        "plain",
        "run.sh",
        "way",
    }
    assert (root / moved / "<MODEL_API_KEY>.txt").read_text() == "taken"
    assert (root / moved / "<MODEL_API_KEY>.txt.2").read_text() == "once <MODEL_API_KEY> twice <MODEL_API_KEY>"
    assert os.readlink(root / "way") == "a/<MODEL_API_KEY>"
    assert stat.S_IMODE((root / "run.sh").stat().st_mode) == 0o700
    after = (root / "plain").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns), "what holds no key is not written"
    report = found.as_json()["scrubbed"]
    assert report["run.sh"] == {"MODEL_API_KEY": 1}
    assert report[f"{moved}/<MODEL_API_KEY>.txt"] == {"MODEL_API_KEY": 2}
    assert value not in json.dumps(report)


def test_no_link_of_a_tree_is_followed(make: Callable[..., Redactor], tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    outside = tmp_path / "elsewhere" / "file"
    outside.write_text(VALUE)
    root = tmp_path / "logs"
    root.mkdir()
    (root / "file").symlink_to(outside)
    (root / "directory").symlink_to(tmp_path / "elsewhere")
    make().tree(str(root), Found())
    assert outside.read_text() == VALUE


def test_what_is_packed_is_reported_and_what_cannot_be_read_does_not_block(
    make: Callable[..., Redactor], tmp_path: Path
) -> None:
    root = tmp_path / "logs"
    root.mkdir()
    (root / "log.gz").write_bytes(gzip.compress(VALUE.encode()))
    (root / "plain").write_text(VALUE)
    os.mkfifo(root / "fifo")
    found = Found()
    make().tree(str(root), found)
    assert found.as_json() == {
        "scrubbed": {"plain": {"MODEL_API_KEY": 1}},
        "not_searched": ["log.gz"],
        "unreadable": ["fifo"],
    }


def test_a_large_file_is_scrubbed_in_pieces(make: Callable[..., Redactor], tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    file = tmp_path / "logs" / "large"
    unit = b"z" * (redact.PIECE - 11) + VALUE.encode()
    file.write_bytes(unit * 5)
    make().tree(str(tmp_path / "logs"), Found())
    assert file.read_bytes() == (b"z" * (redact.PIECE - 11) + MARK) * 5


def test_one_key_over_the_border_of_two_pieces_of_a_file_is_found(
    make: Callable[..., Redactor], tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(b"z" * (redact.PIECE - 11) + VALUE.encode())
    make().tree(str(tmp_path), Found())
    assert (tmp_path / "file").read_bytes() == b"z" * (redact.PIECE - 11) + MARK


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


def test_without_a_key_nothing_is_done(make: Callable[..., Redactor], tmp_path: Path) -> None:
    nothing = Redactor(())
    assert not nothing
    assert nothing.data(b"abc" * 10, cut=True) == b"abc" * 10
    assert nothing.document(b"not even JSON") == b"not even JSON"
    nothing.tree(str(tmp_path), Found())
