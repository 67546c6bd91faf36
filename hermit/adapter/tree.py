"""The tree of an adapter: every version of it there ever was, in one Git repository for each template.

The first version is the template, tagged ``root``. Each run has a branch of its own name, tags for its checkpoints below that
name, and ``<run>/final`` at its end. A version is made from files as a value, checked and scrubbed, never from a directory;
author and dates come from the caller, so the same changes give the same ids on every machine.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from hermit.adapter import files as adapter_files
from hermit.adapter import git, objects
from hermit.adapter.files import File, Files
from hermit.adapter.git import Git
from hermit.adapter.objects import Commit
from hermit.errors import ConfigError, HermitError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermit.adapter.template import Template

ROOT, FINAL = "root", "final"
SELECTORS = ("none", ROOT, FINAL, "HEAD")
# 1 January 2025: the date of every root, so that one template is one root everywhere; a run counts on from there.
ROOT_WHEN = 1735689600
NAME = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]|\.(?!\.|lock\b|$)){0,79}")
HEX = re.compile(r"[0-9a-f]{7,40}")
MOST_HISTORY = 1_000_000
MOST_LISTED = 4 * 1024 * 1024
ELSEWHERE = "set trainer.tree_dir to another directory, which Hermit makes"

# Takes the keys out of what a file of the given path holds.
Scrub = Callable[[bytes, str], bytes]


@dataclass(frozen=True)
class Version:
    """One version of an adapter.

    Args:
        commit: Its id.
        files: What it holds.
        message: What it says of itself.
        when: Its date, in seconds since 1970.
        parents: The versions it comes from.
    """

    commit: str
    files: Files = field(repr=False)
    message: str
    when: int
    parents: tuple[str, ...]


class Tree:
    """A tree.

    Args:
        directory: Where its repository lies.

    Raises:
        ConfigError: There is none, or it is none that Hermit has made.
        PlaceError: Git is not installed.
    """

    def __init__(self, directory: str) -> None:
        wrong = git.foreign(directory)
        if wrong:
            raise ConfigError(f"it is no tree of Hermit's: {wrong}", where=directory, cure=ELSEWHERE)
        self.directory = directory
        self.git = Git(directory)

    @classmethod
    def opened(cls, directory: str, template: Template, *, scrub: Scrub) -> Self:
        """The tree of a template, made where there is none.

        Args:
            directory: Where its repository lies, or shall lie.
            template: The template, which is its root.
            scrub: Takes the keys out.

        Raises:
            ConfigError: The directory is something else, or the tree of another template or version of it; the template
                holds the value of a key.
        """
        if not is_there(directory):
            _refuse_keys(template, scrub)
            _make(directory, template)
        tree = cls(directory)
        if tree.find(ROOT) != root_commit(template).id:
            raise other_root(directory, template)
        return tree

    def tags(self) -> dict[str, str]:
        """Every tag, with the id of its version."""
        named = self.git.references().items()
        return {name.removeprefix("refs/tags/"): commit for name, commit in named if name.startswith("refs/tags/")}

    def tip(self, run: str) -> str | None:
        """The id of the last version of a run; ``None`` where it has none."""
        return self.git.references().get(f"refs/heads/{branch(run)}")

    def find(self, name: str) -> str:
        """The id of the version that a tag names, or a commit's id or the beginning of one.

        Raises:
            ConfigError: There is none, or there are several.
        """
        tag = self.tags().get(name.removeprefix("refs/tags/"))
        if tag is not None:
            return tag
        found = self._with_prefix(name) if HEX.fullmatch(name) else []
        if len(found) == 1:
            return found[0]
        what = f"{len(found)} versions begin with {name}" if found else f"the tree has no version {name!r}"
        known = ", ".join(sorted(self.tags())[-10:]) or "none"
        raise ConfigError(what, where=self.directory, cure=f"name a tag ({known}), or more of a commit's id")

    def _with_prefix(self, prefix: str) -> list[str]:
        ids = self.git.run("rev-parse", f"--disambiguate={prefix}").decode("ascii").split()
        kinds = self.git.sizes(ids) if ids else []
        return [each for each, (kind, _) in zip(ids, kinds, strict=True) if kind == "commit"]

    def version(self, commit: str) -> Version:
        """A version, read and compared with its id.

        Raises:
            HermitError: The tree is damaged.
        """
        said = self._commit(commit)
        files = self._files(said.tree)
        try:
            files.refuse()
        except ValueError as error:
            raise self.git.damaged(str(error)) from None
        if objects.tree_id(files) != said.tree:
            raise self.git.damaged(f"the files of {commit} are not those it was made of")
        return Version(commit, files, said.message, said.when, said.parents)

    def history(self, commit: str) -> tuple[str, ...]:
        """The ids of a version and of those it comes from, the last one first."""
        words = ("rev-list", "--first-parent", f"--max-count={MOST_HISTORY}", "--end-of-options", commit)
        return tuple(self.git.run(*words).decode("ascii").split())

    def commit(self, files: Files, *, run: str, message: str, when: int, scrub: Scrub) -> Version:
        """Makes the next version of a run: after its last one, or after the root.

        Args:
            files: What it holds.
            run: The run's name.
            message: What it says of itself; scrubbed too.
            when: Its date, in seconds since 1970, by which the same run gives the same ids.
            scrub: Takes the keys out.

        Raises:
            ValueError: The files are none of an adapter.
        """
        files = scrubbed(files, scrub)
        files.refuse()
        words = objects.message(scrub(message.encode("utf-8", "replace"), "the message").decode("utf-8", "replace"))
        with self.git.writing() as held:
            parent = self.tip(run) or self.find(ROOT)
            made = Commit(objects.tree_id(files), (parent,), when, words)
            _write(held, files, made, reference=f"refs/heads/{run}")
        return Version(made.id, files, made.message, made.when, made.parents)

    def begin(self, run: str, commit: str) -> None:
        """Puts a run's branch at a version: where it begins, or, in its own past, where it goes on from.

        Raises:
            ConfigError: The run has gone on from elsewhere.
        """
        with self.git.writing() as held:
            tip = self.tip(run)
            if tip is not None and commit not in self.history(tip):
                raise ConfigError(
                    f"the run {run} never was at {commit}",
                    where=self.directory,
                    cure="give the run another trainer.run_name",
                )
            held.run("update-ref", "--no-deref", f"refs/heads/{run}", commit)

    def tag(self, run: str, name: str, *, commit: str) -> str:
        """Tags a version as ``<run>/<name>``, and returns the tag; it moves one that is there.

        Raises:
            ValueError: It is no name of a tag.
        """
        if not NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a checkpoint")
        tag = f"{branch(run)}/{name}"
        with self.git.writing() as held:
            held.run("update-ref", "--no-deref", f"refs/tags/{tag}", commit)
        return tag

    def _commit(self, commit: str) -> Commit:
        (data,) = self.git.objects([commit], kind="commit", most=MOST_LISTED)
        if objects.object_id("commit", data) != commit:
            raise self.git.damaged(f"{commit} is not what it is called by")
        try:
            return Commit.decoded(data)
        except ValueError as error:
            raise self.git.damaged(f"{commit}: {error}") from None

    def _files(self, tree: str) -> Files:
        """The files of a directory's object; nothing is read before its size is known."""
        found: dict[str, tuple[str, bool]] = {}
        level = {"": tree}
        while level:
            below: dict[str, str] = {}
            listed = self.git.objects(list(level.values()), kind="tree", most=MOST_LISTED)
            for prefix, data in zip(level, listed, strict=True):
                self._take(prefix, data, files=found, directories=below)
            if len(found) > adapter_files.MOST_FILES or len(below) > adapter_files.MOST_DIRECTORIES:
                raise self.git.damaged("a version has more files than any adapter")
            level = below
        contents = self.git.objects([each for each, _ in found.values()], kind="blob", most=adapter_files.MOST_BYTES)
        return Files({path: File(data, run) for (path, (_, run)), data in zip(found.items(), contents, strict=True)})

    def _take(
        self, prefix: str, data: bytes, *, files: dict[str, tuple[str, bool]], directories: dict[str, str]
    ) -> None:
        try:
            for mode, name, each in objects.entries(data):
                if mode == objects.DIRECTORY:
                    directories[f"{prefix}{name}/"] = each
                elif mode in (objects.FILE, objects.PROGRAM):
                    files[f"{prefix}{name}"] = (each, mode == objects.PROGRAM)
                else:
                    raise self.git.damaged(f"{prefix}{name} is a link or a part of another repository")
        except ValueError as error:
            raise self.git.damaged(str(error)) from None


def is_there(directory: str) -> bool:
    """Whether there is a tree here: a directory with settings in it."""
    return os.path.lexists(f"{directory}/config")


def root_commit(template: Template) -> Commit:
    """The first version of every adapter of a template; its id is the same everywhere."""
    identity = template.manifest.template
    return Commit(objects.tree_id(template.files), (), ROOT_WHEN, f"The template {identity.id} {identity.version}\n")


def other_root(directory: str, template: Template) -> ConfigError:
    """The refusal of a tree whose root is another template, or another state of this one."""
    identity = template.manifest.template
    return ConfigError(
        f"its root is not the template {identity.id} {identity.version} as it is now",
        where=directory,
        cure=f"give the changed template a version of its own and {ELSEWHERE}",
    )


def scrubbed(files: Files, scrub: Scrub) -> Files:
    """The files without a key; one in whose path a key stands is left out."""
    kept = {path: file for path, file in files.by_path.items() if scrub(path.encode(), "a path") == path.encode()}
    return Files({path: File(scrub(file.data, path), file.executable) for path, file in kept.items()})


def _refuse_keys(template: Template, scrub: Scrub) -> None:
    if scrubbed(template.files, scrub) != template.files:
        raise ConfigError(
            "the template holds the value of a key", where=template.source, cure="take it out, or unset the variable"
        )


def _make(directory: str, template: Template) -> None:
    """Makes a tree beside its place and puts it there whole, with its root in it."""
    above, name = os.path.split(directory)
    os.makedirs(above, exist_ok=True)
    with _held(above) as held:
        if is_there(directory):  # another process was faster
            return
        new = os.path.join(above, f".{name}.new")
        os.makedirs(new, exist_ok=True)
        made = Git(new, held=held)
        made.create()
        _write(made, template.files, root_commit(template), reference=f"refs/tags/{ROOT}")
        try:
            os.rename(new, directory)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
            raise ConfigError("something else than a tree is there", where=directory, cure=ELSEWHERE) from None


@contextlib.contextmanager
def _held(directory: str) -> Iterator[int]:
    """Holds a directory for this process alone, against others that do the same."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def _write(repository: Git, files: Files, made: Commit, *, reference: str) -> None:
    """Stores a version whole and points a reference to it; killed at any moment it is there or not."""
    stream = [f"commit {reference}\ncommitter {objects.WHO} {made.when} +0000\n".encode(), _data(made.message.encode())]
    stream += [f"from {parent}\n".encode() for parent in made.parents]
    stream.append(b"deleteall\n")
    for path, file in files.by_path.items():
        mode = objects.PROGRAM if file.executable else objects.FILE
        stream += [f"M {mode} inline {path}\n".encode(), _data(file.data)]
    repository.run("fast-import", "--quiet", "--done", "--date-format=raw", stdin=b"".join([*stream, b"done\n"]))
    found = repository.references().get(reference)
    if found != made.id:
        raise HermitError(f"{reference} became {found}, not {made.id}", where=repository.directory, cure="try again")


def branch(name: str) -> str:
    """The name of a run as a part of a reference.

    Raises:
        ConfigError: It is none, or another selector.
    """
    if not NAME.fullmatch(name) or name in SELECTORS:
        raise ConfigError(
            f"{name!r} cannot name a branch", where="trainer.run_name", cure="give the run another trainer.run_name"
        )
    return name


def _data(data: bytes) -> bytes:
    return b"data %d\n%b\n" % (len(data), data)
