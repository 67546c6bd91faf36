"""No key stays in what a run keeps: each value, and each form it is usually written in, becomes ``<VARIABLE>``.

Theory of operation. A long text is searched in pieces that overlap by the longest pattern, so a border hides nothing. Each
piece is asked first whether it holds the last few letters of any pattern: keys of one vendor begin alike, but end like
nothing else, and so few patterns at a time are searched for at memory's speed. Only a piece that does is looked at exactly.
``ahocorasick_rs`` does both where it is installed; without it every pattern is searched for by itself.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO, cast
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

LIKE_A_KEY = ("_KEY", "_TOKEN", "_SECRET")
SHORTEST = 16  # of a value that was not passed on: a shorter one could be any word
SHORTEST_CODED = 6  # a code of fewer letters stands in many texts that have nothing to do with it
SHORTEST_CUT = 8  # of a piece of a value at an end where a text was cut
PIECE = 256 * 1024
ANCHOR = 12
GROUP = 64  # so many patterns the search still compares side by side
Span = tuple[int, int, str]


@dataclass(frozen=True)
class Key:
    """A variable and its value, which nothing may keep."""

    name: str
    value: str = field(repr=False)


def keys_of(environ: Mapping[str, str], *, passes: Callable[[str], bool]) -> tuple[Key, ...]:
    """The keys among a process's variables, each value once.

    Args:
        environ: The variables.
        passes: Whether a variable was passed into a sandbox: then its value is a key however short it is.
    """
    found: dict[str, Key] = {}
    for name, given in sorted(environ.items()):
        value = given.strip()
        if name.upper().endswith(LIKE_A_KEY) and value and (len(value) >= SHORTEST or passes(name)):
            found.setdefault(value, Key(name, value))
    return tuple(found.values())


def forms(value: str) -> tuple[bytes, ...]:
    """A value as bytes, and as it stands in JSON, in a URL, in hexadecimal and, wherever it begins, in base64."""
    raw = os.fsencode(value) if _is_encodable(value) else value.encode("utf-8", "replace")
    found = {raw: None}
    for ascii_only in (True, False):
        quoted = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
        for text in (quoted, quoted.replace("/", "\\/"), json.dumps(quoted)[1:-1]):
            found[text.encode("utf-8", "surrogateescape")] = None
    if len(raw) >= SHORTEST_CODED:
        for safe in ("", "/"):
            coded = quote(raw, safe=safe)
            found |= {coded.encode(): None, _lower_escapes(coded).encode(): None}
        found |= {raw.hex().encode(): None, raw.hex().upper().encode(): None}
        found |= dict.fromkeys(_in_base64(raw))
    return tuple(found)


def _is_encodable(value: str) -> bool:
    try:
        os.fsencode(value)
    except UnicodeEncodeError:
        return False
    return True


def _lower_escapes(coded: str) -> str:
    head, *rest = coded.split("%")
    return head + "".join(f"%{part[:2].lower()}{part[2:]}" for part in rest)


def _in_base64(raw: bytes) -> Iterator[bytes]:
    """The letters that belong to these bytes alone, for each of the three places a value can begin at."""
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        for offset in range(3):
            letters = encode(b"\0" * offset + raw)
            yield letters[-(-offset * 8 // 6) : (offset + len(raw)) * 8 // 6]


def fast_search() -> Any:
    """The library that searches for many patterns at once; ``None`` where that extra is not installed."""
    try:
        import ahocorasick_rs  # noqa: PLC0415 - an extra, which only a run with a key needs
    except ImportError:
        return None
    return ahocorasick_rs


@dataclass
class Found:
    """What was scrubbed where, and what could not be looked into; never a value.

    Args:
        scrubbed: For each place, how often each variable's value stood there.
        unsearched: Packed files, which were searched as they are and not for what is packed in them.
        unreadable: What could not be read.
    """

    scrubbed: dict[str, Counter[str]] = field(default_factory=dict)
    unsearched: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)

    def add(self, where: str, counts: Counter[str]) -> None:
        """Adds what was found in one place."""
        if counts:
            self.scrubbed.setdefault(where, Counter()).update(counts)

    def __bool__(self) -> bool:
        return bool(self.scrubbed or self.unsearched or self.unreadable)

    def as_json(self) -> dict[str, Any]:
        """The report, with its places in order."""
        scrubbed = {where: dict(sorted(counts.items())) for where, counts in sorted(self.scrubbed.items())}
        return {"scrubbed": scrubbed, "not_searched": sorted(self.unsearched), "unreadable": sorted(self.unreadable)}


class Redactor:
    """Replaces the values of some keys wherever they stand."""

    def __init__(self, keys: Iterable[Key]) -> None:
        self._marks: dict[bytes, str] = {}
        for key in keys:
            for form in forms(key.value):
                self._marks.setdefault(form, key.name)
        self._patterns = list(self._marks)
        self._longest = max(map(len, self._patterns), default=0)
        self._anchors: list[Any] = []
        self._exact: Any = None
        search = fast_search() if self._patterns else None
        if search is not None:
            anchors = sorted({pattern[-ANCHOR:] for pattern in self._patterns})
            kind = search.MATCHKIND_LEFTMOST_FIRST
            groups = [anchors[at : at + GROUP] for at in range(0, len(anchors), GROUP)]
            self._anchors = [search.BytesAhoCorasick(group, matchkind=kind) for group in groups]
            self._exact = search.BytesAhoCorasick(self._patterns)

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def data(self, data: bytes, *, found: Found | None = None, where: str = "", cut: bool = False) -> bytes:
        """The bytes without a key.

        Args:
            data: What is kept.
            found: Is told what was found.
            where: The place it is told of.
            cut: Whether the text may end, or begin, in the middle of a key.
        """
        counts: Counter[str] = Counter()
        scrubbed = data
        if any(self._occurrences(piece) for piece in _overlapping(data, self._longest)):
            parts: list[bytes] = []
            self._scrub(_pieces(data), parts.append, counts)
            scrubbed = b"".join(parts)
        if cut:
            scrubbed = self._without_ends(scrubbed, counts)
        if found is not None:
            found.add(where, counts)
        return scrubbed

    def text(self, text: str, *, found: Found | None = None, where: str = "", cut: bool = False) -> str:
        """The text without a key; one that holds none is returned as it is, whatever it is made of."""
        encoded = text.encode("utf-8", "surrogatepass")
        scrubbed = self.data(encoded, found=found, where=where, cut=cut)
        return text if scrubbed == encoded else scrubbed.decode("utf-8", "surrogatepass")

    def value(self, value: Any, *, found: Found | None = None, where: str = "") -> Any:
        """A value of JSON without a key in any text of it, a name of a mapping and a number included."""
        if not self._patterns:
            return value
        if isinstance(value, str):
            return self.text(value, found=found, where=where)
        if isinstance(value, dict):
            return {
                self.text(str(name), found=found, where=where): self.value(inner, found=found, where=where)
                for name, inner in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.value(inner, found=found, where=where) for inner in value]
        if isinstance(value, int | float) and not isinstance(value, bool):
            text = json.dumps(value)
            scrubbed = self.text(text, found=found, where=where)
            return value if scrubbed == text else scrubbed
        return value

    def document(self, data: bytes, *, found: Found | None = None, where: str = "") -> bytes:
        """A file of JSON without a key; it stays JSON, and one that holds none stays as it is."""
        if not any(self._occurrences(piece) for piece in _overlapping(data, self._longest)):
            return data
        return json.dumps(self.value(json.loads(data), found=found, where=where), indent=1).encode("ascii") + b"\n"

    @contextlib.contextmanager
    def through(self, target: BinaryIO, *, found: Found, where: str) -> Iterator[BinaryIO]:
        """A file to write to, whose bytes reach another one without a key."""
        counts: Counter[str] = Counter()
        between = Between(lambda data, more: self._settle(data, target.write, counts, more=more))
        yield cast("BinaryIO", between)
        between.end()
        found.add(where, counts)

    def holds_any(self, file: BinaryIO) -> bool:
        """Whether a key stands in a file, from where it is to its end."""
        carried = b""
        while piece := file.read(PIECE):
            if self._occurrences(carried + piece):
                return True
            carried = (carried + piece)[-(self._longest - 1) :] if self._longest > 1 else b""
        return False

    def copy(self, pieces: Iterable[bytes], write: Callable[[bytes], Any]) -> Counter[str]:
        """Hands pieces of one text on without a key, and says how often each was there."""
        counts: Counter[str] = Counter()
        self._scrub(pieces, write, counts)
        return counts

    def _scrub(self, pieces: Iterable[bytes], write: Callable[[bytes], Any], counts: Counter[str]) -> None:
        """Hands the pieces on with every key replaced: where two overlap the one that begins first, then the longer."""
        carried = b""
        for piece in pieces:
            carried = self._settle(carried + piece, write, counts, more=True)
        self._settle(carried, write, counts, more=False)

    def _settle(self, data: bytes, write: Callable[[bytes], Any], counts: Counter[str], *, more: bool) -> bytes:
        """Writes what no later piece can change, and returns the rest."""
        sure = len(data) - (self._longest - 1) if more and self._longest else len(data)
        done = 0
        for start, end, name in self._occurrences(data):
            if start < done:
                continue
            if start >= sure:
                break
            write(data[done:start])
            write(f"<{name}>".encode())
            counts[name] += 1
            done = end
        until = max(done, sure, 0)
        write(data[done:until])
        return data[until:]

    def _occurrences(self, data: bytes) -> list[Span]:
        """Every place where a pattern stands, the first and of these the longest first."""
        if self._anchors:
            if not any(anchor.find_matches_as_indexes(data) for anchor in self._anchors):
                return []
            spans = self._exact.find_matches_as_indexes(data, overlapping=True)
            found = [(start, end, self._marks[self._patterns[index]]) for index, start, end in spans]
        else:
            found = [span for pattern in self._patterns if pattern in data for span in self._each(data, pattern)]
        return sorted(found, key=lambda span: (span[0], -span[1]))

    def _each(self, data: bytes, pattern: bytes) -> Iterator[Span]:
        at = data.find(pattern)
        while at >= 0:
            yield at, at + len(pattern), self._marks[pattern]
            at = data.find(pattern, at + 1)

    def _without_ends(self, data: bytes, counts: Counter[str]) -> bytes:
        """The bytes without the beginning of a key at their end and the end of one at their beginning."""
        for pattern, name in self._marks.items():
            mark = f"<{name}>".encode()
            for length in range(min(len(pattern) - 1, len(data)), SHORTEST_CUT - 1, -1):
                if data.endswith(pattern[:length]):
                    data, counts[name] = data[:-length] + mark, counts[name] + 1
                if data.startswith(pattern[-length:]):
                    data, counts[name] = mark + data[length:], counts[name] + 1
        return data


class Between:
    """What is written here is handed on as soon as no later byte can change it."""

    def __init__(self, settle: Callable[[bytes, bool], bytes]) -> None:
        self._settle = settle
        self._carried = b""

    def write(self, data: bytes) -> int:
        """Takes bytes."""
        self._carried = self._settle(self._carried + data, True)
        return len(data)

    def end(self) -> None:
        """Hands the rest on."""
        self._carried = self._settle(self._carried, False)


def _pieces(data: bytes) -> Iterator[bytes]:
    return (data[at : at + PIECE] for at in range(0, len(data), PIECE))


def _overlapping(data: bytes, longest: int) -> Iterator[bytes]:
    return (data[at : at + PIECE + longest] for at in range(0, len(data), PIECE))
