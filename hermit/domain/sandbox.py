"""What a sandbox is: an allowlist. What is not named here does not exist inside."""

from __future__ import annotations

import fnmatch
import functools
import re
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING

from hermit.domain import hide
from hermit.domain.bind import Bind, absolute, contains
from hermit.domain.limits import Limits
from hermit.domain.network import Forward, Network
from hermit.domain.pathmap import Layout, PathMap

if TYPE_CHECKING:
    from collections.abc import Iterable

VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
PATTERN = re.compile(r"[A-Za-z_*][A-Za-z0-9_*]*\Z")

# The user and group inside, on every machine. Never 0: a sandbox that runs as uid 0 cannot nest, and owns too much.
UID = 1000
GID = 1000


# Who leaves no record: a strict check of an adapter shows only the adapter and its template, at every commit.
UNRECORDED = frozenset({"check"})


class Enforce(Enum):
    """Whether a sandbox that cannot be confined is refused, or runs unconfined and says so."""

    REQUIRED = "required"
    BEST_EFFORT = "best_effort"


@dataclass(frozen=True, kw_only=True)
class Sandbox:
    """Everything one sandbox shows, passes and allows.

    Args:
        role: Who runs inside: ``task``, ``judge``, ``tool``, ``evolver``, ``llm`` ...; it names the record. A
            ``check`` keeps none.
        read: Paths shown read-only at their own location.
        write: Paths shown writable at their own location.
        binds: Paths shown under a name of their own.
        cwd: The working directory inside.
        network: Which network exists inside.
        allowed_hosts: Host patterns that an isolated network reaches through a proxy on its loopback.
        forwards: Services of the host that have a port on an isolated network's loopback.
        env: Variables the sandbox sets, as pairs.
        env_allow: Names or patterns (``MWM_*``) of host variables that pass in.
        limits: The bounds of the command.
        probes: Paths that must not exist inside; each start proves it.
        framework: Whether the ``hermit`` package is shown.
        packages: Packages or distributions that are shown although they are not in a site directory.
        hide: Modules, packages or distributions that are covered wherever they are shown.
        layout: The working directory as it is told to whoever runs inside.
        enforce: Whether to refuse or to run unconfined where no sandbox can be made.

    Raises:
        ValueError: A path, name or combination is broken; a path is both read-only and writable; a mount would be
            made below a directory that the command can write.
    """

    role: str = "tool"
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    binds: tuple[Bind, ...] = ()
    cwd: str = "/tmp"  # noqa: S108 - the sandbox's own, not the host's
    network: Network = Network.ISOLATED
    allowed_hosts: tuple[str, ...] = ()
    forwards: tuple[Forward, ...] = ()
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    env_allow: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    probes: tuple[str, ...] = ()
    framework: bool = False
    packages: tuple[str, ...] = ()
    hide: tuple[str, ...] = ()
    layout: Layout | None = None
    enforce: Enforce = Enforce.REQUIRED

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9_-]{0,31}", self.role):
            raise ValueError(f"a role is a short lower-case word, not {self.role!r}")
        for name in ("read", "write", "probes"):
            paths = tuple(absolute(path, what=f"a path of {name!r}") for path in getattr(self, name))
            object.__setattr__(self, name, paths)
        object.__setattr__(self, "cwd", absolute(self.cwd, what="the working directory"))
        object.__setattr__(self, "hide", hide.checked(self.hide))
        _check_network(self)
        _check_variables(self.env, self.env_allow)
        _check_mounts(self.mounts)

    @functools.cached_property
    def mounts(self) -> tuple[Bind, ...]:
        """Every path of the host that is granted, parents before what lies below them."""
        own = [Bind(path, path) for path in self.read] + [Bind(path, path, writable=True) for path in self.write]
        return tuple(sorted({*own, *self.binds}, key=lambda bind: (bind.target.count("/"), bind.target, bind.source)))

    @functools.cached_property
    def paths(self) -> PathMap:
        """Where a path of the host lies inside, and back; a name of its own comes before the place on the host."""
        own = [Bind(path, path) for path in self.read] + [Bind(path, path, writable=True) for path in self.write]
        return PathMap((*self.binds, *own), self.layout)

    def relative(self, path: str) -> str:
        """A path of the host as it is told inside: relative to the layout's root where it lies below that."""
        return self.paths.relative(path)

    def outside(self, path: str) -> str | None:
        """The path of the host behind one that was named inside; ``None`` where nothing is shown there."""
        return self.paths.outside(path)

    def view(self, binds: Iterable[Bind], layout: Layout | None = None) -> Sandbox:
        """The same sandbox with other things shown.

        Network, variables, limits, probes, what is hidden, enforcement and the role of its records stay.

        Raises:
            ValueError: The binds cannot be shown together.
        """
        cwd = layout.inside if layout is not None else "/tmp"  # noqa: S108 - the sandbox's own
        return replace(self, read=(), write=(), binds=tuple(binds), layout=layout, cwd=cwd)

    @property
    def recorded(self) -> bool:
        """Whether a start of this sandbox keeps its record."""
        return self.role not in UNRECORDED

    def passes(self, name: str) -> bool:
        """Whether the host's variable ``name`` passes in."""
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in self.env_allow)


def _check_network(sandbox: Sandbox) -> None:
    ports = [forward.port for forward in sandbox.forwards]
    if len(set(ports)) < len(ports):
        raise ValueError(f"a port leads to one service, not to several: {sorted(ports)}")
    if sandbox.network is Network.OPEN and (sandbox.allowed_hosts or ports):
        raise ValueError("an open network has no list of hosts and no forwards: it reaches what the place reaches")


def _check_variables(env: tuple[tuple[str, str], ...], env_allow: tuple[str, ...]) -> None:
    for name, value in env:
        if not VARIABLE.match(name) or "\0" in value:
            raise ValueError(f"{name!r} is not the name of a variable, or its value holds a NUL byte")
    for pattern in env_allow:
        if not PATTERN.match(pattern) or pattern.strip("*_") == "":
            raise ValueError(f"env_allow takes names or patterns such as MWM_*, not {pattern!r}")


def _check_mounts(mounts: tuple[Bind, ...]) -> None:
    for index, bind in enumerate(mounts):
        for other in mounts[:index]:
            if other.target == bind.target:
                raise ValueError(f"{bind.target} is shown twice: from {other.source} and from {bind.source}")
            # While it sets a sandbox up, bubblewrap before 0.12 follows links in the parents of a mount target
            # (CVE-2026-87766): below a directory that the command can write, it could create files on the host.
            if other.writable and contains(other.target, bind.target):
                raise ValueError(
                    f"{bind.target} cannot be shown below {other.target}, which is writable inside: "
                    "a link left there would lead the mount out of the sandbox"
                )
