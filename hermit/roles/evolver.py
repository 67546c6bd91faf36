"""The evolver sandbox: where the learner works on the adapter, with its workspace under fixed names below ``/w``."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hermit.domain import codec, hide
from hermit.domain.bind import Bind
from hermit.domain.command import Command
from hermit.domain.limits import Limits
from hermit.domain.network import Forward
from hermit.domain.pathmap import Layout
from hermit.domain.sandbox import Enforce, Sandbox
from hermit.errors import ConfigError
from hermit.roles import secrets as run_secrets

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from hermit.config.schema import RunConfig
    from hermit.roles.models import Model
    from hermit.roles.secrets import Secret

ROOT = "/w"
# What a learner may write, and what it may read, each at its name below the root. Nothing else is there.
WRITABLE = ("adapter", "state", "scratch", "output", "home")
READABLE = ("material", "task-info", "history", "method", "root", "agent-logs")
VALIDATION, ENVIRONMENT = "validation", "environment"
TOOL_PORT = 7321
TOOL_URL_VARIABLE = "HERMIT_TOOL_URL"
RESULT_BYTES = 4 * 1024 * 1024
LEARNER = "hermit.evolver.worker:run_evolver"
DESCRIBE = "hermit.evolver.worker:describe"


@dataclass(frozen=True, kw_only=True)
class Places:
    """Where the parts of one learner's workspace lie on the host, under their names inside.

    Args:
        base: The directory they lie in; what a learner is told of it is ``/w``.
        parts: The path of each of ``WRITABLE`` and ``READABLE``.
        validation: What the validation split is good for; ``None`` where the method does not need it.
        environment: The paths of ``evolver_access.environment`` by their names.
    """

    base: str
    parts: tuple[tuple[str, str], ...]
    validation: str | None = None
    environment: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if sorted(name for name, _ in self.parts) != sorted((*WRITABLE, *READABLE)):
            raise ValueError(f"a workspace has exactly {', '.join(sorted((*WRITABLE, *READABLE)))}")

    @property
    def extra(self) -> tuple[tuple[str, str], ...]:
        """What is shown beyond the workspace: names below the root, and paths."""
        own = ((VALIDATION, self.validation),) if self.validation is not None else ()
        return (*own, *((f"{ENVIRONMENT}/{name}", path) for name, path in self.environment))

    @property
    def binds(self) -> tuple[Bind, ...]:
        """Everything, as the sandbox shows it."""
        shown = (*self.parts, *self.extra)
        return tuple(Bind(path, f"{ROOT}/{name}", writable=name in WRITABLE) for name, path in shown)


def names(paths: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """The paths of ``evolver_access.environment``, each with the name it has inside: its last part.

    Raises:
        ConfigError: Two would have the same name, or one has none.
    """
    found: dict[str, str] = {}
    for path in paths:
        name = posixpath.basename(path)
        if not name or name in found:
            other = f", as {found[name]} does" if name else ""
            what = f"{path} would be shown as {ROOT}/{ENVIRONMENT}/{name}{other}"
            raise ConfigError(
                what,
                where="evolver_access.environment",
                cure="give one of them another name, or name a directory above",
            )
        found[name] = path
    return tuple(found.items())


def declared(config: RunConfig, *, method: str, template: str) -> tuple[tuple[str, str], ...]:
    """Every path of the config that a learner is shown, with its key: for the refusals before a run."""
    pairs = [("evolver_access.environment", str(path)) for path in config.evolver_access.environment]
    pairs += [("task_info", str(config.task_info))] if config.task_info is not None else []
    return (*pairs, ("evolver.name", method), ("template", template))


def passes(config: RunConfig, models: Iterable[Model], name: str) -> bool:
    """Whether the host's variable ``name`` passes into the evolver sandbox."""
    return Sandbox(env_allow=_variables(config, models)).passes(name)


def sandbox(
    config: RunConfig,
    places: Places,
    *,
    secrets: Iterable[Secret],
    models: tuple[Model, ...] = (),
    socket: str = "",
    framework: bool = False,
    hidden: tuple[str, ...] = (),
    renamed: bool = True,
    tool_url: str = f"http://127.0.0.1:{TOOL_PORT}",
) -> Sandbox:
    """The sandbox of one call of the learner.

    Args:
        config: The run's config.
        places: Where its workspace lies.
        secrets: What each start proves absent.
        models: The models that the learner and its roles call.
        socket: Where the trainer's tools listen on the host; empty where nothing is confined.
        framework: Whether the method needs the ``hermit`` package.
        hidden: What is covered.
        renamed: Whether a path can be shown under another name; else each stays at its own place.
        tool_url: Where the tools are as it is told inside.
    """
    timeout_min = config.trainer.call_timeout_min
    forwards = {each.forward for each in models if each.forward is not None}
    forwards |= {Forward(TOOL_PORT, socket)} if socket else set()
    home = dict(places.parts)["home"]
    made = Sandbox(
        role="evolver",
        binds=places.binds,
        cwd=ROOT,
        layout=Layout(places.base, ROOT),
        allowed_hosts=tuple(dict.fromkeys([*(each.host for each in models if each.host), *_hosts(config)])),
        forwards=tuple(sorted(forwards, key=lambda forward: forward.port)),
        env=(
            ("HOME", f"{ROOT}/home" if renamed else home),
            (TOOL_URL_VARIABLE, tool_url),
            *sorted({(each.backend.url_variable, each.backend.base_url) for each in models}),
            *(((hide.VARIABLE, hide.to_environment(hidden)),) if hidden else ()),
        ),
        env_allow=_variables(config, models),
        limits=Limits(wall_s=None if timeout_min is None else timeout_min * 60),
        probes=run_secrets.probes(secrets, judge=False),
        framework=framework,
        hide=hidden,
        enforce=Enforce(config.sandbox.enforce),
    )
    return made if renamed else _in_place(made, places)


def _in_place(made: Sandbox, places: Places) -> Sandbox:
    """The same where nothing is confined, and so nothing can have another name."""
    read = tuple(sorted({bind.source for bind in made.binds if not bind.writable}))
    write = tuple(sorted({bind.source for bind in made.binds if bind.writable}))
    same = Layout(places.base, places.base)
    return replace(made, binds=(), layout=same, read=read, write=write, cwd=places.base, forwards=(), allowed_hosts=())


def _hosts(config: RunConfig) -> tuple[str, ...]:
    return tuple(config.sandbox.evolver.allowed_hosts)


def _variables(config: RunConfig, models: Iterable[Model]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*config.sandbox.evolver.env, *(each.backend.key_variable for each in models)]))


def translated(sandbox: Sandbox, value: Any) -> Any:
    """A value of JSON with every path of the host in its texts under its name inside."""
    if isinstance(value, str):
        return sandbox.paths.translate_text(value)
    if isinstance(value, dict):
        return {name: translated(sandbox, inner) for name, inner in value.items()}
    return [translated(sandbox, inner) for inner in value] if isinstance(value, list | tuple) else value


def context(
    sandbox: Sandbox,
    places: Places,
    *,
    params: Mapping[str, Any],
    message: str = "",
    tools: Iterable[Mapping[str, Any]] = (),
    progress: Mapping[str, Any] | None = None,
    session: Any = None,
) -> dict[str, Any]:
    """What the call is given, as its worker reads it; every path in it is one inside."""
    inside = {name: sandbox.paths.inside(path) for name, path in (*places.parts, *places.extra)}
    names_of = {"learning_material": "material", "task_info": "task-info", "agent_logs": "agent-logs"}
    workspace = ("adapter", "learning_material", "task_info", "history", "state", "scratch", "output", "method", "root")
    return {
        "workspace": {name: inside[names_of.get(name, name)] for name in (*workspace, "agent_logs")},
        "access": {
            "validation": inside.get(VALIDATION),
            "environment": {name: inside[f"{ENVIRONMENT}/{name}"] for name, _ in places.environment},
        },
        "tools": [dict(tool) for tool in tools],
        "params": translated(sandbox, dict(params)),
        "message": sandbox.paths.relative_text(message),
        "tool_url": dict(sandbox.env)[TOOL_URL_VARIABLE],
        "base": inside["method"],
        "progress": None if progress is None else dict(progress),
        "session": session,
        "left_s": sandbox.limits.wall_s,
        "sandbox": _seen_from_inside(sandbox),
    }


def _seen_from_inside(sandbox: Sandbox) -> dict[str, Any]:
    """The sandbox as whoever is in it would ask for it again, to show less of it to somebody else."""
    return {
        "root": sandbox.cwd,
        "read": sorted({bind.target for bind in sandbox.mounts if not bind.writable}),
        "write": sorted({bind.target for bind in sandbox.mounts if bind.writable}),
        "network": sandbox.network.value,
        "allowed_hosts": list(sandbox.allowed_hosts),
        "ports": [forward.port for forward in sandbox.forwards],
        "env": dict(sandbox.env),
        "env_allow": list(sandbox.env_allow),
        "framework": sandbox.framework,
        "hide": list(sandbox.hide),
        "enforce": sandbox.enforce.value,
    }


def command(sandbox: Sandbox, *, phase: str, callable_name: str, context: Mapping[str, Any], code: bytes) -> Command:
    """One call of the learner.

    Args:
        sandbox: Where it is made.
        phase: ``setup``, ``bootstrap``, ``step`` or ``finalize``.
        callable_name: The class, as ``/path/on/the/host/file.py:Name`` or ``package.module:Name``.
        context: What it is given.
        code: The file, compiled; empty where a package holds the class.
    """
    job = {"phase": phase, "callable": _inside(sandbox, callable_name), "context": dict(context)}
    return Command(worker=LEARNER, job=codec.dump(job) + b"\n" + code, result_bytes=RESULT_BYTES)


def describing(method: str, *, enforce: Enforce) -> Sandbox:
    """Where a method's class is asked what it says of itself: its directory and the framework, and nothing else."""
    return Sandbox(role="check", read=(method,), limits=Limits(wall_s=60), framework=True, enforce=enforce)


def description(callable_name: str, *, code: bytes) -> Command:
    """The question what a method's class says of itself."""
    return Command(worker=DESCRIBE, job=codec.dump({"callable": callable_name}) + b"\n" + code)


def _inside(sandbox: Sandbox, callable_name: str) -> str:
    file, _, name = callable_name.rpartition(":")
    return f"{sandbox.paths.inside(file)}:{name}" if file.startswith("/") else callable_name
