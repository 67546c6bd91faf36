r"""Words of agents, judges and sandboxes as a person may see them: nothing hides, nothing acts, nothing is endless.

A terminal obeys control characters, and a reader believes the order in which letters stand. So what does not show is
spelled out, as in ``\x1b`` or ``\u202e``. Markup is the business of whoever puts words into a page.
"""

from __future__ import annotations

import json
import unicodedata
from dataclasses import dataclass
from typing import Any

# Characters of one text on the page: its beginning, and of a longer one its end too.
MOST_HEAD, MOST_TAIL = 12_000, 3_000
# What joins letters or keeps them apart in Persian, Indic scripts and pictures of people.
JOINERS = "\u200c\u200d"
BREAKS = "\n\t"
# How far into a text its first line is looked for.
MOST_LOOKED_AT = 20_000


@dataclass(frozen=True)
class Excerpt:
    """A text, cut in its middle where it is long.

    Args:
        head: Its beginning, or all of it.
        left_out: How many characters stood between the two, or follow where the end is not known.
        tail: Its end, where something was left out.
        rest: How many of them are meant: ``"characters"``, or ``"more"`` where nobody counted.
    """

    head: str
    left_out: int = 0
    tail: str = ""
    rest: str = "characters"

    def __bool__(self) -> bool:
        return bool(self.head)


def spelled(text: str, *, keeps: str = BREAKS) -> str:
    """The text with everything spelled out that does not show.

    Args:
        text: Any text, half surrogates included.
        keeps: What stays although it is no letter.
    """
    if text.isprintable():
        return text
    return "".join(letter if letter in keeps or _shows(letter) else ascii(letter)[1:-1] for letter in text)


def _shows(letter: str) -> bool:
    return letter.isprintable() or letter in JOINERS or unicodedata.category(letter) == "Zs"


def line(text: str, *, most: int) -> str:
    """The first line that says something, on one line of a terminal, and no longer than this."""
    first = next((part for part in text[:MOST_LOOKED_AT].splitlines() if part.strip()), "")
    plain = spelled(first.strip()[: most + 1], keeps="")
    return plain if len(plain) <= most else f"{plain[: most - 3]}..."


def excerpt(text: str, *, more: bool = False, head: int = MOST_HEAD, tail: int = MOST_TAIL) -> Excerpt:
    """The text, spelled out, with its middle left out where it is long.

    Args:
        text: Any text.
        more: Whether the text goes on where it was read from.
        head: Characters of its beginning.
        tail: Characters of its end.
    """
    if len(text) <= head + tail:
        return Excerpt(spelled(text), int(more), rest="more" if more else "characters")
    if more:
        return Excerpt(spelled(text[:head]), 1, rest="more")
    return Excerpt(spelled(text[:head]), len(text) - head - tail, spelled(text[-tail:]))


def told(value: Any) -> str:
    """A value of JSON as text: text as it is, anything else as JSON with a line for each part."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, indent=1, ensure_ascii=False)
