"""The patterns by which a template says which files there may be: ``*`` and ``?`` in one name, ``**`` for directories.

What is not spelled is not meant: no pattern reaches a name that begins with a dot unless it spells the dot.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from hermit.adapter import names

MOST_PATTERN = 200
# Of one name: each star more multiplies what a name that nearly fits costs.
MOST_STARS = 3
MOST_DOUBLE = 2


@dataclass(frozen=True)
class Glob:
    """A pattern of paths.

    Args:
        text: As it is spelled.

    Raises:
        ValueError: It is none; the message says what was expected.
    """

    text: str

    def __post_init__(self) -> None:
        if not self.text or len(self.text) > MOST_PATTERN:
            raise ValueError(f"expected a pattern of paths, of at most {MOST_PATTERN} letters")
        for part in self.parts:
            plain = part.replace("*", "x").replace("?", "x")
            if names.wrong_name(plain) or ("**" in part and part != "**"):
                raise ValueError("expected a relative path in which * and ? stand in a name, and ** for directories")
            if part != "**" and part.count("*") > MOST_STARS:
                raise ValueError(f"expected at most {MOST_STARS} stars in a name")
        if self.parts.count("**") > MOST_DOUBLE:
            raise ValueError(f"expected ** at most {MOST_DOUBLE} times")

    @property
    def parts(self) -> tuple[str, ...]:
        """Its names, from the root."""
        return tuple(self.text.split("/"))

    def matches(self, path: str) -> bool:
        """Whether a file of this path is meant."""
        return _fits(self.parts, tuple(path.split("/")), partly=False)

    def reaches(self, directory: str) -> bool:
        """Whether a file below this directory could be meant."""
        return _fits(self.parts, tuple(directory.split("/")), partly=True)


def _fits(parts: tuple[str, ...], path: tuple[str, ...], *, partly: bool) -> bool:
    """Whether the pattern fits the path, or ``partly``: could fit something that lies below it."""
    if not path:
        return bool(parts) if partly else not parts
    if not parts:
        return False
    if parts[0] != "**":
        return _name(parts[0]).fullmatch(path[0]) is not None and _fits(parts[1:], path[1:], partly=partly)
    deeper = not path[0].startswith(".") and (len(parts) > 1 or partly or len(path) > 1)
    if deeper and _fits(parts, path[1:], partly=partly):
        return True
    if len(parts) == 1:  # a last `**` stands for any file too
        return not partly and len(path) == 1 and not path[0].startswith(".")
    return _fits(parts[1:], path, partly=partly)


@functools.cache
def _name(pattern: str) -> re.Pattern[str]:
    letters = {"*": "[^/]*", "?": "[^/]"}
    body = "".join(letters.get(letter) or re.escape(letter) for letter in pattern)
    return re.compile(("" if pattern.startswith(".") else r"(?!\.)") + body, re.DOTALL)
