"""The container engine: whether one answers, which API it and its client agree on, and whether the image is here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermit.errors import PlaceError
from hermit.oci import argv
from hermit.oci import engine as engines
from hermit.oci.container import suited
from hermit.proc import capture
from hermit.run import place
from hermit.run.doctor.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hermit.oci.engine import Engine

# What the oldest engine that was tried speaks (20.10).
OLDEST_API = (1, 41)


def probes(environ: Mapping[str, str]) -> Iterator[Finding]:
    """A finding for each; Hermit can do without all of them.

    Args:
        environ: The host's variables, which say which engine.
    """
    try:
        found = engines.find(environ)
    except PlaceError as error:
        yield Finding("container engine", False, error.what, error.cure or "try `docker version`", needed=False)
        return
    name = Path(found.program).name
    yield Finding("container engine", True, f"{name} {found.server} on {found.platform}", needed=False)
    yield api(_answer(found, environ), podman=name == "podman")
    yield users(found)
    yield modules(found)
    yield _image(found)


def _answer(found: Engine, environ: Mapping[str, str]) -> dict[str, Any]:
    try:
        said = capture([found.program, "version", "--format", "{{json .}}"], timeout_s=engines.ANSWER_S, env=environ)
        document = json.loads(said.stdout)
    except (OSError, TimeoutError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def api(document: Mapping[str, Any], *, podman: bool = False) -> Finding:
    """Which version client and engine speak.

    Args:
        document: What ``docker version`` says, as JSON.
        podman: Whether it is podman, which needs no API for what it does here.
    """
    name = "engine API"
    if podman:
        return Finding(name, True, "podman works without one", needed=False)
    client, server = document.get("Client") or {}, document.get("Server") or {}
    spoken, most = _version(client.get("ApiVersion")), _version(server.get("ApiVersion"))
    least = _version(server.get("MinAPIVersion")) or (0, 0)
    if spoken is None or most is None:
        return Finding(name, False, "the engine names no version", "try `docker version`", needed=False)
    found = f"{_text(spoken)} is spoken; the engine knows {_text(least)} to {_text(most)}"
    if not least <= spoken <= most:
        cure = "install client and engine from one source, or set DOCKER_API_VERSION"
        return Finding(name, False, found, cure, needed=False)
    old = spoken < OLDEST_API
    found += f", and Hermit was tried with {_text(OLDEST_API)} and newer" if old else ""
    return Finding(name, not old, found, "use an engine of version 20.10 or newer", needed=False)


def users(found: Engine) -> Finding:
    """Whose files a container of this engine leaves."""
    name = "engine users"
    try:
        engines.refuse_unfit(found)
    except PlaceError as error:
        return Finding(name, False, error.what, error.cure, needed=False)
    mode = f", by --userns {found.userns}" if found.userns else ""
    return Finding(name, True, f"what a container leaves is its caller's{mode}", needed=False)


def modules(found: Engine) -> Finding:
    """Which security modules confine its containers: their own rules deny mounts, so ours are started without them."""
    name = "engine security modules"
    lifted = suited(found)["lifted"]
    words = " ".join(f"--security-opt {argv.LIFTING[module]}" for module in lifted)
    if not lifted:
        return Finding(name, True, "none that would deny the mounts of a sandbox", needed=False)
    return Finding(
        name, True, f"Hermit's containers are started with {words}: their own rules deny mounts", needed=False
    )


def _version(text: Any) -> tuple[int, int] | None:
    parts = str(text).split(".")
    numbers = [int(part) for part in parts if part.isdigit()]
    return (numbers[0], numbers[1]) if len(numbers) == len(parts) == len(OLDEST_API) else None


def _text(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


def _image(found: Engine) -> Finding:
    try:
        place.refuse_unfit_image(found, "hermit")
        version = engines.image_label(found, "hermit", label=place.VERSION_LABEL)
    except PlaceError as error:
        return Finding("image", False, error.what, error.cure, needed=False)
    return Finding("image", True, f"hermit, of version {version}", needed=False)
