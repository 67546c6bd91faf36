"""Which adapter is evaluated: none, a directory, or a version of a tree by the name somebody gave it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from hermit.adapter import template as templates
from hermit.adapter import tree as trees
from hermit.errors import ConfigError
from hermit.handoff import freeze
from hermit.run.paths import file_name

if TYPE_CHECKING:
    from hermit.adapter.files import Files
    from hermit.config.schema import RunConfig

NONE = "none"
KEY = "--adapter"
TREES = "trees"
# What begins like this is a directory, whatever a tree holds; this begins the whole name of a tag.
PATHS, TAGS = ("/", ".", "~"), "refs/tags/"
SHORT = 12


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """An adapter that was chosen.

    Args:
        word: What chooses it again, from any directory.
        name: The name of its results.
        digest: What it holds, as one number; empty for none.
        directory: Its directory, where it is one.
        files: Its files, where it is a version.
        commit: The id of that version.
        needs: What has to be readable to choose it again.
    """

    word: str = NONE
    name: str = NONE
    digest: str = ""
    directory: Path | None = None
    files: Files | None = field(default=None, repr=False)
    commit: str | None = None
    needs: tuple[Path, ...] = ()

    def put(self, into: str) -> str | None:
        """Writes the adapter into a new directory, and returns that; ``None`` for none.

        Raises:
            ConfigError: It cannot be copied.
        """
        if self.files is None and self.directory is None:
            return None
        os.mkdir(into)
        if self.files is not None:
            self.files.write(into)
            return into
        return freeze.freeze(str(self.directory), into=into).path


def chosen(config: RunConfig, selector: str, *, run: str) -> Chosen:
    """The adapter that ``none``, ``root``, ``final``, a tag, a commit or a directory chooses.

    Args:
        config: The run's config, which names the template and the tree.
        selector: The word.
        run: The run's name, whose ``final`` is meant.

    Raises:
        ConfigError: There is none, or the word means two.
    """
    if selector == NONE:
        return Chosen()
    if selector in (trees.ROOT, TAGS + trees.ROOT):
        return _root(config)
    if selector == trees.FINAL:
        return _version(config, f"{run}/{trees.FINAL}", word=selector, results=trees.FINAL)
    if selector.startswith(PATHS):
        return _directory(selector)
    if not Path(selector).is_dir():
        return _version(config, selector, word=selector)
    if not _in_tree(config, selector):
        return _directory(selector)
    raise ConfigError(
        f"{selector} is a directory, and a version of the tree",
        where=KEY,
        cure=f"write ./{selector} or {TAGS}{selector}",
    )


def tree_directory(config: RunConfig) -> str:
    """Where the tree of the run's adapter lies, or shall lie.

    Raises:
        ConfigError: The config names neither a tree nor a template, or the template is not here.
    """
    if config.trainer.tree_dir is not None:
        return os.path.realpath(config.trainer.tree_dir)  # a person may have put it elsewhere, with a link
    if config.template is None:
        cure = "set `template` or `trainer.tree_dir`"
        raise ConfigError("the config names neither a template nor a tree", where="template", cure=cure)
    return os.path.realpath(config.trainer.output_dir / TREES / templates.named(config.template).manifest.template.id)


def _root(config: RunConfig) -> Chosen:
    """The root of the tree; the template itself, where there is no tree yet: they are the same version."""
    where = tree_directory(config)
    template = None if config.template is None else templates.named(config.template)
    needs = () if template is None or "/" not in str(config.template) else (Path(template.source),)
    if not trees.is_there(where):
        if template is None:
            raise ConfigError(
                "there is no tree", where=where, cure="set `template`, whose root is meant, or train first"
            )
        files, commit = template.files, trees.root_commit(template).id
    else:
        tree = trees.Tree(where)
        commit = tree.find(trees.ROOT)
        if template is not None and commit != trees.root_commit(template).id:
            raise trees.other_root(where, template)
        files, needs = tree.version(commit).files, (*needs, Path(where))
    word = trees.ROOT
    return Chosen(word=word, name=word, digest=files.digest(), files=files, commit=commit, needs=needs)


def _version(config: RunConfig, name: str, *, word: str, results: str = "") -> Chosen:
    """A version of the tree by a tag or a commit."""
    no_directory = "" if word == trees.FINAL else f"{word} is not a directory, and "
    if not _names_a_tree(config):
        what = f"{no_directory}the config names neither a template nor a tree"
        raise ConfigError(what, where=KEY, cure="give an adapter's directory, or set `template` or `trainer.tree_dir`")
    where = tree_directory(config)
    if not trees.is_there(where):
        what = f"{no_directory}there is no tree at {where}"
        raise ConfigError(what, where=KEY, cure="train first, or give `none`, `root` or an adapter's directory")
    tree = trees.Tree(where)
    commit = tree.find(name)
    tag = name.removeprefix(TAGS)
    results = results or (file_name(tag) if tag in tree.tags() else commit[:SHORT])
    files = tree.version(commit).files
    template = str(config.template or "")
    needs = (Path(where), *((Path(template),) if "/" in template else ()))
    return Chosen(word=word, name=results, digest=files.digest(), files=files, commit=commit, needs=needs)


def _names_a_tree(config: RunConfig) -> bool:
    return config.trainer.tree_dir is not None or config.template is not None


def _in_tree(config: RunConfig, selector: str) -> bool:
    """Whether there is a tree, and a version in it that the word means."""
    if not _names_a_tree(config):
        return False
    where = tree_directory(config)
    if not trees.is_there(where):
        return False
    try:
        trees.Tree(where).find(selector)
    except ConfigError:
        return False
    return True


def _directory(word: str) -> Chosen:
    """An adapter in a directory of its own."""
    path = Path(word).expanduser()
    if not path.is_dir():
        raise ConfigError(
            f"{word} is not a directory", where=KEY, cure="give `none`, a version or an adapter's directory"
        )
    real = path.resolve()
    try:
        digest = freeze.digest(str(real))
    except OSError as error:
        raise ConfigError(
            f"the adapter cannot be read: {error}", where=KEY, cure="correct the permissions of its files"
        ) from None
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", real.name).strip(".-") or "adapter"
    return Chosen(word=str(real), name=f"{plain}-{digest[:SHORT]}", digest=digest, directory=real, needs=(real,))
