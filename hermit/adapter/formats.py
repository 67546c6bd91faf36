"""What a file has to be that a learner may change, and the YAML at the head of one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hermit.config.document import Where, described, parse, shown

if TYPE_CHECKING:
    from hermit.adapter.manifest import Format

HEAD = re.compile(r"---[ \t]*\n(?P<head>.*?)(?:(?<=\n)|\n)---[ \t]*(?:\n|\Z)(?P<body>.*)", re.DOTALL)
MOST_HEAD = 16 * 1024
# Of control characters a text has these.
TEXT_CONTROLS = "\t\n\r"
NOT_TEXT = "it is not UTF-8 text without control characters"


@dataclass(frozen=True)
class Page:
    """A text with YAML at its head.

    Args:
        head: What the YAML holds; empty where there is no head.
        body: The text after it.
        problem: What is wrong with the head; empty where nothing is.
    """

    head: dict[str, Any]
    body: str
    problem: str = ""


def page(text: str) -> Page:
    """A text, taken apart; one without a head is all body."""
    text = text.replace("\r\n", "\n")
    if not re.match(r"---[ \t]*\n", text):
        return Page({}, text)
    found = HEAD.fullmatch(text)
    if not found:
        return Page({}, text, "its front matter has no end: a line --- is missing")
    if len(found["head"]) > MOST_HEAD:
        return Page({}, found["body"], f"its front matter has more than {MOST_HEAD} letters")
    root, problems = parse(found["head"], at=lambda line: Where((0, line), f"line {line + 1}"))
    if problems:
        return Page({}, found["body"], f"its front matter is wrong: {problems[0]}")
    if root.value is not None and not isinstance(root.value, dict):
        return Page({}, found["body"], f"its front matter is {described(root.plain())} and no mapping")
    return Page(root.plain() or {}, found["body"])


def as_text(data: bytes) -> str | None:
    """The bytes as text; ``None`` where they are none, or hold a control character that no text needs."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    unprintable = re.search(r"[\x00-\x1f\x7f]", text.translate(dict.fromkeys(map(ord, TEXT_CONTROLS))))
    return None if unprintable else text


def unfit(data: bytes, form: Format) -> str:
    """Why a file does not have the form it has to have, in a few words; empty where it has."""
    if form.max_bytes is not None and len(data) > form.max_bytes:
        return f"it has {len(data)} bytes; {form.max_bytes} are allowed"
    if not form.text and form.frontmatter is None:
        return ""
    text = as_text(data)
    if text is None:
        return NOT_TEXT
    return "" if form.frontmatter is None else _wrong_head(page(text), form.frontmatter)


def _wrong_head(found: Page, wanted: tuple[str, ...]) -> str:
    if found.problem or not found.head:
        return found.problem or "it has no front matter: YAML between two lines --- at its head"
    missing = [key for key in wanted if found.head.get(key) in (None, "")]
    return f"its front matter lacks {shown(', '.join(missing))}" if missing else ""
