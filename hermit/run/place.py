"""Where the sandboxes of a run are started, and why there."""

from __future__ import annotations

import contextlib
import os
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import hermit
from hermit import sandbox as sandboxes
from hermit.bwrap import preflight
from hermit.domain.sandbox import Enforce
from hermit.errors import PlaceError
from hermit.oci import argv, engine, strays, whole
from hermit.oci.images import registry
from hermit.oci.launcher import Launcher
from hermit.oci.life import Shape
from hermit.roles import task as task_role
from hermit.sandbox import Place

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from hermit.config.schema import RunConfig
    from hermit.oci.engine import Engine
    from hermit.run.plan import EvalPlan

VERSION_LABEL = "org.opencontainers.image.version"
EXPANDED = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
MIB = 1 << 20
# What a launcher and its container need beside the sandboxes: memory in MiB, processes and threads.
OWN_MB, OWN_PIDS, OWN_PIDS_EACH = 512, 256, 8
# A sandbox without a bound of its own still counts as one of this many processes.
MOST_PIDS_EACH = 4096


@dataclass(frozen=True)
class Choice:
    """Where, and why.

    Args:
        sentence: Both, for a person.
        kind: ``local``, ``image`` (sandboxes in containers of it) or ``whole`` (this very command in one).
        engine: The engine that runs the image, ``None`` for this machine.
        image: The name of the image of task sandboxes.
        image_id: That image.
        judge_image: The name of the image of judge sandboxes; empty where no judge runs in one.
        judge_image_id: That image.
    """

    sentence: str
    kind: str = "local"
    engine: Engine | None = None
    image: str = ""
    image_id: str = ""
    judge_image: str = ""
    judge_image_id: str = ""


def choose(config: RunConfig, *, runtime: str | None, environ: Mapping[str, str]) -> Choice:
    """Where the sandboxes of this run are started.

    Args:
        config: The run's config; its ``container`` section decides unless ``runtime`` is given.
        runtime: ``auto``, ``image``, ``local`` or ``whole``.
        environ: The host's variables.

    Raises:
        PlaceError: ``image`` or ``whole`` was asked for, and no engine answers, an image is missing or of another
            version, or the config cannot be run there.
    """
    wanted = runtime or config.container.runtime
    named = images_of(config, wanted)
    image, judges = named["task"], named.get("judge", "")
    here = "in this image" if inside_image() else "on this machine"
    if wanted == "local":
        return Choice(f"{here}, because the runtime is local")
    try:
        refuse_elsewhere(config, wanted)
        found = engine.find(environ)
        engine.refuse_unfit(found)
        pull = registry.Pull(config.container.pull)
        for name in filter(None, dict.fromkeys([image, judges])):
            registry.provide(found, name, pull=pull, environ=environ)
        image_id = refuse_unfit_image(found, image)
        judges_id = refuse_unfit_image(found, judges) if judges else ""
    except PlaceError as error:
        if wanted != "auto":
            raise
        return Choice(f"{here}, because {error.what}")
    program = f"{Path(found.program).name} {found.server}"
    if wanted == "whole":
        sentence = f"in the image {image}, by {program}, with the whole command, because the runtime is whole"
        return Choice(sentence, "whole", found, image, image_id)
    why = "the runtime is image" if wanted == "image" else "a container engine answers and the image is here"
    images = f"the image {image}" if judges in ("", image) else f"the images {image} and {judges}"
    sentence = f"in {images}, by {program}, because {why}"
    return Choice(sentence, "image", found, image, image_id, judges, judges_id)


def images_of(config: RunConfig, runtime: str) -> dict[str, str]:
    """The images that a run needs, by whose sandboxes start in them."""
    judges = runtime != "whole" and config.judge.mode != "host"
    return {"task": config.container.image, **({"judge": config.container.judge_image} if judges else {})}


def refuse_elsewhere(config: RunConfig, wanted: str) -> None:
    """Refuses a container for what needs the machine's own network, or no sandbox at all.

    Raises:
        PlaceError: The config lets somebody out further than a container without a network can, or confines nothing.
    """
    networks = {"environment.network": config.environment.network}
    if config.judge.mode != "host":  # a judge on the host has the host's
        networks["judge.network"] = config.judge.network
    for key, network in networks.items():
        if network == "public" or (wanted == "whole" and network != "no-network"):
            raise PlaceError(
                f"the container of an image has no network, and {key} is {network}",
                where="container.runtime",
                cure="use --runtime local" + (" or image" if network != "public" else ""),
            )
    off = "" if config.sandbox.enabled else "sandbox.enabled is false"
    off = "environment.runner is host" if config.environment.runner == "host" else off
    if wanted != "whole" and off:
        raise PlaceError(
            f"a container is only entered to make sandboxes, and {off}",
            where="container.runtime",
            cure="use --runtime local, or --runtime whole for plain processes in the image",
        )


def refuse_unfit_image(found: Engine, image: str) -> str:
    """The id of an image; one that is not here or holds another version of Hermit is refused.

    Raises:
        PlaceError: It is not here, or not of this version.
    """
    image_id = engine.image_id(found, image)
    if image_id is None:
        raise PlaceError(f"the image {image} is not here", where=found.program, cure="make image")
    version = engine.image_label(found, image, label=VERSION_LABEL)
    if version != hermit.__version__:
        raise PlaceError(
            f"the image {image} holds Hermit {version or 'of no version'}, and this is {hermit.__version__}",
            where=found.program,
            cure="make image",
        )
    return image_id


@dataclass(frozen=True)
class InImage:
    """Sandboxes in two containers of a run, each closed: the judge's files are shown in the judge's alone.

    Args:
        engine: The engine that runs them.
        image: The name of the image of task sandboxes.
        image_id: That image.
        judge_image: The name of the image of judge sandboxes.
        judge_image_id: That image.
    """

    engine: Engine
    image: str
    image_id: str
    judge_image: str
    judge_image_id: str

    @contextlib.contextmanager
    def opened(self, plan: EvalPlan, *, exchange: Path, judge_exchange: Path) -> Iterator[tuple[Place, Place]]:
        """Starts both containers, at once; they are gone afterwards.

        Args:
            plan: What is run: of its paths, only those that a sandbox may see are mounted.
            exchange: Where the attempts' task sandboxes work.
            judge_exchange: Where what a judge gets of them lies.

        Raises:
            PlaceError: One cannot be started, sees other files than this process, or cannot hold a sandbox.
        """
        strays.prune(self.engine)
        shapes = [task_shape(self, plan, exchange), judge_shape(self, plan, judge_exchange, work=exchange)]
        launchers = [Launcher(self.engine, shape) for shape in shapes]
        if plan.config.judge.mode == "host":
            launchers.pop()
        with contextlib.ExitStack() as ends:
            with ThreadPoolExecutor(len(launchers)) as pool:
                list(pool.map(ends.enter_context, launchers))
            places = [Place(launcher, launcher.record, launcher.owner) for launcher in launchers]
            yield places[0], places[-1]


def in_images(choice: Choice) -> InImage:
    """The place that was chosen."""
    assert choice.engine is not None  # noqa: S101 - the caller asked
    return InImage(choice.engine, choice.image, choice.image_id, choice.judge_image, choice.judge_image_id)


def task_shape(where: InImage, plan: EvalPlan, exchange: Path) -> Shape:
    """The container of task sandboxes: what the config declares, and the exchange directory."""
    environment, agent = plan.config.environment, task_role.file_of(plan.config.agent.name)
    memory_mb, pids = _bounds(plan)
    return Shape(
        image=where.image_id,
        name=where.image,
        exchange=str(exchange),
        read=_once([*map(str, environment.read), *([agent] if agent else []), *plan.beside]),
        write=_once(map(str, environment.write)),
        run=str(plan.paths.root),
        memory_mb=memory_mb,
        pids=pids,
    )


def judge_shape(where: InImage, plan: EvalPlan, exchange: Path, *, work: Path) -> Shape:
    """The container of judge sandboxes: the judge's file and tests too, and the agents' work where it is judged in place."""
    config = plan.config
    memory_mb, pids = _bounds(plan)
    shared = [str(work), *map(str, config.environment.write)] if config.judge.mode == "shared" else []
    return Shape(
        image=where.judge_image_id,
        name=where.judge_image,
        exchange=str(exchange),
        read=_once(map(str, [*config.environment.read, config.judge.path, *config.judge.tests])),
        write=_once(shared),
        run=str(plan.paths.root),
        memory_mb=memory_mb,
        pids=pids,
    )


def _once(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(paths))


def _bounds(plan: EvalPlan) -> tuple[int, int]:
    """MiB of memory, and processes, for as many sandboxes as run at once: a backstop behind the bound of each."""
    limits = task_role.limits(plan.config, timeout_min=None)
    at_once = plan.config.agent.concurrency
    machine_mb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // MIB
    each_mb = machine_mb if limits.memory_mb is None else limits.memory_mb + limits.tmp_mb
    each_pids = (limits.pids or MOST_PIDS_EACH) + OWN_PIDS_EACH
    return min(machine_mb, at_once * each_mb + OWN_MB), at_once * each_pids + OWN_PIDS


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
    if not inside_image():
        return ""
    return argv.cure(image, "check", lifted=argv.confined_by(preflight.facts().lsm_label))


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
    given += [*config.judge.tests, *plan.adapter.needs]
    paths = {str(path) for path in given if path is not None} | {path for _, path in task_role.declared(config)}
    return sorted(path for path in paths if not any(path != top and Path(path).is_relative_to(top) for top in paths))
