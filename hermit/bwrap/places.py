"""What a path of the host leads to: every name on the way, what it is by number, and where its file system has it.

Two names can be one thing: by a link, by a bind mount, on a file system that does not tell cases apart. Names alone do not
show that. The numbers of a file and of the directories above it do, and so does the kernel's list of mounts, which says
for each mount which directory of which file system it shows.
"""

from __future__ import annotations

import functools
import os
import posixpath
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hermit.domain.bind import contains

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MOUNTS = "/proc/self/mountinfo"
MOST_LINKS = 40  # the kernel's own bound

Identity = tuple[int, int]


@dataclass(frozen=True)
class Spot:
    """A place as its file system knows it: the device, and the path from the file system's own root."""

    device: str
    path: str


@dataclass(frozen=True)
class Mount:
    """Where a directory of a file system is shown."""

    target: str
    shows: Spot


@dataclass(frozen=True)
class Place:
    """A path, and what it leads to.

    Args:
        path: As it was named.
        steps: Every name that is looked up on the way, each with its parents resolved; the last is where it leads.
        links: Those of them that are links and stand for the whole path, not for a directory on the way to it.
        chain: What it is and what every directory above it is, by device and inode, itself first; only what exists.
        itself: Its own device and inode; ``None`` where it does not exist.
        spots: Where its file system has it, and what is mounted below it.
    """

    path: str
    steps: tuple[str, ...]
    links: tuple[str, ...]
    chain: tuple[Identity, ...]
    itself: Identity | None
    spots: tuple[Spot, ...]

    @property
    def real(self) -> str:
        """Where it leads."""
        return self.steps[-1]

    @property
    def names(self) -> tuple[str, ...]:
        """The name it was given, each link that stands for it, and where it leads."""
        return tuple(dict.fromkeys((self.path, *self.links, self.real)))


def mounts() -> tuple[Mount, ...]:
    """Every mount of this process's namespace, in the kernel's order; none where the kernel does not say."""
    try:
        with open(MOUNTS, "rb", buffering=0) as file:
            return _read(file.read())
    except OSError:
        return ()


@functools.lru_cache(maxsize=1)
def _read(text: bytes) -> tuple[Mount, ...]:
    """The mounts of a list, read once while it stays the same: every start of a sandbox asks."""
    fields = [line.split(b" ") for line in text.splitlines()]
    return tuple(Mount(_name(words[4]), Spot(words[2].decode(), _name(words[3]))) for words in fields)


def _name(field: bytes) -> str:
    """A path of mountinfo as it is: blanks, tabs, newlines and backslashes stand there in octal."""
    for code in (b"040", b"011", b"012", b"134"):
        field = field.replace(b"\\" + code, bytes([int(code, 8)]))
    return os.fsdecode(field)


def of(path: str, known: tuple[Mount, ...]) -> Place:
    """What an absolute path leads to; a part of it that does not exist is taken by its name."""
    steps, links = trail(path)
    real = steps[-1]
    above = [real]
    while above[-1] != "/":
        above.append(posixpath.dirname(above[-1]))
    identities = [_identity(each) for each in above]
    return Place(
        path=path,
        steps=steps,
        links=links,
        chain=tuple(identity for identity in identities if identity is not None),
        itself=identities[0],
        spots=tuple(_spots(real, known, _by_target(known))),
    )


def trail(path: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Every name that is looked up on the way to what a path leads to, and the links among them that stand for it."""
    steps: list[str] = []
    links: list[str] = []
    followed = 0
    here, ahead = "/", [part for part in path.split("/") if part]
    while ahead:
        part = ahead.pop(0)
        if part == ".":
            continue
        if part == "..":
            here = posixpath.dirname(here)
            continue
        step = posixpath.join(here, part)
        steps.append(step)
        if followed < MOST_LINKS and os.path.islink(step):
            followed += 1
            links += [] if ahead else [step]
            target = os.readlink(step)
            here = "/" if target.startswith("/") else here
            ahead = [part for part in target.split("/") if part] + ahead
            continue
        here = step
    return (*steps, here), tuple(links)


def _identity(path: str) -> Identity | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _by_target(known: tuple[Mount, ...]) -> dict[str, Spot]:
    """What is shown at each place; of two mounts in one place the later hides the other."""
    return {mount.target: mount.shows for mount in known}


def _spots(real: str, known: tuple[Mount, ...], shown: dict[str, Spot]) -> Iterator[Spot]:
    """Where the file system has a resolved path, and what is mounted below it."""
    over = real
    while over not in shown and over != "/":
        over = posixpath.dirname(over)
    if over in shown:
        place = shown[over]
        rest = real[len(over.rstrip("/")) :].lstrip("/")
        yield Spot(place.device, posixpath.join(place.path, rest) if rest else place.path)
    below = real.rstrip("/") + "/"
    yield from (mount.shows for mount in known if mount.target.startswith(below) and mount.target != real)


@dataclass(frozen=True)
class Absent:
    """What no mount of a sandbox may show, apart from every name.

    Args:
        identities: Of each path that must not exist inside and of every directory above it, which would hold it.
        spots: Where the file systems have these paths, and what is mounted below them.
    """

    identities: tuple[Identity, ...] = ()
    spots: tuple[Spot, ...] = ()


def absent(paths: Iterable[str]) -> Absent:
    """What a start has to prove absent; a path that does not exist yet is nothing that could be shown."""
    known = mounts()
    shown = _by_target(known)
    identities: dict[str, Identity | None] = {}
    spots: dict[Spot, None] = {}
    for path in paths:
        try:
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            here = os.readlink(f"/proc/self/fd/{descriptor}")
        finally:
            os.close(descriptor)
        spots |= dict.fromkeys(_spots(here, known, shown))
        while here not in identities:
            identities[here] = _identity(here)
            here = posixpath.dirname(here)
    kept = dict.fromkeys(identity for identity in identities.values() if identity is not None)
    return Absent(tuple(kept), tuple(spots))


def relation(shown: Place, hidden: Place) -> str:
    """How what is shown stands to what is hidden: ``is``, ``holds`` or ``lies inside`` it; empty where it does not."""
    for name in (*hidden.links, hidden.real):
        if shown.real == name:
            return "is"
        if contains(shown.real, name):
            return "holds"
    if contains(hidden.real, shown.real):
        return "lies inside"
    return _by_number(shown, hidden) or _by_mount(shown, hidden)


def _by_number(shown: Place, hidden: Place) -> str:
    if shown.itself is None:
        return ""
    if shown.itself == hidden.itself:
        return "is, by another name,"
    if shown.itself in hidden.chain:
        return "holds, by another name,"
    if hidden.itself is not None and hidden.itself in shown.chain:
        return "lies, by another name, inside"
    return ""


def _by_mount(shown: Place, hidden: Place) -> str:
    for ours in shown.spots:
        for theirs in hidden.spots:
            if ours.device != theirs.device:
                continue
            if contains(ours.path, theirs.path):
                return "holds, by a mount,"
            if contains(theirs.path, ours.path):
                return "lies, by a mount, inside"
    return ""


def linked_files(root: str) -> Iterator[tuple[Identity, str]]:
    """Every file at or below a path that has another name somewhere: what it is, and its name here."""
    pending = [root]
    while pending:
        path = pending.pop()
        try:
            status = os.lstat(path)
            if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
                yield (status.st_dev, status.st_ino), path
            elif stat.S_ISDIR(status.st_mode):
                with os.scandir(path) as entries:
                    pending += [entry.path for entry in entries if not entry.is_symlink()]
        except OSError:  # what this process cannot look into, it cannot show either
            continue
