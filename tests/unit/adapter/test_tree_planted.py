"""Nothing that somebody put into a repository, a machine or a user's settings is run or followed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hermit.adapter.files import File
from hermit.adapter.tree import Tree
from hermit.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable


from tests.unit.adapter.test_tree import commit, keep


def hook(made: Tree, marker: Path) -> None:
    hooks = Path(made.directory, "hooks")
    hooks.mkdir()
    for name in ("post-commit", "reference-transaction", "post-index-change", "post-checkout"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {marker}\n")
        (hooks / name).chmod(0o755)


def setting(text: str) -> Callable[[Tree, Path], None]:
    def plant(made: Tree, marker: Path) -> None:
        with Path(made.directory, "config").open("a") as file:
            file.write(text.format(marker=marker))

    return plant


def beside(name: str, text: str) -> Callable[[Tree, Path], None]:
    def plant(made: Tree, marker: Path) -> None:
        path = Path(made.directory, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.format(marker=marker))

    return plant


def linked(name: str) -> Callable[[Tree, Path], None]:
    def plant(made: Tree, marker: Path) -> None:
        path, elsewhere = Path(made.directory, name), marker.with_name("elsewhere")
        if path.is_dir():
            path.rename(elsewhere)
        else:
            elsewhere.mkdir()
        path.symlink_to(elsewhere)

    return plant


PLANTED = {
    "references elsewhere": linked("refs"),
    "tags elsewhere": linked("refs/tags"),
    "the tags of a run elsewhere": linked("refs/tags/one"),
    "objects elsewhere": linked("objects"),
    "a part of the objects elsewhere": linked("objects/aa"),
    "a work tree elsewhere": linked("worktrees"),
    "hooks": hook,
    "fsmonitor": setting('[core]\n\tfsmonitor = "touch {marker}"\n'),
    "include": setting("[include]\n\tpath = {marker}.inc\n"),
    "filter": setting('[filter "evil"]\n\tclean = "touch {marker}"\n\tprocess = "touch {marker}"\n'),
    "alias": setting('[alias]\n\tfast-import = "!touch {marker}"\n'),
    "alternate command": setting('[core]\n\talternateRefsCommand = "touch {marker}"\n'),
    "a remote that promises": setting(
        '[extensions]\n\tpartialClone = o\n[remote "o"]\n\turl = ext::touch {marker}\n\tpromisor = true\n'
    ),
    "worktree settings": beside("config.worktree", "[core]\n\tfsmonitor = touch {marker}\n"),
    "alternates": beside("objects/info/alternates", "/etc\n"),
    "grafts": beside("info/grafts", ""),
    "attributes": beside("info/attributes", "* filter=evil\n"),
    "shallow": beside("shallow", ""),
    "commondir": beside("commondir", "{marker}.d\n"),
    "modules": beside("modules/a/config", ""),
}


@pytest.mark.parametrize("planted", PLANTED)
def test_a_tree_that_somebody_has_changed_is_refused_and_nothing_of_it_runs(
    small: Any, made: Tree, tmp_path: Path, planted: str
) -> None:
    marker = tmp_path / "ran"
    PLANTED[planted](made, marker)
    with pytest.raises(ConfigError, match="no tree of Hermit's"):
        Tree.opened(made.directory, small, scrub=keep)
    with pytest.raises(ConfigError, match="no tree of Hermit's"):
        Tree(made.directory)
    assert not marker.exists()


def test_the_settings_of_the_machine_and_of_its_user_count_for_nothing(
    small: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker, home = tmp_path / "ran", tmp_path / "home"
    home.mkdir()
    hooks = home / "hooks"
    hooks.mkdir()
    (hooks / "reference-transaction").write_text(f"#!/bin/sh\ntouch {marker}\n")
    (hooks / "reference-transaction").chmod(0o755)
    (home / ".gitconfig").write_text(
        f"[core]\n\thooksPath = {hooks}\n\tfsmonitor = touch {marker}\n[init]\n\ttemplateDir = {home}\n"
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.hooksPath")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(hooks))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(tmp_path / "objects"))
    monkeypatch.setenv("GIT_TRACE", str(tmp_path / "trace"))
    made = Tree.opened(str(tmp_path / "trees" / "t"), small, scrub=keep)
    version = commit(made, small.files.with_files({"ADAPTER.md": File(b"1")}))
    assert made.version(version.commit) == version
    assert not marker.exists()
    assert {path.name for path in tmp_path.iterdir()} == {"home", "trees"}
