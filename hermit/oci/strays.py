"""Containers of ours whose owner is dead: found by their labels, and removed."""

from __future__ import annotations

import json
import os
import socket
from typing import TYPE_CHECKING

from hermit.errors import PlaceError
from hermit.oci import container as containers
from hermit.oci.argv import labels_arguments, list_arguments
from hermit.proc import capture

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermit.oci.engine import Engine

ANSWER_S = 30.0


def prune(engine: Engine) -> list[str]:
    """Removes every container of ours whose owner is provably dead, and returns their names.

    Volumes and networks are none of theirs: they have none but what is removed with them. A run's exchange directories
    are found by their locks (``run/bench.py``).

    Raises:
        PlaceError: The engine does not answer, or one of them cannot be removed.
    """
    removed = []
    for name, labels in _ours(engine):
        if dead(labels):
            containers.remove(engine, name)
            removed.append(name)
    return removed


def dead(labels: Mapping[str, str]) -> bool:
    """Whether the process that these labels name is provably dead.

    Another machine's is never; one of an earlier life of this machine is. Of this life it is where no process has its
    number any more, or one that was started at another time; a number means the same in one process namespace only.
    """
    if labels.get(containers.HOST_LABEL) != socket.gethostname():
        return False
    if labels.get(containers.BOOT_LABEL, "") != containers.boot():
        return bool(labels.get(containers.BOOT_LABEL))
    if labels.get(containers.PROCESSES_LABEL) != containers.namespace():
        return False
    number = labels.get(containers.OWNER_LABEL, "")
    return number.isdigit() and containers.started(int(number)) != labels.get(containers.STARTED_LABEL)


def _ours(engine: Engine) -> list[tuple[str, dict[str, str]]]:
    """The id and the labels of every container that a process of ours owns, but for this process's own."""
    ids = _lines(engine, list_arguments(containers.OWNER_LABEL, program=engine.program))
    if not ids:
        return []
    documents = [json.loads(line) for line in _lines(engine, labels_arguments(ids, program=engine.program))]
    own = str(os.getpid())
    return [
        (str(each["id"]), dict(each["labels"] or {}))
        for each in documents
        if (each["labels"] or {}).get(containers.OWNER_LABEL) != own
    ]


def _lines(engine: Engine, arguments: list[str]) -> list[str]:
    """What the engine says; a container that is gone meanwhile is none of its failures.

    Raises:
        PlaceError: It says nothing at all in time.
    """
    try:
        finished = capture(arguments, timeout_s=ANSWER_S)
    except (TimeoutError, OSError):
        raise PlaceError(
            "the container engine does not answer any more", where=engine.program, cure="restart it: make engine"
        ) from None
    return [line for line in finished.stdout.decode(errors="replace").splitlines() if line.strip()]
