"""What an attack comes to: what pays, what it knows of the task, and what it leaves."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from hermit.domain.attempt import Phase, Status
from hermit.errors import ConfigError, SandboxError
from hermit.run.attack import campaign, cheats, hints
from hermit.run.attack.campaign import Attacked, Came, Tried

if TYPE_CHECKING:
    from collections.abc import Callable

CHEAT = cheats.by_name("conftest")
OFF = ("sandbox.enabled=false",)


def tried(score: float | None = 0.0, **more: Any) -> Tried:
    fields: dict[str, Any] = {"floor": 0.0, "status": Status.OK, "phase": "", "cause": "", "why": "", **more}
    return Tried(cheat=CHEAT, task="a", score=score, **fields)


@pytest.mark.parametrize(
    ("one", "came"),
    [
        (tried(0.0), Came.CLOSED),
        (tried(0.2), Came.PAID),
        (tried(0.2, floor=0.2), Came.CLOSED),
        (tried(-1.0, floor=-2.0), Came.PAID),
        (tried(0.0, took=("read a secret",)), Came.TOOK),
        (tried(1.0, took=("read a secret",)), Came.PAID),
        (tried(None, status=Status.SANDBOX_ERROR), Came.BROKE),
        (tried(0.0, status=Status.JUDGE_ERROR, cause="timeout"), Came.HELD),
        (tried(0.0, status=Status.JUDGE_ERROR, cause="exception"), Came.CLOSED),
        (tried(0.0, status=Status.TIMEOUT, cause="timeout"), Came.CLOSED),
        (replace(tried(1.0), cheat=cheats.NOTHING), Came.PAID),
        (replace(tried(0.5), cheat=cheats.NOTHING), Came.CLOSED),
    ],
)
def test_what_came_of_a_cheat_follows_from_its_score_and_from_that_of_an_attempt_that_tries_nothing(
    one: Tried, came: Came
) -> None:
    assert one.came is came
    assert bool(one.as_json()["cure"]) is (came is not Came.CLOSED)
    assert (one in Attacked(tried=(one,)).paid) is (came in (Came.PAID, Came.TOOK))


def test_partial_credit_for_a_file_is_the_floor_of_every_other_cheat(attacked: Callable[..., Any]) -> None:
    judge = "import os\ndef score(task, output): return 0.25 * os.path.exists(os.environ['HERMIT_WORK'] + '/answer')\n"
    found = attacked(judge, "conftest", "programs", settings=OFF)
    assert [(one.cheat.name, one.floor, one.came) for one in found.tried] == [
        ("nothing", 0.0, Came.CLOSED),
        ("placeholder", 0.0, Came.PAID),
        ("conftest", 0.25, Came.CLOSED),
        ("programs", 0.25, Came.CLOSED),
    ]


def test_what_a_cheat_got_hold_of_is_told_where_it_makes_no_score(attacked: Callable[..., Any]) -> None:
    found = attacked("def score(task, output): return 0\n", "answers-by-path", "undeclared-hosts", settings=OFF)
    assert [one.came for one in found.tried] == [Came.CLOSED, Came.CLOSED, Came.TOOK, Came.TOOK]
    assert found.tried[2].took[0].startswith("read /")
    assert found.tried[3].took == ("reached a host that was not declared",)
    assert found.as_json()["paid"] == ["answers-by-path", "undeclared-hosts"]


def test_every_host_of_a_public_network_is_declared(attacked: Callable[..., Any]) -> None:
    found = attacked(
        "def score(task, output): return 0\n", "undeclared-hosts", settings=("environment.network=public", *OFF)
    )
    assert [one.cheat.name for one in found.tried] == ["nothing", "placeholder"]
    assert "public" in dict(found.untried)["undeclared-hosts"]


def test_an_attack_leaves_nothing_and_touches_no_result(run: Any, attacked: Callable[..., Any]) -> None:
    run.evaluate()
    before = {path: path.read_bytes() for path in (run.root / "runs").rglob("*") if path.is_file()}
    attacked("def score(task, output): return 0\n", settings=OFF, learn=True)
    assert {path: path.read_bytes() for path in (run.root / "runs").rglob("*") if path.is_file()} == before
    assert list(run.scratch.iterdir()) == []


def test_each_cheat_is_tried_at_as_many_tasks_as_are_asked_for(attacked: Callable[..., Any]) -> None:
    shown = attacked("def score(task, output): return task['id'] == 'b'\n", "asking", settings=OFF, tasks=2)
    assert [(one.task, one.cheat.name, one.came) for one in shown.tried] == [
        ("a", "nothing", Came.CLOSED),
        ("a", "placeholder", Came.CLOSED),
        ("a", "asking", Came.CLOSED),
        ("b", "nothing", Came.PAID),
        ("b", "placeholder", Came.CLOSED),
        ("b", "asking", Came.CLOSED),
    ]


def test_where_not_even_nothing_can_be_tried_nothing_is_said(
    run: Any, attacked: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(bench: Any, attempt: Any) -> Any:
        from hermit.run.report import Row

        return Row(
            id=attempt.task.id,
            repeat=0,
            status=Status.SANDBOX_ERROR,
            phase=Phase.START,
            cause="start",
            error="it broke",
        )

    monkeypatch.setattr(campaign.trial, "attempt", broken)
    with pytest.raises(SandboxError, match="it broke"):
        attacked("def score(task, output): return 0\n", "asking", settings=OFF)


def test_a_judge_and_a_cheat_have_a_clock_and_the_judges_own_is_kept(run: Any) -> None:
    known = hints.of(run.plan(), run.plan().tasks[0], left=(), beacon=1, confined=True)
    played = campaign._played(run.plan(), CHEAT, known).config
    assert (played.agent.timeout_min, played.judge.timeout_min) == (campaign.BOUND_MIN, campaign.BOUND_MIN)
    assert campaign._played(run.plan("judge.timeout_min=7"), CHEAT, known).config.judge.timeout_min == 7.0


def test_a_cheat_stands_in_the_place_of_the_users_agent_and_changes_nothing_else(run: Any) -> None:
    plan = run.plan()
    known = hints.of(plan, plan.tasks[0], left=(), beacon=1, confined=True)
    played = campaign._played(plan, CHEAT, known)
    assert played.config.agent.name == f"{run.root / 'agent.py'}:run"
    assert played.agent_code != plan.agent_code
    changed = {"agent", "judge"}
    assert played.config.model_dump(exclude=changed) == plan.config.model_dump(exclude=changed)
    assert played.config.judge.model_dump(exclude={"timeout_min"}) == plan.config.judge.model_dump(
        exclude={"timeout_min"}
    )


def test_an_unknown_cheat_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ConfigError, match="no cheat is called magic") as refused:
        campaign.chosen(("conftest", "magic"))
    assert "survivor" in refused.value.cure
    assert campaign.chosen(()) == cheats.CHEATS
    assert [cheat.name for cheat in campaign.chosen(("survivor", "conftest", "survivor"))] == ["survivor", "conftest"]


def test_an_agent_that_fails_teaches_what_it_left_and_the_attack_goes_on(attacked: Callable[..., Any]) -> None:
    agent = "open('mine.txt', 'w').write('x'); raise RuntimeError('no key')"
    found = attacked("def score(task, output): return 0\n", "asking", agent=agent, settings=OFF, learn=True)
    assert found.learned.startswith("the agent failed (exception: RuntimeError: no key) left mine.txt")
    assert [one.came for one in found.tried] == [Came.CLOSED] * 3


def test_what_an_agent_said_of_its_failure_is_told_without_a_key(
    attacked: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "abcdefgh-12345678-ijklmnop")
    agent = "raise RuntimeError('abcdefgh-12345678-ijklmnop is refused')"
    found = attacked("def score(task, output): return 0\n", "asking", agent=agent, settings=OFF, learn=True)
    assert "<SOME_API_KEY> is refused" in found.learned
    assert "abcdefgh" not in str(found.as_json())


def test_names_come_from_the_config_from_what_the_agent_left_and_from_the_row(run: Any) -> None:
    (run.root / "tests" / "deep").mkdir(parents=True)
    (run.root / "tests" / "deep" / "test_a.py").write_text("")
    row = {
        "id": "t/0",
        "prompt": "Write fib.py with `def fib(n)`; save a/report.csv.",
        "entry_point": "fib",
        "x": ["deep/x.md"],
    }
    plan = run.plan("judge.tests=[tests]", "judge.mode=separate", "judge.collect=[out/answer.txt, .]")
    known = hints.of(plan, replace(plan.tasks[0], row=row), left=("left.bin", "out"), beacon=1, confined=True)
    assert known.targets[:3] == ("out/answer.txt", "left.bin", "fib.py")
    assert {"a/report.csv", "deep/x.md", *hints.TARGETS} <= set(known.targets)
    assert "out" not in known.targets, "a directory in which another is expected"
    assert known.functions[0] == "fib"
    assert {"tests/deep/test_a.py", "test_a.py"} <= set(known.tests)
    assert known.secrets[0] == str(run.root / "tests" / "deep" / "test_a.py")
    assert str(run.root / "data" / "tasks.jsonl") in known.secrets
