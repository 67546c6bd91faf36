"""The images that a config names: where its sandboxes would start, and whether each image can hold them.

Each image is asked in a container of it, closed as a run's. Nothing is fetched for that.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hermit.errors import PlaceError
from hermit.oci import engine as engines
from hermit.oci.images import fit
from hermit.run import place
from hermit.run.doctor.finding import Finding, slug

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from hermit.config.schema import RunConfig
    from hermit.oci.engine import Engine
    from hermit.run.place import Choice

NEVER = "never"
ABSENT = ("task_image_image", "judge_image_image")
FETCH = "hermit image pull IMAGE  and check again"


@dataclass(frozen=True)
class Judged:
    """What was found of a config's images.

    Args:
        findings: What each image has and lacks, after where the sandboxes start.
        choice: Where they start, ``None`` where they cannot.
    """

    findings: tuple[Finding, ...]
    choice: Choice | None

    @property
    def elsewhere(self) -> bool:
        """Whether sandboxes start in an image, so that nothing of this machine stands in their way."""
        return self.choice is not None and self.choice.kind != "local"


def judged(config: RunConfig, *, environ: Mapping[str, str]) -> Judged:
    """Where the sandboxes of a config start, and whether the images that it names can hold them.

    Args:
        config: The run's config.
        environ: The host's variables, which say which engine.
    """
    if config.container.runtime == "local" or place.inside_image():
        choice = place.choose(config, runtime="local", environ=environ)
        return Judged((_where(choice),), choice)
    findings = tuple(_images(config, environ))
    if config.container.pull != NEVER and any(one.id in ABSENT and not one.ok for one in findings):
        # A run would fetch it first: what it then is, nobody can say yet.
        later = tuple(replace(one, needed=False) for one in findings)
        return Judged((Finding("place", False, "a run fetches its image first", FETCH, needed=False), *later), None)
    asked = config.model_copy(update={"container": config.container.model_copy(update={"pull": NEVER})})
    try:
        choice = place.choose(asked, runtime=None, environ=environ)
    except PlaceError as error:
        return Judged((Finding("place", False, error.what, error.cure), *findings), None)
    # With `auto` a run stays on this machine where an image is not to be had; one that is there has to be right.
    needed = choice.kind != "local"
    return Judged((_where(choice), *(replace(one, needed=needed) for one in findings)), choice)


def _where(choice: Choice) -> Finding:
    return Finding("place", True, f"sandboxes start {choice.sentence}")


def _images(config: RunConfig, environ: Mapping[str, str]) -> list[Finding]:
    """A finding for each thing an image has or lacks; none where no engine answers, which the machine's findings say."""
    try:
        engine = engines.find(environ)
    except PlaceError:
        return []
    named = place.images_of(config, config.container.runtime)
    once = {image: role for role, image in reversed(named.items())}
    with ThreadPoolExecutor(len(once)) as pool:
        found = pool.map(lambda image: list(_asked(engine, once[image], image)), sorted(once))
    return [finding for findings in found for finding in findings]


def _asked(engine: Engine, role: str, image: str) -> Iterable[Finding]:
    try:
        for one in fit.judged(engine, image):
            yield Finding(
                f"{image}: {one.name}",
                one.ok,
                one.found,
                one.cure,
                group=f"image {image}",
                id=f"{role}_image_{slug(one.name)}",
            )
    except PlaceError as error:
        yield Finding(f"{image}: image", False, error.what, error.cure, id=f"{role}_image_image")
