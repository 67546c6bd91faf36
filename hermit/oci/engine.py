"""The container engine of this machine: which one answers, and what it says of an image."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hermit.errors import PlaceError
from hermit.oci import failure
from hermit.proc import capture

if TYPE_CHECKING:
    from collections.abc import Mapping

PROGRAMS = ("docker", "podman")
ANSWER_S = 10.0
# Confined by AppArmor's or SELinux's rules, in a user namespace of the engine's (userns), or run by an ordinary user.
TRAITS = frozenset({"apparmor", "selinux", "userns", "rootless"})


@dataclass(frozen=True)
class Engine:
    """A container engine that answered.

    Args:
        program: The client's path.
        client: The client's version.
        server: The engine's version; the client's own where no daemon stands behind it.
        platform: Operating system and architecture of its containers, such as ``linux/amd64``.
        podman: Whether podman runs the containers, whichever client speaks to it.
        traits: What else it says it does to containers, of ``TRAITS``.
    """

    program: str
    client: str
    server: str
    platform: str
    podman: bool = False
    traits: frozenset[str] = frozenset()

    @property
    def userns(self) -> str:
        """The mode of the user namespace in which what a container writes is its caller's; empty for the default one."""
        if self.podman:
            return "keep-id" if "rootless" in self.traits else ""
        return "host" if "userns" in self.traits else ""


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
    found = _engine(program, answer=finished.stdout)
    return replace(found, traits=_traits(program, environ=environ))


def refuse_unfit(engine: Engine) -> None:
    """Refuses an engine that cannot have a container of ours: as its caller's own user, under our seccomp profile.

    Raises:
        PlaceError: It maps the caller to the containers' root, as whom nothing of ours runs, and has no other way; or it
            is podman behind Docker's client, which sends the text of a profile where podman looks for a file's name.
    """
    if engine.podman and os.path.basename(engine.program) != "podman":
        raise PlaceError(
            "podman answers behind Docker's client, and takes no seccomp profile from it",
            where=engine.program,
            cure="put podman's own client first on the PATH (without docker), or --runtime local",
        )
    if "rootless" in engine.traits and not engine.podman:
        raise PlaceError(
            "an engine without root has its caller as the root of its containers, and no sandbox starts as root there",
            where=engine.program,
            cure="use podman, which can keep the caller's user, an engine that root runs, or --runtime local",
        )


def _traits(program: str, *, environ: Mapping[str, str]) -> frozenset[str]:
    """What an engine says it does to containers; nothing where it does not say, for then a container is simply refused."""
    try:
        finished = capture([program, "info", "--format", "{{json .}}"], timeout_s=ANSWER_S, env=environ)
        return traits(json.loads(finished.stdout))
    except (OSError, TimeoutError, ValueError):
        return frozenset()


def traits(document: object) -> frozenset[str]:
    """What an engine's ``info`` says of its containers, in the words of Docker or in those of podman."""
    if not isinstance(document, dict):
        return frozenset()
    options = document.get("SecurityOptions") or ()
    found = {part.removeprefix("name=") for option in options for part in str(option).split(",")[:1]}
    security = (document.get("host") or {}).get("security") or {}
    named = {"apparmor": "apparmorEnabled", "selinux": "selinuxEnabled", "rootless": "rootless"}
    found |= {trait for trait, key in named.items() if security.get(key) is True}
    return TRAITS & found


def _engine(program: str, *, answer: bytes) -> Engine:
    try:
        document = json.loads(answer)
        client: dict[str, Any] = document["Client"]
        # Podman without a service has no server: its client does the work.
        server: dict[str, Any] = document.get("Server") or client
        platform = f"{server['Os']}/{server['Arch']}" if "Arch" in server else server["OsArch"]
        parts = [str(part.get("Name", "")) for part in server.get("Components") or ()]
        podman = program.rsplit("/", 1)[-1] == "podman" or any(part.startswith("Podman") for part in parts)
        return Engine(program, client["Version"], server["Version"], platform, podman)
    except (ValueError, KeyError, TypeError, AttributeError):
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
