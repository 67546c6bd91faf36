"""One start of bubblewrap, from a value to an outcome.

Theory of operation. The thread that calls :func:`run` starts bubblewrap and stays with it to the end, because
``--die-with-parent`` follows the parent *thread*. Three processes matter:

* **bubblewrap** outside makes the namespaces and waits. Its options come from a memory file, so no path or value shows
  in the list of processes; it reports into memory of its own, which tells its failures from the command's.
* the **relay** (``hermit/inside``), init of the new pid namespace: it checks, starts the command and reports.
* the **command** and whatever it starts.

Descriptors: bubblewrap's three standard ones are ``/dev/null`` and a pipe for its complaints; the command's own, its
job and its result pass through untouched and the relay puts them in place. The sources of what is granted are held here
to the end, and handed to a bubblewrap that mounts by descriptor (``grants``).

Who dies first: the command, then the relay, then bubblewrap. When this thread or process dies, the kernel kills all of
them. The end is proven, not assumed: the kernel lets a pid namespace's init be seen as dead only after every process of
the namespace has gone (``zap_pid_ns_processes``), and we hold a descriptor of that init.
"""

from __future__ import annotations

import contextlib
import functools
import os
import select
import signal
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hermit import proc
from hermit.bwrap import argv, cover, grants, prepare, python, system
from hermit.bwrap.cgroup import MEMORY, Group
from hermit.bwrap.prepare import Prepared
from hermit.bwrap.reason import Evidence, reason
from hermit.bwrap.status import MOST_STATUS, Status, verdict
from hermit.bwrap.watchdog import Watchdog
from hermit.clock import KILL_S, Guards
from hermit.domain.limits import WATCHDOG
from hermit.domain.network import Network
from hermit.errors import SandboxError
from hermit.net import reach
from hermit.relay import Line
from hermit.streams import Streams

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Mapping

    from hermit.domain.command import Command, Outcome
    from hermit.domain.limits import Limits
    from hermit.domain.python import Python
    from hermit.domain.record import Record
    from hermit.domain.sandbox import Sandbox


OWN_PROCESSES = 3
TRIED = "connections or packets to an address outside found no route: nothing but the declared ports leads out"


@dataclass(frozen=True)
class Bubblewrap:
    """A bubblewrap that can be started, and the interpreter it shows.

    Args:
        program: The absolute path of ``bwrap``.
        version: What it says of itself.
        python: The interpreter.
    """

    program: str
    version: str
    python: Python

    @property
    def confined(self) -> bool:
        """Whether what it starts is confined: always."""
        return True

    def run(
        self,
        sandbox: Sandbox,
        command: Command,
        *,
        environ: Mapping[str, str],
        keep: Callable[[Record], None],
        streams: Streams = Streams(),  # noqa: B008 - a frozen value
        cancel: int | None = None,
    ) -> Outcome:
        """Starts the sandbox, runs the command in it to its end, and hands the record of it to ``keep``.

        Raises:
            SandboxError: The sandbox could not be made, failed one of its checks, or did not end; or an argument or a
                variable is longer than the kernel passes to a program.
            Interrupted: ``cancel`` became readable.
        """
        with grants.opened(sandbox.mounts, where=f"the {sandbox.role} sandbox") as granted:
            prepared = self._prepare(sandbox, command, environ, granted=granted)
            return self._start(prepared, environ=environ, keep=keep, streams=streams, cancel=cancel)

    def _start(
        self,
        prepared: Prepared,
        *,
        environ: Mapping[str, str],
        keep: Callable[[Record], None],
        streams: Streams,
        cancel: int | None,
    ) -> Outcome:
        limits, processors = prepared.sandbox.limits, proc.processors()
        # bubblewrap, the relay and its listening thread count too; the bound is the command's.
        pids = None if limits.pids is None else limits.pids + OWN_PROCESSES
        with (
            proc.on_one_processor(),
            Group.make(limits, pids=pids) as group,
            # Whoever asked for this start from outside serves its sockets too.
            reach.served(reach.Reach() if streams.handover is not None else prepared.reached, environ) as server,
        ):
            orders = prepared.orders(pids=None if group.pids else pids, processors=processors[: limits.cpus])
            record = prepared.record(
                version=self.version, pids=group.pids_held_by, memory=MEMORY if group.memory else WATCHDOG
            )
            take = server.take if server is not None else None
            with Line(prepared.command, orders, streams, cancel=cancel, take_sockets=take) as line:
                start = _Start(self, line, group, limits=limits, pids=pids)
                ended = "it did not start"
                try:
                    outcome = start.judged(start.run(prepared))
                    ended = outcome.ending
                except BaseException as failure:
                    ended = f"{type(failure).__name__}: {failure}"
                    raise
                finally:
                    decisions = server.ended() if server is not None else ()
                    keep(replace(start.evidence(record, ended), decisions=decisions))
                return outcome

    def _prepare(
        self, sandbox: Sandbox, command: Command, environ: Mapping[str, str], *, granted: tuple[grants.Grant, ...]
    ) -> Prepared:
        hidden = self.hidden(sandbox)
        plan = self._plan(sandbox, hidden)
        env = prepare.variables(sandbox, environ, path=python.path_inside(self.python))
        command, env = prepare.translated(sandbox, command, env)
        reached = reach.of(sandbox, env)
        search = self._interpreter(sandbox)[1]
        if search:
            env["PYTHONPATH"] = ":".join(dict.fromkeys([*search, *filter(None, [env.get("PYTHONPATH")])]))
        env |= reached.variables
        if command.argv:  # a worker gets its job and its variables through memory
            proc.refuse_oversized(command.argv, env, where=f"the {sandbox.role} sandbox")
        return Prepared(
            sandbox=sandbox,
            command=command,
            env=env,
            plan=plan,
            reached=reached,
            hidden=hidden,
            python=self.python,
            search=search,
            granted=granted,
            ground=self._ground,
        )

    @functools.cached_property
    def _ground(self) -> system.Ground:
        """What every sandbox here stands on."""
        return system.ground()

    @functools.cached_property
    def _kernel(self) -> tuple[argv.Operation, ...]:
        """What of the kernel's own every sandbox here gets."""
        return system.kernel(self._ground)

    @functools.cached_property
    def _systems(self) -> dict[tuple[Network, bool], tuple[argv.Operation, ...]]:
        """The system, for each kind of network and with somebody to trust or nobody."""
        return {
            (network, trusting): system.operations(network, trusting=trusting)
            for network in Network
            for trusting in (False, True)
        }

    @functools.cached_property
    def _interpreters(self) -> dict[tuple[bool, tuple[str, ...]], tuple[tuple[argv.Operation, ...], tuple[str, ...]]]:
        return {}

    def _interpreter(self, sandbox: Sandbox) -> tuple[tuple[argv.Operation, ...], tuple[str, ...]]:
        """The operations of the interpreter and what it has to search, found once for the same packages.

        Raises:
            ValueError: A package is not to be found.
        """
        key = (sandbox.framework, sandbox.packages)
        if key not in self._interpreters:
            found = python.package_roots(sandbox.packages, python=self.python, sys_path=sys.path)
            shown = python.operations(self.python, framework=sandbox.framework, packages=found)
            self._interpreters[key] = (
                shown,
                python.search_path(self.python, found, framework=sandbox.framework),
            )
        return self._interpreters[key]

    @functools.cached_property
    def _hidden(self) -> dict[tuple[tuple[str, ...], tuple[str, ...]], cover.Resolved]:
        return {}

    def hidden(self, sandbox: Sandbox) -> cover.Resolved:
        """What the names a sandbox hides stand for here; found once for the same names and places."""
        if not sandbox.hide:
            return cover.Resolved()
        shown = [bind.source for bind in sandbox.mounts if not bind.writable]
        around = {path if os.path.isdir(path) else os.path.dirname(path) for path in shown}
        parents = {os.path.dirname(path) for path in shown}
        roots = tuple(sorted({*self.python.sites, os.path.dirname(self.python.package), *around, *parents}))
        key = (sandbox.hide, roots)
        if key not in self._hidden:
            self._hidden[key] = cover.resolve(sandbox.hide, roots)
        return self._hidden[key]

    def _plan(self, sandbox: Sandbox, hidden: cover.Resolved) -> tuple[argv.Operation, ...]:
        prepare.refuse_read_only(sandbox)
        try:
            plan = argv.operations(
                sandbox,
                system=self._systems[sandbox.network, bool(sandbox.allowed_hosts)],
                python=self._interpreter(sandbox)[0],
                kernel=self._kernel,
            )
            return argv.covered(plan, prepare.covers(plan, hidden)) if hidden.names else plan
        except ValueError as error:
            raise SandboxError(str(error), where=f"the {sandbox.role} sandbox", cause="declaration") from None


class _Start:
    """The life of one bubblewrap process."""

    def __init__(self, bubblewrap: Bubblewrap, line: Line, group: Group, *, limits: Limits, pids: int | None) -> None:
        self._bubblewrap = bubblewrap
        self._line = line
        self._group = group
        self._report = -1
        self._process: subprocess.Popen[bytes] | None = None
        self._init: int | None = None
        self._limits = limits
        self._watchdog: Watchdog | None = None
        memory_mb = None if group.memory else limits.memory_mb
        crowd = pids if group.pids_held_by == WATCHDOG else None
        if memory_mb is not None or crowd is not None:
            self._watchdog = Watchdog(memory_mb, self._kill, scratch_mb=limits.tmp_mb, pids=crowd)
        self.empty = False

    def run(self, prepared: Prepared) -> Outcome:
        """Starts it and stays with it to its end.

        Bubblewrap reports into memory, in six pieces: a pipe would wake this thread for each of them.
        """
        with open(os.memfd_create("hermit-status", os.MFD_CLOEXEC), "rb", buffering=0) as report:
            self._report = report.fileno()
            return self._run(prepared)

    def _run(self, prepared: Prepared) -> Outcome:
        line, sandbox, plan = self._line, prepared.sandbox, prepared.plan
        line.on_ready = self._know_init
        status = line.add_copy(self._report)
        texts = {file.path: line.add_memory("file", file.content) for file in plan if isinstance(file, argv.Handed)}
        by_descriptor = prepared.granted if argv.takes_descriptors(self._bubblewrap.version) else ()
        sources = {grant.bind: grant.descriptor for grant in by_descriptor}
        shared = prepared.ground.shared
        try:
            spelled = argv.options(sandbox, plan, status=status, texts=texts, sources=sources, shared=shared)
        except ValueError as error:
            raise SandboxError(str(error), where=f"the {sandbox.role} sandbox", cause="declaration") from None
        arguments = line.add_memory("arguments", argv.argument_file(spelled))
        program, executable = self._bubblewrap.program, prepared.python.executable
        whole = (program, "--args", str(arguments), "--", *line.command(executable))
        with open(os.devnull, "r+b") as nothing, self._group.entered():
            try:
                self._process = proc.spawn(
                    whole,
                    stdin=nothing.fileno(),
                    stdout=nothing.fileno(),
                    stderr=line.diagnosis,
                    pass_fds=(*line.far, *sources.values()),
                )
            except OSError as error:
                raise SandboxError(f"{program}: {error.strerror}", cause="bubblewrap") from None
        line.started()
        alarm = self._group.alarm()
        try:
            outcome = line.follow(self._process, kill=self._kill, guards=Guards(alarm, self._watchdog))
        finally:
            if alarm is not None:
                os.close(alarm)
            self._prove_empty()
        complaints = argv.told(line.complaints(), sources)
        return verdict(line.said, outcome, complaints=complaints, code=self._process.returncode)

    def evidence(self, record: Record, ended: str) -> Record:
        """The record, with what was seen and how it ended."""
        said = self._line.said
        tried = (f"{said.tried} {TRIED}",) if said.tried else ()
        warnings = (*record.warnings, *tried)
        return replace(record, checks=tuple(said.checks), warnings=warnings, ended=ended, empty=self.empty)

    def judged(self, outcome: Outcome) -> Outcome:
        """The outcome, with the bound that ended the command.

        Raises:
            SandboxError: The machine had no memory left, and the sandbox was not what filled it.
        """
        strike = self._watchdog.struck if self._watchdog is not None else None
        if outcome.code == 0 and strike is None and not self._line.alarmed:
            return outcome  # no bound ended it, and nobody has to be asked
        evidence = Evidence(
            counted=self._group.counted(), alarmed=self._line.alarmed, strike=strike, full=self._line.said.full
        )
        ended = reason(outcome, self._limits, evidence)
        if ended.reason == "machine memory":
            raise SandboxError(str(ended), cause="machine memory", cure="run fewer sandboxes at once")
        return replace(outcome, limit=ended.reason, evidence=ended.evidence)

    @property
    def _reported(self) -> Status:
        """What bubblewrap has reported so far."""
        found = Status()
        found.take(os.pread(self._report, MOST_STATUS + 1, 0))
        return found

    def _know_init(self) -> None:
        """Takes hold of the sandbox's init, by the number that bubblewrap has reported before it let it go on."""
        pid = self._reported.init
        if self._init is not None or pid is None:
            return
        with contextlib.suppress(ProcessLookupError):  # ended already: then the namespace is gone too
            self._init = os.pidfd_open(pid)
            if self._watchdog is not None:
                self._watchdog.watch(pid)

    def _kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._know_init()
        if self._init is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._init, signal.SIGKILL)
        elif self._process is not None:
            # Until bubblewrap has told its init it has not tied it to itself either, but init is still in its group.
            proc.kill_group(self._process.pid)

    def _prove_empty(self) -> None:
        """Waits until the kernel shows init as dead, which it does when nothing of the namespace is left."""
        if self._init is None:
            self.empty = self._reported.init is not None
            return
        try:
            self._kill()
            waiting = select.poll()
            waiting.register(self._init, select.POLLIN)
            self.empty = bool(waiting.poll(KILL_S * 1000))
        finally:
            os.close(self._init)
            self._init = None
        if not self.empty:
            raise SandboxError(f"processes of the sandbox were alive {KILL_S:g} s after KILL", cause="survivors")
