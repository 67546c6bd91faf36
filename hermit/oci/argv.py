"""The one place that spells a container option: a value in, the arguments of ``docker run`` out."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hermit.domain.bind import Bind, absolute
from hermit.domain.sandbox import GID, UID, VARIABLE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*\Z")
# Complete and ours: the profiles of the engines either stop nested sandboxes or let calls through that ours stops.
SECCOMP_PROFILE = str(Path(__file__).with_name("seccomp.json"))
PROFILE_IN_IMAGE = "/opt/hermit/share/seccomp.json"
PYTHON_IN_IMAGE = "/opt/hermit/bin/python"
# What lifts the rules of a security module for one container: each of the engines' own denies the mounts of a sandbox.
LIFTING = {"apparmor": "apparmor=unconfined", "selinux": "label=disable"}
# Where a person who follows a cure has put the profile.
FETCHED_PROFILE = "hermit-seccomp.json"


@dataclass(frozen=True, kw_only=True)
class Container:
    """A closed container that can hold sandboxes: no network, no capability, a read-only root, never uid 0.

    Args:
        image: The image's reference or id.
        command: What the image's entrypoint gets as arguments.
        entrypoint: The program that runs in place of the image's own, which does where this is empty.
        mounts: The host's paths inside; what is not named does not exist there.
        env: Names of variables that pass from the engine's client; a value never stands among the arguments.
        uid: The user inside.
        gid: The group inside.
        cwd: The working directory inside, the image's own where empty.
        tmp_mb: MiB of ``/tmp``.
        memory_mb: MiB that all its processes share.
        pids: How many processes and threads it may hold.
        processors: Those it may run on, every one where there are none.
        tty: Whether it gets a terminal.
        interactive: Whether it reads this process's standard input.
        name: Its name, the engine's choice where empty.
        labels: Labels as pairs.
        seccomp: The profile's file, as the engine's client sees it.
        userns: The engine's user namespace mode, its default where empty.
        lifted: The security modules whose rules do not hold in it, of ``LIFTING``.

    Raises:
        ValueError: The user is 0, a name, label, number or path is broken, or two mounts have one target.
    """

    image: str
    command: tuple[str, ...] = ()
    entrypoint: str = ""
    mounts: tuple[Bind, ...] = ()
    env: tuple[str, ...] = ()
    uid: int = UID
    gid: int = GID
    cwd: str = ""
    tmp_mb: int = 1024
    memory_mb: int = 8192
    pids: int = 4096
    processors: tuple[int, ...] = ()
    tty: bool = False
    interactive: bool = False
    name: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    seccomp: str = SECCOMP_PROFILE
    userns: str = ""
    lifted: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # With the masks of /proc lifted, uid 0 could write the host's kernel settings even without capabilities.
        if self.uid <= 0 or self.gid < 0:
            raise ValueError(
                f"a container that holds sandboxes runs as an unprivileged user, not as {self.uid}:{self.gid}"
            )
        if not self.image or self.image.startswith("-"):
            raise ValueError(f"{self.image!r} is not the reference of an image")
        if self.name and not NAME.match(self.name):
            raise ValueError(f"{self.name!r} is not the name of a container")
        if not self.seccomp or self.seccomp == "unconfined":
            raise ValueError("a container needs the file of a seccomp profile")
        if unknown := set(self.lifted) - set(LIFTING):
            raise ValueError(f"{', '.join(sorted(unknown))} is no security module that a container can do without")
        if self.cwd:
            object.__setattr__(self, "cwd", absolute(self.cwd, what="a container's working directory"))
        _check_words(self)
        _check_numbers(self)
        _check_mounts(self.mounts)


def run_arguments(container: Container, *, program: str = "docker") -> list[str]:
    """The whole command that runs this container and removes it at its end."""
    argv = [program, "run", "--rm", "--init", "--read-only"]
    argv += ["--tmpfs", f"/tmp:mode=1777,size={container.tmp_mb}m"]  # noqa: S108 - the container's own
    argv += ["--network", "none", "--user", f"{container.uid}:{container.gid}"]
    argv += ["--userns", container.userns] if container.userns else []
    argv += ["--cap-drop", "ALL", "--security-opt", "no-new-privileges"]
    argv += ["--security-opt", f"seccomp={container.seccomp}", "--security-opt", "systempaths=unconfined"]
    for module in container.lifted:
        argv += ["--security-opt", LIFTING[module]]
    argv += ["--pids-limit", str(container.pids), "--memory", f"{container.memory_mb}m"]
    argv += ["--cpuset-cpus", ",".join(map(str, container.processors))] if container.processors else []
    argv += ["--entrypoint", container.entrypoint] if container.entrypoint else []
    argv += ["--name", container.name] if container.name else []
    for label, value in container.labels:
        argv += ["--label", f"{label}={value}"]
    argv += ["--interactive"] if container.interactive else []
    argv += ["--tty"] if container.tty else []
    argv += ["--workdir", container.cwd] if container.cwd else []
    for name in container.env:
        argv += ["--env", name]
    for bind in sorted(container.mounts, key=lambda bind: (bind.target.count("/"), bind.target)):
        argv += ["--mount", _mount(bind)]
    return [*argv, container.image, *container.command]


def kill_arguments(name: str, *, program: str = "docker") -> list[str]:
    """The command that removes a container, running or not, with the volumes that are its own."""
    return [program, "rm", "--force", "--volumes", name]


def list_arguments(label: str, *, program: str = "docker") -> list[str]:
    """The command that prints the id of each container that has this label, running or not, a line each."""
    return [program, "ps", "--all", "--quiet", "--no-trunc", "--filter", f"label={label}"]


def labels_arguments(ids: Sequence[str], *, program: str = "docker") -> list[str]:
    """The command that prints the id and the labels of each of these containers, in JSON, a line each."""
    return [program, "container", "inspect", "--format", '{"id":{{json .Id}},"labels":{{json .Config.Labels}}}', *ids]


def event_arguments(name: str, *, since_s: float, until_s: float, program: str = "docker") -> list[str]:
    """The command that prints what happened to a container between two moments, an action and an exit code a line."""
    form = "{{.Action}} {{.Actor.Attributes.exitCode}}"
    span = ["--since", f"{since_s:.6f}", "--until", f"{until_s:.6f}"]
    return [program, "events", *span, "--filter", f"container={name}", "--format", form]


def one_line(container: Container, *, program: str = "docker") -> str:
    """The same command as a person types it into a shell."""
    return shlex.join(run_arguments(container, program=program))


def cure(image: str, *command: str, lifted: tuple[str, ...] = (), program: str = "docker") -> str:
    """What a person types to run ``command`` in ``image`` where bubblewrap can start: fetch the profile, then run."""
    fetch = shlex.join([program, "run", "--rm", "--entrypoint", "cat", image, PROFILE_IN_IMAGE])
    container = Container(image=image, command=command, seccomp=FETCHED_PROFILE, lifted=lifted)
    return f"{fetch} > {FETCHED_PROFILE} && {one_line(container, program=program)}"


def confined_by(label: str) -> tuple[str, ...]:
    """The security modules whose rules for containers hold for a process with this label, of ``LIFTING``."""
    parts = label.split(":")
    if len(parts) > 2:  # noqa: PLR2004 - a user, a role, a type, a level; `spc_t` is that of a container without rules
        return ("selinux",) if parts[2].startswith("container_") else ()
    return ("apparmor",) if "(enforce)" in label else ()


def options(container: Container) -> dict[str, str]:
    """Each option that closes a container as a person types it, by its name; a security option by what it is about."""
    words = run_arguments(container)[3 : -1 - len(container.command)]
    found: dict[str, str] = {}
    for number, word in enumerate(words):
        if word.startswith("--"):
            value = next(iter(words[number + 1 : number + 2]), "--")
            given = [] if value.startswith("--") else [value]
            name = value.partition("=")[0] if word.endswith("security-opt") else word[2:]
            found[name] = shlex.join([word, *given])
    return found


def _mount(bind: Bind) -> str:
    fields = ["type=bind", f"source={bind.source}", f"target={bind.target}"]
    return ",".join(_csv(field) for field in [*fields, *([] if bind.writable else ["readonly"])])


def _csv(field: str) -> str:
    # The engine reads a mount as one line of comma separated values, where a quote is doubled and quoted.
    return '"' + field.replace('"', '""') + '"' if any(mark in field for mark in ',"') else field


def _check_words(container: Container) -> None:
    for part in (
        container.image,
        container.entrypoint,
        container.seccomp,
        *container.command,
        *(word for pair in container.labels for word in pair),
    ):
        if "\0" in part:
            raise ValueError(f"an argument of a container holds a NUL byte: {part!r}")
    for name in container.env:
        if not VARIABLE.match(name):
            raise ValueError(f"a variable passes into a container by its name alone, not as {name!r}")
    for label, _ in container.labels:
        if not label or "=" in label:
            raise ValueError(f"{label!r} is not the name of a label")


def _check_numbers(container: Container) -> None:
    for field in ("tmp_mb", "memory_mb", "pids"):
        if getattr(container, field) <= 0:
            raise ValueError(f"a container's {field} must be positive, not {getattr(container, field)}")


def _check_mounts(mounts: tuple[Bind, ...]) -> None:
    seen: dict[str, str] = {}
    for bind in mounts:
        if any(mark in path for path in (bind.source, bind.target) for mark in "\r\n"):
            raise ValueError(f"no engine takes a mount with a line break in its path: {bind.source!r}")
        if bind.target in seen:
            raise ValueError(f"{bind.target} is mounted twice: from {seen[bind.target]} and from {bind.source}")
        seen[bind.target] = bind.source


def build_arguments(
    *,
    program: str,
    dockerfile: str,
    context: str,
    network: str,
    arguments: Mapping[str, str],
    iidfile: str,
    cached: bool,
) -> list[str]:
    """The whole command that builds a Dockerfile and leaves the id of what came of it in a file.

    Args:
        program: The engine's client.
        dockerfile: The Dockerfile.
        context: The directory that it copies from.
        network: The network of its steps.
        arguments: Its build arguments; an empty value takes the client's own variable of that name, which then
            stands neither among the arguments nor in the image's history.
        iidfile: Where the id goes.
        cached: Whether the builder may use what it has built before.
    """
    argv = [program, "build", "--force-rm", "--network", network, "--file", dockerfile, "--iidfile", iidfile]
    argv += [] if cached else ["--no-cache"]
    for name, value in arguments.items():
        argv += ["--build-arg", f"{name}={value}" if value else name]
    return [*argv, context]
