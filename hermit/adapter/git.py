"""Git, as far as a tree of adapters needs it, closed against what somebody may have put into a repository.

Only commands that read and write objects and references are used: none that has a working tree, so no filter, no attribute and
no hook has anything to do with what is stored, and bytes stay bytes. The program gets variables of its own alone and no
settings but those written here. The one thing of a repository that it would heed is the repository's own settings: they
are compared with what Hermit writes there, byte by byte, before it is called, and with them everything that could make Git
look elsewhere.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

from hermit import environ, proc, untrusted
from hermit.errors import ConfigError, HermitError, PlaceError
from hermit.untrusted import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CONFIG = b"[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n"
# What else may lie in a repository; everything else could change what it means.
KNOWN = ("HEAD", "config", "objects", "refs", "packed-refs", "info", "logs", "worktrees", "description", "hermit.lock")
LEFT = re.compile(r"(fast_import_crash_\d+|gc\.(log|pid)|.*\.lock|index|ORIG_HEAD|FETCH_HEAD)")
KNOWN_INFO = ("exclude", "refs")
# Where no link may be, and how many levels below: references lie in directories of a run's name.
WITHIN = {"": 0, "refs": 2, "objects": 0, "worktrees": 1}
MOST_LISTED = 100_000
ELSEWHERE = ("alternates", "http-alternates")
LOCK = "hermit.lock"
TIMEOUT_S = 600.0
# A lock of a reference that is older than this is of a process that was killed.
STALE_S = 5.0
VARIABLES = {
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "HOME": "/nonexistent",
    "LC_ALL": "C",
}
SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.attributesFile=/dev/null",
    "core.fsmonitor=false",
    "core.fsync=all",
    "core.logAllRefUpdates=false",
    "gc.auto=0",
    "maintenance.auto=false",
)


class Git:
    """One repository.

    Args:
        directory: Where it lies.
        held: A descriptor with a lock, which every command holds too, so that it is held as long as one of them lives.
    """

    def __init__(self, directory: str, *, held: int | None = None) -> None:
        self.directory = directory
        self._held = held

    def run(self, *words: str, stdin: bytes = b"", index: str = "") -> bytes:
        """What a command of Git's writes to its standard output.

        Args:
            words: The command.
            stdin: Its standard input.
            index: The index that it works on, for the one command that does.

        Raises:
            HermitError: It ended with another code than 0, or took too long.
            PlaceError: Git is not installed.
        """
        settings = [word for setting in SETTINGS for word in ("-c", setting)]
        path = environ.snapshot().get("PATH", "/usr/bin:/bin")
        variables = {**VARIABLES, "PATH": path, "GIT_DIR": self.directory}
        variables |= {"GIT_INDEX_FILE": index} if index else {}
        held = () if self._held is None else (self._held,)
        try:
            ended = proc.capture(
                ["git", *settings, *words], timeout_s=TIMEOUT_S, env=variables, stdin=stdin, pass_fds=held
            )
        except FileNotFoundError:
            raise PlaceError("git is not installed: no `git` on the PATH", cure="apt-get install git") from None
        except (OSError, TimeoutError) as error:
            raise HermitError(f"git {words[0]}: {error}", where=self.directory, cure="try again") from None
        if ended.code != 0:
            raise HermitError(
                f"git {words[0]} ended with {ended.code}: {ended.last_words}",
                where=self.directory,
                cure="see whether the disk is full and the directory writable; `git fsck` looks at the tree",
            )
        return ended.stdout

    def create(self) -> None:
        """Makes the repository; one that was half made is made whole.

        Raises:
            HermitError: It cannot be made.
        """
        self._clear()
        Path(f"{self.directory}/HEAD").write_text("ref: refs/heads/main\n", encoding="ascii")
        self.run("init", "--quiet", "--bare", "--template=", "--object-format=sha1", "--initial-branch=main")
        os.makedirs(f"{self.directory}/info", exist_ok=True)
        Path(f"{self.directory}/info/exclude").write_text("/CARD.md\n", encoding="ascii")
        Path(f"{self.directory}/config").write_bytes(CONFIG)

    @contextlib.contextmanager
    def writing(self) -> Iterator[Git]:
        """The repository, held for this process alone; what a killed one left of its locks is removed.

        Raises:
            ConfigError: It cannot be written.
        """
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            held = os.open(f"{self.directory}/{LOCK}", flags, 0o644)
        except OSError as error:
            raise ConfigError(
                f"it cannot be written: {error.strerror}", where=self.directory, cure="set trainer.tree_dir elsewhere"
            ) from None
        try:
            fcntl.flock(held, fcntl.LOCK_EX)
            self._clear()
            yield Git(self.directory, held=held)
        finally:
            os.close(held)

    def _clear(self) -> None:
        """Removes the locks that nobody holds: whoever writes here holds ours, so they are of a process that was killed."""
        here = Path(self.directory)
        left = [*here.glob("*.lock"), *here.glob("refs/**/*.lock"), *here.glob("fast_import_crash_*")]
        left += here.glob("objects/pack/tmp_*")
        for path in left:
            if path.name == LOCK:
                continue
            with contextlib.suppress(FileNotFoundError):
                # A person may be at work with Git itself: its locks are short.
                time.sleep(max(0.0, min(STALE_S, STALE_S - (time.time() - path.lstat().st_mtime))))
                path.unlink()

    def references(self) -> dict[str, str]:
        """Every branch and tag by its whole name, with the id of what it stands for."""
        form = "%(refname)%00%(objectname)%00%(*objectname)"
        lines = self.run("for-each-ref", f"--format={form}", "refs/heads", "refs/tags").decode("utf-8", "replace")
        rows = (line.split("\0") for line in lines.splitlines())
        return {name: peeled or own for name, own, peeled in rows}

    def sizes(self, ids: Sequence[str]) -> list[tuple[str, int]]:
        """The kind and the size of each object; an empty kind where there is none."""
        lines = self.run("cat-file", "--batch-check", stdin="".join(f"{each}\n" for each in ids).encode()).decode()
        found = []
        for line in lines.splitlines():
            words = line.split(" ")
            found.append((words[1], int(words[2])) if len(words) == 3 and words[2].isdigit() else ("", 0))  # noqa: PLR2004
        return found

    def objects(self, ids: Sequence[str], *, kind: str, most: int) -> list[bytes]:
        """What the objects hold.

        Args:
            ids: Which.
            kind: What they have to be.
            most: The most bytes they hold together.

        Raises:
            HermitError: One is missing or something else, or there is too much.
        """
        sizes = self.sizes(ids)
        if any(found != kind for found, _ in sizes) or len(sizes) != len(ids):
            raise self.damaged(f"an object is missing, or no {kind}")
        if sum(size for _, size in sizes) > most:
            raise self.damaged(f"a {kind} is larger than any of an adapter")
        data = self.run("cat-file", "--batch", stdin="".join(f"{each}\n" for each in ids).encode())
        found, at = [], 0
        for _, size in sizes:
            at = data.index(b"\n", at) + 1
            found.append(data[at : at + size])
            at += size + 1
        return found

    def damaged(self, what: str) -> HermitError:
        """The failure that says the tree holds what Hermit never wrote."""
        return HermitError(
            f"the tree is damaged: {what}",
            where=self.directory,
            cure="restore it from a copy, or set trainer.tree_dir elsewhere",
        )


def foreign(directory: str) -> str:
    """Why a directory is no repository that Hermit has made, in a few words; empty where it is one.

    Nothing of it is believed: what Git would heed, or be led elsewhere by, has to be what Hermit wrote, or absent.
    """
    try:
        with untrusted.directory(directory) as top:
            config = untrusted.read("config", at=top, most=4096)
            strange = [name for name in _listed("", top) if name not in KNOWN and not LEFT.fullmatch(name)]
            strange += [f"info/{name}" for name in _listed("info", top) if name not in KNOWN_INFO]
            strange += [f"objects/info/{name}" for name in _listed("objects/info", top) if name in ELSEWHERE]
            for path, depth in WITHIN.items():
                _refuse_links(path, top, depth=depth)
    except untrusted.TooMany:
        return "it holds too much"
    except OSError as error:
        return str(error) if isinstance(error, untrusted.Refused) else str(error.strerror)
    if config.data != CONFIG or config.cut:
        return "its settings are not those that Hermit writes"
    return f"it holds {untrusted.shown(strange[0])}, which Hermit never makes" if strange else ""


def _listed(path: str, top: int) -> list[str]:
    """What a directory of the repository holds; nothing where it is missing."""
    with _entered(path, top) as inner:
        return [] if inner is None else [name for name, _ in untrusted.entries(inner, most=MOST_LISTED)]


def _refuse_links(path: str, top: int, *, depth: int) -> None:
    """Refuses a link in a directory of the repository, and in so many levels below it: Git would write through one.

    Raises:
        untrusted.Refused: There is one, or something that is neither a file nor a directory.
        untrusted.TooMany: A directory holds more than any of a tree.
    """
    with _entered(path, top) as inner:
        found = [] if inner is None else untrusted.entries(inner, most=MOST_LISTED)
    for name, kind in found:
        where = f"{path}/{name}" if path else name
        if kind not in (Kind.FILE, Kind.DIRECTORY):
            raise untrusted.Refused(where, kind.value if kind else "unreadable")
        if kind is Kind.DIRECTORY and depth:
            _refuse_links(where, top, depth=depth - 1)


@contextlib.contextmanager
def _entered(path: str, top: int) -> Iterator[int | None]:
    """A directory of the repository; ``None`` where it is missing."""
    try:
        inner = untrusted.open_directory_beneath(path, at=top) if path else os.dup(top)
    except untrusted.Refused as refused:
        if refused.reason != "missing":
            raise
        yield None
        return
    with untrusted.closing(inner):
        yield inner
