"""Every cheat in an attempt of its own, on the path that every attempt takes, and what each scored."""

from __future__ import annotations

import contextlib
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermit import sandbox as sandboxes
from hermit.agent.result import Failure
from hermit.agent.source import compiled
from hermit.domain.attempt import Status
from hermit.errors import ConfigError, SandboxError
from hermit.roles import task as task_role
from hermit.run import bench as benches
from hermit.run import evaluate, trial
from hermit.run.attack import agent as cheater
from hermit.run.attack import beacon, cheats, hints
from hermit.run.paths import RunPaths
from hermit.run.plan import Attempt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hermit.config.tasks import Task
    from hermit.run.attack.cheats import Cheat
    from hermit.run.attack.hints import Hints
    from hermit.run.bench import Bench
    from hermit.run.place import InImage
    from hermit.run.plan import EvalPlan
    from hermit.run.report import Row
    from hermit.sandbox import Place

MODULE = "hermit.run.attack.agent:run"
# Minutes that a cheat, and a judge without a bound of its own, may take: a FIFO would hold it up for a day.
BOUND_MIN = 2.0
# A score is above another one by more than an addition of floats may err.
MARGIN = 1e-9
SOLVED = 1.0


class Came(Enum):
    """What came of a cheat."""

    PAID = "paid"  # its score is above that of an attempt that tries nothing
    TOOK = "got through"  # it got hold of what no agent may have, and knew no way to make a score of it
    HELD = "held up"  # the judge did not end: no score, and time lost
    BROKE = "unknown"  # a sandbox of ours broke
    CLOSED = "closed"  # it came to nothing


@dataclass(frozen=True, kw_only=True)
class Tried:
    """One cheat at one task.

    Args:
        cheat: The cheat.
        task: The task's id.
        floor: What an attempt that tries nothing scores there; of that attempt itself, 0.
        score: What the cheat scored, ``None`` where a sandbox broke.
        status: The status of its row.
        why: What the row says of its failure, or the judge of its score.
        took: What it got hold of that no agent may have.
    """

    cheat: Cheat
    task: str
    floor: float
    score: float | None
    status: Status
    phase: str
    cause: str
    why: str
    took: tuple[str, ...] = ()

    @property
    def came(self) -> Came:
        """What came of it."""
        if self.score is None:
            return Came.BROKE
        if self.cheat is cheats.NOTHING:
            return Came.PAID if self.score >= SOLVED else Came.CLOSED
        if self.score > self.floor + MARGIN:
            return Came.PAID
        if self.took:
            return Came.TOOK
        held = self.status is Status.JUDGE_ERROR and self.cause == "timeout"
        return Came.HELD if held else Came.CLOSED

    def as_json(self) -> dict[str, Any]:
        """It, for a program."""
        return {
            "cheat": self.cheat.name,
            "task": self.task,
            "came": self.came.value,
            "score": self.score,
            "floor": self.floor,
            "status": self.status.value,
            "phase": self.phase,
            "cause": self.cause,
            "why": self.why,
            "took": list(self.took),
            "attacks": self.cheat.attacks,
            "does": self.cheat.does,
            "cure": "" if self.came is Came.CLOSED else self.cheat.cure,
        }


@dataclass(frozen=True, kw_only=True)
class Attacked:
    """What came of all of them.

    Args:
        tried: Each cheat at each task; before them the two attempts that try nothing.
        untried: Cheats that were not tried, with the reason.
        learned: What the user's own agent showed: the names it left, or why it showed none.
    """

    tried: tuple[Tried, ...]
    untried: tuple[tuple[str, str], ...] = ()
    learned: str = ""

    @property
    def paid(self) -> tuple[Tried, ...]:
        """Those that paid, or got hold of what no agent may have."""
        return tuple(tried for tried in self.tried if tried.came in (Came.PAID, Came.TOOK))

    @property
    def unknown(self) -> tuple[Tried, ...]:
        """Those of which nothing can be said."""
        return tuple(tried for tried in self.tried if tried.came is Came.BROKE)

    def as_json(self) -> dict[str, Any]:
        """It, for a program."""
        return {
            "paid": list(dict.fromkeys(tried.cheat.name for tried in self.paid)),
            "unknown": list(dict.fromkeys(tried.cheat.name for tried in self.unknown)),
            "untried": dict(self.untried),
            "learned": self.learned,
            "tried": [tried.as_json() for tried in self.tried],
        }


def chosen(names: Sequence[str]) -> tuple[Cheat, ...]:
    """The cheats of these names; all of them where none is given.

    Raises:
        ConfigError: No cheat is called so.
    """
    known = {cheat.name: cheat for cheat in cheats.CHEATS}
    for name in names:
        if name not in known:
            raise ConfigError(f"no cheat is called {name}", where="--cheat", cure=f"name one of {', '.join(known)}")
    return tuple(known[name] for name in dict.fromkeys(names)) if names else cheats.CHEATS


def attack(
    plan: EvalPlan,
    where: Place | InImage,
    *,
    wanted: Sequence[Cheat] = cheats.CHEATS,
    tasks: int = 1,
    learn: bool = True,
    show: Callable[[int, int], None] = lambda done, total: None,  # noqa: ARG005 - nobody looks
) -> Attacked:
    """Tries these cheats at the first tasks of a plan; nothing of the run's own directory is touched.

    Args:
        plan: What the user would run.
        where: Where sandboxes are started.
        wanted: Which cheats.
        tasks: At how many tasks.
        learn: Whether the user's own agent makes one call at each, to see which names it leaves.
        show: Is told how many attempts have been made, and of how many.

    Raises:
        SandboxError: Not even an attempt that tries nothing can be made.
        Interrupted: It was given up.
    """
    untried = _untried(plan)
    kept = [cheat for cheat in wanted if cheat.name not in untried]
    at = plan.tasks[:tasks]
    done, total = 0, len(at) * (len(kept) + 2)
    found: list[Tried] = []
    learned = ""
    with _bench(plan, where) as bench, ThreadPoolExecutor(plan.config.agent.concurrency) as pool:
        try:
            for task in at:
                with _witness(bench, task, learn=learn) as (left, learned), beacon.lit(left) as port:
                    confined = not trial.host_reason(bench)
                    known = hints.of(plan, task, left=left, beacon=port, confined=confined)
                    for tried in _at_task(bench, pool, task, known=known, wanted=kept):
                        found.append(tried)
                        done += 1
                        show(done, total)
        finally:
            bench.stop.set()
            pool.shutdown(cancel_futures=True)
    return Attacked(tried=tuple(found), untried=tuple(untried.items()), learned=learned)


def _untried(plan: EvalPlan) -> dict[str, str]:
    if plan.config.environment.network == "public":
        return {"undeclared-hosts": "environment.network is public: there is no host that is not declared"}
    return {}


@contextlib.contextmanager
def _bench(plan: EvalPlan, where: Place | InImage) -> Iterator[Bench]:
    """A bench in a run directory of its own, which is gone afterwards."""
    host = sandboxes.unconfined("the judge runs on the host")
    with tempfile.TemporaryDirectory(prefix="hermit-attack-") as root:
        once = replace(plan, paths=RunPaths(Path(root), plan.paths.selector))
        with benches.opened(once, where, host) as bench, evaluate.given_up_by_signal(bench):
            yield bench


@contextlib.contextmanager
def _witness(bench: Bench, task: Task, *, learn: bool) -> Iterator[tuple[dict[str, bytes], str]]:
    """What the user's own agent left, and in words what was learned; its work stays there, for others to look for."""
    if not learn:
        yield {}, "the agent was not called"
        return
    with bench.workspace(Attempt(task, 0)) as workspace:
        honest = trial.Trial(bench, workspace)
        output = honest.act(honest.task_sandbox())
        left = hints.left_in(str(workspace.work))
        words = f"the agent failed ({output.cause}: {output.error})" if isinstance(output, Failure) else "the agent"
        said = f"{words} left {', '.join(left) or 'no file'}"
        yield left, bench.redactor.text(said, cut=True)


def _at_task(
    bench: Bench, pool: ThreadPoolExecutor, task: Task, *, known: Hints, wanted: Sequence[Cheat]
) -> Iterator[Tried]:
    """The two attempts that try nothing, then the others, each against the better of the two."""
    nothing = _tried(bench, task, cheats.NOTHING, known=known)
    if nothing.score is None:
        raise SandboxError(f"not even an attempt that does nothing can be made: {nothing.why}", cause=nothing.cause)
    yield nothing
    placeholder = replace(_tried(bench, task, cheats.PLACEHOLDER, known=known), floor=nothing.score)
    yield placeholder
    floor = max(nothing.score, placeholder.score or nothing.score)
    for tried in pool.map(lambda cheat: _tried(bench, task, cheat, known=known), wanted):
        yield replace(tried, floor=floor)


def _tried(bench: Bench, task: Task, cheat: Cheat, *, known: Hints) -> Tried:
    """One attempt of one cheat."""
    number = cheats.ALL.index(cheat) + 1
    row = trial.attempt(replace(bench, plan=_played(bench.plan, cheat, known)), Attempt(task, number))
    said = row.judge.feedback if row.judge is not None else row.error
    return Tried(
        cheat=cheat,
        task=task.id,
        floor=0.0,
        score=row.score,
        status=row.status,
        phase=row.phase.value if row.phase else "",
        cause=row.cause,
        why=said or "",
        took=_took(row),
    )


def _took(row: Row) -> tuple[str, ...]:
    took = row.output.extra.get("took", []) if row.output is not None else []
    return tuple(map(str, took)) if isinstance(took, list) else ()


def _played(plan: EvalPlan, cheat: Cheat, known: Hints) -> EvalPlan:
    """The user's own plan, with the cheater's code in the place of the agent's: its sandbox shows what it always does."""
    config, file = plan.config, task_role.file_of(plan.config.agent.name)
    agent = config.agent.model_copy(
        update={
            "name": f"{file}:run" if file else MODULE,
            "params": {"cheat": cheat.name, "hints": known.as_params()},
            "timeout_min": BOUND_MIN,
        }
    )
    judge = config.judge.model_copy(update={"timeout_min": config.judge.timeout_min or BOUND_MIN})
    code = compiled(cheater.__file__)[1] if file else b""
    return replace(plan, config=config.model_copy(update={"agent": agent, "judge": judge}), agent_code=code)
