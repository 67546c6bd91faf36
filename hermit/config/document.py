"""YAML text as a tree of values that remember where they were written.

The tree is plain: mappings with text keys, lists, text, whole and finite numbers, true, false and null. Whatever JSON
could not carry is refused here, so that a setting means the same on both sides of a sandbox.
"""

from __future__ import annotations

import math
import stat
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO

import yaml

from hermit.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

MAX_BYTES = 1024 * 1024
# An alias costs nine bytes and can stand for everything before it: what counts is the tree it unfolds to.
MAX_VALUES = 20_000
MAX_DEPTH = 40
MAX_INT = 2**63

_TAG = "tag:yaml.org,2002:"
_MERGE = _TAG + "merge"
# A date stays the text it was written as: JSON has no dates, and an agent would get text anyway.
_TEXT = frozenset(_TAG + kind for kind in ("str", "timestamp", "value", "merge"))
_CONSTRUCTED = frozenset(_TAG + kind for kind in ("null", "bool", "int", "float"))


@dataclass(frozen=True, order=True)
class Where:
    """A place a person can go to: ``order`` sorts places, files before the command line; ``text`` names one."""

    order: tuple[int, int]
    text: str = field(compare=False)


@dataclass(frozen=True, order=True)
class Problem:
    """One thing that is wrong, in one line, and its place."""

    where: Where
    text: str

    def __str__(self) -> str:
        return f"{self.where.text}: {self.text}"


@dataclass(frozen=True)
class Placed:
    """A value with the place it was written at; mappings and lists hold further placed values."""

    value: Any
    where: Where

    def plain(self) -> Any:
        """The value without its places."""
        if isinstance(self.value, dict):
            return {key: item.plain() for key, item in self.value.items()}
        if isinstance(self.value, list):
            return [item.plain() for item in self.value]
        return self.value

    def find(self, path: tuple[str | int, ...]) -> Where:
        """The place of the value at ``path``, or of the deepest value on the way to it that was written at all."""
        here = self
        for part in path:
            inner = here.value
            written = (
                part in inner if isinstance(inner, dict) else isinstance(inner, list) and part in range(len(inner))
            )
            if not written:
                break
            here = inner[part]
        return here.where


def shown(text: str, *, at_most: int = 100) -> str:
    """Text of a person as it can stand in a one-line message: printable, and cut where it is long."""
    line = text if text.isprintable() else repr(text)
    return line if len(line) <= at_most else line[: at_most - 3] + "..."


@contextmanager
def opened(path: Path, *, what: str) -> Iterator[BinaryIO]:
    """A regular file, open for reading as long as the block lasts.

    Args:
        path: The file.
        what: What it is to the person who named it, such as ``data.tasks``; it starts the message.

    Raises:
        ConfigError: It does not exist, is a directory or a device, or cannot be read.
    """
    where = shown(str(path), at_most=4096)
    try:
        # Asked before it is opened: opening a pipe that nobody writes to would wait for ever.
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            kind = "a directory" if stat.S_ISDIR(mode) else "not a regular file"
            raise ConfigError(f"{what} is {kind}", where=where, cure="name a file instead")
        with path.open("rb") as file:
            yield file
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ConfigError(
            f"{what} cannot be read: {reason}", where=where, cure="correct the path, or the file's permissions"
        ) from error


def read_mapping(path: Path) -> Placed:
    """The mapping that a YAML file holds; an empty file is an empty mapping.

    Raises:
        ConfigError: The file cannot be read, is longer than 1 MiB, is not UTF-8 or not YAML, holds something other
            than one mapping, names a key twice, or holds a value that JSON could not carry.
    """
    name = shown(str(path), at_most=4096)
    with opened(path, what="the config") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ConfigError(
            f"the config is longer than {MAX_BYTES} bytes", where=name, cure="name a YAML file of settings"
        )
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            "the config is not UTF-8 text", where=f"{name}:{line}", cure="save the file in the UTF-8 encoding"
        ) from error

    def at(line: int) -> Where:
        return Where((0, line), f"{name}:{line}")

    root, problems = parse(text, at=at)
    if problems:
        raise refusal(problems, where=name)
    if root.value is None:
        return Placed({}, at(1))
    if not isinstance(root.value, dict):
        raise refusal(
            [Problem(root.where, f"expected a mapping of settings, found {described(root.plain())}")], where=name
        )
    return Placed(root.value, at(1))


SCHEMA_CURE = "correct it; `hermit config schema` prints every key with its type and default"


def refusal(problems: list[Problem], *, where: str, cure: str = SCHEMA_CURE) -> ConfigError:
    """One error for everything that is wrong, a line each, in the order of the places."""
    ordered = sorted(problems)
    if len(ordered) == 1:
        return ConfigError(ordered[0].text, where=ordered[0].where.text, cure=cure)
    lines = "".join(f"\n  {problem}" for problem in ordered)
    return ConfigError(f"{len(ordered)} settings are wrong{lines}", where=where, cure=cure.replace("it;", "them;"))


def described(value: Any) -> str:
    """What a value is, as the end of the phrase *expected a number, found ...*."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    return shown(repr(value), at_most=80)


def parse(text: str, *, at: Callable[[int], Where]) -> tuple[Placed, list[Problem]]:
    """The one YAML document in ``text``, and what is wrong with it; ``at`` names the place of a line."""
    tree = _Tree(at)
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        return tree.placed(node, at(1), depth=0) if node else Placed(None, at(1)), tree.problems
    except _TooLargeError as error:
        return _broken(error.where, str(error))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        return _broken(at(mark.line + 1 if mark else 1), f"not YAML: {error.problem or error.context}")
    except yaml.reader.ReaderError as error:
        return _broken(at(text.count("\n", 0, error.position) + 1), "not YAML: it holds a control character")
    except RecursionError:
        return _broken(at(1), "lists or mappings lie too deep in each other")
    except (ValueError, OverflowError):
        # The scanner turns the digits of an escape such as "\UFFFFFFFF" into a character without a look at them.
        return _broken(at(1), "not YAML: an escape in it names no character")


def _broken(where: Where, text: str) -> tuple[Placed, list[Problem]]:
    return Placed(None, where), [Problem(where, shown(" ".join(text.split()), at_most=300))]


class _TooLargeError(Exception):
    def __init__(self, text: str, where: Where) -> None:
        super().__init__(text)
        self.where = where


@dataclass
class _Tree:
    """One walk over the nodes of a document: what it found wrong, and how many values it has made."""

    at: Callable[[int], Where]
    problems: list[Problem] = field(default_factory=list)
    made: int = 0

    def placed(self, node: yaml.Node, where: Where, *, depth: int) -> Placed:
        self.made += 1
        if self.made > MAX_VALUES:
            raise _TooLargeError(f"its aliases unfold to more than {MAX_VALUES} values", where)
        if depth > MAX_DEPTH:
            raise _TooLargeError(f"lists or mappings lie more than {MAX_DEPTH} deep in each other", where)
        if isinstance(node, yaml.MappingNode) and node.tag == _TAG + "map":
            return Placed(self.mapping(node, depth=depth), where)
        if isinstance(node, yaml.SequenceNode) and node.tag == _TAG + "seq":
            return Placed([self.placed(item, self.line(item), depth=depth + 1) for item in node.value], where)
        return Placed(self.scalar(node, where), where)

    def line(self, node: yaml.Node) -> Where:
        return self.at(node.start_mark.line + 1)

    def mapping(self, node: yaml.MappingNode, *, depth: int) -> dict[str, Placed]:
        own: dict[str, Placed] = {}
        inherited: dict[str, Placed] = {}
        for key_node, value_node in node.value:
            where = self.line(key_node)
            if key_node.tag == _MERGE:
                inherited = {**self.merged(value_node, where, depth=depth), **inherited}
                continue
            key = self.key(key_node)
            if key is None:
                continue
            if key in own:
                self.wrong(where, f"{shown(key)} is given twice in one mapping, first in {own[key].where.text}")
                continue
            own[key] = self.placed(value_node, where, depth=depth + 1)
        return {**inherited, **own}

    def merged(self, node: yaml.Node, where: Where, *, depth: int) -> Mapping[str, Placed]:
        """What ``<<: *name`` or ``<<: [*first, *second]`` brings in; the first to name a key wins."""
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        found: dict[str, Placed] = {}
        for source in sources:
            placed = self.placed(source, where, depth=depth + 1)
            if isinstance(placed.value, dict):
                found = {**placed.value, **found}
            else:
                self.wrong(where, "<< takes a mapping or a list of mappings")
        return found

    def key(self, node: yaml.Node) -> str | None:
        key = self.scalar(node, self.line(node)) if isinstance(node, yaml.ScalarNode) else None
        if isinstance(key, str):
            return key
        found = f"{shown(node.value)} without quotes" if isinstance(node, yaml.ScalarNode) else "a list or a mapping"
        self.wrong(self.line(node), f"a key must be text, found {found}: put it in quotes")
        return None

    def scalar(self, node: yaml.Node, where: Where) -> Any:
        if not isinstance(node, yaml.ScalarNode) or node.tag not in _TEXT | _CONSTRUCTED:
            self.wrong(where, f"the tag {shown(node.tag.replace(_TAG, '!!'))} is not allowed here")
            return None
        try:
            return _carried(
                node.value if node.tag in _TEXT else yaml.constructor.SafeConstructor().construct_object(node)
            )
        except _UnfitError as error:
            self.wrong(where, f"{described(node.value)} cannot stand in a config: {error}")
        except (ValueError, LookupError, yaml.YAMLError):
            self.wrong(where, f"{described(node.value)} cannot be read as {node.tag.replace(_TAG, '!!')}")
        return None

    def wrong(self, where: Where, text: str) -> None:
        self.problems.append(Problem(where, shown(text, at_most=300)))


class _UnfitError(Exception):
    pass


def _carried(value: Any) -> Any:
    """The scalar itself, if JSON and UTF-8 can carry it."""
    if isinstance(value, str) and any("\ud800" <= letter <= "\udfff" for letter in value):
        raise _UnfitError("it holds half of a surrogate pair")
    if isinstance(value, float) and not math.isfinite(value):
        raise _UnfitError("only finite numbers can")
    if isinstance(value, int) and abs(value) >= MAX_INT:
        raise _UnfitError("it needs more than 64 bits")
    return value
