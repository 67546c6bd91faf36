"""Everything that is decided about one start before anything is started."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from hermit.bwrap import argv, cover, places
from hermit.bwrap.system import Ground
from hermit.domain.bind import contains
from hermit.domain.network import Network
from hermit.domain.record import Record
from hermit.errors import SandboxError
from hermit.relay import Orders

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from hermit.bwrap.grants import Grant
    from hermit.domain.command import Command
    from hermit.domain.python import Python
    from hermit.domain.sandbox import Sandbox
    from hermit.net.reach import Reach


# Where an engine, a message bus or the system's own manager listens.
SOCKETS = ("/var/run/docker.sock", "/run/docker.sock", "/run/dbus/system_bus_socket", "/run/systemd/private")
# Settings of the kernel with which a writer would own the machine, or stop it.
SETTINGS = (
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/kernel/hostname",
    "/proc/sys/kernel/domainname",
    "/proc/sys/kernel/sysrq",
    "/proc/sys/vm/overcommit_memory",
    "/proc/sys/vm/drop_caches",
    "/proc/sys/net/ipv4/ip_forward",
    "/proc/sys/fs/binfmt_misc/register",
    "/proc/sysrq-trigger",
)
# What a record says of a sandbox inside a sandbox that root started.
LENT = (
    "proc: lent read-only by the sandbox around this one, whose processes show their names, arguments and sockets there",
    "cgroup: the namespace of the sandbox around this one",
)


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """One start, decided.

    Args:
        sandbox: What was asked for.
        command: What runs, with its paths as they are named inside.
        env: The variables inside.
        plan: The operations that set the sandbox up.
        reached: What an isolated network reaches.
        hidden: What is covered.
        python: The interpreter.
        search: What has to be on ``sys.path`` inside beyond what the interpreter finds by itself.
        granted: The sources of what the sandbox grants, held open.
        ground: What it stands on.
    """

    sandbox: Sandbox
    command: Command
    env: dict[str, str]
    plan: tuple[argv.Operation, ...]
    reached: Reach
    hidden: cover.Resolved
    python: Python
    search: tuple[str, ...] = ()
    granted: tuple[Grant, ...] = ()
    ground: Ground = field(default_factory=Ground)

    def orders(self, *, pids: int | None, processors: Iterable[int] = ()) -> Orders:
        """What the relay is told; ``pids`` is the bound it sets itself, ``None`` where a group holds it."""
        sandbox = self.sandbox
        outer = [name for name in argv.NAMESPACES if name not in self._shared]
        # A bind may show a secret under another name than its own.
        probes = dict.fromkeys(name for path in sandbox.probes for name in (path, sandbox.paths.inside(path)))
        checks: dict[str, Any] = {
            "confined": True,
            "namespaces": {name: os.readlink(f"/proc/self/ns/{name}") for name in outer},
            "writable": [bind.target for bind in sandbox.mounts if bind.writable],
            "network": sandbox.network.value,
            "probes": list(probes),
            **({"secrets": self._secrets()} if probes else {}),
            "granted": self._expected(),
            "read_only": [bind.target for bind in sandbox.mounts if not bind.writable],
            "ports": list(self.reached.ports),
            "sockets": self._foreign_sockets(),
            "settings": list(SETTINGS),
            **({"lent_proc": self.ground.lent} if self.ground.lent else {}),
            **({"root": True} if self.ground.root else {}),
        }
        return Orders(
            env=self.env,
            cwd=sandbox.paths.cwd(sandbox.cwd),
            processors=tuple(processors),
            limits=sandbox.limits,
            rlimits=sandbox.limits.set_inside(pids=pids, whole=True),
            checks=checks,
            python=self.python,
            search=self.search,
            ports=tuple(self.reached.ports),
            proxy=self.reached.proxy,
        )

    def _secrets(self) -> dict[str, Any]:
        """What must not be shown under any name, as numbers and as places of file systems."""
        found = places.absent(self.sandbox.probes)
        return {
            "identities": list(found.identities),
            "spots": [(spot.device.encode(), os.fsencode(spot.path)) for spot in found.spots],
        }

    def _expected(self) -> list[tuple[str, int, int]]:
        """Which file has to be found at each granted place that no cover lies over."""
        last = {argv.place(operation): operation for operation in self.plan}
        return [
            (grant.bind.target, grant.device, grant.inode)
            for grant in self.granted
            if last.get(grant.bind.target) == argv.Show(grant.bind)
        ]

    @property
    def _shared(self) -> tuple[str, ...]:
        """The namespaces that this sandbox does not have for itself."""
        opened = ("net",) if self.sandbox.network is Network.OPEN else ()
        return (*opened, *self.ground.shared)

    def _foreign_sockets(self) -> list[str]:
        """Socket files that lead to the host's own services, but for those that were granted."""
        granted = [bind.target for bind in self.sandbox.mounts]
        return [path for path in SOCKETS if not any(contains(target, path) for target in granted)]

    def record(self, *, version: str, pids: str, memory: str) -> Record:
        """The evidence so far; ``pids`` and ``memory`` say what holds those bounds."""
        unknown = (f"hide: nothing is called {name} here" for name in self.hidden.unknown)
        return Record(
            role=self.sandbox.role,
            backend="bubblewrap",
            version=version,
            confined=True,
            binds=tuple(operation.bind for operation in self.plan if isinstance(operation, argv.Show)),
            variables=tuple(sorted(self.env)),
            network=self.sandbox.network.value,
            reaches=self.reached.lines,
            limits=self.sandbox.limits.held(pids=pids, memory=memory),
            warnings=(*unknown, *self.reached.warnings, *(LENT if self.ground.lent else ())),
        )


def covers(plan: tuple[argv.Operation, ...], hidden: cover.Resolved) -> tuple[argv.Operation, ...]:
    """The covers over what a plan shows.

    Raises:
        ValueError: Something hidden cannot be covered without weakening it, or without making a file on the host.
    """
    shown = [operation.bind for operation in plan if isinstance(operation, argv.Show)]
    empty = [operation.path for operation in plan if isinstance(operation, argv.Empty | argv.Scratch)]
    return cover.operations(hidden, shown, covered=(*empty, "/proc", "/dev"))


def translated(sandbox: Sandbox, command: Command, env: dict[str, str]) -> tuple[Command, dict[str, str]]:
    """The command and the variables with every path under a bound source told by its name inside."""
    if not sandbox.binds and sandbox.layout is None:
        return command, env
    aliases = {os.path.realpath(bind.source): bind.source for bind in sandbox.binds}
    paths = sandbox.paths.with_aliases({name: path for name, path in aliases.items() if name != path})
    return replace(command, argv=paths.command(command.argv)), dict(paths.environment(env.items()))


def variables(sandbox: Sandbox, environ: Mapping[str, str], *, path: str) -> dict[str, str]:
    """The variables inside: a few fixed ones, the host's that may pass, then what the sandbox sets."""
    fixed = {"PATH": path, "HOME": "/tmp", "TMPDIR": "/tmp", "LANG": "C.UTF-8", "USER": "hermit"}  # noqa: S108
    passed = {name: value for name, value in environ.items() if sandbox.passes(name)}
    return {**fixed, **passed, **dict(sandbox.env)}


def refuse_read_only(sandbox: Sandbox) -> None:
    """Refuses a grant for writing where nobody can write: the command would meet it as a riddle of the kernel's.

    Raises:
        SandboxError: The first path that lies on something read-only.
    """
    for bind in sandbox.mounts:
        if not bind.writable or not (os.path.isdir(bind.source) or os.path.isfile(bind.source)):
            continue  # a socket or a device takes what is written to it wherever it lies
        if os.statvfs(bind.source).f_flag & os.ST_RDONLY:
            raise SandboxError(
                f"{bind.source} is read-only here, and cannot be shown writable",
                where=f"the {sandbox.role} sandbox",
                cause="read-only source",
                cure="declare it for reading; inside a sandbox, let that one grant it for writing first",
            )
