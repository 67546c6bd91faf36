"""What a step changed, as a page shows it: the files of a diff, and each line by what it is. Pure, and bounded."""

from __future__ import annotations

from dataclasses import dataclass

from hermit.run.reading import words

# Of a step: files, and lines of all of them together; of a line: characters.
MOST_FILES, MOST_LINES, MOST_LETTERS = 60, 1200, 400
FILE = "diff --git "
KINDS = {"+": "added", "-": "removed", "@": "place", "\\": "remark"}


@dataclass(frozen=True)
class Line:
    """One line of a diff.

    Args:
        kind: ``added``, ``removed``, ``place``, ``remark``, or ``same``.
        text: The line with its mark.
    """

    kind: str
    text: str


@dataclass(frozen=True)
class Changed:
    """One file.

    Args:
        path: Its path in the adapter.
        how: ``added``, ``removed`` or ``changed``.
        added: How many lines came.
        removed: How many went.
        lines: What is shown of them.
        left_out: How many lines are not.
    """

    path: str
    how: str
    added: int
    removed: int
    lines: tuple[Line, ...]
    left_out: int


@dataclass(frozen=True)
class Change:
    """What a step changed.

    Args:
        files: The files, as many as are shown.
        more: How many more there are.
        cut: Whether the diff went on where it was read from.
        path: Where the whole of it is.
    """

    files: tuple[Changed, ...]
    more: int
    cut: bool
    path: str


def read(diff: str, *, cut: bool, path: str) -> Change:
    """A diff as git writes it and as ``hermit.adapter.difference`` does, file by file.

    Args:
        diff: The text.
        cut: Whether it goes on where it was read from.
        path: Where the whole of it is.
    """
    parts: list[list[str]] = []
    for line in diff.split("\n"):
        if line.startswith(FILE):
            parts.append([line])
        elif parts:
            parts[-1].append(line)
    files, room = [], MOST_LINES
    for part in parts[:MOST_FILES]:
        files.append(_file(part, room=room))
        room -= len(files[-1].lines)
    return Change(tuple(files), max(0, len(parts) - MOST_FILES), cut, path)


def _file(part: list[str], *, room: int) -> Changed:
    head, *lines = part
    begins = next((number for number, line in enumerate(lines) if line.startswith("@@")), len(lines))
    names = {line[:4]: line[4:] for line in lines[:begins] if line.startswith(("--- ", "+++ "))}
    body = lines[begins:]
    if body and not body[-1]:  # what stands behind the last line's end
        body = body[:-1]
    shown = [*(line for line in lines[:begins] if line[:4] not in names and line), *body]
    how = "added" if names.get("--- ") == "/dev/null" else "removed" if names.get("+++ ") == "/dev/null" else "changed"
    return Changed(
        path=words.line(head.removeprefix(FILE).rpartition(" b/")[2], most=200),
        how=how,
        added=sum(line.startswith("+") for line in body),
        removed=sum(line.startswith("-") for line in body),
        lines=tuple(_line(line, remark=number < len(shown) - len(body)) for number, line in enumerate(shown[:room])),
        left_out=max(0, len(shown) - room),
    )


def _line(line: str, *, remark: bool) -> Line:
    text = line if len(line) <= MOST_LETTERS else f"{line[:MOST_LETTERS]}..."
    return Line("remark" if remark else KINDS.get(line[:1], "same"), words.spelled(text))
