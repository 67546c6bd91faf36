"""A place in an image: one closed container for as long as a run lasts, in which sandboxes are started one after another.

Theory of operation. Four processes matter:

* **this process** keeps what no container gets: data, splits, answers, records, keys, the engine. It asks for starts.
* the **engine's client**, ``docker run``, a child in a session of its own, so that no Ctrl-C of a terminal reaches it. It
  is there to be waited for: it ends when the container has been removed.
* the container's **init**, which reaps, and the **launcher** below it (``hermit/resident.py``).
* bubblewrap and its **sandboxes** below that, as on any machine (``bwrap/launch.py``).

*Descriptors.* The container is shown the exchange directory of this run, and the declared paths. This process listens on
a socket in the exchange directory until the launcher has connected, and removes it then. Over that connection a start
is asked for with descriptors (``oci/request.py``): a channel of its own for its answer, and the ends of the pipes that the
sandbox writes to. What a sandbox writes is read here, and copied by nobody in between.

*Proof.* Before anything runs the launcher says the nonce that it found in the exchange directory, and which file it sees at
each declared path; the file that it leaves has to belong to the user it should. An engine that mounts something else, on
another machine or in a virtual one, is refused here and not found out later.

*Who dies first.* The sandbox, then its answer. When this process closes the connection, or dies in any way, the launcher
ends, with it every sandbox, and the engine removes the container. When the container ends first, each start under way
sees its channel close without an answer and is a ``SandboxError`` that names why; the next start gets a fresh container, a
bounded number of times. The engine is not needed while a container lives: a restart of it is noticed only by what it ends.
"""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Self

from hermit.domain.record import Record
from hermit.errors import PlaceError, SandboxError
from hermit.oci import container as containers
from hermit.oci import engine as engines
from hermit.oci import request
from hermit.oci.life import Life
from hermit.streams import Streams

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hermit.domain.command import Command, Outcome
    from hermit.domain.sandbox import Sandbox
    from hermit.oci.engine import Engine
    from hermit.oci.life import Shape

# How many containers may take the place of lost ones, one after another without a start that succeeds between them.
MOST_FRESH = 3
# How often the engine is asked for one of them, and the longest pause between: a restart of it takes a few seconds.
TRIES = 5
MOST_PAUSE_S = 8.0


class Launcher:
    """Sandboxes in a container of their own, as a context; it is used by any number of threads at once.

    Args:
        engine: The engine that runs the container.
        shape: What the container is.

    Raises:
        PlaceError: On entering: the container does not start, sees something else than it should, or cannot hold a
            sandbox.
    """

    def __init__(self, engine: Engine, shape: Shape) -> None:
        self._engine = engine
        self._shape = shape
        self._lock = threading.Lock()
        self._life: Life | None = None
        self._fresh = 0
        self._closed = False
        self.record: Record | None = None

    @property
    def confined(self) -> bool:
        """Whether what it starts is confined: always."""
        return True

    @property
    def owner(self) -> tuple[int, int]:
        """The user and group that the sandboxes here write as."""
        return containers.user_inside(os.geteuid(), os.getegid())

    @property
    def name(self) -> str:
        """The name of the container as it is now; empty while there is none."""
        return self._life.name if self._life is not None else ""

    def __enter__(self) -> Self:
        os.chown(self._shape.exchange, *self.owner)
        self._life = Life(self._engine, self._shape)
        self.record = self._life.record
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._closed = True
            if self._life is not None:
                self._life.close()

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
        """Starts the sandbox in the container, runs the command in it to its end, and hands the record to ``keep``.

        Raises:
            SandboxError: The sandbox could not be made, failed one of its checks, or the container ended under it.
            Interrupted: ``cancel`` became readable.
        """
        while True:
            life = self._living()
            try:
                outcome = request.run(
                    life.send,
                    sandbox,
                    command,
                    environ=environ,
                    keep=lambda record, life=life: keep(replace(record, image=life.told)),  # type: ignore[misc]
                    streams=streams,
                    cancel=cancel,
                )
            except request.Unsent:
                life.obituary()  # nothing was begun: the next container takes it, of which there are only so many
                continue
            except request.Lost:
                lost = life.obituary()
                keep(_unfinished(sandbox, life, f"SandboxError: {lost}"))
                raise lost from None
            with self._lock:
                self._fresh = 0
            return outcome

    def _living(self) -> Life:
        """The container, or a fresh one in place of one that was lost.

        Raises:
            SandboxError: None can be had any more.
        """
        with self._lock:
            if self._life is None or self._closed:
                raise SandboxError("the launcher is closed", cause="launcher")
            if not self._life.lost:
                return self._life
            if self._fresh >= MOST_FRESH:
                what = f"{MOST_FRESH} containers were lost one after another, and no other is tried"
                raise SandboxError(what, where=self._shape.name, cause="container lost", cure="see the rows before")
            self._fresh += 1
            self._life.close()
            try:
                self._life = self._begun_again()
            except PlaceError as error:
                raise SandboxError(
                    f"no fresh container takes the place of the lost one: {error.what}",
                    where=self._shape.name,
                    cause="container start",
                    cure=error.cure,
                ) from None
            return self._life

    def _begun_again(self) -> Life:
        from tenacity import (  # noqa: PLC0415 - only a lost container needs it
            Retrying,
            retry_if_exception,
            stop_after_attempt,
            wait_exponential,
        )

        patiently = Retrying(
            stop=stop_after_attempt(TRIES),
            wait=wait_exponential(multiplier=0.5, max=MOST_PAUSE_S),
            retry=retry_if_exception(self._may_pass),
            reraise=True,
        )
        fresh: Life = patiently(Life, self._engine, self._shape)
        return fresh

    def _may_pass(self, error: BaseException) -> bool:
        """Whether it helps to ask once more: an engine that is away may come back, an image that is gone stays away."""
        if not isinstance(error, PlaceError):
            return False
        try:
            return engines.image_id(self._engine, self._shape.image) is not None
        except PlaceError:
            return True


def _unfinished(sandbox: Sandbox, life: Life, ended: str) -> Record:
    """The evidence of a start whose container ended under it: what was asked for, and why that is all there is."""
    return Record(
        role=sandbox.role,
        backend="bubblewrap",
        version=life.record.version if life.record is not None else "",
        confined=True,
        image=life.told,
        binds=sandbox.mounts,
        network=sandbox.network.value,
        ended=ended,
    )
