"""A command without a sandbox: for ``best_effort`` where none can be made, and for a run that switched it off.

Nothing is hidden and nothing is held back; the limits, the clock and the end of every process the command started
still hold, as long as the command leaves its relay alive. Every record and every result says that it was unconfined.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hermit import proc, relay
from hermit.domain.record import Record
from hermit.errors import SandboxError
from hermit.relay import Line, Orders
from hermit.streams import Streams

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hermit.domain.command import Command, Outcome
    from hermit.domain.python import Python
    from hermit.domain.sandbox import Sandbox


@dataclass(frozen=True)
class Unconfined:
    """Plain processes of this machine.

    Args:
        python: The interpreter that runs the relay and the workers.
        reason: Why nothing is confined.
    """

    python: Python
    reason: str

    @property
    def confined(self) -> bool:
        """Whether what it starts is confined: never."""
        return False

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
        """Runs the command to its end and hands the record of it to ``keep``.

        Raises:
            SandboxError: The sandbox shows a path under another name, which only a real one can; an argument or a
                variable is longer than the kernel passes to a program.
            Interrupted: ``cancel`` became readable.
        """
        _refuse_renamed(sandbox)
        path = f"{os.path.dirname(self.python.executable)}:{environ.get('PATH', '/usr/bin:/bin')}"
        env = {**environ, "PATH": path, **dict(sandbox.env)}
        if command.argv:  # a worker gets its job and its variables through memory
            proc.refuse_oversized(command.argv, env, where="without a sandbox")
        orders = Orders(
            env=env,
            cwd=sandbox.cwd,
            limits=sandbox.limits,
            # RLIMIT_NPROC counts every process of the user here, not the command's: it would hit bystanders.
            rlimits=sandbox.limits.set_inside(pids=None),
            checks={"confined": False},
            python=self.python,
            processors=proc.processors()[: sandbox.limits.cpus],
        )
        record = Record(
            role=sandbox.role,
            backend="unconfined",
            version=platform.release(),
            confined=False,
            reason=self.reason,
            binds=sandbox.mounts,
            variables=tuple(sorted(env)),
            network="open",
            limits=sandbox.limits.held(pids="nothing: unconfined"),
            warnings=("hide: nothing is hidden without a sandbox",) if sandbox.hide else (),
        )
        with Line(command, orders, streams, cancel=cancel) as line:
            try:
                outcome = self._run(line)
            except BaseException as failure:
                keep(replace(record, ended=f"{type(failure).__name__}: {failure}"))
                raise
            keep(replace(record, ended=outcome.ending, empty=line.said.end is not None))
            return outcome

    def _run(self, line: Line) -> Outcome:
        with open(os.devnull, "r+b") as nothing:
            process = proc.spawn(
                line.command(self.python.executable),
                stdin=nothing.fileno(),
                stdout=nothing.fileno(),
                stderr=line.diagnosis,
                pass_fds=line.far,
            )
        line.started()
        # The relay itself does the killing: it knows its descendants, and outlives them.
        outcome = line.follow(process, kill=lambda: None)
        if not line.said.ready:
            raise SandboxError(f"the relay did not start: {line.complaints()[-300:]}", cause="start")
        return relay.unstartable(line.said, outcome) or outcome


def _refuse_renamed(sandbox: Sandbox) -> None:
    """Refuses names of its own inside, which only a real sandbox can have."""
    renamed = [
        f"{bind.source} cannot be shown as {bind.target}" for bind in sandbox.mounts if bind.source != bind.target
    ]
    layout = sandbox.layout
    if layout is not None and layout.outside != layout.inside:
        renamed.append(f"{layout.outside} cannot be told as {layout.inside}")
    if renamed:
        cure = "make bubblewrap work here (`hermit check`)"
        raise SandboxError(f"{renamed[0]} without a sandbox", cause="unconfined", cure=cure)
