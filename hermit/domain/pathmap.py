"""Where a path of the host lies inside a sandbox, and back: in paths, and in texts that name some. Pure."""

from __future__ import annotations

import functools
import json
import posixpath
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hermit.domain.bind import Bind, absolute, contains

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

LONGEST_PATH = 4096  # PATH_MAX: no kernel call takes more, whoever names it

# Punctuation beyond ASCII that stands around a path in prose. Every other character beyond ASCII belongs to a name: a
# letter, the accent that follows its letter in one of Unicode's normal forms, a byte that is no UTF-8.
_OPENING = "“‘„«‹（［【「『《、，：；"  # noqa: RUF001 - these are meant
_CLOSING = "”’»›）］】」』》、，：；。！？…"  # noqa: RUF001 - these are meant
_SPACES = "\0-\x20\x7f\x85\xa0\u2000-\u200a\u2028\u2029\u202f\u3000"

# A slash begins a path at the start of the text and after a delimiter. Not after what continues a path or a name:
# another slash (a URL), `~`, a wildcard, or the end of an expansion such as ${HOME} or $(pwd).
_BEGIN = re.compile(rf"/(?!/)(?:(?<![^{_SPACES}{_OPENING}\"'`(\[{{<>=:;,|&!@]/)|(?<=\\[nrt]/))")
# What ends a component beside a slash: the end, a delimiter, the full stop of a sentence, an escape of a JSON string.
_AFTER = rf"""\Z|[{_SPACES}{_CLOSING}:;,"'`)\]}}<>=|&]|\\[nrt"]|[.!?]+(?=\Z|[{_SPACES}{_CLOSING}"'`)\]}}<])"""
_END = re.compile(rf"/|{_AFTER}")
_END_OF_ROOT = re.compile(rf"/*(?:{_AFTER})")
_TOKEN = re.compile(r"/+|\w+|.", re.DOTALL)


@dataclass(frozen=True)
class Layout:
    """The working directory a learner is told: ``outside`` on the host is spoken of as ``inside``.

    Raises:
        ValueError: One of the two is not absolute or holds ``..``.
    """

    outside: str
    inside: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "outside", absolute(self.outside, what="a layout's outside root"))
        object.__setattr__(self, "inside", absolute(self.inside, what="a layout's inside root"))


@dataclass(frozen=True)
class PathMap:
    """The names of one sandbox's files, on the host and inside.

    A host path belongs to the bind with the longest source that holds it, and to the first of those with equal
    sources; a path inside belongs to the bind with the longest target that holds it. Paths are compared by their
    parts and byte for byte: case and Unicode's normal forms are kept apart.

    Nothing here looks at a disk. Where a source has several names on the host (a link and what it leads to),
    :meth:`with_aliases` adds the others.

    Args:
        binds: What is shown, in the order of precedence among equal sources. Paths shown at their own location belong
            here too: a path that no bind shows has no way back.
        layout: The working directory a learner is told. The outside root alone, not what lies below it, is
            translated to the inside root even where no bind shows it: it is the directory the binds lie in.
        aliases: Other names of host paths, as pairs (alias, path).

    Raises:
        ValueError: Two binds show different sources at one place, or an alias is no absolute path.
    """

    binds: tuple[Bind, ...]
    layout: Layout | None = None
    aliases: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        shown: dict[str, str] = {}
        for bind in self.binds:
            if shown.setdefault(bind.target, bind.source) != bind.source:
                raise ValueError(f"{bind.target} is shown twice: from {shown[bind.target]} and from {bind.source}")
        pairs = ((absolute(alias, what="an alias"), absolute(path, what="its path")) for alias, path in self.aliases)
        object.__setattr__(self, "aliases", tuple(pairs))

    def with_aliases(self, aliases: Mapping[str, str]) -> PathMap:
        """The same map, where each alias is another name of the host path it is mapped to.

        The path may be a source, lie below one or hold some. A bound source keeps its own place where an alias has
        its name. :meth:`outside` answers with the source, never with an alias.

        Raises:
            ValueError: An alias or its path is not absolute or holds ``..``.
        """
        return replace(self, aliases=(*self.aliases, *aliases.items()))

    def inside(self, path: str) -> str:
        """Where a host path lies inside; a path that no bind shows stays as it is.

        Raises:
            ValueError: The path is not absolute or holds ``..``.
        """
        whole = absolute(path, what="a path of the host")
        name = _holder(whole, self._places)
        if name is not None:
            return _moved(whole, name, self._places[name])
        if self.layout is not None and whole == self.layout.outside:
            return self.layout.inside
        return whole

    def outside(self, path: str) -> str | None:
        """The host path of a path inside, ``None`` where no bind shows it or no file can have that name.

        A relative path starts at the layout's inside root. ``..`` is resolved by name, and one that climbs out of
        the bind it stands in leads nowhere. The layout's root itself leads nowhere unless a bind shows it: on the
        host it holds more than the sandbox does.
        """
        here = "/" if path.startswith("/") else self.layout.inside if self.layout and path else None
        if here is None or len(path) > LONGEST_PATH:
            return None
        for part in path.split("/"):
            if part == "..":
                target, here = _holder(here, self._sources), posixpath.dirname(here)
                if target is not None and _holder(here, self._sources) != target:
                    return None
            elif part not in {"", "."}:
                here = posixpath.join(here, part)
        try:
            here = absolute(here, what="a path inside")
        except ValueError:
            return None
        target = _holder(here, self._sources)
        return None if target is None else _moved(here, target, self._sources[target])

    def shadowed(self, path: str) -> bool:
        """Whether the place of a bound host path shows something else.

        That is so when another bind's target is longer than that of the path's own bind, and holds the place. For
        every path below a source (and not below a longer alias) that is not shadowed,
        ``outside(inside(path)) == path``.

        Raises:
            ValueError: The path is not absolute or holds ``..``.
        """
        whole = absolute(path, what="a path of the host")
        name = _holder(whole, self._places)
        if name is None:
            return False
        own = self._places[name]
        return _holder(_moved(whole, name, own), self._sources) != _holder(own, self._sources)

    def relative(self, path: str) -> str:
        """A host path as a learner is told it: relative to the layout's inside root where it lies below, or absolute.

        Raises:
            ValueError: The path is not absolute or holds ``..``.
        """
        place = self.inside(path)
        if self.layout is None or not contains(self.layout.inside, place):
            return place
        return posixpath.relpath(place, self.layout.inside)

    def cwd(self, path: str) -> str:
        """The working directory inside for one of the host.

        Raises:
            ValueError: The path is not absolute or holds ``..``.
        """
        return self.inside(path)

    def command(self, argv: Iterable[str]) -> tuple[str, ...]:
        """The arguments with every bound path in them translated."""
        return tuple(map(self.translate_text, argv))

    def environment(self, pairs: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
        """The variables with every bound path in their values translated; names stay."""
        return tuple((name, self.translate_text(value)) for name, value in pairs)

    def translate_text(self, text: str) -> str:
        """The text with the place inside written for every bound source that stands in it as whole components.

        It stands so where the character before begins a path (the start, a space, a quote, an opening bracket,
        ``=``, ``:`` ...) and the one after ends its last component. At each such place the longest source is taken,
        repeated slashes count as one, and a source is also found as a JSON string spells it. What was written is
        never read again. A text cannot tell the file ``/a/b c`` from the path ``/a/b`` and a word: it is read as
        the second. The root as a source is left alone: every slash would be one.

        The time grows with the length of the text, not with the number of binds.
        """
        done = 0
        kept: list[str] = []
        for begin in _BEGIN.finditer(text) if self._spelled else ():
            if begin.start() >= done:
                end, place = self._longest(text, begin.start())
                if place:
                    kept += text[done : begin.start()], place
                    done = end
        return "".join([*kept, text[done:]])

    def relative_text(self, text: str) -> str:
        """The text, translated, with what lies below the layout's inside root relative to that, as a learner is told it.

        The root itself, and what named a place inside already, stay absolute: they are right from every directory.
        """
        if self.layout is None:
            return self.translate_text(text)
        root, mark = self.layout.inside, "/w"
        while mark in text or mark in root or any(mark in bind.target.removeprefix(root) for bind in self.binds):
            mark += "w"
        moved = tuple(
            Bind(bind.source, _moved(bind.target, root, mark) if contains(root, bind.target) else bind.target)
            for bind in self.binds
        )
        marked = replace(self, binds=moved, layout=Layout(self.layout.outside, mark)).translate_text(text)
        marked = re.sub(rf"{mark}(/*)(?={_AFTER})", lambda found: root + found[1], marked)
        return marked.replace(f"{mark}/", "")

    def _longest(self, text: str, start: int) -> tuple[int, str]:
        """Where the longest source that stands at ``start`` ends, and its place; an empty place where none does."""
        name, found = "", (start, "")
        for token in _TOKEN.finditer(text, start):
            name += "/" if token[0].startswith("/") else token[0]
            if name not in self._prefixes:
                break
            if name in self._spelled and _END.match(text, token.end()):
                place, alone = self._spelled[name]
                if not alone or _END_OF_ROOT.match(text, token.end()):
                    found = token.end(), place
        return found

    @functools.cached_property
    def _places(self) -> dict[str, str]:
        """The place of each source and of each alias that leads to one, above or below it."""
        places: dict[str, str] = {}
        for bind in self.binds:
            places.setdefault(bind.source, bind.target)
        sources = dict(places)
        for alias, path in self.aliases:
            held = _holder(path, sources)
            if held is not None:
                places.setdefault(alias, _moved(path, held, sources[held]))
            for source, target in sources.items():
                if source != path and contains(path, source):
                    places.setdefault(_moved(source, path, alias), target)
        return places

    @functools.cached_property
    def _sources(self) -> dict[str, str]:
        """The source shown at each target."""
        return {bind.target: bind.source for bind in self.binds}

    @functools.cached_property
    def _spelled(self) -> dict[str, tuple[str, bool]]:
        """What is looked for in a text: its place, and whether only the path alone counts, not what lies below it."""
        found: dict[str, tuple[str, bool]] = {}
        wanted = [(name, place, False) for name, place in self._places.items()]
        if self.layout is not None:
            wanted.append((self.layout.outside, self.layout.inside, True))
        for name, place, alone in wanted:
            if name != "/":
                found.setdefault(name, (place, alone))
        for name, (place, alone) in tuple(found.items()):
            for in_ascii in (True, False):
                spelled, written = (json.dumps(path, ensure_ascii=in_ascii)[1:-1] for path in (name, place))
                found.setdefault(spelled, (written, alone))
        return found

    @functools.cached_property
    def _prefixes(self) -> frozenset[str]:
        """Every beginning of what is looked for, token by token."""
        return frozenset(name[: token.end()] for name in self._spelled for token in _TOKEN.finditer(name))


def _holder(path: str, names: Mapping[str, str]) -> str | None:
    """The longest of the names that is ``path`` or holds it, all of them normal and absolute."""
    while path not in names:
        if path == "/":
            return None
        path = posixpath.dirname(path)
    return path


def _moved(path: str, old: str, new: str) -> str:
    """``path``, which lies in ``old``, as it lies in ``new``."""
    rest = path[len(old) :].strip("/")
    return posixpath.join(new, rest) if rest else new
