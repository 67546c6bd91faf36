"""The same learner in a container of the image: its workspace, its tools and its end are those of this machine."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from hermit.evolver import StepResult
from hermit.oci import engine as engines
from hermit.oci.launcher import Launcher
from hermit.oci.life import Shape
from hermit.run import learner_tools
from hermit.run.served import Returned
from hermit.sandbox import Place

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.unit.run.conftest import Studio

pytestmark = [pytest.mark.docker, pytest.mark.image]

LEARNER = """
import os
from hermit.evolver import Evolver, StepResult
class Learner(Evolver):
    def step(self, ctx):
        w = ctx.workspace
        (w.adapter / "ADAPTER.md").write_text((w.learning_material / "a").read_text())
        (w.state / "kept").write_text("kept")
        logs = ctx.tools["run_agent"]({"tasks": ["t/1"]})["logs"]
        return StepResult(extra={
            "w": sorted(os.listdir("/w")),
            "checked": ctx.tools["check_spec"](),
            "log": open(os.path.join(logs, "log")).read(),
            "book": (ctx.access.environment["books"] / "b").read_text(),
            "there": [path for path in ctx.params["absent"] if os.path.lexists(path)],
            "cancelled": ctx.cancel.is_set(),
        })
"""


@pytest.fixture
def in_image(tmp_path: Path, studio: Studio, engine: Any) -> Iterator[Place]:
    """A container with an exchange directory, in which the desk lies, and the books."""
    exchange, books = tmp_path / "exchange", studio.run.root / "books"
    exchange.mkdir()
    books.mkdir()
    (books / "b").write_text("a book")
    studio.desk_root = exchange / "desk"
    image_id = engines.image_id(engine, "hermit")
    assert image_id is not None
    shape = Shape(image=image_id, name="hermit", exchange=str(exchange), read=(str(books),))
    with contextlib.ExitStack() as ends:
        launcher = ends.enter_context(Launcher(engine, shape))
        yield Place(launcher, launcher.record, launcher.owner)


def test_a_learner_works_in_a_container_as_it_does_here(studio: Studio, in_image: Any, tmp_path: Path) -> None:
    studio.write(LEARNER)
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "log").write_text("what the agent did")
    absent = [str(studio.run.root / name) for name in ("judge.py", "data", "run.yaml", "agent.py")]
    learner = studio.learner(
        "evolver_access.environment=[books]", f"evolver.params={{absent: {absent}}}", place=in_image
    )
    (learner.desk.part("material") / "a").write_text("learn this")
    run_agent = learner_tools.run_agent(lambda *_: Returned({"results": []}, logs=str(logs)))
    called = studio.step(
        learner, learner_tools.check_spec(lambda argument, _: Returned(bool(argument["adapter"]))), run_agent
    )
    assert isinstance(called.result, StepResult), called
    extra = called.result.extra
    assert (extra["log"], extra["book"], extra["checked"]) == ("what the agent did", "a book", True)
    assert (extra["there"], extra["cancelled"]) == ([], False)
    assert (learner.desk.part("adapter") / "ADAPTER.md").read_text() == "learn this"
    assert called.empty
    assert {"adapter", "material", "environment"} <= set(extra["w"])
    assert not learner.scrubbed()
