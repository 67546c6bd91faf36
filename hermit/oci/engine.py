"""The container engine of this machine: which one answers, and what it says of an image."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hermit.errors import PlaceError
from hermit.oci import failure
from hermit.proc import capture

if TYPE_CHECKING:
    from collections.abc import Mapping

PROGRAMS = ("docker", "podman")
ANSWER_S = 10.0


@dataclass(frozen=True)
class Engine:
    """A container engine that answered.

    Args:
        program: The client's path.
        client: The client's version.
        server: The engine's version; the client's own where no daemon stands behind it.
        platform: Operating system and architecture of its containers, such as ``linux/amd64``.
    """

    program: str
    client: str
    server: str
    platform: str

    @property
    def rootless_podman(self) -> bool:
        """Whether this is podman, which maps users unless it is told to keep the caller's."""
        return self.program.rsplit("/", 1)[-1] == "podman"


def find(environ: Mapping[str, str]) -> Engine:
    """The first engine on the ``PATH`` that answers.

    Raises:
        PlaceError: None answers; the reason is that of the first one installed.
    """
    reasons: list[PlaceError] = []
    for name in PROGRAMS:
        program = shutil.which(name, path=environ.get("PATH", ""))
        if program is None:
            continue
        try:
            return _ask(program, environ=environ)
        except PlaceError as error:
            reasons.append(error)
    if reasons:
        raise reasons[0]
    raise PlaceError("no container engine is installed", where="PATH", cure="make engine, or --runtime local")


def image_id(engine: Engine, reference: str) -> str | None:
    """The id of a local image; ``None`` where there is none of this name. Nothing is ever pulled.

    Raises:
        PlaceError: The engine does not answer any more.
    """
    answer = _inspect(engine, reference, what="{{.Id}}")
    return answer or None


def image_label(engine: Engine, reference: str, *, label: str) -> str | None:
    """The value of one label of a local image; ``None`` where the image or the label does not exist.

    Raises:
        PlaceError: The engine does not answer any more.
    """
    answer = _inspect(engine, reference, what="{{json .Config.Labels}}")
    labels = json.loads(answer) if answer else None
    return labels.get(label) if isinstance(labels, dict) else None


def _ask(program: str, *, environ: Mapping[str, str]) -> Engine:
    try:
        finished = capture([program, "version", "--format", "{{json .}}"], timeout_s=ANSWER_S, env=environ)
    except TimeoutError:
        cure = "restart the engine, or check DOCKER_HOST"
        raise PlaceError(
            f"the container engine does not answer within {ANSWER_S:g} s", where=program, cure=cure
        ) from None
    except OSError as error:
        raise PlaceError(f"the client of the container engine does not start: {error}", where=program) from None
    if finished.code != 0:
        raise failure.refusal(finished.stderr.decode(errors="replace"), program=program)
    return _engine(program, answer=finished.stdout)


def _engine(program: str, *, answer: bytes) -> Engine:
    try:
        document = json.loads(answer)
        client: dict[str, Any] = document["Client"]
        # Podman without a service has no server: its client does the work.
        server: dict[str, Any] = document.get("Server") or client
        platform = f"{server['Os']}/{server['Arch']}" if "Arch" in server else server["OsArch"]
        return Engine(program=program, client=client["Version"], server=server["Version"], platform=platform)
    except (ValueError, KeyError, TypeError):
        raise PlaceError(
            "the container engine gives no version that can be read", where=program, cure=f"try `{program} version`"
        ) from None


def _inspect(engine: Engine, reference: str, *, what: str) -> str:
    try:
        finished = capture([engine.program, "image", "inspect", "--format", what, "--", reference], timeout_s=ANSWER_S)
    except TimeoutError:
        raise PlaceError(
            "the container engine does not answer any more", where=engine.program, cure="restart it: make engine"
        ) from None
    if finished.code == 0:
        return finished.stdout.decode().strip()
    words = finished.stderr.decode(errors="replace")
    if "no such image" in words.lower() or "image not known" in words:
        return ""
    raise failure.refusal(words, program=engine.program, image=reference)
