"""What no sandbox of a run may show: the data, the splits, the judge and its tests, the run's own files."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hermit.domain.bind import contains
from hermit.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermit.config.schema import RunConfig


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
        """The name it was given and the one it resolves to."""
        return tuple(dict.fromkeys((self.path, os.path.realpath(self.path))))


def of_run(config: RunConfig, *, run_root: str) -> tuple[Secret, ...]:
    """Every secret of a run."""
    data = config.data
    given = [(data.tasks, "data.tasks"), (data.train, "data.train"), (data.val, "data.val"), (data.test, "data.test")]
    secrets = [Secret(str(path), key) for path, key in given if path is not None]
    secrets.append(Secret(str(config.judge.path), "judge.path", judge=True))
    secrets += [Secret(str(path), "judge.tests", judge=True) for path in config.judge.tests]
    return (*secrets, Secret(run_root, "trainer.output_dir"))


def probes(secrets: Iterable[Secret], *, judge: bool) -> tuple[str, ...]:
    """The names that a start of a task sandbox, or of a judge's, has to prove absent."""
    return tuple(name for secret in secrets if not (judge and secret.judge) for name in secret.names)


def refuse_declared(declared: Iterable[tuple[str, str]], secrets: Iterable[Secret]) -> None:
    """Refuses a declared path that is, holds or lies inside a secret; resolved paths, compared by parts, both ways.

    Args:
        declared: Pairs of a config key and the path it declares.
        secrets: What must not be shown.

    Raises:
        ConfigError: The first one that would show a secret.
    """
    kept = tuple(secrets)
    for key, path in declared:
        shown = os.path.realpath(path)
        for secret in kept:
            hidden = os.path.realpath(secret.path)
            if contains(shown, hidden) or contains(hidden, shown):
                relation = "is" if shown == hidden else "holds" if contains(shown, hidden) else "lies inside"
                raise ConfigError(
                    f"{path} {relation} {secret.path} ({secret.key}), which no sandbox of this run may show",
                    where=key,
                    cure=f"declare a narrower path, or move {secret.key} elsewhere",
                )
