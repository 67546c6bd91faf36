"""What is refused before a run creates anything: each with its key, what was found and what to do."""

from __future__ import annotations

import os
import posixpath
import stat
import tempfile
from typing import TYPE_CHECKING

from hermit.bwrap import places
from hermit.domain.bind import contains
from hermit.errors import ConfigError
from hermit.net.hosts import Rules
from hermit.roles import judge as judge_role
from hermit.roles import task as task_role

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from hermit.config.schema import RunConfig
    from hermit.roles.secrets import Secret

BUILT_IN_AGENTS = ("react", "codex", "claude-code", "harbor")
UNIX_SOCKETS = "/proc/net/unix"
ACCEPTS = 0x10000  # of a socket's flags there: somebody listens
POINTER = "leave it out, or use a later version of Hermit"
POINTERS = {"environment.image": "leave it out; container.image names the image that sandboxes are started in"}
KINDS = {
    stat.S_IFSOCK: "a socket, through which whoever is inside would reach a service of the host",
    stat.S_IFIFO: "a FIFO, through which whoever is inside would speak to a process of the host",
    stat.S_IFCHR: "a device, which no sandbox shows",
    stat.S_IFBLK: "a device, which no sandbox shows",
}


def refuse_unsupported(config: RunConfig) -> None:
    """Refuses what the specification knows and this version does not do yet.

    Raises:
        ConfigError: The first such setting.
    """
    asked = {
        "environment.image": config.environment.image is not None,
        f"agent.name: {config.agent.name}": config.agent.name in BUILT_IN_AGENTS,
    }
    for setting, wanted in asked.items():
        if wanted:
            raise ConfigError(f"{setting} is not supported yet", cure=POINTERS.get(setting, POINTER))


def refuse_unset(config: RunConfig, environ: Mapping[str, str]) -> None:
    """Refuses a variable that is named and not set; a pattern may stand for none.

    Raises:
        ConfigError: The first such variable.
    """
    for name in config.environment.env:
        if "*" not in name and name not in environ:
            raise ConfigError(
                f"the variable {name} is not set", where="environment.env", cure=f"export {name}, or leave it out"
            )


def refuse_missing(config: RunConfig, declared: Iterable[tuple[str, str]]) -> None:
    """Refuses a path that is not there, or is of a kind that cannot be shown or read.

    Raises:
        ConfigError: The first such path.
    """
    wanted = [
        *declared,
        ("judge.path", str(config.judge.path)),
        *(("judge.tests", str(path)) for path in config.judge.tests),
    ]
    for key, path in wanted:
        _refuse_absent(key, path)
        kind = stat.S_IFMT(os.stat(path).st_mode)
        if kind in KINDS:
            raise ConfigError(f"{path} is {KINDS[kind]}", where=key, cure="leave it out, or name what lies beside it")
        if key in ("agent.name", "judge.path") and kind == stat.S_IFDIR:
            raise ConfigError(f"{path} is a directory", where=key, cure="name a Python file")
    directories = (("trainer.output_dir", config.trainer.output_dir), ("trainer.tree_dir", config.trainer.tree_dir))
    for key, directory in (*directories, ("task_info", config.task_info)):
        if directory is not None and directory.exists() and not directory.is_dir():
            raise ConfigError(f"{directory} is a file, and a directory is meant", where=key, cure="name a directory")


def _refuse_absent(key: str, path: str) -> None:
    """Refuses what cannot be looked up, by the first part of the path at which that fails."""
    try:
        os.stat(path)
    except OSError as error:
        reason = error
    else:
        return
    for step in places.trail(path)[0]:
        try:
            status = os.stat(step)
        except OSError:
            break
        if not stat.S_ISDIR(status.st_mode):
            what = f"{path} does not exist: {step} is a file and no directory"
            raise ConfigError(what, where=key, cure="correct the path")
    if os.path.islink(path):
        what = f"{path} is a link that leads nowhere, to {os.readlink(path)}"
        raise ConfigError(what, where=key, cure="create what it leads to, or leave it out")
    if isinstance(reason, FileNotFoundError):
        raise ConfigError(f"{path} does not exist", where=key, cure="create it, or leave it out")
    raise ConfigError(
        f"{path} cannot be looked up: {reason.strerror}", where=key, cure="make it reachable for the user who runs this"
    )


def refuse_services(declared: Iterable[tuple[str, str]]) -> None:
    """Refuses a directory in which a service of the host listens: a read-only mount does not keep anybody from connecting.

    Raises:
        ConfigError: The first such directory.
    """
    found = list(listening())
    for key, path in declared:
        real = os.path.realpath(path)
        for socket in found:
            if contains(real, socket):
                what = f"{path} holds {socket}, {KINDS[stat.S_IFSOCK]}"
                raise ConfigError(what, where=key, cure="declare a narrower path, or stop the service")


def listening() -> Iterable[str]:
    """Every Unix socket of this machine that has a name in the file system and somebody who listens on it."""
    try:
        with open(UNIX_SOCKETS, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().splitlines()[1:]
    except OSError:
        return
    for line in lines:
        words = line.split(None, 7)
        path = words[7] if len(words) > 7 else ""  # noqa: PLR2004 - the name is the last of eight
        if path.startswith("/") and int(words[3], 16) & ACCEPTS:
            real = os.path.realpath(path)
            try:
                if stat.S_ISSOCK(os.lstat(real).st_mode):
                    yield real
            except OSError:
                continue


def refuse_ways_through_writable(config: RunConfig, named: Iterable[tuple[str, str]]) -> None:
    """Refuses a path that leads through a place an agent may write to: a call could lead the next one elsewhere.

    Args:
        config: The run's config.
        named: Pairs of a key and a path that this run shows or reads.

    Raises:
        ConfigError: The first such path.
    """
    writable = [(str(path), os.path.realpath(path)) for path in config.environment.write]
    for key, path in named:
        for step in places.trail(path)[0]:
            for declared, real in writable:
                if step != real and contains(real, step):
                    raise ConfigError(
                        f"{path} leads through {step}, in {declared}, where every agent may write",
                        where=key,
                        cure="name it by a way that leads through no path of environment.write",
                    )


def refuse_scratch(declared: Iterable[tuple[str, str]], secrets: Iterable[Secret]) -> None:
    """Refuses a declared path that holds the place where attempts work, and a secret that does.

    Raises:
        ConfigError: The first such path.
    """
    scratch = os.path.realpath(tempfile.gettempdir())
    for key, path in declared:
        if contains(os.path.realpath(path), scratch):
            raise ConfigError(
                f"{path} holds {scratch}, where the attempts of every run work",
                where=key,
                cure="declare a narrower path, or set TMPDIR elsewhere",
            )
    for secret in secrets:
        if contains(os.path.realpath(secret.path), scratch):
            what = f"{secret.path} holds {scratch}, where the attempts of every run work"
            raise ConfigError(what, where=secret.key, cure="set TMPDIR elsewhere")


def refuse_impossible(config: RunConfig) -> None:
    """Refuses hosts that no list can hold, and declared paths that no sandbox can show together.

    Raises:
        ConfigError: The first of them.
    """
    for key, section in (("environment", config.environment), ("judge", config.judge)):
        try:
            Rules.parse(list(section.allowed_hosts))
        except ValueError as error:
            cure = "name hosts such as api.example.com"
            raise ConfigError(str(error), where=f"{key}.allowed_hosts", cure=cure) from None
        if section.network == "allowlist" and not section.allowed_hosts:
            raise ConfigError(
                "an allowlist without a host reaches nothing",
                where=f"{key}.allowed_hosts",
                cure=f"name its hosts, or set {key}.network: no-network",
            )
    try:
        acting = task_role.sandbox(config, work="/hermit/work", adapter=None, secrets=(), logs="/hermit/logs")
        judge_role.shared(config, acting, ())
        judge_role.separate(config, acting, collected="/hermit/collected", work="/hermit/work", secrets=())
    except ValueError as error:
        raise ConfigError(
            str(error), where="environment", cure="declare each path once, none inside a writable one"
        ) from None


def refuse_shared_state(config: RunConfig) -> None:
    """Refuses a declared path by which a separate judge would see what agents may write.

    Raises:
        ConfigError: The first such path.
    """
    if config.judge.mode != "separate":
        return
    mounts = places.mounts()
    writable = [places.of(str(path), mounts) for path in config.environment.write]
    shown = [("environment.read", str(path)) for path in config.environment.read]
    shown += [("judge.tests", str(path)) for path in config.judge.tests]
    for key, path in shown:
        place = places.of(path, mounts)
        for other in writable:
            relation = places.relation(place, other)
            if relation:
                raise ConfigError(
                    f"{path} {relation} {other.path} of environment.write, which a separate judge never sees",
                    where=key,
                    cure="declare a narrower path, or set judge.mode: shared",
                )


def refuse_no_place_for_logs(config: RunConfig) -> None:
    """Refuses a directory that is shown whole, holds the agent's file, and has no place for the logs of a call.

    Raises:
        ConfigError: The logs of a call could not be shown beside the agent's file.
    """
    logs = task_role.logs_of(config)
    if logs is None or (os.path.isdir(logs) and not os.path.islink(logs)):
        return
    if os.path.lexists(logs):
        raise ConfigError(f"{logs} is no directory", where="agent.name", cure=f"remove it, then: mkdir {logs}")
    for path in config.environment.read:
        if contains(os.path.realpath(path), os.path.realpath(posixpath.dirname(logs))):
            raise ConfigError(
                f"{path} is shown whole and has no {logs}, where the logs of a call are shown",
                where="environment.read",
                cure=f"mkdir {logs}",
            )
