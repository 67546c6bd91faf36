"""The page of a run: one file of HTML that asks for nothing, runs nothing, and shows words of agents as words.

Every value that a template writes is escaped (``autoescape``) after everything in it that does not show has been spelled
out. Behind that stands a second wall: the page's own policy lets no script run, no address be asked and no style apply
but the one of ours, which it names by its digest. The rows are read while they are written, one attempt at a time.
"""

from __future__ import annotations

import base64
import hashlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import jinja2

import hermit
from hermit.errors import ConfigError
from hermit.run.paths import written_atomically
from hermit.run.reading import evidence, isolation, load, plots, words
from hermit.run.reading.load import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from hermit.run.reading.evidence import Evidence
    from hermit.run.reading.load import Result, Run

# A browser opens this much at once; attempts beyond it have a line each and no more.
MOST_BYTES = 48 << 20
MOST_WORDS = 160
PIECE = 1 << 16
# What the page begins with, and what a file must begin with that may be replaced by one.
HEAD = b"<!doctype html>\n<!-- hermit report -->\n"
POLICY = "default-src 'none'; style-src '{style}'; base-uri 'none'; form-action 'none'"


@dataclass(frozen=True)
class Shown:
    """One attempt of the page.

    Args:
        anchor: Its name on the page.
        result: What it came to.
        words: What was said of it, on one line.
        evidence: All that is kept of it; ``None`` where the page is full.
        results: The file its line is in.
    """

    anchor: str
    result: Result
    words: str
    evidence: Evidence | None
    results: str


def write(sheet: Sheet, path: Path) -> None:
    """Writes a page, whole or not at all; an older page is replaced, and nothing else is.

    Raises:
        ConfigError: Something else is there, or it cannot be written there.
    """
    cure = "name another file with --page"
    try:
        if path.exists() and not _is_page(path):
            raise ConfigError("it exists and is no page of a run; it would be replaced", where=str(path), cure=cure)
        with written_atomically(path) as file:
            file.writelines(sheet.pieces())
    except OSError as error:
        raise ConfigError(f"the page cannot be written: {error.strerror}", where=str(path), cure=cure) from None


def _is_page(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(HEAD)) == HEAD


class Sheet(ABC):
    """A page while it is written.

    Args:
        most: So many bytes, and what follows has its line and no more.
    """

    template: ClassVar[str]

    def __init__(self, *, most: int = MOST_BYTES) -> None:
        self._most = most
        self._written = 0

    @abstractmethod
    def values(self) -> dict[str, Any]:
        """What its template shows."""

    @property
    def full(self) -> bool:
        """Whether there is no more room."""
        return self._written >= self._most

    def pieces(self) -> Iterator[bytes]:
        """The page, in pieces."""
        templates = environment()
        source = templates.get_template(self.template)
        style = style_sheet(templates)
        given = {"style": style, "policy": policy(style), "version": hermit.__version__, "kinds": KINDS}
        yield from self._encoded(source.generate(**given, **self.values()))

    def attempts(self, run: Run, *, prefix: str = "") -> Iterator[Shown]:
        """Every attempt of a run, read when its turn comes."""
        results = run.top.below(run.paths.results)
        for number, result in enumerate(run.results, 1):
            row = run.row(result)
            said = words.line(evidence.summary_words(row), most=MOST_WORDS)
            full = None if self.full else evidence.of_attempt(run, result, row=row)
            del row  # it may be large, and a browser's page is written while this waits
            yield Shown(f"{prefix}a{number}", result, said, full, results)

    def _encoded(self, parts: Iterator[str]) -> Iterator[bytes]:
        waiting = bytearray(HEAD)
        for part in parts:
            data = part.encode()
            self._written += len(data)
            waiting += data
            if len(waiting) >= PIECE:
                yield bytes(waiting)
                waiting.clear()
        yield bytes(waiting)


class Page(Sheet):
    """The page of the attempts of an evaluation, or of a step.

    Args:
        run: The attempts.
        most: As for a sheet.
    """

    template = "page.html"

    def __init__(self, run: Run, *, most: int = MOST_BYTES) -> None:
        super().__init__(most=most)
        self._run = run

    def values(self) -> dict[str, Any]:
        """What its template shows."""
        run = self._run
        scores = [result.score for result in run.results if result.score is not None]
        return {
            "title": run.name,
            "run": run,
            "tally": run.tally,
            "held": "the attempts",
            "whose": "agents and judges",
            "about": about(run),
            "interval": load.interval(run.summary),
            "total": run.summary.get("tasks", 0) * run.summary.get("repeats", 0) or None,
            "wall_s": run.summary.get("wall_s"),
            "solved": sum(any(result.solved for result in tries) for tries in run.tasks.values()),
            "isolation": isolation.of_run(run),
            "histogram": plots.histogram(scores),
            "scatter": plots.scatter(run.results),
            "shares": plots.shares(run.results),
            "size": plots,
            "attempts": self.attempts(run),
        }


def environment() -> jinja2.Environment:
    """The templates, in which every value is made harmless when it is written."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader("hermit.run.reading"),
        autoescape=True,
        finalize=spelled,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def spelled(value: Any) -> Any:
    """A value as a template writes it: text with everything spelled out that does not show."""
    return words.spelled(value) if type(value) is str else value


def style_sheet(templates: jinja2.Environment) -> str:
    """The one style of the page."""
    if templates.loader is None:
        raise TypeError("the templates come from the package")
    return templates.loader.get_source(templates, "page.css")[0]


def policy(style: str) -> str:
    """What the page may do: nothing, but look as this style says."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return POLICY.format(style=f"sha256-{digest}")


def about(run: Run) -> list[tuple[str, str]]:
    """What ran, as far as it is known, by what each thing is called."""
    return known(
        ("agent", agent(run.lock)),
        ("adapter", run.paths.selector),
        ("judge", setting(run.lock, "judge", "mode")),
        ("Hermit", run.lock.get("hermit")),
    )


def known(*facts: tuple[str, Any]) -> list[tuple[str, str]]:
    """The facts that say something, each on one line."""
    return [(name, words.line(str(value), most=120)) for name, value in facts if value]


def agent(lock: Mapping[str, Any]) -> str:
    """The agent without the directory it lies in."""
    file, _, name = str(setting(lock, "agent", "name")).rpartition(":")
    return f"{file.rpartition('/')[2]}:{name}" if file else name


def setting(lock: Mapping[str, Any], section: str, key: str) -> Any:
    """A setting of what ran; empty where it is not known."""
    settings = lock.get("settings")
    inner = settings.get(section) if isinstance(settings, dict) else None
    return inner.get(key) or "" if isinstance(inner, dict) else ""
