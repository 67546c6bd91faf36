from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermit.config.load import load
from hermit.errors import ConfigError

MINIMAL = """\
data:
  tasks: tasks.jsonl
agent:
  name: react
judge:
  path: judge.py
"""

SHARED_DIRECTORY = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)


def test_a_key_given_twice_is_refused_with_both_lines(refused):
    message = refused(MINIMAL + "agent:\n  name: codex\n")
    assert message.startswith("run.yaml:7: agent is given twice in one mapping, first in run.yaml:3\n")


@pytest.mark.parametrize("key", ["on", "1", "null", "[a]", "{a: b}"])
def test_a_key_that_is_not_text_is_refused_with_its_line(refused, key):
    assert "run.yaml:7: a key must be text" in refused(MINIMAL + f"backends: {{? {key} : 1}}\n")


def test_a_date_stays_the_text_it_was_written_as(read):
    config = read(MINIMAL + "backends: {d: 2024-01-02}\n")
    assert config.backends == {"d": "2024-01-02"}


def test_aliases_and_merge_keys_work_and_own_keys_win(read):
    text = (
        MINIMAL
        + "backends:\n  a: &a {x: 1, y: 1}\n  b: &b {y: 2}\n  c: {<<: [*b, *a], z: 3}\n  d: {y: 4, <<: *a}\n  e: *a\n"
    )
    backends = read(text).backends
    assert backends["c"] == {"x": 1, "y": 2, "z": 3}
    assert backends["d"] == {"x": 1, "y": 4}
    assert backends["e"] == backends["a"]


@pytest.mark.parametrize("bad", ["<<: 3", "<<: [3]"])
def test_a_merge_of_what_is_no_mapping_is_refused(refused, bad):
    assert "run.yaml:7: << takes a mapping" in refused(MINIMAL + f"backends: {{{bad}}}\n")


def test_aliases_that_unfold_without_end_are_refused(refused):
    bomb = "backends:\n  a0: &a0 [x]\n" + "".join(
        f"  a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 7)
    )
    assert "its aliases unfold to more than" in refused(MINIMAL + bomb)
    assert "deep in each other" in refused(MINIMAL + "backends: &a {x: *a}\n")
    assert "deep in each other" in refused(MINIMAL + "backends: &a {<<: *a}\n")


@pytest.mark.parametrize("depth", [60, 20_000])
def test_nesting_without_end_is_refused(refused, depth):
    assert "deep in each other" in refused("a: " + "[" * depth + "]" * depth)


def test_a_value_that_replaces_a_section_leaves_none_of_its_lines_behind(refused):
    assert refused(MINIMAL, "data={train: x}").startswith("command line: data={train: x}: data.tasks is required")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"a: b\nc: \xff\n", "run.yaml:2: the config is not UTF-8 text"),
        (b"a: b\nc: [\n\n", "run.yaml:4: not YAML: "),
        (b"a: b\n\tc: d\n", "run.yaml:2: not YAML: "),
        (b"a: b\n---\nc: d\n", "run.yaml:2: not YAML: "),
        (b"a: b\nc: *nowhere\n", "run.yaml:2: not YAML: "),
        (b"a: b\n\nc: \x01\n", "run.yaml:3: not YAML: it holds a control character"),
        (b"- a\n", "run.yaml:1: expected a mapping of settings, found a list"),
        (b"42\n", "run.yaml:1: expected a mapping of settings, found 42"),
        (b"#" * (1024 * 1024 + 1), "run.yaml: the config is longer than 1048576 bytes"),
    ],
)
def test_a_file_that_is_no_config_is_one_clear_error(refused, content, complaint):
    message = refused(content)
    assert message.startswith(complaint)
    assert message.count("\n") == 1


def test_a_config_that_is_not_there_or_not_a_file_is_one_clear_error(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name, reason in [("none.yaml", "no such file"), (".", "is a directory"), ("pipe", "is not a regular file")]:
        with pytest.raises(ConfigError, match=reason):
            load(tmp_path / name, environ={})


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(read, refused):
    text = b"\xef\xbb\xbf" + MINIMAL.replace("\n", "\r\n").encode()
    assert read(text) == read(MINIMAL)
    assert refused(text + b"zebra: 1\r\n").startswith("run.yaml:7: zebra")


def test_a_message_stays_printable_whatever_the_key(refused):
    message = refused(MINIMAL + '"a\\e[31m\\nb": 1\n')
    assert message.splitlines()[0].isprintable()
    assert "run.yaml:7: 'a\\x1b[31m\\nb' is not a known key" in message


@SHARED_DIRECTORY
@given(st.binary(max_size=300))
def test_arbitrary_bytes_are_a_config_or_a_config_error(read, data):
    try:
        read(data)
    except ConfigError as error:
        assert str(error)  # noqa: PT017 - either way is right, and nothing else may be raised
