"""Where sandboxes are started on this machine, and the front door for other programs.

``python -m hermit.sandbox SPEC -- COMMAND...`` runs one command in one sandbox. SPEC is a JSON file, or ``-`` for
standard input, with the fields of :class:`hermit.Sandbox` by name. The command keeps this process's own input and
output, and its exit code passes through; 125 says that the sandbox failed, 126 and 127 that the command could not be
started or was not found. This module prints its own refusals: it is used where the command line's libraries are too
slow to import.
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hermit import environ, proc
from hermit.bwrap import cgroup, python
from hermit.bwrap import preflight as bubblewrap_preflight
from hermit.bwrap.launch import Bubblewrap
from hermit.domain import codec, hide, spec
from hermit.domain.command import Command
from hermit.domain.limits import Limits
from hermit.domain.sandbox import Enforce, Sandbox
from hermit.errors import ExitCode, HermitError, PlaceError, SandboxError
from hermit.relay import Streams
from hermit.unconfined import Unconfined

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hermit.domain.command import Outcome
    from hermit.domain.record import Record

INSTALL = "apt-get install bubblewrap"


@dataclass(frozen=True)
class Place:
    """Where the sandboxes of a run are started, and what it was found to be.

    Args:
        backend: Bubblewrap, or nothing around the command.
        record: The evidence of the sandbox that was started to find out; ``None`` where none was.
    """

    backend: Bubblewrap | Unconfined
    record: Record | None = None

    @property
    def confined(self) -> bool:
        """Whether what runs here is confined."""
        return isinstance(self.backend, Bubblewrap)

    def run(
        self,
        sandbox: Sandbox,
        command: Command,
        *,
        keep: Callable[[Record], None],
        variables: Mapping[str, str] | None = None,
        streams: Streams = Streams(),  # noqa: B008 - a frozen value
        cancel: int | None = None,
    ) -> Outcome:
        """Starts one sandbox here, runs the command in it to its end, and hands the evidence to ``keep``.

        Args:
            sandbox: What is shown, passed and allowed.
            command: What runs.
            keep: Takes the record, once, whether the start succeeded or not.
            variables: The host's variables; this process's own unless given.
            streams: Descriptors the command takes over.
            cancel: A descriptor that becomes readable when the run is given up.

        Raises:
            SandboxError: The sandbox failed; the command may not have run.
            Interrupted: ``cancel`` became readable.
        """
        given = environ.snapshot() if variables is None else variables
        return self.backend.run(sandbox, command, environ=given, keep=keep, streams=streams, cancel=cancel)


def unconfined(reason: str) -> Place:
    """A place where nothing is confined, because somebody said so."""
    return Place(Unconfined(python.current(), reason))


def preflight(enforce: Enforce = Enforce.REQUIRED, *, container_cure: str = "") -> Place:
    """Finds out whether sandboxes can be started here, by starting one.

    Args:
        enforce: What to do where none can be.
        container_cure: The whole command to use instead, where this machine is a container.

    Raises:
        PlaceError: No sandbox can be started here and ``enforce`` is ``REQUIRED``; it names the cause and the cure.
    """
    try:
        return _try_bubblewrap(container_cure=container_cure)
    except PlaceError as error:
        if enforce is Enforce.REQUIRED:
            raise
        return unconfined(error.what)


def _try_bubblewrap(*, container_cure: str) -> Place:
    program = shutil.which("bwrap")
    if program is None:
        raise PlaceError("bubblewrap is not installed: no `bwrap` on the PATH", cure=INSTALL)
    try:
        said = proc.capture([program, "--version"], timeout_s=10)
    except (OSError, TimeoutError) as error:
        raise PlaceError(f"{program} does not run: {error}", cure=f"install it anew: {INSTALL}") from None
    words = said.stdout.decode(errors="replace").split()
    if said.code != 0 or words[:1] != ["bubblewrap"] or not words[1:]:
        raise PlaceError(f"{program} is not bubblewrap: it says {said.last_words!r}", cure=f"install it: {INSTALL}")
    shown = python.current()
    cgroup.sweep()
    backend = Bubblewrap(os.path.abspath(program), words[1], shown)
    records: list[Record] = []
    trial = Sandbox(role="preflight", framework=True, limits=Limits(wall_s=30))
    try:
        outcome = backend.run(trial, Command(argv=("true",)), environ={}, keep=records.append)
    except SandboxError as error:
        raise _diagnosed(error, container_cure=container_cure) from None
    if outcome.code != 0:
        raise PlaceError(f"`true` in a sandbox ended with {outcome.shell_code}", cure="run `hermit check`")
    return Place(backend, records[0])


def _diagnosed(error: SandboxError, *, container_cure: str) -> PlaceError:
    """The cause behind bubblewrap's words, and its cure."""
    if error.cause != "start":
        return PlaceError(error.what, where="a first sandbox", cure=error.cure)
    facts = bubblewrap_preflight.facts()
    finding = bubblewrap_preflight.diagnose(error.what, facts, container_cure=container_cure)
    return PlaceError(finding.what, where="a first sandbox", cure=finding.cure)


def main(arguments: list[str]) -> int:
    """The front door; returns the exit code."""
    usage = "usage: python -m hermit.sandbox SPEC -- COMMAND [ARGUMENT...]"
    spec_path, dashes, argv = arguments[:1], arguments[1:2], tuple(arguments[2:])
    if dashes != ["--"] or not argv:
        return _refuse(usage)
    _fill_streams()
    try:
        sandbox = with_hidden(read_spec(spec_path[0]), environ.snapshot().get(hide.VARIABLE, ""))
        place = preflight(sandbox.enforce)
        streams = Streams(0, 1, 2)
        outcome = place.run(sandbox, Command(argv=argv), keep=lambda _: None, streams=streams)
    except (HermitError, ValueError, OSError) as error:
        return _refuse(f"hermit.sandbox: {error}")
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    sys.stderr.write(outcome.stderr.kept.decode("utf-8", "replace"))
    return outcome.shell_code


def _fill_streams() -> None:
    """Opens nothing in place of each standard stream that the caller closed, before anything else takes its number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one


def read_spec(path: str) -> Sandbox:
    """The sandbox a JSON file describes; ``-`` is standard input.

    Raises:
        HermitError: The file cannot be read, or describes no sandbox.
    """
    where = "standard input" if path == "-" else path
    try:
        if path == "-":
            data = sys.stdin.buffer.read()
        else:
            with open(path, "rb") as file:
                data = file.read()
        return spec.sandbox(codec.load(data))
    except OSError as error:
        raise HermitError(f"cannot be read: {error.strerror}", where=where) from None
    except (TypeError, ValueError) as error:
        raise HermitError(str(error), where=where, cure="see docs/reference/sandbox.md") from None


def with_hidden(sandbox: Sandbox, inherited: str) -> Sandbox:
    """The sandbox, which hides what whoever started this process hides as well.

    Raises:
        HermitError: ``inherited``, the value of ``HA_SANDBOX_HIDE``, is no list of names.
    """
    try:
        return replace(sandbox, hide=hide.merged(sandbox.hide, hide.from_environment(inherited)))
    except ValueError as error:
        raise HermitError(str(error), where=hide.VARIABLE, cure="unset it, or correct the names in it") from None


def _refuse(words: str) -> int:
    sys.stderr.write(words + "\n")
    return ExitCode.FRONT_DOOR


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
