"""One cover over a whole directory, where everything in it is covered anyway. Reads directories, changes nothing.

bubblewrap takes 9000 arguments and needs longer for each mount the more there are: a tree of thousands of hidden files,
such as a linked copy of a hidden package, would not start with a cover for each.
"""

from __future__ import annotations

import os
import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hermit.bwrap.argv import Empty, Show
from hermit.domain.bind import contains

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Cover = Empty | Show


@dataclass(frozen=True)
class Origin:
    """What a cover lies over.

    Args:
        path: Its path on the host.
        top: Where the bind that shows it begins.
    """

    path: str
    top: str


def merged(covers: Mapping[str, Cover], origins: Mapping[str, Origin], owners: Iterable[str]) -> dict[str, Cover]:
    """The covers by place, with one for a directory in place of those for everything in it, where that is shorter.

    What a bind begins with stays: it was granted, whatever is left of it.

    Args:
        covers: The covers by place.
        origins: What those lie over that may be merged: what is shown read-only.
        owners: The places where something of its own is shown, which a cover above it would take away.
    """
    found, known, kept = dict(covers), dict(origins), set(owners)
    words = {place: len(cover.options()) for place, cover in covers.items()}
    inside: dict[str, list[str]] = {}
    for place in known:
        inside.setdefault(posixpath.dirname(place), []).append(place)
    deepest = max((directory.count("/") for directory in inside), default=0)
    for depth in range(deepest, 0, -1):  # what becomes of a directory counts for the one above it
        for directory in [directory for directory in inside if directory.count("/") == depth]:
            places = inside[directory]
            origin, spared = known[places[0]], sum(words[place] for place in places)
            whole = Origin(posixpath.dirname(origin.path), origin.top)
            if directory in (whole.top, *found) or spared <= len(Empty(directory).options()):
                continue
            if not _holds_only(whole.path, places) or any(contains(directory, owner) for owner in kept):
                continue
            for place in places:
                del found[place]
            found[directory], known[directory], words[directory] = Empty(directory), whole, spared
            inside.setdefault(posixpath.dirname(directory), []).append(directory)
    return found


def _holds_only(directory: str, places: Iterable[str]) -> bool:
    """Whether everything in a directory of the host has the name of one of the places."""
    try:
        return {posixpath.basename(place) for place in places}.issuperset(os.listdir(directory))
    except OSError:
        return False
