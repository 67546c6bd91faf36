"""How `hermit check --attack` is shown: a line for each cheat, then what closes those that paid."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import typer
from rich.markup import escape
from rich.table import Table

from hermit.cli import console
from hermit.errors import ExitCode
from hermit.run.attack import campaign
from hermit.run.attack.campaign import Came

if TYPE_CHECKING:
    from pathlib import Path

    from hermit.run.attack.campaign import Attacked, Tried

MARKS = {
    Came.PAID: "[red]paid[/]",
    Came.TOOK: "[red]got through[/]",
    Came.HELD: "[yellow]held up[/]",
    Came.BROKE: "[yellow]unknown[/]",
    Came.CLOSED: "[green]closed[/]",
}
LINE_EVERY_S = 2.0
LONGEST = 100


class Progress:
    """Says on standard error how far it is: now and then, and at the end."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        """Takes the next state."""
        if done == total or time.monotonic() - self._last >= LINE_EVERY_S:
            self._last = time.monotonic()
            console.err().print(f"{done}/{total} attempts of the attack")


def refuse(*, attack: bool, cheat: list[str] | None, config: Path | None) -> None:
    """Refuses options that do not go together, and names that no cheat has."""
    if attack and config is None:
        raise typer.BadParameter("--attack needs the --config whose task and judge are attacked")
    if cheat and not attack:
        raise typer.BadParameter("--cheat needs --attack")
    campaign.chosen(cheat or ())


def part(attacked: Attacked | None) -> dict[str, Any]:
    """What a document of findings has of it: nothing where no attack was made."""
    return {} if attacked is None else {"attack": attacked.as_json()}


def exit_code(attacked: Attacked | None, otherwise: ExitCode) -> ExitCode:
    """What the command ends with: a cheat that paid comes first, then one of which nothing is known."""
    if attacked is None:
        return otherwise
    if attacked.paid:
        return ExitCode.CHEATED
    return ExitCode.SANDBOX if attacked.unknown else otherwise


def show(attacked: Attacked | None) -> None:
    """What came of each cheat, for a person; nothing where no attack was made."""
    if attacked is None:
        return
    several = len({tried.task for tried in attacked.tried}) > 1
    table = Table("", "cheat", *(["task"] if several else []), "score", "found", box=None, pad_edge=False)
    for tried in attacked.tried:
        score = "-" if tried.score is None else f"{tried.score:g}"
        at = [escape(console.plain(tried.task))] if several else []
        table.add_row(MARKS[tried.came], tried.cheat.name, *at, score, escape(_found(tried)))
    out = console.out()
    out.print(table)
    for name, why in attacked.untried:
        out.print(f"not tried: {name}, because {why}", markup=False)
    if attacked.learned:
        out.print(f"names: {console.plain(attacked.learned)}", markup=False)
    open_ones = {tried.cheat.name: tried.cheat for tried in attacked.tried if tried.came is not Came.CLOSED}
    for cheat in open_ones.values():
        out.print(f"\n{cheat.name}: it {cheat.does}; so it does not hold that {cheat.attacks}", markup=False)
        out.print(f"  -> {cheat.cure}", markup=False)
    made = len({tried.cheat.name for tried in attacked.tried})
    names = ", ".join(dict.fromkeys(tried.cheat.name for tried in attacked.paid))
    out.print(f"\nOf {made} cheats {f'these paid: {names}.' if names else 'none paid.'}", markup=False)


def _found(tried: Tried) -> str:
    """Why, in a few words: what it took, how its row failed, what the judge said."""
    failed = f"{tried.status.value} ({tried.phase}, {tried.cause}): " if tried.cause else ""
    words = "; ".join(tried.took) or f"{failed}{tried.why}"
    line = console.plain(" ".join(words.split()))
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"
