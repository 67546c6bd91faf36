"""Where sandboxes are started on this machine, and the front door for other programs.

``python -m hermit.sandbox SPEC -- COMMAND...`` runs one command in one sandbox. SPEC is JSON, with the fields of
:class:`hermit.Sandbox` by name: ``HELP`` says the rest. This process stands for the command: its input, output and
signals are the command's, and the command's exit code is its own. It prints its own refusals, because it is used where
the command line's libraries are too slow to import.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from hermit import environ, proc, signals
from hermit.bwrap import cgroup, python
from hermit.bwrap import preflight as bubblewrap_preflight
from hermit.bwrap.launch import Bubblewrap
from hermit.domain import hide, schema, spec
from hermit.domain.bind import contains
from hermit.domain.command import Command
from hermit.domain.limits import Limits
from hermit.domain.sandbox import Enforce, Sandbox
from hermit.errors import ExitCode, HermitError, Interrupted, PlaceError, SandboxError
from hermit.streams import Streams
from hermit.unconfined import Unconfined

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from hermit.domain.command import Outcome
    from hermit.domain.record import Record

INSTALL = "apt-get install bubblewrap"
USAGE = "usage: python -m hermit.sandbox [--record FILE] SPEC -- COMMAND [ARGUMENT...]"
HELP = f"""{USAGE}
       python -m hermit.sandbox --schema

Runs one command in one sandbox. What SPEC does not name does not exist inside.

  SPEC           JSON: a file, - for standard input, or the object itself
  --record FILE  leave the record of this start in FILE: what was shown, checked and held
  --schema       print the JSON Schema of SPEC
  --help         print this

The command has this process's own standard input, output and error, gets the signals HUP, INT, QUIT, TERM, USR1, USR2
and WINCH that are sent to it, and its exit code is passed on; the end by a signal is 128 and its number. 125 says that
the sandbox failed, 126 that the command could not be started, 127 that it was not found.

A directory to read, ten seconds, one host:

  echo '{{"read": ["/srv/data"], "limits": {{"wall_s": 10}}, "allowed_hosts": ["api.example.com"]}}' > spec.json
  python -m hermit.sandbox spec.json -- ls /srv/data

Every field: docs/reference/sandbox.md
"""


class Backend(Protocol):
    """What starts sandboxes, or commands without one."""

    @property
    def confined(self) -> bool:
        """Whether what it starts is confined."""

    def run(
        self,
        sandbox: Sandbox,
        command: Command,
        *,
        environ: Mapping[str, str],
        keep: Callable[[Record], None],
        streams: Streams = ...,
        cancel: int | None = None,
    ) -> Outcome:
        """Runs a command to its end, and hands the record of it to ``keep``."""


@dataclass(frozen=True)
class Place:
    """Where the sandboxes of a run are started, and what it was found to be.

    Args:
        backend: Bubblewrap, a launcher that has it in an image, or nothing around the command.
        record: The evidence of the sandbox that was started to find out; ``None`` where none was.
        owner: The user and group that write here, where they are not this process's: what a sandbox shall write has to
            be theirs.
    """

    backend: Backend
    record: Record | None = None
    owner: tuple[int, int] | None = None

    @property
    def confined(self) -> bool:
        """Whether what runs here is confined."""
        return self.backend.confined

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
            keep: Takes the record, once, whether the start succeeded or not; not that of a role that keeps none.
            variables: The host's variables; this process's own unless given.
            streams: Descriptors the command takes over.
            cancel: A descriptor that becomes readable when the run is given up.

        Raises:
            SandboxError: The sandbox failed; the command may not have run.
            Interrupted: ``cancel`` became readable.
        """
        given = environ.snapshot() if variables is None else variables
        keep = keep if sandbox.recorded else _keep_none
        return self.backend.run(sandbox, command, environ=given, keep=keep, streams=streams, cancel=cancel)


def _keep_none(_record: Record) -> None:
    return


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
    except BlockingIOError:
        finding = bubblewrap_preflight.NO_PROCESS
        raise PlaceError(finding.what, cure=finding.cure) from None
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
    _fill_streams()
    if arguments in (["--help"], ["-h"]):
        return _say(1, HELP)
    if arguments == ["--schema"]:
        return _say(1, json.dumps(schema.schema(), indent=2) + "\n")
    record, words = "", arguments
    if arguments[:1] == ["--record"] and arguments[1:]:
        record, words = arguments[1], arguments[2:]
    spec_path, dashes, argv = words[:1], words[1:2], tuple(words[2:])
    if dashes != ["--"] or not argv:
        return _refuse(f"{USAGE}\ntry: python -m hermit.sandbox --help")
    try:
        sandbox = with_hidden(read_spec(spec_path[0]), environ.snapshot().get(hide.VARIABLE, ""))
        with _recorder(record, sandbox) as keep:
            return _run(sandbox, Command(argv=argv), keep)
    except (HermitError, ValueError, OSError) as error:
        return _refuse(f"hermit.sandbox: {error}")
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED


def _run(sandbox: Sandbox, command: Command, keep: Callable[[Record], None]) -> int:
    place = preflight(sandbox.enforce)
    if isinstance(place.backend, Unconfined):
        _say(2, f"hermit.sandbox: nothing is confined: {place.backend.reason}\n")
    with signals.caught() as caught:
        try:
            outcome = place.run(sandbox, command, keep=keep, streams=Streams(0, 1, 2, caught))
        except Interrupted:
            return 128 + caught.ended_by
    _say(2, outcome.stderr.kept.decode("utf-8", "replace"))
    return outcome.shell_code


@contextlib.contextmanager
def _recorder(path: str, sandbox: Sandbox) -> Iterator[Callable[[Record], None]]:
    """Keeps a record in a file, and the decisions of its proxy beside it; keeps none where no path is given.

    Raises:
        HermitError: The role keeps no record, or the command could write to it.
        OSError: The file cannot be written.
    """
    if not path:
        yield _keep_none
        return
    if not sandbox.recorded:
        raise HermitError(f"a start of the role {sandbox.role!r} keeps no record", where="--record")
    place = os.path.realpath(path)
    for bind in sandbox.mounts:
        if bind.writable and contains(os.path.realpath(bind.source), place):
            raise HermitError(f"{path} is no evidence: the command can write to it", where="--record")
    # Opened before the command exists, so that a record of an earlier start never stands for this one.
    with open(path, "wb", buffering=0) as file:

        def keep(record: Record) -> None:
            file.write(record.as_json())
            if record.decisions:
                with open(os.path.splitext(path)[0] + ".proxy.jsonl", "w", encoding="utf-8") as decisions:
                    decisions.writelines(f"{line}\n" for line in record.decisions)

        yield keep


def _fill_streams() -> None:
    """Opens nothing in place of each standard stream that the caller closed, before anything else takes its number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one


def read_spec(text: str) -> Sandbox:
    """The sandbox that JSON describes: a file's, standard input's for ``-``, or the text itself where it begins so.

    Raises:
        HermitError: It cannot be read, or describes no sandbox.
    """
    inline = text.startswith("{")
    where = "SPEC" if inline else "standard input" if text == "-" else text
    try:
        if inline:
            data = os.fsencode(text)
        else:
            with open(0 if text == "-" else text, "rb", closefd=text != "-") as file:
                data = file.read()
        found = spec.parsed(data)
        if found.allowed_hosts:
            _check_hosts(found.allowed_hosts)
    except OSError as error:
        raise HermitError(f"cannot be read: {error.strerror}", where=where) from None
    except ValueError as error:
        raise HermitError(str(error), where=where) from None
    return found


def _check_hosts(patterns: tuple[str, ...]) -> None:
    """Refuses what is no host before anything is started; only the network's own part can tell.

    Raises:
        ValueError: One of them is no pattern of hosts; the message names it.
    """
    from hermit.net.hosts import HostPattern  # noqa: PLC0415 - its libraries cost more than reading the rest

    for number, pattern in enumerate(patterns):
        try:
            HostPattern.parse(pattern)
        except ValueError as error:
            raise ValueError(f"allowed_hosts[{number}]: {error}") from None


def _say(descriptor: int, words: str) -> int:
    """Writes to a standard stream, past what the interpreter made of it when it started; a reader may have left."""
    data = words.encode("utf-8", "backslashreplace")
    with contextlib.suppress(BrokenPipeError):
        while data:
            data = data[os.write(descriptor, data) :]
    return ExitCode.OK


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
    _say(2, words + "\n")
    return ExitCode.FRONT_DOOR


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
