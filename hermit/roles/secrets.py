"""What no sandbox of a run may show: the data, the splits, the judge and its tests, the runs and trees, the config."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hermit.bwrap import places
from hermit.config.values import names_callable
from hermit.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermit.config.schema import RunConfig

# A file of one of these has no second name: Hermit wrote it, and they can hold millions.
WRITTEN_BY_HERMIT = ("trainer.output_dir", "trainer.tree_dir")


@dataclass(frozen=True)
class Secret:
    """A path that must not exist inside.

    Args:
        path: Where it lies on the host.
        key: The config key that names it.
        judge: Whether a judge may see it.
    """

    path: str
    key: str
    judge: bool = False

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """The name it was given, each link that stands for it, and the one it resolves to."""
        steps, links = places.trail(self.path)
        return tuple(dict.fromkeys((self.path, *links, steps[-1])))


def of_run(config: RunConfig, *, config_file: str = "") -> tuple[Secret, ...]:
    """Every secret of a run.

    All that Hermit ever wrote for any run is among it: this run's results and those of every other adapter, other runs,
    the trees. So is the config, which may hold answers of its own.
    """
    data = config.data
    given = [(data.tasks, "data.tasks"), (data.train, "data.train"), (data.val, "data.val"), (data.test, "data.test")]
    secrets = [Secret(str(path), key) for path, key in given if path is not None]
    secrets.append(Secret(str(config.judge.path), "judge.path", judge=True))
    secrets += [Secret(str(path), "judge.tests", judge=True) for path in config.judge.tests]
    secrets.append(Secret(str(config.trainer.output_dir), "trainer.output_dir"))
    if config.trainer.tree_dir is not None:
        secrets.append(Secret(str(config.trainer.tree_dir), "trainer.tree_dir"))
    secrets += _solutions(config)
    return (*secrets, Secret(config_file, "the run config")) if config_file else tuple(secrets)


def _solutions(config: RunConfig) -> list[Secret]:
    """What no agent but the reference of `hermit check` may see: its solutions, and itself where it is another file."""
    found = [Secret(str(path), "check.read", judge=True) for path in config.check.read]
    reference = config.check.reference
    if reference is not None:
        where = reference.rpartition(":")[0] if names_callable(reference) else reference
        if where.startswith("/") and where != config.agent.name.rpartition(":")[0]:
            found.append(Secret(where, "check.reference", judge=True))
    return found


def probes(secrets: Iterable[Secret], *, judge: bool) -> tuple[str, ...]:
    """The names that a start of a task sandbox, or of a judge's, has to prove absent."""
    return tuple(dict.fromkeys(name for secret in secrets if not (judge and secret.judge) for name in secret.names))


def refuse_declared(
    declared: Iterable[tuple[str, str]], secrets: Iterable[Secret], *, copied: frozenset[str] = frozenset()
) -> None:
    """Refuses a declared path that is, holds or lies inside a secret, under whatever name.

    Args:
        declared: Pairs of a config key and the path it declares.
        secrets: What must not be shown.
        copied: Keys of what is shown as a copy under another name, which may lie among what Hermit wrote.

    Raises:
        ConfigError: The first one that would show a secret.
    """
    mounts = places.mounts()
    kept = [(secret, places.of(secret.path, mounts)) for secret in secrets]
    for key, path in declared:
        shown = places.of(path, mounts)
        for secret, hidden in kept:
            relation = places.relation(shown, hidden)
            allowed = key in copied and secret.key in WRITTEN_BY_HERMIT and "lies" in relation
            if relation and not allowed:
                raise _refusal(f"{path} {relation} {secret.path}", key=key, secret=secret)


def refuse_hard_links(declared: Iterable[tuple[str, str]], secrets: Iterable[Secret]) -> None:
    """Refuses a declared path below which a secret file has a second name. It is searched only where one has any.

    Raises:
        ConfigError: The first one that would show a secret.
    """
    found = {
        identity: secret
        for secret in secrets
        if secret.key not in WRITTEN_BY_HERMIT
        for identity, _ in places.linked_files(os.path.realpath(secret.path))
    }
    if not found:
        return
    for key, path in declared:
        for identity, name in places.linked_files(os.path.realpath(path)):
            if identity in found:
                secret = found[identity]
                raise _refusal(f"{name} is a hard link of a file of {secret.path}", key=key, secret=secret)


def _refusal(what: str, *, key: str, secret: Secret) -> ConfigError:
    cure = f"declare a narrower path, or move {secret.key} elsewhere"
    return ConfigError(f"{what} ({secret.key}), which no sandbox of this run may show", where=key, cure=cure)
