"""How an attack is made, and how a protection is switched off to prove that the attack would succeed without it."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from hermit.bwrap import argv
from hermit.bwrap.prepare import Prepared
from hermit.domain.command import Command
from hermit.domain.limits import Limits
from hermit.domain.sandbox import Sandbox
from hermit.errors import SandboxError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from hermit.domain.command import Outcome
    from hermit.sandbox import Place

CLOCK_S = 30.0
# An attack is a function `attack` that says whether it succeeded; being refused by the kernel is not success.
FRAME = """
import sys
try:
    succeeded = attack(*sys.argv[1:])
except OSError as refused:
    print(refused, file=sys.stderr)
    succeeded = False
print("escaped" if succeeded else "held", flush=True)
"""


@dataclass(frozen=True)
class Hole:
    """A protection that is switched off: what changes in bubblewrap's options, and which check must notice.

    Args:
        drop: Options that are left out, each with its values.
        add: Options that are put in before the root is sealed.
        swap: Pairs of options and what stands in their place.
        check: The relay's check that refuses such a sandbox; empty where none can.
        root: Whether only root can open this hole, so that it is tried as root alone.
    """

    drop: tuple[tuple[str, ...], ...] = ()
    add: tuple[str, ...] = ()
    swap: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = ()
    check: str = ""
    root: bool = False

    def options(self, spelled: tuple[str, ...]) -> tuple[str, ...]:
        """Bubblewrap's options with the hole in them."""
        words = [*spelled[:-2], *self.add, *spelled[-2:]]
        for old, new in (*((old, ()) for old in self.drop), *self.swap):
            starts = [at for at in range(len(words)) if tuple(words[at : at + len(old)]) == old]
            assert starts, f"{old} is not among the options: the hole opens nothing"
            words[starts[-1] : starts[-1] + len(old)] = new
        return tuple(words)


@dataclass(frozen=True)
class Range:
    """Where attacks are made: a place, and a work directory with a secret beside it."""

    place: Place
    work: Path
    shown: Path
    secret: Path

    def sandbox(self, **changes: object) -> Sandbox:
        """A sandbox with a directory to read and one to write, that must not show the secret."""
        given = {
            "read": (str(self.shown),),
            "write": (str(self.work),),
            "cwd": str(self.work),
            "limits": Limits(wall_s=CLOCK_S),
            "probes": (str(self.secret),),
        }
        return Sandbox(**{**given, **changes})

    def run(self, sandbox: Sandbox, *words: str, **more: object) -> Outcome:
        """Runs a program in a sandbox."""
        return self.place.run(sandbox, Command(argv=words), keep=lambda _: None, **more)

    def attack(self, source: str, *arguments: object, sandbox: Sandbox | None = None, **more: object) -> bool:
        """Whether the attack succeeds from inside; a probe that breaks is neither."""
        words = ("python", "-c", source + FRAME, *map(str, arguments))
        outcome = self.run(sandbox or self.sandbox(), *words, **more)
        said = outcome.stdout.kept.decode()
        assert said in ("escaped\n", "held\n"), outcome.stderr.kept.decode()
        return said == "escaped\n"


@pytest.fixture
def hole() -> type[Hole]:
    """What a protection looks like when it is switched off."""
    return Hole


@pytest.fixture
def field(place: Place, tmp_path: Path) -> Range:
    """A place for an attack, with its secret outside the sandbox."""
    for name in ("work", "shown", "hidden"):
        (tmp_path / name).mkdir()
    (tmp_path / "shown" / "data.txt").write_text("data")
    secret = tmp_path / "hidden" / "answers.jsonl"
    secret.write_text("the answer")
    return Range(place, tmp_path / "work", tmp_path / "shown", secret)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Opens a hole in every sandbox that is started from now on; ``blind`` takes the relay's checks away too."""
    spell, order = argv.options, Prepared.orders

    def open_hole(hole: Hole, *, blind: bool) -> None:
        monkeypatch.setattr(argv, "takes_descriptors", lambda _: False)  # a hole is spelled with paths
        monkeypatch.setattr(argv, "options", lambda *given, **named: hole.options(spell(*given, **named)))
        if blind:
            unchecked = {"confined": False}
            monkeypatch.setattr(
                Prepared, "orders", lambda *given, **named: replace(order(*given, **named), checks=unchecked)
            )

    return open_hole


@pytest.fixture
def proven(field: Range, opened: Callable[..., None]) -> Callable[..., None]:
    """Proves one guarantee: the attack fails; with the hole the start is refused; without checks the attack succeeds."""

    def prove(source: str, *arguments: object, hole: Hole, **more: object) -> None:
        assert field.attack(source, *arguments, **more) is False, "the attack succeeded"
        if hole.root and os.geteuid() != 0:
            return
        if hole.check:
            opened(hole, blind=False)
            with pytest.raises(SandboxError) as refused:
                field.attack(source, *arguments, **more)
            assert refused.value.cause == "check"
            assert hole.check in str(refused.value)
        opened(hole, blind=True)
        assert field.attack(source, *arguments, **more) is True, "the attack fails anyway: it proves nothing"

    return prove


@pytest.fixture
def edited(field: Range, tmp_path: Path) -> Callable[[dict[str, tuple[str, str]]], Range]:
    """A place whose copy of Hermit has protections cut out of its source: file, the text there, what replaces it."""

    def edit(cuts: dict[str, tuple[str, str]]) -> Range:
        backend = field.place.backend
        copy = tmp_path / "edited" / "hermit"
        shutil.copytree(backend.python.package, copy, ignore=shutil.ignore_patterns("__pycache__"))
        for name, (old, new) in cuts.items():
            text = (copy / name).read_text(encoding="utf-8")
            assert old in text, f"{name} has changed: the cut does nothing"
            (copy / name).write_text(text.replace(old, new), encoding="utf-8")
        python = replace(backend.python, package=str(copy))
        return replace(field, place=replace(field.place, backend=replace(backend, python=python)))

    return edit


@pytest.fixture
def victim() -> Iterator[subprocess.Popen[bytes]]:
    """A process of the host that an attack may find and end."""
    with subprocess.Popen(["sleep", "86.4"]) as process:
        yield process
        process.kill()
