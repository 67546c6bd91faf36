"""How the command line shows things: on a terminal, in plain lines, or as JSON."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn, Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from hermit import environ
from hermit.domain.attempt import Status
from hermit.errors import ExitCode, HermitError
from hermit.run.doctor.finding import Level

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from hermit.adapter.spec import Check
    from hermit.run import evaluate
    from hermit.run.doctor.finding import Finding
    from hermit.run.reading.table import Line
    from hermit.run.reading.training_table import StepLine
    from hermit.run.report import Row

LINE_EVERY_S = 2.0
# What a stream says whose reader has left, or whose terminal was closed.
GONE = (errno.EPIPE, errno.EIO, None)
STYLES = {
    "solved": "green",
    "partly solved": "yellow",
    "agent error": "red",
    "timeout": "magenta",
    "judge error": "red",
    "sandbox error": "bold red",
    "kept": "green",
    "repaired": "yellow",
    "taken back": "red",
    "not taken": "bold red",
    "nothing": "dim",
}
MARKS = {
    Level.FIT: "[green]ok[/]",
    Level.WITHOUT: "[yellow]without[/]",
    Level.BEST_EFFORT: "[red]missing[/]",
    Level.UNFIT: "[red]missing[/]",
}
VERDICTS = {
    Level.FIT: "This machine is fit.",
    Level.BEST_EFFORT: "This machine is fit with best_effort only: no sandbox starts, and a run would go on unconfined.",
    Level.UNFIT: "This machine is not fit.",
}


class Stream(Console):
    """A console whose reader may leave: that is the caller's to answer, and no reason to end the process."""

    def on_broken_pipe(self) -> None:
        """Says so, instead of leaving with 1."""
        raise BrokenPipeError


def err() -> Console:
    """Standard error, where progress and refusals go."""
    return Stream(stderr=True, highlight=False, soft_wrap=True)


def out() -> Console:
    """Standard output, where results go."""
    return Stream(highlight=False, soft_wrap=True)


def say(words: str) -> None:
    """A line on standard error, if anybody reads it."""
    with heard_or_not():
        err().print(words, markup=False)


@contextlib.contextmanager
def heard_or_not(*, matters: bool = False) -> Iterator[None]:
    """Where the reader or the terminal has gone, what is done goes on in silence.

    Args:
        matters: Whether this is what the command was asked for: it may be unwanted, but not lost.

    Raises:
        HermitError: Somebody is there, and cannot take what matters.
    """
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        silence()
        if matters and error.errno not in GONE:
            cure = "make room where the output goes; the results are kept, and the same command prints them again"
            raise HermitError(f"this could not be written: {error.strerror}", where="the output", cure=cure) from None


def silence() -> None:
    """Drops what is written to standard streams that nobody reads any more, so that the end of this process says nothing."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(nothing, stream.fileno())
    os.close(nothing)


def fill_streams() -> None:
    """Opens nothing in place of each standard stream that the caller closed, before anything else takes its number."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


def leave() -> NoReturn:
    """Ends this process where it stands, with a last word: its sandboxes and containers end with it."""
    shown = b"\x1b[?25h" if os.isatty(2) else b""  # the progress bar had hidden the cursor
    words = b"\nhermit: ended at once; every finished attempt is kept\n  -> run the same command to go on\n"
    with contextlib.suppress(OSError):
        os.write(2, shown + words)
    os._exit(ExitCode.INTERRUPTED)


def without_keys(words: str) -> str:
    """A message without the value of any key of this process."""
    from hermit.handoff.redact import Redactor, keys_of  # noqa: PLC0415 - only a refusal pays for it

    return Redactor(keys_of(environ.snapshot(), passes=lambda _: False)).text(words, cut=True)


def print_json(document: Any) -> None:
    """A document for machines, on standard output."""
    print(json.dumps(document, indent=1))


def print_rows(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table for a person, a line for each row, however long; one whose head is empty has none."""
    lines = [*([tuple(head)] if any(head) else []), *map(tuple, rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        text = "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        out().print(text.rstrip(), markup=False)


class ProgressView:
    """Shows how an evaluation goes on: a bar on a terminal, a line now and then elsewhere, and every failure."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar: Progress | None = None
        self._began = time.monotonic()
        self._last = self._began
        if console.is_terminal:
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self._bar = Progress(*columns, console=console, transient=True)
            self._task = self._bar.add_task("", total=None)

    def __enter__(self) -> Self:
        with heard_or_not():
            if self._bar is not None:
                self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        with heard_or_not():
            if self._bar is not None:
                self._bar.stop()

    def __call__(self, progress: evaluate.Progress) -> None:
        """Takes the next state."""
        with heard_or_not():
            self._show(progress)

    def say(self, line: str) -> None:
        """Says a line above the bar."""
        with heard_or_not():
            self._console.print(line, markup=False)

    def _show(self, progress: evaluate.Progress) -> None:
        if progress.note:
            self._console.print(progress.note, markup=False)
            return
        if progress.row is None and progress.resumed:
            self._console.print(f"{progress.resumed} of {progress.total} attempts were made before; going on")
        if progress.row is not None and progress.row.status is not Status.OK:
            self._console.print(failure_line(progress.row), markup=False)
        done, tally = progress.tally.attempts, progress.tally
        mean = "-" if tally.mean is None else f"{tally.mean:.3f}"
        ours = f", {tally.sandbox_errors} without a score" if tally.sandbox_errors else ""
        words = f"mean {mean}, {tally.errors} errors{ours}"
        if self._bar is not None:
            self._bar.update(self._task, total=progress.total, completed=done, description=words)
            return
        now = time.monotonic()
        if done == progress.total or now - self._last >= LINE_EVERY_S:
            self._last = now
            made = done - progress.resumed
            eta = (now - self._began) / made * (progress.total - done) if made else 0.0
            self._console.print(f"{done}/{progress.total} attempts, {words}, {eta:.0f} s to go", markup=False)


def failure_line(row: Row) -> str:
    """One failed attempt on one line."""
    words = (row.error or "").splitlines()
    where = f"{row.phase.value if row.phase else ''}, {row.cause}"
    return plain(f"{row.status.value} {row.id} ({where}): {words[0][:200] if words else ''}")


def plain(words: str) -> str:
    """Words of anybody on one line of a terminal or a log.

    What would move a cursor or break the line is spelled out, and so is the mark by which GitHub Actions finds a command
    anywhere in a line.
    """
    spelled = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in words)
    return spelled.replace("##[", r"##\[")


def problem_lines(check: Check) -> Iterator[str]:
    """What a check of an adapter found, a line each; the names are a learner's, and may hold anything."""
    for problem in check.problems:
        where = f"{problem.path}: " if problem.path else ""
        yield plain(f"{check.number}  {where}{problem.reason}")
    if check.more:
        yield f"{check.number}  {check.more} more"


def print_summary(summary: dict[str, Any], *, where: str) -> None:
    """What an evaluation came to, for a person: a line for each fact, however long."""
    rows = [
        ("adapter", summary["adapter"]),
        ("tasks", f"{summary['tasks']}, {summary['repeats']} attempt(s) each"),
        ("mean score", _mean(summary)),
        ("solved once", str(summary["solved_once"])),
        ("errors", _errors(summary)),
        *(("broken", words) for words in _broken(summary)),
        ("confined", _confined(summary["confinement"])),
        ("cost", _cost(summary)),
        ("time", f"{summary['wall_s']:.1f} s"),
        ("results", where),
    ]
    if summary["unconfined"]:
        where_to = [name for name, _ in rows].index("confined")
        rows.insert(where_to, ("unconfined", f"{summary['unconfined']} attempts ran without a sandbox"))
    print_facts(rows)


def print_facts(facts: Iterable[tuple[str, str]]) -> None:
    """A line for each fact, however long."""
    for name, value in facts:
        out().print(f"[bold]{name:<12}[/] {escape(plain(value))}")


def print_lines(lines: Iterable[Line]) -> None:
    """A run as a table: a line for each task."""
    cells = [
        (
            line.came_to,
            plain(line.task),
            "none" if line.score is None else f"{line.score:.4g}",
            f"{line.wall_s:.2f} s",
            plain(line.words),
        )
        for line in lines
    ]
    print_columns(("came to", "task", "score", "time", "what was said"), cells)


def print_steps(lines: Iterable[StepLine]) -> None:
    """A training run as a table: a line for each step."""
    cells = [
        (
            line.outcome,
            line.step,
            "" if line.score is None else f"{line.score:.4g}",
            f"${line.usd:.4f}",
            f"{line.seconds:.1f} s",
            plain(line.version),
            plain(line.words),
        )
        for line in lines
    ]
    print_columns(("change was", "step", "score", "cost", "time", "version", "what was said"), cells)


def print_columns(head: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    """A table in columns on a terminal, as wide as that is; a line for each row, however long, elsewhere."""
    console = out()
    if not console.is_terminal:
        print_rows(head, cells)
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    *first, last = zip(head, *cells, strict=True)
    for column in first:
        numbers = column[0] in ("score", "cost", "time")
        table.add_column(
            column[0], min_width=max(map(len, column)), justify="right" if numbers else "left", no_wrap=True
        )
    table.add_column(last[0], no_wrap=True, overflow="ellipsis")
    for kind, *others in cells:
        table.add_row(Text(kind, style=STYLES.get(kind, "")), *map(Text, others))
    console.print(table, soft_wrap=False)


def _mean(summary: dict[str, Any]) -> str:
    if summary["mean_score"] is None:
        return "none"
    around = summary["mean_interval"]
    words = f", 95 % interval {around['low']:.4f} to {around['high']:.4f}" if around else ""
    return f"{summary['mean_score']:.4f}{words}"


def _errors(summary: dict[str, Any]) -> str:
    kinds = [f"{count} {name}" for name, count in summary["statuses"].items() if count and name != "ok"]
    whose = [f"{count} of the {side}" for side, count in summary["failed_by"].items() if count]
    return f"{summary['errors']} ({', '.join(kinds)}): {', '.join(whose)}" if kinds else "0"


def _broken(summary: dict[str, Any]) -> list[str]:
    """A line for each way in which the infrastructure failed: these attempts have no score."""
    ours = [each for each in summary["failures"] if each["status"] == Status.SANDBOX_ERROR.value]
    return [f"{each['attempts']} without a score: {each['phase']}, {each['cause']}" for each in ours]


def _confined(seen: dict[str, Any]) -> str:
    scored, proven = seen["scored"], seen["proven"]
    which = "every scored attempt" if seen["every"] else f"{proven} of {scored} scored attempts"
    backends = ", ".join(sorted(seen["backends"])) or "nothing"
    checks = f"{seen['passed']} of {seen['checks']} checks passed"
    return f"{which}; {seen['starts']} starts of {backends}, {checks}, {seen['records']} records"


def _cost(summary: dict[str, Any]) -> str:
    unknown = summary["unknown_cost_tasks"]
    return f"${summary['cost_usd']:.4f}" + (f", unknown for {unknown} tasks" if unknown else "")


def print_findings(findings: Iterable[Finding], *, level: Level) -> None:
    """What a check found, for a person: a table, then each cure on lines of its own, to be copied whole."""
    kept = tuple(findings)
    table = Table("", "what", "found", box=None, pad_edge=False)
    for finding in _shortened(kept):
        table.add_row(MARKS[finding.level], escape(finding.name), escape(finding.found))
    console = out()
    console.print(table)
    for cure in dict.fromkeys(finding.cure for finding in kept if not finding.ok and finding.cure):
        names = ", ".join(finding.name for finding in kept if not finding.ok and finding.cure == cure)
        console.print(f"\n{names}:\n  {cure}", markup=False)
    console.print(f"\n{VERDICTS[level]}", markup=False)


def _shortened(findings: Iterable[Finding]) -> list[Finding]:
    """A group of which everything is as it has to be takes one line; what is not keeps its own."""
    shown: list[Finding] = []
    good: dict[str, int] = {}
    for finding in findings:
        if not finding.group or not finding.ok:
            shown.append(finding)
            continue
        if finding.group not in good:
            shown.append(replace(finding, name=finding.group))
        good[finding.group] = good.get(finding.group, 0) + 1
    counted = (
        replace(each, found=f"{good[each.name]} checks from inside passed") if each.group and each.ok else each
        for each in shown
    )
    return list(counted)


def usage_message(error: Exception) -> str | None:
    """What is wrong with a command line, where that is what an exception says; ``None`` for any other."""
    words = getattr(error, "format_message", None)
    if words is None:
        return None
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "hermit"
    return f"hermit: {words()}\n  -> see `{path} --help`"
