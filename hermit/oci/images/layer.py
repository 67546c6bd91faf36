"""One layer of an image as an archive that depends on nothing but the files in it.

Equal files give equal bytes: members are sorted, owners are numbers, no time is later than the one time stamp of the
build, and nothing else of the machine that made them is kept.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

BLOCK = 1 << 20
# Capabilities of programs and the like; every other extended header follows from the member itself.
XATTR = "SCHILY.xattr."


@dataclass(frozen=True)
class Layer:
    """A layer in canonical form.

    Args:
        file: Its archive.
        diff_id: ``sha256:`` and the digest of the archive, the name an engine knows the layer by.
        size: Bytes of the files in it.
    """

    file: str
    diff_id: str
    size: int


class _Hashed(io.RawIOBase):
    """A file that is only written to, and what it came to."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._file, self._digest, self._at = file, hashlib.sha256(), 0

    def write(self, data: Any, /) -> int:
        self._digest.update(data)
        self._at += len(data)
        return self._file.write(data)

    def tell(self) -> int:
        return self._at

    @property
    def hexdigest(self) -> str:
        return self._digest.hexdigest()


def canonical(source: IO[bytes], output: str, *, epoch: int) -> Layer:
    """Writes an archive anew, in canonical form.

    Args:
        source: The archive, seekable.
        output: Where the canonical one goes.
        epoch: The latest time a member may carry, in seconds since 1970.

    Raises:
        tarfile.TarError: The source is no archive.
        OSError: It cannot be read, or the output cannot be written.
    """
    with tarfile.open(fileobj=source, mode="r:*") as archive, open(output, "wb") as file:
        members = {name: member for member in archive if (name := plain_name(member.name))}
        hashed, size = _Hashed(file), 0
        with tarfile.open(fileobj=hashed, mode="w", format=tarfile.PAX_FORMAT) as canonical_archive:
            for member, content in _in_order(members):
                data = archive.extractfile(content) if content is not None else None
                canonical_archive.addfile(_clamped(member, epoch=epoch), data)
                size += member.size if content is not None else 0
    return Layer(output, f"sha256:{hashed.hexdigest}", size)


def regular(archive: tarfile.TarFile, name: str) -> IO[bytes]:
    """One file of an archive, to be read.

    Raises:
        tarfile.TarError: It is no file.
        KeyError: The archive has nothing of this name.
    """
    found = archive.extractfile(name)
    if found is None:
        raise tarfile.ReadError(f"{name} is no file")
    return found


def directories_only(source: IO[bytes]) -> bool:
    """Whether an archive holds nothing but directories."""
    with tarfile.open(fileobj=source, mode="r:*") as archive:
        return all(member.isdir() for member in archive)


def plain_name(name: str) -> str:
    """A member's name without the marks of where it was packed; empty for the root itself."""
    return "/".join(part for part in name.split("/") if part not in ("", "."))


def _in_order(members: dict[str, tarfile.TarInfo]) -> Iterator[tuple[tarfile.TarInfo, tarfile.TarInfo | None]]:
    """Every member by its name, with the one that holds its content; of several links the first name is the file."""
    first: dict[str, str] = {}
    for name in sorted(members):
        member = members[name]
        target = _target(members, name)
        entry = tarfile.TarInfo(name)
        held = members[target] if member.islnk() else member
        for field in ("mode", "uid", "gid", "mtime", "type", "linkname", "devmajor", "devminor"):
            setattr(entry, field, getattr(held, field))
        entry.pax_headers = {key: value for key, value in held.pax_headers.items() if key.startswith(XATTR)}
        if not held.isreg():
            yield entry, None
        elif target in first:
            entry.type, entry.linkname, entry.pax_headers = tarfile.LNKTYPE, first[target], {}
            yield entry, None
        else:
            first[target] = name
            entry.type, entry.size = tarfile.REGTYPE, held.size
            yield entry, held


def _target(members: dict[str, tarfile.TarInfo], name: str) -> str:
    """The member that a chain of hard links ends at."""
    while members[name].islnk():
        name = plain_name(members[name].linkname)
        if name not in members:
            raise tarfile.ReadError(f"a hard link leads to {name}, which the archive does not hold")
    return name


def _clamped(member: tarfile.TarInfo, *, epoch: int) -> tarfile.TarInfo:
    member.mtime = min(int(member.mtime), epoch)
    return member
