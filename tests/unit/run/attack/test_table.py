"""The table of cheats and the pages that list it say the same, and say it in sentences."""

from __future__ import annotations

import re
from pathlib import Path

from hermit.run.attack import cheats

DOCS = Path(__file__).parents[4] / "docs"


def test_the_page_lists_every_cheat_as_the_table_has_it() -> None:
    text = (DOCS / "attacks.md").read_text(encoding="utf-8").partition("## The cheats")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `([^`]+)` \| (.*) \| (.*) \| (.*) \|$", text, re.MULTILINE)
    assert rows == [(cheat.name, cheat.attacks, cheat.does, cheat.cure) for cheat in cheats.ALL]


def test_the_reference_names_every_cheat() -> None:
    text = (DOCS / "reference" / "cli.md").read_text(encoding="utf-8")
    named = re.search(r"The cheats are ([^.]*)\.", text)
    assert named is not None
    assert re.findall(r"`([^`]+)`", named[1]) == [cheat.name for cheat in cheats.CHEATS]


def test_every_cheat_has_a_name_of_its_own_and_says_what_it_attacks_does_and_what_closes_it() -> None:
    assert len({cheat.name for cheat in cheats.ALL}) == len(cheats.ALL)
    for cheat in cheats.ALL:
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", cheat.name)
        for words in (cheat.attacks, cheat.does, cheat.cure):
            assert len(words) > 10
            assert words[0].islower()
            assert not words.endswith(".")
            assert "|" not in words


def test_every_move_is_played_by_one_cheat() -> None:
    moves = [cheat.play for cheat in cheats.ALL]
    assert len(set(moves)) == len(moves)
