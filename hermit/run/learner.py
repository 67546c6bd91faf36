"""One call of the learner, from its workspace on the host to the result it hands back. The trainer decides when.

The method's class runs in the evolver sandbox and nowhere else, a fresh process for each call: even what it says of itself
is asked in a sandbox. Before each call the keys are taken out of what it is about to be shown, and at the end of the run out of
what it leaves. What comes back is JSON of a stated shape, checked again here.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermit.agent.result import Failure, handed_back
from hermit.domain.sandbox import Enforce
from hermit.errors import ConfigError
from hermit.evolver import wire
from hermit.evolver.base import PHASES
from hermit.handoff import budget, scrub
from hermit.handoff.collect import collect
from hermit.handoff.freeze import freeze
from hermit.handoff.redact import Found
from hermit.handoff.remove import remove
from hermit.roles import evolver as evolver_role
from hermit.run.bench import lend
from hermit.run.endpoint import Endpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hermit.config.schema import RunConfig
    from hermit.domain.command import Command, Outcome
    from hermit.domain.record import Record
    from hermit.domain.sandbox import Sandbox
    from hermit.evolver.base import FinalResult, Progress, StepResult
    from hermit.evolver.loader import Method
    from hermit.handoff.redact import Redactor
    from hermit.roles.models import Model
    from hermit.roles.secrets import Secret
    from hermit.run.served import Meter, Served
    from hermit.sandbox import Place

# What is scrubbed at the end of the run; the adapter is scrubbed before each commit.
LEFT = ("output", "state", "scratch", "home")


@dataclass(frozen=True)
class Desk:
    """Where a learner's workspace lies on the host: in the exchange directory of a run, for a run's own is never shown.

    ::

        <root>/
        ├── adapter state scratch output home             the learner writes them; they stay from call to call
        ├── material task-info history agent-logs         the trainer fills them; the learner reads them
        ├── method root                                   copies: the method's directory, and the template's
        ├── validation                                    the trainer fills it, where the method needs it
        ├── copies                                        what the paths of a tool's call name, while it runs
        └── clean                                         copies without a key of what evolver_access.environment names

    Args:
        root: The directory.
    """

    root: Path

    def part(self, name: str) -> Path:
        """One part of it by its name inside."""
        return self.root / name

    @property
    def parts(self) -> tuple[tuple[str, str], ...]:
        """Every part that each learner is shown."""
        return tuple((name, str(self.part(name))) for name in (*evolver_role.WRITABLE, *evolver_role.READABLE))


def laid(root: Path, method: Method, *, template: Path) -> Desk:
    """A desk in a directory that exists and is empty: its parts are made, and the method and the template copied.

    Raises:
        ConfigError: The method's directory or the template cannot be copied.
    """
    desk = Desk(root)
    for name in (*evolver_role.WRITABLE, *evolver_role.READABLE, "validation", "copies", "clean"):
        desk.part(name).mkdir()
    freeze(str(method.directory), into=str(desk.part("method")))
    freeze(str(template), into=str(desk.part("root")))
    return desk


@dataclass(frozen=True)
class Traits:
    """What a method's class says of itself.

    Args:
        framework: Whether its sandbox shows the ``hermit`` package.
        phases: The calls that it defines; one that it does not need not be made.
    """

    framework: bool
    phases: tuple[str, ...]


@dataclass(frozen=True)
class Ask:
    """What is asked of the learner.

    Args:
        phase: ``setup``, ``bootstrap``, ``step`` or ``finalize``.
        message: What the trainer has to say; paths of the host in it are told as they are named inside.
        progress: How far the training is, for a step.
        session: The ``session`` of the last step's result.
    """

    phase: str
    message: str = ""
    progress: Progress | None = None
    session: Any = None

    def __post_init__(self) -> None:
        if self.phase not in PHASES:
            raise ValueError(f"a phase is one of {', '.join(PHASES)}, not {self.phase!r}")


@dataclass(frozen=True, kw_only=True)
class Called:
    """What came of one call.

    Args:
        result: The result, ``None`` where the call has none, or how it failed.
        meters: What the tools it called came to, by name.
        stdout: The first of what it printed, without a key.
        stderr: The same of its errors.
        found: What was scrubbed, of what it was shown and of what it said.
        wall_s: Seconds it took.
        empty: Whether it is known that no process of it is left.
    """

    result: StepResult | FinalResult | Failure | None
    meters: Mapping[str, Meter] = field(default_factory=dict)
    stdout: bytes = b""
    stderr: bytes = b""
    found: Found = field(default_factory=Found)
    wall_s: float = 0.0
    empty: bool = False


@dataclass(frozen=True, kw_only=True)
class Learner:
    """The learner of a run.

    Args:
        config: The run's config.
        method: Its method.
        desk: Its workspace on the host.
        place: Where its sandboxes are started.
        secrets: What each start proves absent.
        models: The models that it and its roles call.
        redactor: Takes the keys out of what it is shown and leaves.
        hidden: What its sandbox covers.
        keep: Takes the record of each start.
        log: Takes a row for each call of a tool.
    """

    config: RunConfig
    method: Method
    desk: Desk
    place: Place
    secrets: tuple[Secret, ...]
    redactor: Redactor
    keep: Callable[[Record], None]
    log: Callable[[dict[str, Any]], None]
    models: tuple[Model, ...] = ()
    hidden: tuple[str, ...] = ()

    def traits(self) -> Traits:
        """What the method's class says of itself, asked in a sandbox that shows its directory alone.

        Raises:
            ConfigError: It cannot be imported, or is no learner.
            SandboxError: The sandbox failed.
        """
        directory = self.desk.part("method")
        lend(directory, self.place)
        command = evolver_role.description(self.method.at(directory), code=self.method.code)
        sandbox = evolver_role.describing(str(directory), enforce=Enforce(self.config.sandbox.enforce))
        said = handed_back(command, self.place.run(sandbox, command, keep=self.keep))
        if isinstance(said, Failure):
            what = f"the class of {self.method.name} cannot be used: {said.error}"
            raise ConfigError(what, where="evolver.name", cure="correct its file, or `class` in its evolver.yaml")
        phases = said.get("phases")
        known = isinstance(phases, list) and set(phases) <= set(PHASES)
        if not known or not isinstance(said.get("sandbox_framework"), bool):
            what = f"the class of {self.method.name} said of itself what no learner says"
            raise ConfigError(what, where="evolver.name", cure="let its import print and answer nothing itself")
        return Traits(said["sandbox_framework"], tuple(phases or ()))

    def call(
        self,
        ask: Ask,
        traits: Traits,
        *,
        tools: tuple[Served, ...],
        cancel: int | None = None,
        on_start: Callable[[Endpoint], None] = lambda _: None,
    ) -> Called:
        """Makes one call, and waits for its end.

        Args:
            ask: What is asked.
            traits: What the class says of itself.
            tools: What it may call; ``check_spec`` among it.
            cancel: A descriptor that becomes readable when the run is given up: then the call is stopped.
            on_start: Gets the endpoint, by which the call can be asked to end by itself.

        Raises:
            SandboxError: The sandbox failed.
            ConfigError: What ``evolver_access.environment`` names holds keys and cannot be copied.
            Interrupted: ``cancel`` became readable.
        """
        found = Found()
        kept: list[Record] = []

        def keep(record: Record) -> None:
            kept.append(record)
            self.keep(record)

        scrub.tree(self.redactor, str(self.desk.part("material")), found=found)
        places = self._places(found)
        with self._endpoint(tools) as endpoint:
            sandbox = self.sandbox(places, traits, endpoint)
            command = self._command(ask, sandbox, places, told=endpoint.told)
            endpoint.serve(sandbox)
            on_start(endpoint)
            outcome = self.place.run(sandbox, command, keep=keep, cancel=cancel)
        value = handed_back(command, outcome)
        result = value if isinstance(value, Failure) else _checked(ask.phase, value)
        return self._called(result, outcome, endpoint, found=found, empty=bool(kept) and kept[-1].empty)

    def sandbox(self, places: evolver_role.Places, traits: Traits, endpoint: Endpoint) -> Sandbox:
        """The sandbox of one call."""
        return evolver_role.sandbox(
            self.config,
            places,
            secrets=self.secrets,
            models=self.models,
            socket=endpoint.socket,
            framework=traits.framework,
            hidden=self.hidden,
            renamed=self.place.confined,
            tool_url=endpoint.url,
        )

    def _command(
        self, ask: Ask, sandbox: Sandbox, places: evolver_role.Places, *, told: list[dict[str, Any]]
    ) -> Command:
        context = evolver_role.context(
            sandbox,
            places,
            params=self.method.params,
            message=ask.message,
            tools=told,
            progress=None if ask.progress is None else vars(ask.progress),
            session=ask.session,
        )
        name = self.method.at(self.desk.part("method"))
        return evolver_role.command(
            sandbox, phase=ask.phase, callable_name=name, context=context, code=self.method.code
        )

    def _endpoint(self, tools: tuple[Served, ...]) -> Endpoint:
        """Where the tools are, with everything on the desk lent to whoever works in the place."""
        lend(self.desk.root, self.place)
        return Endpoint(
            tools,
            redactor=self.redactor,
            copies=str(self.desk.part("copies")),
            agent_logs=str(self.desk.part("agent-logs")),
            log=self.log,
            lend=lambda path: lend(Path(path), self.place),
            confined=self.place.confined,
        )

    def _called(
        self,
        result: StepResult | FinalResult | Failure | None,
        outcome: Outcome,
        endpoint: Endpoint,
        *,
        found: Found,
        empty: bool,
    ) -> Called:
        for where, counts in endpoint.found.scrubbed.items():
            found.add(where, counts)
        streams = [
            self.redactor.data(stream.kept, found=found, where=name, cut=bool(stream.dropped))
            for name, stream in (("learner.out", outcome.stdout), ("learner.err", outcome.stderr))
        ]
        return Called(
            result=result,
            meters=dict(endpoint.meters),
            stdout=streams[0],
            stderr=streams[1],
            found=found,
            wall_s=outcome.wall_s,
            empty=empty,
        )

    def _places(self, found: Found) -> evolver_role.Places:
        named = evolver_role.names(str(path) for path in self.config.evolver_access.environment)
        environment = tuple(
            (name, self._without_keys(path, number, found)) for number, (name, path) in enumerate(named)
        )
        return evolver_role.Places(
            base=str(self.desk.root),
            parts=self.desk.parts,
            validation=str(self.desk.part("validation")) if self.method.validation_data else None,
            environment=environment,
        )

    def _without_keys(self, path: str, number: int, found: Found) -> str:
        """What is shown of a path of ``evolver_access.environment``: itself, or a copy where a key stands in it.

        It is somebody's own file, so the key stays there: only the learner does not get to see it.
        """
        real = os.path.realpath(path)
        try:
            if not scrub.needed(self.redactor, real):
                return path
            into = self.desk.part("clean") / str(number)
            remove(str(into))
            into.mkdir()
            collect(os.path.dirname(real), [os.path.basename(real)], into=str(into))
            copied = str(into / os.path.basename(real))
            scrub.tree(self.redactor, copied, found=found)
        except (budget.TooMuch, OSError) as error:
            what = f"{path} cannot be shown without the keys that stand in it: {error}"
            cure = "take the keys out of it, or name a narrower path"
            raise ConfigError(what, where="evolver_access.environment", cure=cure) from None
        return copied

    def scrubbed(self) -> Found:
        """Takes the keys out of what the learner leaves, at the end of the run, and says what was found.

        Raises:
            OSError: Something scrubbed could not be put in the place of what was there.
        """
        found = Found()
        for name in LEFT:
            scrub.tree(self.redactor, str(self.desk.part(name)), found=found)
        return found


def _checked(phase: str, value: Mapping[str, Any]) -> StepResult | FinalResult | Failure | None:
    """What a call handed back, as the result its phase has."""
    try:
        if phase == "finalize":
            return wire.final_result(value)
        result = wire.step_result(value)
    except (TypeError, ValueError) as error:
        return Failure("result", f"what it handed back is no result of {phase}: {error}"[:2000])
    if phase == "setup" and result is not None:
        return Failure("result", "setup has no result")
    if phase == "step" and result is None:
        return Failure("result", "a step has a result")
    return result
