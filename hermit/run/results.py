"""``results.jsonl`` while a run goes on: what was added to it is on the disk, and stays there whatever happens next.

Theory of operation. A result that somebody paid for must not be lost because the disk filled up while it was made. So the
file holds room beyond its end from before the first attempt begins: blocks that belong to it and that nobody else can take.
When that room can no longer be made up, or not much more is free for the records and logs of the attempts that run, the
run ends, and what has been made by then still fits.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import itertools
import json
import os
from typing import TYPE_CHECKING, Any, Self

from hermit.run.paths import ROOM, flush, flush_directory, make_directory, told, written_atomically

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

# Hundreds of ordinary rows, or one that is unusually long.
HELD = 1 << 20
# Records of some kilobytes for each start, and at most a MiB of each stream that was printed.
SPARE = 4 << 20
KEEP_SIZE = 1


class Results:
    """``results.jsonl``: a row that was added is on the disk; one that could not be is not in the file at all.

    Raises:
        HermitError: There is no room for it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with told(path):
            make_directory(path.parent)
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                flush_directory(path.parent)
                self._size = os.fstat(self._file).st_size
                self._held = hold_room(self._file, self._size + HELD)
                refuse_little_room(self._file)
            except OSError:
                os.ftruncate(self._file, self._size)
                os.close(self._file)
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            os.ftruncate(self._file, self._size)  # gives back what was held
        finally:
            os.close(self._file)

    def add(self, row: dict[str, Any]) -> None:
        """Appends one row.

        Raises:
            HermitError: There is no room for it, or the disk did not take it.
        """
        data = json.dumps(row).encode("ascii") + b"\n"
        with told(self._path):
            try:
                left = memoryview(data)
                while left:
                    left = left[os.write(self._file, left) :]
                flush(self._file)
            except OSError:
                with contextlib.suppress(OSError):  # half a row at the end would only be passed over
                    os.ftruncate(self._file, self._size)
                raise
        self._size += len(data)

    def hold(self) -> None:
        """Makes up for the room that rows have taken.

        Raises:
            HermitError: The disk is full; what is held by now is enough for what has been made.
        """
        with told(self._path):
            if self._held and self._held - self._size < HELD // 2:
                self._held = hold_room(self._file, self._size + HELD)
            refuse_little_room(self._file)


def hold_room(descriptor: int, size: int) -> int:
    """Takes the blocks that a file of this size needs and leaves its end where it is; 0 where no file system can.

    Raises:
        OSError: There is no room for it.
    """
    fallocate = ctypes.CDLL(None, use_errno=True).fallocate
    if fallocate(descriptor, KEEP_SIZE, ctypes.c_long(0), ctypes.c_long(size)) == 0:
        return size
    number = ctypes.get_errno()
    if number in ROOM:
        raise OSError(number, os.strerror(number))
    return 0


def refuse_little_room(descriptor: int) -> None:
    """Refuses a file system on which not much more is free.

    Raises:
        OSError: There is less than what attempts that run may leave there; one that does not say is no error.
    """
    status = os.fstatvfs(descriptor)
    if status.f_blocks and status.f_bavail * status.f_frsize < SPARE:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def put_in_order(path: Path, *, rows: list[tuple[str, int]], order: Iterable[tuple[str, int]]) -> None:
    """Brings the rows of a run that has ended from the order they came in into that of the split.

    Args:
        path: The file.
        rows: Which attempt each of its lines is.
        order: Every attempt, in the order of the split.

    Raises:
        HermitError: There is no room for a second copy of the file; it stays as it is.
    """
    places = {key: number for number, key in enumerate(order)}
    ordered = sorted(rows, key=places.__getitem__)
    if rows == ordered:
        return
    with told(path), path.open("rb") as file:
        ends = list(itertools.accumulate(map(len, file)))
        spans = dict(zip(rows, zip([0, *ends], ends, strict=False), strict=True))
        with written_atomically(path, lasting=True) as made:
            for key in ordered:
                start, end = spans[key]
                file.seek(start)
                made.write(file.read(end - start))
