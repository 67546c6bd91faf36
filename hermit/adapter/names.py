"""Which names a file of an adapter may have: those that mean one file on every file system, and nothing to Git.

A learner chose them. A version of an adapter is kept by Git, shown in sandboxes and copied to machines that fold case, strip
dots or compose letters, so a name that could become another one, or a part of a repository, is none.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_NAME, MOST_PATH, MOST_DEPTH = 128, 512, 16
# Controls, invisible letters such as joiners and marks of direction, surrogates, letters nobody has agreed on, line ends.
INVISIBLE = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")
# What Windows reads as a border of names, a stream of a file or a pattern.
FOREIGN = frozenset('\\:*?"<>|')
SHORT_GIT = re.compile(r"git~\d+")
DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?")
# What the trainer puts beside a version in a run's checkout.
RESERVED = ("card.md",)


def wrong_name(name: str) -> str:
    """Why this is no name of a file or directory of an adapter, in a few words; empty where it is one."""
    if name in ("", ".", "..") or "/" in name:
        return "it is no name"
    # Before anything else is asked of it: half of a surrogate pair has no bytes.
    if any(unicodedata.category(letter) in INVISIBLE for letter in name):
        return "it holds a letter that cannot be seen, or a byte that is no text"
    plain = unicodedata.normalize("NFKC", name).casefold()
    wrong = {
        "it holds a letter that some systems read as more than a name": bool(FOREIGN & set(name)),
        "it begins or ends with a space, or ends with a dot": name[-1] in " ." or name[0] == " ",
        f"it has more than {MOST_NAME} bytes": len(name.encode()) > MOST_NAME,
        "it is a name of Git's own": plain.startswith(".git") or SHORT_GIT.fullmatch(plain) is not None,
        "it is a device on some systems": DEVICES.fullmatch(plain) is not None,
    }
    return next((reason for reason, applies in wrong.items() if applies), "")


def wrong_path(path: str) -> str:
    """Why this is no path of a file of an adapter, in a few words; empty where it is one."""
    names = path.split("/")
    wrong = next(filter(None, map(wrong_name, names)), "")
    if wrong:
        return wrong
    if len(names) > MOST_DEPTH:
        return f"it lies more than {MOST_DEPTH} deep"
    if len(path.encode()) > MOST_PATH:
        return f"its path has more than {MOST_PATH} bytes"
    return "it is a name of the trainer's own" if folded(path) in RESERVED else ""


def folded(path: str) -> str:
    """What a path becomes on a system that folds case and composes letters: two that share it are one file there."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", path).casefold())


def collisions(paths: Iterable[str]) -> dict[str, str]:
    """Each path that cannot be beside an earlier one, and that one; the first of two is kept.

    They are one but for case or composition, or so are their directories (``A/x`` and ``a/y`` lie in one directory on some
    systems), or one is a file where the other has a directory.
    """
    seen: dict[str, tuple[str, bool]] = {}
    found: dict[str, str] = {}
    for path in paths:
        steps = path.split("/")
        ways = [("/".join(steps[:count]), count == len(steps)) for count in range(1, len(steps) + 1)]
        clash = next(
            (seen[folded(way)][0] for way, last in ways if seen.get(folded(way), (way, last)) != (way, last)), ""
        )
        if clash:
            found[path] = clash
            continue
        seen.update((folded(way), (way, last)) for way, last in ways)
    return found


def inside(path: str) -> bool:
    """Whether a path of a manifest, or of a person, is relative, in normal form and stays inside."""
    return bool(path) and not path.startswith("/") and posixpath.normpath(path) == path and not wrong_path(path)
