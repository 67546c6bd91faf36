"""One mapping of a manifest, read key by key; what is wrong is noted with its place, and nothing is guessed."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, TypeVar

from hermit.config.document import Placed, Problem, described, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

Default = TypeVar("Default", int, None)


class Fields:
    """The keys of one mapping.

    Args:
        placed: The mapping, or what stands in its place.
        known: The keys it may have.
        above: The dotted path of the mapping, with its dot.
        problems: Gets what is wrong; a list of its own unless given.
    """

    def __init__(
        self, placed: Placed, *, known: Sequence[str], above: str, problems: list[Problem] | None = None
    ) -> None:
        self.above = above
        self.problems: list[Problem] = [] if problems is None else problems
        self._where = placed.where
        self._values: dict[str, Placed] = {}
        if isinstance(placed.value, dict):
            self._values = placed.value
        elif placed.value is not None:
            self._say(placed, above.rstrip("."), f"expected a mapping, found {described(placed.plain())}")
        for key in self._values:
            if key not in known:
                near = difflib.get_close_matches(key, known, 1, 0)
                self._say(self._values[key], above + key, f"not a known key; the nearest is {near[0]}")

    def wrong(self, key: str, text: str) -> None:
        """Notes what is wrong with the value of a key, or with its absence."""
        placed = self._values.get(key)
        found = described(placed.plain()) if placed is not None else "nothing"
        self._say(placed or Placed(None, self._where), self.above + key, f"{text}, found {found}")

    def section(self, key: str, *, known: Sequence[str], required: bool = False) -> Fields:
        """The mapping that a key holds; an empty one where it holds none."""
        placed = self._values.get(key, Placed(None, self._where))
        if required and placed.value is None:
            self.wrong(key, "expected a mapping")
        return Fields(placed, known=known, above=f"{self.above}{key}.", problems=self.problems)

    def text(self, key: str) -> str:
        """The text of a key; empty where there is none."""
        value = self._value(key)
        if value is None or isinstance(value, str):
            return value or ""
        self.wrong(key, "expected text")
        return ""

    def scalar_text(self, key: str) -> str:
        """The text of a key, or its number as it is usually written."""
        value = self._value(key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
        return self.text(key)

    def whole(self, key: str, *, default: Default) -> int | Default:
        """The whole number of a key, at least 1."""
        value = self._value(key)
        if value is None:
            return default
        if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
            return value
        self.wrong(key, "expected a whole number of at least 1")
        return default

    def flag(self, key: str) -> bool:
        """Whether a key holds true."""
        value = self._value(key)
        if not isinstance(value, bool | None):
            self.wrong(key, "expected true or false")
        return value is True

    def frontmatter(self, key: str) -> tuple[str, ...] | None:
        """The keys that a list names, or none of them where ``true`` asks for a head alone."""
        value = self._value(key)
        if value is None or isinstance(value, bool):
            return () if value else None
        return self.texts(key, most=20)

    def texts(self, key: str, *, most: int) -> tuple[str, ...]:
        """The texts of a list."""
        items = self.items(key, most=most)
        if all(isinstance(item.value, str) and item.value for item in items):
            return tuple(item.value for item in items)
        self.wrong(key, "expected a list of texts")
        return ()

    def items(self, key: str, *, most: int) -> list[Placed]:
        """The values of a list; none where there is no list."""
        placed = self._values.get(key)
        if placed is None or placed.value is None:
            return []
        if not isinstance(placed.value, list):
            self.wrong(key, "expected a list")
            return []
        if len(placed.value) > most:
            self._say(placed, self.above + key, f"expected at most {most} entries")
        return list(placed.value[:most])

    def free(self, key: str) -> dict[str, Any]:
        """A mapping whose keys are nobody's business."""
        value = self._value(key)
        if value is None or isinstance(value, dict):
            return value or {}
        self.wrong(key, "expected a mapping")
        return {}

    def _value(self, key: str) -> Any:
        placed = self._values.get(key)
        return None if placed is None else placed.plain()

    def _say(self, placed: Placed, key: str, text: str) -> None:
        self.problems.append(Problem(placed.where, shown(f"{key}: {text}" if key else text, at_most=300)))
