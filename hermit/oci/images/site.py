"""Where a build happens: the checkout, the host's tools, the engine and its builder, and who is told."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hermit.errors import PlaceError
from hermit.oci import argv
from hermit.oci.images.archive import Platform
from hermit.oci.images.layer import canonical, directories_only
from hermit.proc import capture

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from hermit.oci.images.checkout import Checkout
    from hermit.oci.images.layer import Layer
    from hermit.oci.images.store import Store

# A slow mirror or index is no failure; a build that hangs for good is one.
STEP_S = 3600.0
ASKED_S = 20.0
WORDS = 15
FIRST_WITH_PLUGIN = 23
# What a part's settings must not carry: they are the builder's own.
NO_SETTINGS = ("Image", "Hostname", "Domainname", "OnBuild", "ArgsEscaped")


@dataclass(frozen=True)
class Site:
    """One build's surroundings.

    Args:
        checkout: What is built.
        store: Where the images go.
        environ: The host's variables.
        python: The interpreter whose pip fetches wheels.
        say: Takes one line for whoever waits.
        work: A directory of this build's own.
        cached: Whether the engine's builder may use what it has built before.
    """

    checkout: Checkout
    store: Store
    environ: Mapping[str, str]
    python: str
    say: Callable[[str], None]
    work: Path
    cached: bool = True

    @property
    def cache(self) -> Path:
        """Where downloads are kept."""
        return self.checkout.cache


@dataclass(frozen=True)
class Part:
    """What a Dockerfile made: one layer, and the settings of its last stage."""

    layer: Layer
    settings: Mapping[str, object]
    platform: Platform


@contextlib.contextmanager
def opened(
    checkout: Checkout, store: Store, *, environ: Mapping[str, str], say: Callable[[str], None]
) -> Iterator[Site]:
    """The surroundings of one build; no other build of this checkout goes on beside it.

    Raises:
        PlaceError: There is no interpreter with pip.
    """
    from sys import executable

    python = environ.get("PYTHON") or executable
    if shutil.which(python, path=environ.get("PATH", "")) is None:
        raise PlaceError(f"there is no {python}", where="PYTHON", cure="make setup")
    checkout.cache.mkdir(parents=True, exist_ok=True)
    with open(checkout.cache / "lock", "w", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another build of this checkout goes on; waiting for its end")
            fcntl.flock(lock, fcntl.LOCK_EX)
        for left in checkout.cache.glob("work-*"):  # of a build that was killed: nobody else holds the lock
            shutil.rmtree(left)
        with tempfile.TemporaryDirectory(prefix="work-", dir=checkout.cache) as work:
            try:
                yield Site(checkout, store, environ, python, say, Path(work))
            finally:
                store.prune()  # the classic builder leaves the last image of each stage without a name


def step(
    site: Site, command: Sequence[str], *, what: str, cure: str = "", variables: Mapping[str, str] | None = None
) -> str:
    """Runs one step of the build on the host, to its end; returns what it wrote.

    Raises:
        PlaceError: It failed; its last words stand in the message, all of them in the log.
    """
    log = site.cache / f"{re.sub(r'[^a-z]+', '-', what.lower())}.log"
    env = {**site.environ, "SOURCE_DATE_EPOCH": str(site.checkout.epoch), **(variables or {})}
    try:
        finished = capture(command, timeout_s=STEP_S, env=env)
    except (OSError, TimeoutError) as error:
        raise PlaceError(f"{what} failed: {error}", where=command[0], cure=cure) from None
    log.write_bytes(finished.stdout + finished.stderr)
    if finished.code != 0:
        words = (finished.stdout + finished.stderr).decode(errors="replace").strip().splitlines()[-WORDS:]
        raise PlaceError(
            f"{what} failed; its last words:\n" + "\n".join(f"    {word}" for word in words), where=str(log), cure=cure
        )
    return finished.stdout.decode(errors="replace")


def script(site: Site, path: str, *arguments: str, what: str, cure: str = "") -> str:
    """Runs one of the checkout's steps with the shell."""
    return step(site, ["sh", str(site.checkout.images / path), *arguments], what=what, cure=cure)


def part(site: Site, dockerfile: str, context: Path, *, arguments: Mapping[str, str], network: str = "none") -> Part:
    """Builds a Dockerfile whose last stage holds one layer, and takes that out of the engine in canonical form.

    Args:
        site: The build's surroundings.
        dockerfile: The file below ``images``.
        context: The directory that the builder gets.
        arguments: Its build arguments; an empty value takes the host's variable of that name.
        network: ``none``, or ``host`` for the one step that fetches by itself.

    Raises:
        PlaceError: The build failed, or the last stage holds more than one layer of files.
    """
    program, kit = builder(site)
    named = Path(tempfile.mkdtemp(dir=site.work)) / "image-id"
    command = argv.build_arguments(
        program=program,
        dockerfile=str(site.checkout.images / dockerfile),
        context=str(context),
        network=network,
        arguments={"SOURCE_DATE_EPOCH": str(site.checkout.epoch), **arguments},
        iidfile=str(named),
        cached=site.cached,
    )
    step(site, command, what=f"the build of {dockerfile}", variables={"DOCKER_BUILDKIT": "1" if kit else "0"})
    image = named.read_text(encoding="ascii").strip()
    try:
        with site.store.layers(image, str(site.work)) as layers:
            # For a working directory the builder makes one more, with that directory in it; the layers below have it.
            if not layers or not all(map(directories_only, layers[1:])):
                raise PlaceError(f"the last stage of {dockerfile} copies more than once", where=dockerfile)
            output = Path(tempfile.mkdtemp(dir=site.work)) / "layer.tar"
            layer = canonical(layers[0], str(output), epoch=site.checkout.epoch)
        found = site.store.attributes(image) or {}
    finally:
        site.store.remove(image)
    return Part(layer, _settings(found.get("Config") or {}), Platform(found["Os"], found["Architecture"]))


def _settings(config: Mapping[str, object]) -> dict[str, object]:
    """What the last stage says of itself, without what only the builder has to know."""
    kept = {key: value for key, value in config.items() if value and key not in NO_SETTINGS}
    labels = kept.get("Labels")
    if isinstance(labels, dict):
        kept["Labels"] = {key: value for key, value in labels.items() if key != "hermit.intermediate"}
    return kept


def builder(site: Site) -> tuple[str, bool]:
    """The client to build with, and whether it speaks to BuildKit.

    BuildKit is twice as fast as the classic builder, but not every client can speak to it: one from 23 on needs a plugin
    for it, one before has it built in.
    """
    for program in dict.fromkeys((site.store.engine.program, "/usr/bin/docker")):
        if not os.access(program, os.X_OK):
            continue
        version = capture([program, "version", "--format", "{{.Client.Version}}"], timeout_s=ASKED_S, env=site.environ)
        major = re.match(r"\d+", version.stdout.decode())
        plugin = capture([program, "buildx", "version"], timeout_s=ASKED_S, env=site.environ)
        if plugin.code == 0 or (major is not None and int(major[0]) < FIRST_WITH_PLUGIN):
            return program, True
    return site.store.engine.program, False
