"""The task set: rows of JSONL, and the splits that name them."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from hermit.config.document import opened, shown
from hermit.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from hermit.config.schema import RunConfig

_SPLITS = ("train", "val", "test")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Task:
    """One row of the task set.

    Args:
        id: Its id. It may be any text, with slashes, dots or line breaks in it: never use it as a file's name as it
            is; ``run/paths.py`` encodes ids for that.
        row: The whole row, as the agent and the judge get it.
        line: The line of the task file it stands on, from 1.
    """

    id: str
    row: Mapping[str, Any] = field(repr=False, hash=False)
    line: int


@dataclass(frozen=True)
class TaskSet:
    """All tasks of a run in the order of their file, and the ids of each split in the order of its file."""

    tasks: tuple[Task, ...]
    splits: Mapping[str, tuple[str, ...]] = field(hash=False)

    def split(self, name: str) -> tuple[Task, ...]:
        """The tasks of a split, in the split's order.

        Raises:
            ConfigError: The config names no such split.
        """
        if name not in self.splits:
            raise ConfigError(
                f"the config names no {name} split", where=f"data.{name}", cure="name a file with one task id per line"
            )
        by_id = {task.id: task for task in self.tasks}
        return tuple(by_id[task_id] for task_id in self.splits[name])


def load_tasks(config: RunConfig) -> TaskSet:
    """The tasks that a config names, with its splits.

    Raises:
        ConfigError: A file cannot be read or is not UTF-8; a row is not a JSON object with a unique id; a split is
            empty, names an unknown task or one task twice, or shares a task with another split. It names the line.
    """
    tasks = _read_tasks(config.data.tasks)
    known = {task.id for task in tasks}
    splits: dict[str, tuple[str, ...]] = {}
    taken: dict[str, str] = {}
    for name in _SPLITS:
        path: Path | None = getattr(config.data, name)
        if path is not None:
            splits[name] = _read_split(path, f"data.{name}", known=known, taken=taken)
    return TaskSet(tasks, MappingProxyType(splits))


def _read_tasks(path: Path) -> tuple[Task, ...]:
    tasks: dict[str, Task] = {}
    for number, line in _lines(path, "data.tasks"):
        if not line.strip():
            continue
        where = _at(path, number)
        row = _row(line, where)
        task_id = _id(row, where)
        if task_id in tasks:
            raise ConfigError(
                f"the task {task_id!r} stands here again, first on line {tasks[task_id].line}",
                where=where,
                cure="give every row an id of its own",
            )
        tasks[task_id] = Task(task_id, row, number)
    if not tasks:
        raise ConfigError("the task set holds no task", where=str(path), cure="write one JSON object per line into it")
    return tuple(tasks.values())


def _row(line: str, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line, object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)
    except json.JSONDecodeError as error:
        raise ConfigError(
            f"the row is not JSON: {error.msg.lower()}, at character {error.pos + 1}",
            where=where,
            cure="write one JSON object on the line",
        ) from error
    except (ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, _UnfitError) else "a number or a nesting in it has no end"
        raise ConfigError(f"the row is not JSON: {reason}", where=where, cure="correct the row") from error
    if not isinstance(row, dict):
        raise ConfigError("the row is JSON, but not an object", where=where, cure='write it as {"id": "...", ...}')
    return row


class _UnfitError(ValueError):
    pass


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _UnfitError(f"one object names {twice!r} twice")
    return row


def _constant(name: str) -> float:
    raise _UnfitError(f"JSON knows no {name}")


def _float(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise _UnfitError(f"{shown(digits, at_most=40)} is larger than any number")
    return number


def _id(row: Mapping[str, Any], where: str) -> str:
    given = {name: row[name] for name in ("id", "task_id") if row.get(name) is not None}
    if not given:
        raise ConfigError(
            "the row has no id", where=where, cure="give it an `id` (or `task_id`), text or a whole number"
        )
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise ConfigError(f"{name} is neither text nor a whole number", where=where, cure="write it as text")
    ids = sorted({str(value) for value in given.values()})
    if len(ids) > 1:
        raise ConfigError(
            f"id and task_id differ: {row['id']!r} and {row['task_id']!r}", where=where, cure="keep one of the two"
        )
    if not ids[0].strip():
        raise ConfigError("the id is empty", where=where, cure="give the row an id of its own")
    if any("\ud800" <= letter <= "\udfff" for letter in ids[0]):
        raise ConfigError(
            f"the id {ids[0]!r} is no text: it holds half of a surrogate pair", where=where, cure="correct it"
        )
    return ids[0]


def _read_split(path: Path, key: str, *, known: set[str], taken: dict[str, str]) -> tuple[str, ...]:
    """The ids of a split; ``taken`` says where each id of this and earlier splits stands."""
    ids = []
    for number, line in _lines(path, key):
        task_id, where = line.strip(), _at(path, number)
        if not task_id or task_id.startswith("#"):
            continue
        if task_id not in known:
            raise ConfigError(
                f"{key} names the task {task_id!r}, which data.tasks does not hold",
                where=where,
                cure="correct the id, or add its row to the task set",
            )
        if task_id in taken:
            raise ConfigError(
                f"{key} names the task {task_id!r}, which already stands in {taken[task_id]}",
                where=where,
                cure="keep it in one line of one split: splits share no task",
            )
        taken[task_id] = where
        ids.append(task_id)
    if not ids:
        raise ConfigError(f"{key} names no task", where=str(path), cure="write one task id per line, or drop the key")
    return tuple(ids)


def _lines(path: Path, key: str) -> Iterator[tuple[int, str]]:
    """The lines of a file, numbered from 1; only a line feed ends one, as in JSONL."""
    with opened(path, what=key) as file:
        for number, line in enumerate(file, start=1):
            try:
                text = (line.removeprefix(_BOM) if number == 1 else line).decode()
            except UnicodeDecodeError as error:
                raise ConfigError(
                    f"{key} is not UTF-8 text", where=_at(path, number), cure="save the file in the UTF-8 encoding"
                ) from error
            yield number, text


def _at(path: Path, line: int) -> str:
    return f"{path}:{line}"
