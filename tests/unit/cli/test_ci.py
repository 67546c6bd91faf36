"""What `hermit eval` leaves for a CI system: a report, annotations, a page, and an exit code that judges the score."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hermit import sandbox as sandboxes
from hermit.cli.ci import Reports
from hermit.config.load import load
from hermit.domain.attempt import Phase, Status
from hermit.errors import HermitError, Interrupted
from hermit.oci.engine import Engine
from hermit.run import evaluate, place, trial
from hermit.run import plan as plans
from hermit.run.report import Row

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture(autouse=True)
def _no_github(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)


def cases(path: Path) -> dict[str, list[str]]:
    tree = ET.parse(path)  # noqa: S314 - what we have just written
    return {case.attrib["name"]: [child.tag for child in case] for case in tree.iter("testcase")}


def test_a_report_of_every_attempt_is_left_also_of_those_made_before(
    hermit: Callable[..., Any], config: Path, tmp_path: Path
) -> None:
    path = tmp_path / "report.xml"
    for _ in range(2):
        assert hermit("eval", "--config", str(config), "--junit", str(path)).code == 0
        assert cases(path) == {"a": [], "b": ["failure"]}


def test_a_report_is_relative_to_where_the_command_was_called(
    hermit: Callable[..., Any], config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    hermit("eval", "--config", str(config), "--junit", "report.xml")
    assert cases(tmp_path / "report.xml")


def test_a_refused_report_is_exit_2_and_nothing_is_made(hermit: Callable[..., Any], config: Path) -> None:
    said = hermit("eval", "--config", str(config), "--junit", str(config))
    assert (said.code, said.out) == (2, "")
    assert "is no XML" in said.err
    assert not (config.parent / "runs").exists()


def test_an_older_report_is_gone_where_the_run_is_refused_after_it_began(
    hermit: Callable[..., Any], config: Path, tmp_path: Path
) -> None:
    path = tmp_path / "report.xml"
    hermit("eval", "--config", str(config), "--junit", str(path))
    assert hermit("eval", "--config", str(config), "--junit", str(path), "eval.repeats=2").code == 2
    assert not path.exists()


def test_a_run_that_was_given_up_leaves_the_report_of_what_was_finished(
    hermit: Callable[..., Any], config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def give_up(*_: Any, **__: Any) -> None:
        real(*_, **__)
        raise Interrupted("given up")

    real = evaluate.evaluate
    monkeypatch.setattr(evaluate, "evaluate", give_up)
    path = tmp_path / "report.xml"
    assert hermit("eval", "--config", str(config), "--junit", str(path), "--fail-under", "1").code == 130
    assert set(cases(path)) == {"a", "b"}


@pytest.mark.parametrize(("least", "code"), [("0.5", 0), ("0.51", 5), ("-1", 0), ("1e9", 5)])
def test_a_mean_below_the_bound_is_exit_5(
    hermit: Callable[..., Any], config: Path, tmp_path: Path, least: str, code: int
) -> None:
    said = hermit("eval", "--config", str(config), "--fail-under", least, "--json")
    assert said.code == code
    assert ("the mean score is 0.5000, below" in said.err) is (code == 5)
    assert said.document["mean_score"] == 0.5


@pytest.mark.parametrize("least", ["nan", "inf", "-inf", "much"])
def test_a_bound_that_is_no_finite_number_is_refused(hermit: Callable[..., Any], config: Path, least: str) -> None:
    assert hermit("eval", "--config", str(config), "--fail-under", least).code == 2
    assert not (config.parent / "runs").exists()


def test_a_broken_sandbox_is_exit_4_whatever_the_score(
    hermit: Callable[..., Any], config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def attempt(bench: Any, attempt: Any) -> Row:
        ours = {"status": Status.SANDBOX_ERROR, "phase": Phase.START, "cause": "check", "error": "x"}
        return Row(id=attempt.key[0], repeat=0, **ours)

    monkeypatch.setattr(trial, "attempt", attempt)
    path = tmp_path / "report.xml"
    said = hermit("eval", "--config", str(config), "--fail-under", "0.1", "--junit", str(path))
    assert said.code == 4
    assert "the mean score is none, below 0.1" in said.err
    assert cases(path) == {"a": ["error"], "b": ["error"]}


def test_github_gets_annotations_and_a_page_and_standard_output_stays_one_document(
    hermit: Callable[..., Any], config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))
    said = hermit("eval", "--config", str(config), "--fail-under", "0.9", "--json")
    assert said.code == 5
    assert said.document["mean_score"] == 0.5
    assert "::warning title=b::score 0: " in said.err.splitlines()
    assert "::error title=--fail-under::the mean score is 0.5000, below 0.9" in said.err.splitlines()
    assert page.read_text().startswith("before\n### hermit eval: mean score 0.5000\n")


def test_elsewhere_nobody_is_told_in_githubs_words(
    hermit: Callable[..., Any], config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "page.md"))
    said = hermit("eval", "--config", str(config), "--fail-under", "0.9")
    assert "::" not in said.err
    assert not (tmp_path / "page.md").exists()


def test_a_page_that_cannot_be_left_is_said_and_fails_nothing(
    hermit: Callable[..., Any], config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "absent" / "page.md"))
    said = hermit("eval", "--config", str(config))
    assert said.code == 0
    assert "no summary of this step was left" in said.err


def test_an_agent_gives_no_command_to_githubs_log(hermit: Callable[..., Any], config: Path) -> None:
    (config.parent / "agent.py").write_text(
        "def run(task, adapter): raise RuntimeError('x\\n::stop-commands::x\\r::error::##[add-mask]a')\n"
    )
    said = hermit("eval", "--config", str(config))
    assert said.code == 0
    assert "##\\[add-mask]a" in said.err
    assert "##[" not in said.err
    assert not [line for line in said.err.replace("\r", "\n").splitlines() if line.lstrip().startswith("::")]


@pytest.mark.parametrize("ended", [(0, 5), (4, 4), (130, 130), (3, 3)])
def test_a_run_in_the_image_is_reported_by_the_process_that_was_called(
    hermit: Callable[..., Any],
    config: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ended: tuple[int, int],
) -> None:
    inside, code = ended
    engine = Engine("/usr/bin/docker", "1", "1", "linux/amd64")
    monkeypatch.setattr(place, "choose", lambda *_, **__: place.Choice("in the image", "whole", engine, "hermit"))
    seen: list[list[str]] = []

    def in_image(plan: Any, _: Any, arguments: list[str], **__: Any) -> int:
        seen.append(arguments)
        evaluate.evaluate(plan, sandboxes.unconfined("a test"), fresh=False, show=lambda _: None)
        return inside

    monkeypatch.setattr(place, "in_image", in_image)
    path = tmp_path / "report.xml"
    said = hermit("eval", "--config", str(config), "--junit", str(path), "--fail-under", "0.9")
    assert said.code == code
    assert path.exists() is (inside != 3)
    assert not [word for word in seen[0] if word.startswith(("--junit", "--fail-under"))]


def test_a_full_disk_is_said_with_what_to_do(hermit: Callable[..., Any], config: Path) -> None:
    hermit("eval", "--config", str(config))
    plan = plans.evaluation(load(config, (), environ={}), config_file=config, adapter="none")
    with pytest.raises(HermitError, match="No space left") as caught:
        Reports(plan, Path("/dev/full"), None, {}).end(0)
    assert "no attempt is made twice" in caught.value.cure
