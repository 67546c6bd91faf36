"""`hermit check`: says whether this machine, and a config, are fit, and what to type where they are not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hermit.run import check
from hermit.run.doctor.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FIT = (Finding("sandbox", True, "here"), Finding("engine", False, "none", "make engine", needed=False))
UNFIT = (*FIT, Finding("[b]thing[/]", False, "missing", "apt-get install thing"))


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Callable[[tuple[Finding, ...]], None]:
    """Makes up what is found on this machine."""

    def made_up(findings: tuple[Finding, ...]) -> None:
        monkeypatch.setattr(check, "machine", lambda _: iter(findings))

    return made_up


def test_a_fit_machine_is_exit_0_also_without_what_it_can_do_without(
    hermit: Callable[..., Any], machine: Callable[..., None]
) -> None:
    machine(FIT)
    said = hermit("check")
    assert (said.code, said.err) == (0, "")
    assert "This machine is fit." in said.out
    assert "make engine" in said.out


def test_an_unfit_machine_is_exit_3_with_each_cure_whole_on_a_line(
    hermit: Callable[..., Any], machine: Callable[..., None]
) -> None:
    long = "docker run " + "--option value " * 40 + "hermit check"
    machine((*UNFIT, Finding("other", False, "missing", long)))
    said = hermit("check")
    assert said.code == 3
    assert "This machine is not fit." in said.out
    assert "  apt-get install thing" in said.out.splitlines()
    assert f"  {long}" in said.out.splitlines()
    assert "[b]thing[/]" in said.out


NO_SANDBOX = (*FIT, Finding("seccomp", False, "a filter", "docker run x", unconfined=True))


def test_where_no_sandbox_starts_it_is_exit_6_and_says_what_a_run_would_do(
    hermit: Callable[..., Any], machine: Callable[..., None]
) -> None:
    machine(NO_SANDBOX)
    said = hermit("check")
    assert said.code == 6
    assert "fit with best_effort only: no sandbox starts, and a run would go on unconfined." in said.out
    said = hermit("check", "--json")
    assert (said.code, said.document["fit"], said.document["level"]) == (6, False, "best_effort")


@pytest.mark.parametrize(
    ("settings", "code", "probed"),
    [
        (("sandbox.enabled=true", "sandbox.enforce=required"), 3, False),
        (("sandbox.enabled=false",), 6, True),
    ],
)
def test_a_config_that_requires_sandboxes_is_unfit_where_none_starts(
    hermit: Callable[..., Any],
    config: Path,
    machine: Callable[..., None],
    settings: tuple[str, ...],
    *,
    code: int,
    probed: bool,
) -> None:
    machine(NO_SANDBOX)
    said = hermit("check", "--config", str(config), "--json", *settings)
    assert said.code == code
    assert ("first_task" in [finding["id"] for finding in said.document["findings"]]) is probed


def test_a_group_takes_one_line_for_what_is_right_and_one_for_each_thing_that_is_not(
    hermit: Callable[..., Any], machine: Callable[..., None]
) -> None:
    right = tuple(Finding(f"check {number}", True, "as it has to be", group="isolation") for number in range(40))
    machine((*right, Finding("loopback only", False, "eth0", "run it elsewhere", group="isolation")))
    said = hermit("check")
    assert "40 checks from inside passed" in said.out
    assert "check 7" not in said.out
    assert "loopback only" in said.out


def test_json_says_the_same_and_nothing_else(hermit: Callable[..., Any], machine: Callable[..., None]) -> None:
    machine(UNFIT)
    said = hermit("check", "--json")
    assert said.code == 3
    assert said.document["fit"] is False
    assert [finding["name"] for finding in said.document["findings"]] == ["sandbox", "engine", "[b]thing[/]"]
    assert said.document["level"] == "unfit"
    assert [finding["level"] for finding in said.document["findings"]] == ["fit", "without", "unfit"]
    assert set(said.document["findings"][0]) == {"id", "level", "name", "found", "cure", "group"}


def test_with_a_config_one_attempt_is_made(
    hermit: Callable[..., Any], config: Path, machine: Callable[..., None]
) -> None:
    machine(FIT)
    said = hermit("check", "--config", str(config), "--json")
    assert said.code == 0
    found = {finding["name"]: finding for finding in said.document["findings"]}
    assert (found["task a"]["level"], found["task a"]["id"]) == ("fit", "first_task")
    assert found["task a"]["found"].startswith("score 1 in")
    assert not (config.parent / "runs").exists()


def test_an_unfit_machine_is_told_so_in_full_also_where_the_run_hides_something(
    hermit: Callable[..., Any], config: Path, machine: Callable[..., None]
) -> None:
    machine(UNFIT)
    said = hermit("check", "--config", str(config), "--json", "sandbox.hide=[surely_absent]")
    assert said.code == 3
    assert [finding["name"] for finding in said.document["findings"]] == [
        "sandbox",
        "engine",
        "[b]thing[/]",
        "config",
        "place",
    ]


def test_no_probe_makes_none_and_still_checks_the_config(
    hermit: Callable[..., Any], config: Path, machine: Callable[..., None]
) -> None:
    machine(FIT)
    (config.parent / "agent.py").write_text("def run(task, adapter): raise RuntimeError\n")
    assert hermit("check", "--config", str(config), "--no-probe").code == 0
    assert hermit("check", "--config", str(config)).code == 3
    (config.parent / "tasks.jsonl").write_text("{")
    assert hermit("check", "--config", str(config), "--no-probe").code == 2


def test_a_host_that_may_hold_the_answers_is_told_of(
    hermit: Callable[..., Any], config: Path, machine: Callable[..., None]
) -> None:
    machine(FIT)
    hosts = ("environment.network=allowlist", "environment.allowed_hosts=[github.com]")
    said = hermit("check", "--config", str(config), "--no-probe", "--json", *hosts)
    assert said.code == 0
    found = {finding["name"]: finding["found"] for finding in said.document["findings"]}
    words = found["answers out of reach"]
    assert words.startswith("github.com may hold the benchmark itself, with its answers; a code host (")
    without = hermit("check", "--config", str(config), "--no-probe", "--json").document["findings"]
    assert "answers out of reach" not in [finding["name"] for finding in without]


def test_settings_replace_those_of_the_config(
    hermit: Callable[..., Any], config: Path, machine: Callable[..., None]
) -> None:
    machine(FIT)
    said = hermit("check", "--config", str(config), "--no-probe", "agent.name=agent.py:nobody")
    assert said.code == 2
    assert "nobody" in said.err


def test_baselines_are_tried_and_one_that_comes_out_otherwise_is_exit_3(
    hermit: Callable[..., Any], config: Path, machine: Callable[..., None]
) -> None:
    machine(FIT)
    (config.parent / "known.py").write_text(
        "from hermit import RunOutput\n"
        "def right(task, adapter): return RunOutput(1)\n"
        "def wrong(task, adapter): return RunOutput(0)\n"
    )
    both = ("check.reference=known.py:right", "check.empty=known.py:wrong", "check.tasks=1")
    said = hermit("check", "--config", str(config), "--json", *both)
    levels = {finding["id"]: finding["level"] for finding in said.document["findings"]}
    assert (said.code, levels["reference_passes"], levels["empty_fails"]) == (0, "fit", "fit")
    swapped = ("check.reference=known.py:wrong", "check.empty=known.py:right", "check.tasks=1")
    said = hermit("check", "--config", str(config), *swapped)
    assert said.code == 3
    assert "score 0, and 1 passes" in said.out
    assert "the judge pays for nothing" in said.out
    assert hermit("check", "--config", str(config), "--no-probe", *swapped).code == 0
    assert hermit("check", "--config", str(config), "check.empty=absent.py:wrong").code == 2
