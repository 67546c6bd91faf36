"""What ``hide`` names: found on disk without importing anything, and covered under every name it is shown by.

Nothing is made on the host. A directory is covered by an empty one in memory, a file by an empty file that Hermit
ships; both are mounted on what exists already, at its real place in the tree that shows it, so that no link is
followed. What lies where other operations have put something else is not shown, and not covered.
"""

from __future__ import annotations

import ast
import contextlib
import os
import posixpath
import re
import zipimport
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

from hermit.bwrap.argv import Empty, Operation, Show
from hermit.bwrap.merge import Cover, Origin, merged
from hermit.domain.bind import Bind, absolute
from hermit.domain.hide import NAME, checked

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

CACHE = "__pycache__"
# What a module is read from, by Python or by a person: Cython's sources say what its library does.
SOURCES = (".py", ".pyi", ".pyx", ".pxd", ".pyo")
BINARIES = (".so", ".pyc")  # these may carry an ABI tag before the suffix
METADATA = (".dist-info", ".egg-info")
TABLE = re.compile(r"^(?:MAPPING|NAMESPACES)\b[^=\n]*=\s*(\{.*?\})\s*$", re.MULTILINE | re.DOTALL)
MOST_METADATA = 16 * 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Resolved:
    """What names stand for on this host, as absolute paths.

    Args:
        names: What was asked for.
        directories: Packages, namespace packages included.
        files: Modules outside those: sources, byte code, libraries, stubs, and other hard links to any of them.
        caches: The ``__pycache__`` directories that hold byte code of ``files``, or will.
        unknown: The names that stand for nothing under any root.
    """

    names: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    caches: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def uncached(self) -> tuple[str, ...]:
        """Directories of hidden files that had no ``__pycache__`` to cover; see :func:`operations`."""
        cached = {os.path.dirname(cache) for cache in self.caches}
        return tuple(sorted({os.path.dirname(file) for file in self.files} - cached))


def resolve(names: Iterable[str], roots: Iterable[str]) -> Resolved:
    """Finds everything that the names stand for under the roots, by reading directories and metadata alone.

    A root is a directory of the sandbox's ``sys.path``: a site directory, the parent of a package, or an archive (one
    that holds a hidden module is hidden whole). What a root's ``.pth``, ``.egg-link`` and editable finder files lead
    to is searched too. A module's case matters. A name that is no module is looked for among the distributions, whose
    names are compared as package indexes do (``My_Bench`` is ``my-bench``); their metadata is left alone.

    Raises:
        ValueError: A name holds a separator, ``..`` or anything else no module has; a root is not absolute.
    """
    wanted = checked(names)
    search = _Search([absolute(root, what="a root of the module path") for root in roots])
    found = {name: search.modules(name) or search.distribution(name) for name in wanted}
    paths = {path for group in found.values() for path in group}
    directories = {path for path in paths if os.path.isdir(path)}
    files = paths - directories
    caches = {path for path in directories if os.path.basename(path) == CACHE}
    if linked := _hard_links(files, directories - caches, search.roots):
        files |= linked
        caches = caches.union(*(_cache(os.path.dirname(file)) for file in linked))
    return Resolved(
        names=wanted,
        directories=tuple(sorted(directories - caches)),
        files=tuple(sorted(files)),
        caches=tuple(sorted(caches)),
        unknown=tuple(name for name in wanted if not found[name]),
    )


class _Search:
    """One look at the roots; each directory is listed once."""

    def __init__(self, roots: list[str]) -> None:
        self.roots = list(dict.fromkeys(roots))
        self._listed: dict[str, dict[str, list[str]]] = {}
        self._mapped: dict[str, set[str]] = {}
        self._places = dict.fromkeys(self.roots)
        for root in self.roots:
            for entry in self._all(root):
                self._follow(root, entry)

    def modules(self, name: str) -> set[str]:
        """Every path that a dotted name stands for, in every root."""
        parts = name.split(".")
        found = {root for root in self._places if os.path.isfile(root) and _in_archive(root, parts)}
        parents = list(self._places)
        for depth, part in enumerate(parts[:-1], start=1):
            mapped = self._mapped.get(".".join(parts[:depth]), ())
            parents = [*(os.path.join(parent, part) for parent in parents), *mapped]
        for parent in parents:
            found |= self._here(parent, parts[-1])
        for path in self._mapped.get(name, ()):
            base = os.path.basename(path)
            found |= self._here(os.path.dirname(path), base if os.path.isdir(path) else base.partition(".")[0])
        return found

    def distribution(self, name: str) -> set[str]:
        """Every path that an installed distribution of this name consists of."""
        found = set()
        for root in self._places:
            for entry in self._all(root):
                stem, suffix = os.path.splitext(entry)
                if suffix in METADATA and _canonical(stem.split("-")[0]) == _canonical(name):
                    found |= self._installed(root, os.path.join(root, entry))
        return found

    def _installed(self, root: str, metadata: str) -> set[str]:
        """What the record of one distribution lists, or the modules that it names where it lists none."""
        if found := self._recorded(root, _text(os.path.join(metadata, "RECORD"))):
            return found
        names = _text(os.path.join(metadata, "top_level.txt")).split()
        return {path for name in names if NAME.match(name) for path in self.modules(name)}

    def _recorded(self, root: str, record: str) -> set[str]:
        """Its packages as directories; what lies beside them, in a namespace it shares with others, file by file."""
        paths = {line.rsplit(",", 2)[0].strip('"').replace('""', '"') for line in record.splitlines()}
        listed = {path for path in paths if not _is_metadata(path)}
        packages = {os.path.dirname(path) for path in listed if os.path.basename(path).split(".")[0] == "__init__"}
        found = set()
        for path in listed:
            parts = path.split("/")
            above = ("/".join(parts[:depth]) for depth in range(1, len(parts)))
            package = next((directory for directory in above if directory in packages), None)
            whole = os.path.join(root, package or path)
            if os.path.isdir(whole):
                found.add(whole)
            elif parts[-2:-1] != [CACHE] and os.path.isfile(whole):
                found |= {whole} | _cache(os.path.dirname(whole))
        return found

    def _here(self, parent: str, name: str) -> set[str]:
        """What a module name stands for in one directory."""
        paths = {entry: os.path.join(parent, entry) for entry in self._entries(parent).get(name, ())}
        packages = {path for entry, path in paths.items() if entry == name and os.path.isdir(path)}
        files = {path for entry, path in paths.items() if _is_module(entry, name) and os.path.isfile(path)}
        # A cache can outlive its source, and still says what the source said.
        cached = files or name in self._entries(os.path.join(parent, CACHE))
        return packages | files | (_cache(parent) if cached else set())

    def _entries(self, directory: str) -> dict[str, list[str]]:
        """The names in a directory, by what stands before their first dot; none where it cannot be listed."""
        if directory not in self._listed:
            entries = self._listed[directory] = {}
            with contextlib.suppress(OSError, ValueError):  # a line of a .pth file can be anything
                for entry in sorted(os.listdir(directory)):
                    entries.setdefault(entry.split(".")[0], []).append(entry)
        return self._listed[directory]

    def _all(self, directory: str) -> list[str]:
        return [entry for entries in self._entries(directory).values() for entry in entries]

    def _follow(self, root: str, entry: str) -> None:
        """Notes where an editable install leads; its files are read as text."""
        if entry.endswith((".pth", ".egg-link")):
            for line in _text(os.path.join(root, entry)).splitlines():
                if line.strip():  # a comment or a statement is a path that does not exist
                    self._places.setdefault(os.path.normpath(os.path.join(root, line.strip())))
        elif entry.startswith("__editable__") and entry.endswith(".py"):
            for name, path in _mapping(_text(os.path.join(root, entry))):
                self._mapped.setdefault(name, set()).add(os.path.normpath(os.path.join(root, path)))


def _cache(parent: str) -> set[str]:
    cache = os.path.join(parent, CACHE)
    return {cache} if os.path.isdir(cache) else set()


def _is_module(entry: str, name: str) -> bool:
    suffix = os.path.splitext(entry)[1]
    return suffix in BINARIES or (suffix in SOURCES and entry == name + suffix)


def _is_metadata(path: str) -> bool:
    """Whether a line of a record is no part of the distribution's code: its metadata, or a file outside the root."""
    parts = path.split("/")
    foreign = path.startswith("/") or ".." in parts or not path
    return foreign or parts[0].endswith((*METADATA, ".data", ".pth")) or parts[0].startswith("__editable__")


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _in_archive(root: str, parts: list[str]) -> bool:
    try:
        return zipimport.zipimporter(os.path.join(root, *parts[:-1])).find_spec(parts[-1]) is not None
    except zipimport.ZipImportError:
        return False


def _mapping(finder: str) -> Iterator[tuple[str, str]]:
    """The names and paths in the two tables of an editable install's finder."""
    for table in TABLE.findall(finder):
        try:
            pairs = ast.literal_eval(table)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        for name, paths in pairs.items() if isinstance(pairs, dict) else ():
            yield from ((str(name), str(path)) for path in (paths if isinstance(paths, list) else [paths]))


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read(MOST_METADATA)
    except OSError:
        return ""


def _hard_links(files: set[str], directories: set[str], roots: list[str]) -> set[str]:
    """Other names, anywhere under the roots, of hidden files that have more than one and say anything."""
    inside = {path: status for directory in directories for path, status in _files(directory)}
    several = (status for status in (*map(os.stat, files), *inside.values()) if status.st_nlink > 1 and status.st_size)
    wanted = {(status.st_dev, status.st_ino) for status in several}
    if not wanted:
        return set()
    everywhere = (found for root in roots for found in _files(root))
    return {path for path, status in everywhere if (status.st_dev, status.st_ino) in wanted} - files - inside.keys()


def _files(top: str) -> Iterator[tuple[str, os.stat_result]]:
    """The regular files below a directory that can be listed; links are not followed."""
    waiting = [top]
    while waiting:
        listed: list[os.DirEntry[str]] = []
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            listed += entries
        for entry in listed:
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
            elif entry.is_file(follow_symlinks=False):
                with contextlib.suppress(FileNotFoundError):  # somebody installs something beside us
                    yield entry.path, entry.stat(follow_symlinks=False)


def empty_file() -> str:
    """The empty file that is shown in place of a hidden one."""
    return str(resources.files("hermit.bwrap") / "etc" / "empty")


def operations(resolved: Resolved, shown: Iterable[Bind], *, covered: Iterable[str] = ()) -> tuple[Operation, ...]:
    """The covers for one sandbox, parents first; they belong after everything else that is mounted.

    A hidden path is covered in each bind that shows it, compared by what the names lead to and not by the names. A
    bind that shows a part of a hidden directory is covered whole, and so is a directory shown read-only in which
    everything is hidden. In a hidden directory nothing can be written.

    The byte code of a hidden file lies in the ``__pycache__`` beside it, which is covered too, so that what an import
    outside writes there later stays out of sight. Where there is none, the sandbox cannot make one, because it sees
    the directory read-only; one that an import outside makes while the sandbox runs would be seen, so whatever
    imports the modules of :attr:`Resolved.uncached` outside must not write byte code.

    Args:
        resolved: What is hidden.
        shown: Every bind of the sandbox, the system's and the interpreter's included.
        covered: The places where other operations put something of their own: empty and scratch directories.

    Raises:
        ValueError: A hidden path has gone since it was resolved; one would stay visible or be needed on the host: a
            file in a writable directory without ``__pycache__``, a writable bind of something hidden; something else
            would be shown inside a hidden directory.
    """
    binds = tuple(dict.fromkeys(shown))
    owners = {*(bind.target for bind in binds), *covered}
    hidden = _Hidden(resolved)
    covers: dict[str, Cover] = {}
    origins: dict[str, Origin] = {}
    for bind in binds:
        for place, path in hidden.places(bind):
            # What was put in between, deeper than this bind, hides what the bind has there.
            if next(above for above in (place, *_parents(place)) if above in owners) == bind.target:
                covers[place] = Empty(place) if os.path.isdir(path) else Show(Bind(empty_file(), place))
                _refuse_writable(bind, place, path)
                if not bind.writable and place != bind.target:
                    origins[place] = Origin(path, bind.target)
    covers = merged(covers, origins, owners)
    for bind in binds:
        above = _covering(bind.target, covers)
        if above is not None and bind.target not in covers:
            raise ValueError(f"{bind.target} cannot be shown inside {above}, which is hidden: show it elsewhere")
    outermost = (place for place in covers if _covering(place, covers) is None)
    return tuple(covers[place] for place in sorted(outermost, key=lambda place: (place.count("/"), place)))


class _Hidden:
    """The hidden paths of one host, by what they are and by the directories that hold them."""

    def __init__(self, resolved: Resolved) -> None:
        self._ids: dict[str, tuple[int, int]] = {}
        self._itself: set[tuple[int, int]] = set()
        self._below: dict[tuple[int, int], set[str]] = {}
        for path in (*resolved.directories, *resolved.caches, *resolved.files):
            try:
                real = os.path.realpath(path, strict=True)
            except OSError as error:
                raise ValueError(f"{path} was to be hidden and has gone ({error.strerror}): resolve again") from None
            self._itself.add(self._id(real))
            for above in _parents(real):
                self._below.setdefault(self._id(above), set()).add(real[len(above) :].lstrip("/"))

    def places(self, bind: Bind) -> Iterator[tuple[str, str]]:
        """Where a bind shows hidden paths, with the path on the host that each place is."""
        source = os.path.realpath(bind.source)
        if not os.path.exists(source):
            return
        if any(self._id(path) in self._itself for path in (source, *_parents(source))):
            yield bind.target, source
            return
        for rest in self._below.get(self._id(source), ()):
            path = os.path.join(source, rest)
            # Another mount may lie over it in this tree; what does not exist here is not shown, and never made.
            if os.path.exists(path) and self._id(path) in self._itself:
                yield posixpath.join(bind.target, rest), path

    def _id(self, path: str) -> tuple[int, int]:
        """What a path leads to, whatever its name."""
        if path not in self._ids:
            status = os.stat(path)
            self._ids[path] = status.st_dev, status.st_ino
        return self._ids[path]


def _parents(path: str) -> Iterator[str]:
    while path != "/":
        path = os.path.dirname(path)
        yield path


def _covering(place: str, covers: dict[str, Cover]) -> str | None:
    return next((path for path in _parents(place) if isinstance(covers.get(path), Empty)), None)


def _refuse_writable(bind: Bind, place: str, path: str) -> None:
    if not bind.writable:
        return
    if place == bind.target:
        raise ValueError(f"{bind.source} is hidden, and cannot be shown writable at {place}")
    if not os.path.isdir(path) and not _cache(os.path.dirname(path)):
        raise ValueError(
            f"{place} is hidden, and lies in a writable directory without {CACHE}: byte code of it could appear there "
            "and be read; show the directory read-only, or make the cache directory"
        )
