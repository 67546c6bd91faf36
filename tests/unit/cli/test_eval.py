"""`hermit eval`: results on standard output, progress on standard error, and an exit code that says whether we broke."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from hermit.cli import eval as command
from hermit.domain.attempt import Phase, Status
from hermit.errors import ConfigError
from hermit.run import plan as plans
from hermit.run import trial
from hermit.run.report import Row

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def rows(config: Path) -> list[dict[str, Any]]:
    file = config.parent / "runs" / "one" / "eval" / "none" / "results.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_a_person_gets_a_summary_and_progress_apart(hermit: Callable[..., Any], config: Path) -> None:
    said = hermit("eval", "--config", str(config), "--adapter", "none")
    assert said.code == 0
    assert re.search(r"^mean score +0\.5000, 95 % interval 0\.0\d+ to 0\.9\d+ *$", said.out, re.MULTILINE)
    assert "2/2 attempts, mean 0.500, 0 errors" in said.err
    assert re.search(r"^sandboxes start .*, because the runtime is local$", said.err, re.MULTILINE)
    assert str(config.parent / "runs" / "one" / "eval" / "none") in said.out
    assert "2 attempts ran without a sandbox" in said.out


def test_a_machine_gets_json_and_nothing_else(hermit: Callable[..., Any], config: Path) -> None:
    said = hermit("eval", "--config", str(config), "--json")
    assert said.code == 0
    summary = json.loads((config.parent / "runs" / "one" / "eval" / "none" / "summary.json").read_text())
    assert said.document == summary
    assert (said.document["mean_score"], said.document["tasks"]) == (0.5, 2)


def test_settings_of_the_command_line_replace_those_of_the_file(hermit: Callable[..., Any], config: Path) -> None:
    said = hermit("eval", "--config", str(config), "--json", "eval.repeats=3", "agent.concurrency=1")
    assert (said.document["repeats"], len(rows(config))) == (3, 6)


def test_the_same_command_goes_on_and_fresh_starts_over(
    hermit: Callable[..., Any], config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hermit("eval", "--config", str(config))
    said = hermit("eval", "--config", str(config))
    assert "2 of 2 attempts were made before; going on" in said.err
    said = hermit("eval", "--config", str(config), "--fresh")
    assert "were made before" not in said.err
    assert said.code == 0


@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_a_broken_sandbox_is_exit_4_and_has_no_score(
    hermit: Callable[..., Any], config: Path, monkeypatch: pytest.MonkeyPatch, as_json: list[str]
) -> None:
    def attempt(bench: Any, attempt: Any) -> Row:
        row = Row(id=attempt.key[0], repeat=0, status=Status.OK)
        ours = {"status": Status.SANDBOX_ERROR, "phase": Phase.START, "cause": "check", "error": "it fell over"}
        return replace(row, **ours) if row.id == "b" else row

    monkeypatch.setattr(trial, "attempt", attempt)
    said = hermit("eval", "--config", str(config), *as_json)
    assert said.code == 4
    assert "sandbox_error b (start, check): it fell over" in said.err
    assert "1 errors, 1 without a score" in said.err
    if as_json:
        assert said.document["failed_by"] == {"agent": 0, "judge": 0, "infrastructure": 1}
        return
    assert re.search(r"^errors +1 \(1 sandbox_error\): 1 of the infrastructure *$", said.out, re.MULTILINE)
    assert re.search(r"^broken +1 without a score: start, check *$", said.out, re.MULTILINE)


@pytest.mark.parametrize("failing", ["agent", "judge"])
def test_an_agent_or_a_judge_that_fails_is_no_failure_of_the_command(
    hermit: Callable[..., Any], config: Path, failing: str
) -> None:
    name = {"agent": "run", "judge": "score"}[failing]
    (config.parent / f"{failing}.py").write_text(f"def {name}(*_): raise RuntimeError('[red]why[/]')\n")
    said = hermit("eval", "--config", str(config))
    assert said.code == 0
    assert f"{failing}_error a ({failing}, exception): RuntimeError: [red]why[/]" in said.err


def test_a_failed_attempt_is_one_line_without_control_characters(hermit: Callable[..., Any], config: Path) -> None:
    (config.parent / "agent.py").write_text(
        "def run(task, adapter): raise RuntimeError('\\x1b]0;owned\\x07\\x1b[2J\\ud800')\n"
    )
    said = hermit("eval", "--config", str(config))
    assert said.code == 0
    assert said.err.count("agent_error a ") == 1
    assert not any(ord(letter) < 32 and letter != "\n" for letter in said.err)


def test_an_id_with_a_line_break_does_not_forge_a_line(hermit: Callable[..., Any], config: Path) -> None:
    (config.parent / "tasks.jsonl").write_text('{"id": "a\\nok: forged", "n": 1}\n{"id": "b", "n": 1}\n')
    (config.parent / "test.txt").write_text("b\n")
    (config.parent / "agent.py").write_text("def run(task, adapter): raise RuntimeError('first\\nok: forged')\n")
    said = hermit("eval", "--config", str(config))
    assert "\nok: forged" not in said.err


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("data: {tasks: tasks.jsonl, tset: test.txt}", "data.test"),
        ("data: [", "run.yaml"),
        ("sandbox: {network: none}", "environment.network"),
    ],
)
def test_a_wrong_config_is_exit_2_and_creates_nothing(
    hermit: Callable[..., Any], config: Path, text: str, named: str
) -> None:
    config.write_text(text)
    before = sorted(path.name for path in config.parent.iterdir())
    said = hermit("eval", "--config", str(config))
    assert (said.code, said.out) == (2, "")
    assert named in said.err
    assert sorted(path.name for path in config.parent.iterdir()) == before


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("tasks.jsonl", '{"id": "a"}\n{"id": "a"}\n'),
        ("tasks.jsonl", "[]\n"),
        ("tasks.jsonl", "{\n"),
        ("tasks.jsonl", '{"x": 1}\n'),
        ("test.txt", "unknown\n"),
        ("test.txt", "# none\n"),
    ],
)
def test_wrong_data_is_exit_2_with_its_file_and_creates_nothing(
    hermit: Callable[..., Any], config: Path, file: str, text: str
) -> None:
    (config.parent / file).write_text(text)
    said = hermit("eval", "--config", str(config))
    assert (said.code, said.out) == (2, "")
    assert str(config.parent / file) in said.err
    assert not (config.parent / "runs").exists()


def test_the_command_inside_the_image_is_the_same_with_its_places_fixed(config: Path) -> None:
    from hermit.config.load import load

    loaded = load(config, ("eval.repeats=2",), environ={"HOME": "/home/somebody"})
    plan = plans.evaluation(loaded, config_file=config, adapter="none")
    given = command.inside_arguments(plan, ("eval.repeats=2",), fresh=True, as_json=True)
    assert given[:2] == ["eval", "--config"]
    assert given[2] == str(config)
    for words in (["--runtime", "local"], ["--adapter", "none"]):
        assert words == given[given.index(words[0]) : given.index(words[0]) + 2]
    assert {"--fresh", "--json", "eval.repeats=2"} <= set(given)
    assert given[-2:] == [f"trainer.output_dir={config.parent}/runs", "trainer.run_name=one"]
    inside = load(config, tuple(word for word in given if "=" in word), environ={"HOME": "/"})
    again = plans.evaluation(inside, config_file=config, adapter="none")
    assert again.paths == plan.paths
    assert again.lock == plan.lock


def test_results_of_something_else_are_exit_2(hermit: Callable[..., Any], config: Path) -> None:
    hermit("eval", "--config", str(config))
    said = hermit("eval", "--config", str(config), "eval.repeats=2")
    assert said.code == ConfigError.exit_code
    assert "settings.eval changed" in said.err
    assert "--fresh" in said.err
