"""Functions that an agent can call. Each takes one value of JSON and returns one; it has no network and no files but these."""

from __future__ import annotations


def count(argument: dict) -> dict:
    """Counts the letters, words and lines of ``{"text": ...}``."""
    text = str(argument["text"])
    return {"letters": len(text), "words": len(text.split()), "lines": len(text.splitlines())}
