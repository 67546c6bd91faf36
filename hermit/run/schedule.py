"""Which tasks each step of a training run takes, from nothing but the split and three numbers of the config."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hermit.config.tasks import Task


@dataclass(frozen=True)
class Batch:
    """What one step works on.

    Args:
        step: Its number in the run, from 1; the learner's bootstrap is step 0 and takes no tasks.
        epoch: Which pass over the split it belongs to, from 1.
        tasks: The tasks, in the order of the epoch.
        ends_epoch: Whether it is the last of its epoch.
    """

    step: int
    epoch: int
    tasks: tuple[Task, ...]
    ends_epoch: bool


def batches(tasks: Sequence[Task], *, size: int, epochs: int, seed: int | None) -> Iterator[Batch]:
    """The steps of a run, in order; the last one of an epoch takes what is left.

    Args:
        tasks: The training split, in its order.
        size: How many tasks a step takes.
        epochs: How many passes there are.
        seed: What the order of each epoch follows from; ``None`` keeps the split's own.
    """
    step = 0
    for epoch in range(1, epochs + 1):
        order = list(tasks) if seed is None else shuffled(tasks, seed=seed, epoch=epoch)
        for first in range(0, len(order), size):
            step += 1
            yield Batch(step, epoch, tuple(order[first : first + size]), first + size >= len(order))


def shuffled(tasks: Sequence[Task], *, seed: int, epoch: int) -> list[Task]:
    """The tasks in the order of their digests: the same for every Python, whatever its ``random`` does."""

    def digest(task: Task) -> bytes:
        return hashlib.sha256(f"{seed}\n{epoch}\n{task.id}".encode("utf-8", "surrogatepass")).digest()

    return sorted(tasks, key=digest)
