"""`hermit check --attack`: which cheats paid, what closes them, and what the command ends with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hermit.domain.attempt import Status
from hermit.run import check
from hermit.run.attack import campaign, cheats
from hermit.run.attack.campaign import Attacked, Tried
from hermit.run.doctor.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that is fit."""
    monkeypatch.setattr(check, "machine", lambda _: iter((Finding("sandbox", True, "here"),)))


def tried(name: str, score: float | None, *, task: str = "a", why: str = "") -> Tried:
    status = Status.SANDBOX_ERROR if score is None else Status.OK
    cheat = cheats.by_name(name)
    return Tried(cheat=cheat, task=task, floor=0.0, score=score, status=status, phase="", cause="", why=why)


@pytest.fixture
def came(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[dict[str, Any]]]:
    """Makes up what came of the cheats, and says how the attack was asked for."""

    def made_up(*found: Tried) -> list[dict[str, Any]]:
        asked: list[dict[str, Any]] = []

        def attack(_: Any, __: Any, **given: Any) -> Attacked:
            asked.append(given)
            return Attacked(tried=found, untried=(("x", "of y"),), learned="the agent left answer")

        monkeypatch.setattr(campaign, "attack", attack)
        return asked

    return made_up


def test_a_cheat_that_paid_is_named_with_its_cure_and_ends_with_7(
    hermit: Callable[..., Any], config: Path, came: Callable[..., Any]
) -> None:
    came(tried("nothing", 0.0), tried("conftest", 0.5), tried("survivor", 0.0))
    said = hermit("check", "--attack", "--config", str(config))
    assert said.code == 7
    assert "Of 3 cheats these paid: conftest." in said.out
    cheat = cheats.by_name("conftest")
    assert f"  -> {cheat.cure}" in said.out.splitlines()
    assert cheat.attacks in said.out
    assert cheats.by_name("survivor").cure not in said.out
    assert "not tried: x, because of y" in said.out


def test_where_none_paid_it_says_so_and_ends_as_a_check_does(
    hermit: Callable[..., Any], config: Path, came: Callable[..., Any]
) -> None:
    asked = came(tried("nothing", 0.0), tried("conftest", 0.0))
    said = hermit("check", "--attack", "--config", str(config))
    assert said.code == 0
    assert "Of 2 cheats none paid." in said.out
    assert "->" not in said.out.partition("closed")[2]
    assert (asked[0]["wanted"], asked[0]["tasks"], asked[0]["learn"]) == (cheats.CHEATS, 1, True)


def test_a_cheat_of_which_nothing_is_known_is_no_success(
    hermit: Callable[..., Any], config: Path, came: Callable[..., Any]
) -> None:
    came(tried("conftest", None))
    assert hermit("check", "--attack", "--config", str(config)).code == 4
    came(tried("conftest", None), tried("asking", 1.0))
    assert hermit("check", "--attack", "--config", str(config)).code == 7


def test_json_has_every_cheat_with_its_score_its_floor_and_its_cure(
    hermit: Callable[..., Any], config: Path, came: Callable[..., Any]
) -> None:
    came(tried("conftest", 0.5), tried("survivor", 0.0))
    said = hermit("check", "--attack", "--config", str(config), "--json")
    assert said.code == 7
    attack = said.document["attack"]
    assert (attack["paid"], attack["unknown"], attack["untried"]) == (["conftest"], [], {"x": "of y"})
    paid, closed = attack["tried"]
    assert (paid["came"], paid["score"], paid["floor"], paid["cure"]) == (
        "paid",
        0.5,
        0.0,
        cheats.by_name("conftest").cure,
    )
    assert (closed["came"], closed["cure"]) == ("closed", "")


def test_a_check_without_an_attack_makes_none(
    hermit: Callable[..., Any], config: Path, came: Callable[..., Any]
) -> None:
    asked = came(tried("conftest", 1.0))
    said = hermit("check", "--config", str(config), "--json")
    assert (said.code, asked, "attack" in said.document) == (0, [], False)


def test_where_nothing_runs_nothing_is_attacked(
    hermit: Callable[..., Any], config: Path, came: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = came(tried("conftest", 1.0))
    monkeypatch.setattr(check, "machine", lambda _: iter((Finding("python", False, "old", "install a newer one"),)))
    assert hermit("check", "--attack", "--config", str(config)).code == 3
    assert asked == []


def test_cheats_and_tasks_can_be_chosen_and_the_users_agent_left_alone(
    hermit: Callable[..., Any], config: Path, came: Callable[..., Any]
) -> None:
    asked = came()
    options = ("--cheat", "conftest", "--cheat", "asking", "--tasks", "3", "--no-probe")
    hermit("check", "--attack", "--config", str(config), *options)
    assert [cheat.name for cheat in asked[0]["wanted"]] == ["conftest", "asking"]
    assert (asked[0]["tasks"], asked[0]["learn"]) == (3, False)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--attack",), "--config"),
        (("--cheat", "conftest"), "--attack"),
        (("--attack", "--config", "run.yaml", "--cheat", "magic"), "no cheat is called magic"),
        (("--attack", "--config", "run.yaml", "--tasks", "0"), "--tasks"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    hermit: Callable[..., Any], words: tuple[str, ...], named: str
) -> None:
    said = hermit("check", *words)
    assert said.code == 2
    assert named in said.err


def test_what_a_judge_says_moves_no_cursor_and_is_cut(
    hermit: Callable[..., Any], config: Path, came: Callable[..., Any]
) -> None:
    came(tried("conftest", 0.0, why="\x1b[2J[red]" + "x" * 5000))
    said = hermit("check", "--attack", "--config", str(config))
    assert "\x1b" not in said.out
    assert "[red]" in said.out
    assert "x" * 200 not in said.out.replace("\n", "").replace(" ", "")


def test_several_tasks_are_told_apart(hermit: Callable[..., Any], config: Path, came: Callable[..., Any]) -> None:
    came(tried("conftest", 0.0, task="one"), tried("conftest", 1.0, task="two"))
    said = hermit("check", "--attack", "--config", str(config))
    assert "one" in said.out
    assert "Of 1 cheats these paid: conftest." in said.out
