"""The last version of a run as files that a person can look at, in a work tree of the repository.

Hermit writes it and never reads from it. The files are written byte for byte, past every conversion that Git would make of
a file on its way into a work tree; ``git log`` and ``git diff`` work there all the same.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from hermit import untrusted
from hermit.adapter import files as adapter_files

if TYPE_CHECKING:
    from hermit.adapter.files import File
    from hermit.adapter.tree import Tree, Version

LINK = ".git"
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def check_out(tree: Tree, run: str, *, at: str, version: Version) -> None:
    """Makes a directory hold a version, and a work tree of the run's branch; what Hermit puts beside it stays.

    Args:
        tree: The tree.
        run: The run.
        at: The directory, absolute; it is made where it is not there.
        version: The last version of the run.

    Raises:
        untrusted.Refused: Something in the directory leads elsewhere, or is in the way.
        OSError: It cannot be written.
    """
    os.makedirs(at, exist_ok=True)
    wanted = version.files.by_path
    there = adapter_files.read(at).files.by_path
    with untrusted.directory(at) as top:
        for path in there:
            if path not in wanted:
                _remove(path, top)
        for path, file in wanted.items():
            if there.get(path) != file:
                _put(path, file, top)
        _link(tree, run, at, top=top)
    index = f"{tree.directory}/worktrees/{run}/index"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"{index}.lock")  # of a process that was killed: nobody else works here
    tree.git.run("read-tree", version.commit, index=index)


def _link(tree: Tree, run: str, at: str, *, top: int) -> None:
    """Says to Git, on both sides, that the directory is a work tree of the run's branch."""
    private = Path(tree.directory, "worktrees", run)
    private.mkdir(parents=True, exist_ok=True)
    said = {"HEAD": f"ref: refs/heads/{run}\n", "commondir": "../..\n", "gitdir": f"{at}/{LINK}\n"}
    for name, text in said.items():
        (private / name).write_text(text, encoding="utf-8")
    _replace(LINK, f"gitdir: {private}\n".encode(), top, mode=0o644)


def _remove(path: str, top: int) -> None:
    """Removes a file, and the directories that are empty without it."""
    above, _, name = path.rpartition("/")
    steps = above.split("/") if above else []
    for count in range(len(steps), -1, -1):
        with _directory("/".join(steps[:count]), top) as here:
            if count == len(steps):
                os.unlink(name, dir_fd=here)
                continue
            try:
                os.rmdir(steps[count], dir_fd=here)
            except OSError:  # something else lies in it
                return


def _put(path: str, file: File, top: int) -> None:
    """Writes a file at its place at once, and makes the directories on the way to it."""
    above, _, name = path.rpartition("/")
    steps = above.split("/") if above else []
    for count, step in enumerate(steps):
        with _directory("/".join(steps[:count]), top) as here, contextlib.suppress(FileExistsError):
            os.mkdir(step, dir_fd=here)
    with _directory(above, top) as here:
        _replace(name, file.data, here, mode=0o755 if file.executable else 0o644)


def _directory(path: str, top: int) -> contextlib.AbstractContextManager[int]:
    return untrusted.closing(untrusted.open_directory_beneath(path, at=top) if path else os.dup(top))


def _replace(name: str, data: bytes, here: int, *, mode: int) -> None:
    temporary = f".{secrets.token_hex(8)}.new"
    try:
        with open(os.open(temporary, NEW_FILE, mode, dir_fd=here), "wb") as written:
            written.write(data)
        os.replace(temporary, name, src_dir_fd=here, dst_dir_fd=here)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=here)
        raise
