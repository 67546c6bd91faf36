"""What a change of an adapter was, as a unified diff for people and for learners."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermit.adapter.files import File, Files

# Of one file: comparing is quadratic in the worst case, and nobody reads on.
MOST_BYTES, MOST_LINES = 256 * 1024, 5000
NOWHERE = "/dev/null"
NO_NEWLINE = "\\ No newline at end of file"


def unified(before: Files, after: Files) -> str:
    """The change from one version to the next, file by file in the order of the paths; empty where there is none."""
    paths = sorted({*before.paths, *after.paths})
    return "".join(_of_file(path, before.by_path.get(path), after.by_path.get(path)) for path in paths)


def _of_file(path: str, old: File | None, new: File | None) -> str:
    if old == new:
        return ""
    names = (f"a/{path}" if old else NOWHERE, f"b/{path}" if new else NOWHERE)
    head = f"diff --git a/{path} b/{path}\n"
    if old and new and old.executable != new.executable:
        head += f"old mode {_mode(old)}\nnew mode {_mode(new)}\n"
    before, after = _lines(old), _lines(new)
    if before is None or after is None:
        return f"{head}Files {names[0]} and {names[1]} differ\n"
    lines = difflib.unified_diff(before, after, *names)
    return head + "".join(line if line.endswith("\n") else f"{line}\n{NO_NEWLINE}\n" for line in lines)


def _lines(file: File | None) -> list[str] | None:
    """The lines of a text; ``None`` for what is no text, or too much to compare."""
    if file is None:
        return []
    if len(file.data) > MOST_BYTES or b"\0" in file.data:
        return None
    try:
        lines = file.data.decode("utf-8").split("\n")
    except UnicodeDecodeError:
        return None
    whole = [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    return whole if len(whole) <= MOST_LINES else None


def _mode(file: File) -> str:
    return "100755" if file.executable else "100644"
