"""Whose failure a container was: what an engine says when it refuses, turned into what to do next."""

from __future__ import annotations

import re

from hermit.errors import PlaceError

# The engine's own failures; every other code is the command's.
REFUSED = 125
NOT_EXECUTABLE = 126
NOT_FOUND = 127
KILLED = 137

_Case = tuple[str, str, str]

# In order: a text of the engine, what happened, what to do. {image} and {program} are filled in.
_CASES: tuple[_Case, ...] = (
    (
        r"permission denied while trying to connect|dial unix .*permission denied|Got permission denied",
        "this user may not use the container engine",
        "sudo usermod -aG docker $USER  and log in again, or run the command as root",
    ),
    (
        r"Cannot connect to the Docker daemon|Is the docker daemon running|failed to connect to the docker API|connection refused",
        "no container engine answers: {program} is installed, its daemon does not run",
        "make engine",
    ),
    (
        r"client version \S+ is too (old|new)|API version",
        "the engine and its client do not speak the same version",
        "install client and engine from one source, or set DOCKER_API_VERSION",
    ),
    (
        r"No such image|Unable to find image|pull access denied|manifest unknown|image not known",
        "the image {image} does not exist here",
        "make image",
    ),
    (
        r"bind source path does not exist|invalid mount config|statfs .*no such file",
        "a path that should be shown in the container does not exist on the engine's machine",
        "check the paths of the configuration; an engine on another machine cannot see this one's files",
    ),
    (
        r"opening seccomp profile|seccomp profile .*failed|[Dd]ecoding seccomp profile",
        "the seccomp profile cannot be read",
        "reinstall hermit: its file hermit/oci/seccomp.json is missing or broken",
    ),
    (
        r"seccomp.*not (supported|enabled)|seccomp is not enabled",
        "the engine's kernel or runtime knows no seccomp",
        "use an engine with seccomp, or --runtime local",
    ),
    (
        r"Conflict\. The container name|name \S+ is (already )?in use",
        "another container has the name of this run",
        "wait for the other run to end",
    ),
    (
        r"No space left on device|no space left",
        "the engine's disk is full",
        "{program} system df  shows what fills it",
    ),
    (
        r"[Cc]annot set .*(memory|pids) limit|memory.*cgroup|cgroup.*(not mounted|not found|no such)",
        "the engine cannot limit memory or processes on this machine",
        "mount the control groups memory and pids, or use --runtime local",
    ),
)


def refusal(stderr: str, *, program: str = "docker", image: str = "") -> PlaceError:
    """Why an engine refused, by what it wrote."""
    names = {"program": program, "image": image or "asked for"}
    for pattern, what, todo in _CASES:
        if re.search(pattern, stderr, re.IGNORECASE):
            return PlaceError(what.format(**names), where=program, cure=todo.format(**names))
    words = last_line(stderr)
    return PlaceError(
        f"the container engine refused: {words}" if words else "the container engine refused", where=program
    )


def failure(code: int, stderr: str, *, program: str = "docker", image: str = "") -> PlaceError | None:
    """The engine's failure behind an exit code of ``docker run``; ``None`` where the code is the command's own.

    Codes 126 and 127 belong to the engine only where its runtime says that it could not start the command.
    """
    if code == REFUSED:
        return refusal(stderr, program=program, image=image)
    if code in (NOT_EXECUTABLE, NOT_FOUND) and re.search(
        r"OCI (runtime|permission)|unable to start container|executable file not found", stderr
    ):
        return PlaceError(
            f"the image {image or 'asked for'} does not start: {last_line(stderr)}", where=program, cure="make image"
        )
    return None


def last_line(stderr: str) -> str:
    """The last line of what an engine wrote that says something."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("See '")] or lines
    return lines[-1] if lines else ""
