from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermit.config.schema import RunConfig
from hermit.config.tasks import TaskSet, load_tasks
from hermit.errors import ConfigError, ExitCode

if TYPE_CHECKING:
    from pathlib import Path

THREE = '{"id": "a", "x": 1}\n{"id": "b"}\n{"id": "c"}\n'
SHARED_DIRECTORY = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)


def read(directory: Path, rows: str | bytes, **splits: str | bytes) -> TaskSet:
    data = {"tasks": directory / "tasks.jsonl"}
    data["tasks"].write_bytes(rows if isinstance(rows, bytes) else rows.encode())
    for name, ids in splits.items():
        data[name] = directory / f"{name}.txt"
        data[name].write_bytes(ids if isinstance(ids, bytes) else ids.encode())
    return load_tasks(RunConfig.model_validate({"data": data, "agent": {"name": "react"}, "judge": {"path": "/j.py"}}))


def refused(directory: Path, rows: str | bytes, **splits: str | bytes) -> str:
    with pytest.raises(ConfigError) as caught:
        read(directory, rows, **splits)
    assert caught.value.exit_code == ExitCode.CONFIG
    assert caught.value.cure
    return str(caught.value).replace(f"{directory}/", "")


def test_tasks_keep_the_order_and_the_lines_of_their_file(tmp_path):
    tasks = read(tmp_path, '{"id": "b", "q": [1]}\n\n{"task_id": 7}\r\n{"id": "a", "task_id": "a"}').tasks
    assert [(task.id, task.line) for task in tasks] == [("b", 1), ("7", 3), ("a", 4)]
    assert tasks[0].row == {"id": "b", "q": [1]}


def test_a_split_keeps_the_order_of_its_file_and_skips_comments_and_blank_lines(tmp_path):
    tasks = read(tmp_path, THREE, train="# first\n c \n\na\r\n", test="b")
    assert [task.id for task in tasks.split("train")] == ["c", "a"]
    assert tasks.split("train")[1].row == {"id": "a", "x": 1}
    assert tasks.splits == {"train": ("c", "a"), "test": ("b",)}


def test_a_split_the_config_does_not_name_is_refused_when_it_is_asked_for(tmp_path):
    with pytest.raises(ConfigError, match=r"data\.test: the config names no test split"):
        read(tmp_path, THREE).split("test")


def test_splits_cannot_be_changed(tmp_path):
    with pytest.raises(TypeError):
        read(tmp_path, THREE, test="a").splits["test"] = ()


def test_an_id_may_be_any_text_and_only_a_line_feed_ends_a_row(tmp_path):
    ids = ["HumanEval/0", "..", "#5", "x\u2028\x0by", "ü" * 300, "a\nb"]
    tasks = read(tmp_path, "".join(json.dumps({"id": task_id}, ensure_ascii=False) + "\n" for task_id in ids))
    assert [task.id for task in tasks.tasks] == ids


def test_a_byte_order_mark_does_no_harm(tmp_path):
    tasks = read(tmp_path, b"\xef\xbb\xbf" + THREE.encode(), test=b"\xef\xbb\xbfa\n")
    assert tasks.splits["test"] == ("a",)


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ("{", "the row is not JSON: "),
        ('{"id": "b"} x', "the row is not JSON: extra data, at character 13"),
        ('{"id": "b", "x": NaN}', "the row is not JSON: JSON knows no NaN"),
        ('{"id": "b", "x": [-Infinity]}', "the row is not JSON: JSON knows no -Infinity"),
        ('{"id": "b", "x": 1e999}', "the row is not JSON: 1e999 is larger than any number"),
        ('{"id": "b", "x": ' + "9" * 5000 + "}", "the row is not JSON: a number or a nesting in it has no end"),
        ('{"id": "b", "x": ' + "[" * 100_000, "the row is not JSON: a number or a nesting in it has no end"),
        ('{"id": "b", "id": "c"}', "the row is not JSON: one object names 'id' twice"),
        ('["b"]', "the row is JSON, but not an object"),
        ("7", "the row is JSON, but not an object"),
        ("{}", "the row has no id"),
        ('{"id": null}', "the row has no id"),
        ('{"id": ""}', "the id is empty"),
        ('{"task_id": " "}', "the id is empty"),
        ('{"id": 1.5}', "id is neither text nor a whole number"),
        ('{"task_id": true}', "task_id is neither text nor a whole number"),
        ('{"id": ["b"]}', "id is neither text nor a whole number"),
        ('{"id": "b", "task_id": "c"}', "id and task_id differ: 'b' and 'c'"),
        ('{"id": "\\ud800"}', "the id '\\ud800' is no text"),
        ('{"id": "a"}', "the task 'a' stands here again, first on line 1"),
    ],
)
def test_a_broken_row_is_refused_with_its_line(tmp_path, row, complaint):
    message = refused(tmp_path, f'{{"id": "a"}}\n\n{row}\n')
    assert message.startswith(f"tasks.jsonl:3: {complaint}")


def test_a_number_and_the_same_number_as_text_are_one_id(tmp_path):
    assert refused(tmp_path, '{"id": 1}\n{"id": "1"}\n').startswith("tasks.jsonl:2: the task '1' stands here again")
    assert read(tmp_path, '{"id": 1, "task_id": "1"}').tasks[0].id == "1"


def test_a_row_or_a_split_that_is_not_utf_8_is_refused_with_its_line(tmp_path):
    assert refused(tmp_path, b'{"id": "a"}\n{"id": "\xff"}\n').startswith("tasks.jsonl:2: data.tasks is not UTF-8 text")
    assert refused(tmp_path, THREE, val=b"a\n\xff\n").startswith("val.txt:2: data.val is not UTF-8 text")


@pytest.mark.parametrize("rows", ["", "\n  \n"])
def test_a_task_set_without_a_task_is_refused(tmp_path, rows):
    assert refused(tmp_path, rows).startswith("tasks.jsonl: the task set holds no task")


def test_a_split_that_names_an_unknown_task_is_refused_with_its_line(tmp_path):
    message = refused(tmp_path, THREE, test="# of three\na\nz\n")
    assert message.startswith("test.txt:3: data.test names the task 'z', which data.tasks does not hold")


def test_a_split_that_names_a_task_twice_is_refused_with_both_lines(tmp_path):
    message = refused(tmp_path, THREE, test="a\nb\na\n")
    assert message.startswith("test.txt:3: data.test names the task 'a', which already stands in test.txt:1")


def test_splits_that_share_a_task_are_refused_with_both_files_and_lines(tmp_path):
    message = refused(tmp_path, THREE, train="a\nb\n", test="c\nb\n")
    assert message.startswith("test.txt:2: data.test names the task 'b', which already stands in train.txt:2")


@pytest.mark.parametrize("ids", ["", "\n# nothing\n"])
def test_an_empty_split_is_refused(tmp_path, ids):
    assert refused(tmp_path, THREE, val=ids).startswith("val.txt: data.val names no task")


@pytest.mark.parametrize(
    ("path", "reason"), [("none", "no such file"), (".", "is a directory"), ("/dev/null", "not a regular")]
)
@pytest.mark.parametrize("key", ["tasks", "test"])
def test_a_file_that_is_not_there_or_not_a_file_is_refused_with_its_key(tmp_path, key, path, reason):
    (tmp_path / "tasks.jsonl").write_text(THREE)
    data = {"tasks": tmp_path / "tasks.jsonl", key: tmp_path / path}
    config = RunConfig.model_validate({"data": data, "agent": {"name": "react"}, "judge": {"path": "/j.py"}})
    with pytest.raises(ConfigError, match=rf"{tmp_path / path}: data.{key} .*{reason}"):
        load_tasks(config)


@SHARED_DIRECTORY
@given(st.binary(max_size=200) | st.text(max_size=100).map(str.encode), st.binary(max_size=40))
def test_arbitrary_files_are_tasks_or_a_config_error(tmp_path, rows, ids):
    for content, split in ((rows, ids), (THREE.encode(), ids)):
        try:
            tasks = read(tmp_path, content, test=split)
        except ConfigError:
            continue
        assert tasks.split("test")


@SHARED_DIRECTORY
@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip), min_size=1, unique=True)
)
def test_every_id_comes_back_as_it_was_written(tmp_path, ids):
    tasks = read(tmp_path, "".join(json.dumps({"id": task_id}) + "\n" for task_id in ids))
    assert [task.id for task in tasks.tasks] == ids
