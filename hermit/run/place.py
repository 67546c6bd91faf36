"""Where the sandboxes of a run are started, and why there."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import hermit
from hermit import sandbox as sandboxes
from hermit.domain.sandbox import Enforce
from hermit.errors import PlaceError
from hermit.oci import argv, engine, whole
from hermit.oci.images import registry
from hermit.roles import task as task_role

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hermit.config.schema import RunConfig
    from hermit.oci.engine import Engine
    from hermit.run.plan import EvalPlan
    from hermit.sandbox import Place

VERSION_LABEL = "org.opencontainers.image.version"
EXPANDED = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True)
class Choice:
    """Where, and why.

    Args:
        sentence: Both, for a person.
        engine: The engine that runs the image, ``None`` for this machine.
        image: The image.
    """

    sentence: str
    engine: Engine | None = None
    image: str = ""


def choose(config: RunConfig, *, runtime: str | None, environ: Mapping[str, str]) -> Choice:
    """Where the sandboxes of this run are started.

    Args:
        config: The run's config; its ``container`` section decides unless ``runtime`` is given.
        runtime: ``auto``, ``image`` or ``local``.
        environ: The host's variables.

    Raises:
        PlaceError: ``image`` was asked for, and no engine answers or the image is missing or of another version.
    """
    wanted, image = runtime or config.container.runtime, config.container.image
    here = "in this image" if inside_image() else "on this machine"
    if wanted == "local":
        return Choice(f"{here}, because the runtime is local")
    try:
        refuse_network(config)
        found = engine.find(environ)
        registry.provide(found, image, pull=registry.Pull(config.container.pull), environ=environ)
        refuse_unfit_image(found, image)
    except PlaceError as error:
        if wanted == "image":
            raise
        return Choice(f"{here}, because {error.what}")
    why = "the runtime is image" if wanted == "image" else "a container engine answers and the image is here"
    return Choice(f"in the image {image}, by {Path(found.program).name} {found.server}, because {why}", found, image)


def refuse_network(config: RunConfig) -> None:
    """Refuses to run whole in the image, which has no network, what needs one.

    Raises:
        PlaceError: The config lets the agent out.
    """
    if config.environment.network != "no-network":
        raise PlaceError(
            f"the container of an image has no network, and environment.network is {config.environment.network}",
            where="container.runtime",
            cure="use --runtime local",
        )


def refuse_unfit_image(found: Engine, image: str) -> None:
    """Refuses an image that is not here or holds another version of Hermit.

    Raises:
        PlaceError: It is not here, or not of this version.
    """
    if engine.image_id(found, image) is None:
        raise PlaceError(f"the image {image} is not here", where=found.program, cure="make image")
    version = engine.image_label(found, image, label=VERSION_LABEL)
    if version != hermit.__version__:
        raise PlaceError(
            f"the image {image} holds Hermit {version or 'of no version'}, and this is {hermit.__version__}",
            where=found.program,
            cure="make image",
        )


def here(config: RunConfig) -> Place:
    """Sandboxes on this machine, or what the config says instead of them.

    Raises:
        PlaceError: No sandbox can be started here, and the config requires one.
    """
    if not config.sandbox.enabled:
        return sandboxes.unconfined("sandbox.enabled is false")
    return sandboxes.preflight(Enforce(config.sandbox.enforce), container_cure=container_cure(config.container.image))


def container_cure(image: str = "hermit") -> str:
    """What to type instead, where this machine is our image in a container that cannot hold sandboxes; else empty."""
    return argv.cure(image, "check") if inside_image() else ""


def inside_image() -> bool:
    """Whether this machine is our image, or one made from it."""
    return os.path.exists(argv.PROFILE_IN_IMAGE)


def in_image(plan: EvalPlan, choice: Choice, arguments: Sequence[str], *, environ: Mapping[str, str]) -> int:
    """Runs the same command whole inside the image, and returns its exit code.

    What the config names is mounted at its own place, read-only, and the run's directory writable; the sandboxes are
    started inside, so the data is in the container's trusted process and in no sandbox.

    Raises:
        PlaceError: The engine refuses, or a path cannot be shown in the image.
    """
    assert choice.engine is not None  # noqa: S101 - the caller asked
    plan.paths.root.mkdir(parents=True, exist_ok=True)
    names = set(EXPANDED.findall(plan.config_file.read_text(encoding="utf-8")))
    wanted = [task_role.passes(plan.config, name) or name in names for name in environ]
    return whole.run(
        choice.engine,
        image=choice.image,
        arguments=arguments,
        read=named_paths(plan),
        write=str(plan.paths.root),
        env=sorted(name for name, passes in zip(environ, wanted, strict=True) if passes),
        cwd="/tmp",  # noqa: S108 - the container's own
    )


def named_paths(plan: EvalPlan) -> list[str]:
    """Every path the trusted process reads, each once, and none below another."""
    config = plan.config
    given = [plan.base, config.data.tasks, config.data.train, config.data.val, config.data.test, config.judge.path]
    given += [*config.judge.tests, plan.adapter]
    paths = {str(path) for path in given if path is not None} | {path for _, path in task_role.declared(config)}
    return sorted(path for path in paths if not any(path != top and Path(path).is_relative_to(top) for top in paths))
