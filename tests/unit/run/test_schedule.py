from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermit.config.tasks import Task
from hermit.run.schedule import batches, shuffled

IDS = st.lists(st.text(max_size=6), min_size=1, max_size=30, unique=True)


def tasks_of(ids: list[str]) -> tuple[Task, ...]:
    return tuple(Task(name, {"id": name}, line) for line, name in enumerate(ids, 1))


@given(ids=IDS, size=st.integers(1, 40), epochs=st.integers(1, 4), seed=st.none() | st.integers(-5, 5))
def test_every_epoch_takes_every_task_once_in_steps_of_the_size(
    ids: list[str], size: int, epochs: int, seed: int | None
) -> None:
    made = list(batches(tasks_of(ids), size=size, epochs=epochs, seed=seed))
    assert [batch.step for batch in made] == list(range(1, len(made) + 1))
    assert Counter((batch.epoch, task.id) for batch in made for task in batch.tasks) == Counter(
        (epoch, name) for epoch in range(1, epochs + 1) for name in ids
    )
    for batch in made:
        assert len(batch.tasks) == size or batch.ends_epoch
    assert [batch.epoch for batch in made if batch.ends_epoch] == list(range(1, epochs + 1))


def test_without_a_seed_the_order_is_the_splits_own() -> None:
    made = list(batches(tasks_of(["c", "a", "b"]), size=2, epochs=2, seed=None))
    assert [[task.id for task in batch.tasks] for batch in made] == [["c", "a"], ["b"], ["c", "a"], ["b"]]


def test_an_order_follows_from_the_seed_and_the_epoch_and_from_nothing_else() -> None:
    tasks = tasks_of([str(number) for number in range(20)])
    orders = {
        (seed, epoch): [task.id for task in shuffled(tasks, seed=seed, epoch=epoch)]
        for seed in (0, 1)
        for epoch in (1, 2)
    }
    assert len({tuple(order) for order in orders.values()}) == 4
    assert orders[0, 1] == [task.id for task in shuffled(tasks[::-1], seed=0, epoch=1)]


@pytest.mark.parametrize(("seed", "order"), [(0, ["b", "a", "c", "d"]), (7, ["c", "b", "a", "d"])])
def test_the_order_is_the_same_in_every_version(seed: int, order: list[str]) -> None:
    assert [task.id for task in shuffled(tasks_of(["a", "b", "c", "d"]), seed=seed, epoch=1)] == order
