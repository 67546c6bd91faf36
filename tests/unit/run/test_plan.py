"""Every refusal of a run happens before anything is created, and says what to do."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from typing import TYPE_CHECKING, Any

import pytest

from hermit.domain.network import Network
from hermit.errors import ConfigError, ExitCode
from hermit.roles import task

if TYPE_CHECKING:
    from pathlib import Path


def refused(run: Any, *overrides: str, adapter: str = "none") -> str:
    """The message these settings are refused with; nothing was created."""
    before = run.files()
    with pytest.raises(ConfigError) as caught:
        run.plan(*overrides, adapter=adapter)
    assert caught.value.exit_code is ExitCode.CONFIG
    assert caught.value.cure
    assert run.files() == before
    return str(caught.value)


def test_a_plan_that_is_fit_creates_nothing_either(run: Any) -> None:
    before = run.files()
    plan = run.plan("eval.repeats=2")
    assert run.files() == before
    assert [attempt.key for attempt in plan.attempts] == [(f"t/{n}", repeat) for repeat in (0, 1) for n in range(3)]
    assert plan.paths.root == run.root / "runs" / "one"
    assert plan.paths.selector == "none"


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ("environment.image=debian", "environment.image"),
        ("agent.name=react", "agent.name: react"),
        ("agent.name=codex", "agent.name: codex"),
        ("agent.name=claude-code", "agent.name: claude-code"),
        ("agent.name=harbor", "agent.name: harbor"),
    ],
)
def test_what_is_not_supported_yet_is_refused_by_its_name(run: Any, setting: str, named: str) -> None:
    words = refused(run, setting)
    assert f"{named} is not supported yet" in words


@pytest.mark.parametrize(
    ("setting", "key"),
    [
        ("environment.read=[absent]", "environment.read"),
        ("environment.write=[absent]", "environment.write"),
        ("judge.tests=[absent]", "judge.tests"),
        ("judge.path=absent.py", "judge.path"),
        ("agent.name=absent.py:run", "agent.name"),
    ],
)
def test_a_path_that_is_not_there_is_refused_with_its_key(run: Any, setting: str, key: str) -> None:
    words = refused(run, setting)
    assert words.startswith(f"{key}: ")
    assert f"{run.root}/absent" in words


@pytest.mark.parametrize(
    ("setting", "file"), [("agent.name=agent.py:Nobody", "agent.py"), ("judge.name=nobody", "judge.py")]
)
def test_a_callable_that_its_file_does_not_define_is_refused(run: Any, setting: str, file: str) -> None:
    assert f"{run.root}/{file} defines no " in refused(run, setting)


@pytest.mark.parametrize("key", ["agent", "judge"])
@pytest.mark.parametrize("source", [b"def run(:", b"\x00", b"\xff\xfe"])
def test_a_file_that_is_not_python_is_refused(run: Any, key: str, source: bytes) -> None:
    (run.root / f"{key}.py").write_bytes(source)
    assert f"{run.root}/{key}.py is not Python" in refused(run)


def test_no_code_of_the_agent_or_the_judge_runs_on_the_host(run: Any) -> None:
    for name in ("agent", "judge"):
        file = run.root / f"{name}.py"
        file.write_text(f"open({str(run.root / 'ran')!r}, 'w')\n" + file.read_text())
    run.plan()
    assert not (run.root / "ran").exists()


@pytest.mark.parametrize("setting", ["judge.path=judge", "judge.path=agents"])
def test_a_directory_in_place_of_a_file_is_refused(run: Any, setting: str) -> None:
    (run.root / "judge").mkdir()
    (run.root / "agents").mkdir()
    assert refused(run, setting).startswith("judge.path: ")


@pytest.mark.parametrize(
    ("setting", "relation", "secret"),
    [
        ("environment.read=[data]", "holds", "data.tasks"),
        ("environment.read=[data/tasks.jsonl]", "is", "data.tasks"),
        ("environment.write=[data/test.txt]", "is", "data.test"),
        ("environment.read=['.']", "holds", "data.tasks"),
        ("environment.read=[/]", "holds", "data.tasks"),
        ("environment.read=[judge.py]", "is", "judge.path"),
        ("environment.read=[link]", "holds", "data.tasks"),
        ("agent.name=judge.py:score", "is", "judge.path"),
    ],
)
def test_a_declared_path_that_would_show_a_secret_is_refused(
    run: Any, setting: str, relation: str, secret: str
) -> None:
    (run.root / "link").symlink_to("data")
    words = refused(run, setting)
    assert f" {relation} " in words
    assert secret in words


def test_a_declared_path_that_holds_or_lies_inside_the_judges_tests_is_refused(run: Any) -> None:
    (run.root / "tests" / "inner").mkdir(parents=True)
    assert " lies inside " in refused(run, "judge.tests=[tests]", "environment.read=[tests/inner]")
    assert " holds " in refused(run, "judge.tests=[tests/inner]", "environment.read=[tests]")


def test_a_declared_path_that_holds_the_runs_own_files_is_refused(run: Any) -> None:
    (run.root / "runs").mkdir()
    assert "trainer.output_dir" in refused(run, "environment.read=[runs]")


def test_an_adapter_that_holds_a_secret_is_refused(run: Any) -> None:
    words = refused(run, adapter=str(run.root))
    assert words.startswith("--adapter: ")
    assert " holds " in words


def test_data_that_every_sandbox_shows_anyway_is_refused(run: Any) -> None:
    place = next(path for path in (sys.prefix, sys.base_prefix) if os.access(path, os.W_OK))
    with tempfile.TemporaryDirectory(dir=place) as inside:
        with open(os.path.join(inside, "tasks.jsonl"), "w", encoding="utf-8") as file:
            file.write('{"id": "t/0"}\n{"id": "t/1"}\n{"id": "t/2"}\n')
        assert "which every sandbox shows" in refused(run, f"data.tasks={inside}/tasks.jsonl")


def test_a_declared_path_that_holds_the_scratch_of_every_attempt_is_refused(
    run: Any,
) -> None:
    assert str(run.scratch) in refused(run, f"environment.read=[{run.scratch}]")


def test_paths_that_cannot_be_shown_together_are_refused(run: Any) -> None:
    (run.root / "state" / "inner").mkdir(parents=True)
    assert refused(run, "environment.write=[state]", "environment.read=[state/inner]").startswith("environment: ")
    assert "shown twice" in refused(run, "environment.write=[state]", "environment.read=[state]")


@pytest.mark.parametrize(
    ("adapter", "words"),
    [
        ("./absent", "./absent is not a directory"),
        ("agent.py", "agent.py is not a directory"),
        ("root", "the config names neither a template nor a tree"),
        ("final", "the config names neither a template nor a tree"),
        ("0123abc", "0123abc is not a directory, and the config names neither a template nor a tree"),
    ],
)
def test_an_adapter_that_is_no_directory_is_refused(run: Any, adapter: str, words: str) -> None:
    assert words in refused(run, adapter=adapter)


def test_an_adapter_that_is_a_file_is_refused(run: Any) -> None:
    assert "is not a directory" in refused(run, adapter=str(run.root / "agent.py"))


def test_two_adapters_of_one_name_have_two_selectors(run: Any, tmp_path: Path) -> None:
    for name, text in (("one", "a"), ("two", "b")):
        (tmp_path / name / "adapter").mkdir(parents=True)
        (tmp_path / name / "adapter" / "ADAPTER.md").write_text(text)
    one, two = (run.plan(adapter=str(tmp_path / name / "adapter")).paths.selector for name in ("one", "two"))
    assert one != two
    assert one.startswith("adapter-")


def test_a_missing_test_split_is_refused(run: Any) -> None:
    assert "data.test" in refused(run, "data.test=null")


def test_the_lock_changes_with_what_decides_the_results_and_not_with_how_fast(run: Any) -> None:
    before = run.plan().lock["digest"]
    assert run.plan("agent.concurrency=7").lock["digest"] == before
    assert run.plan("trainer.output_dir=elsewhere").lock["digest"] == before
    assert run.plan("container.runtime=local").lock["digest"] == before
    assert run.plan("judge.mode=shared").lock["digest"] != before
    assert run.plan("agent.params.model=x").lock["digest"] != before
    assert run.plan("environment.resources.cpu_s=9").lock["digest"] != before
    (run.root / "judge.py").write_text("def score(task, output): return 0\n")
    assert run.plan().lock["digest"] != before


def test_the_lock_changes_with_a_file_below_the_judges_tests(run: Any) -> None:
    (run.root / "tests").mkdir()
    (run.root / "tests" / "one.json").write_text("1")
    before = run.plan("judge.tests=[tests]").lock["digest"]
    (run.root / "tests" / "one.json").write_text("2")
    assert run.plan("judge.tests=[tests]").lock["digest"] != before


def test_the_lock_is_plain_json(run: Any) -> None:
    lock = run.plan().lock
    assert json.loads(json.dumps(lock)) == lock


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (("environment.network=allowlist",), "an allowlist without a host reaches nothing"),
        (("environment.network=allowlist", "environment.allowed_hosts=['*.co.uk']"), "*.co.uk"),
    ],
)
def test_a_list_of_hosts_that_reaches_nothing_or_everything_is_refused(
    run: Any, settings: tuple[str, ...], words: str
) -> None:
    assert words in refused(run, *settings)


def test_an_allowlist_is_an_isolated_network_with_hosts(run: Any) -> None:
    plan = run.plan("environment.network=allowlist", "environment.allowed_hosts=[api.example.com]")
    sandbox = task.sandbox(plan.config, work="/work", adapter=None, secrets=())
    assert (sandbox.network, sandbox.allowed_hosts) == (Network.ISOLATED, ("api.example.com",))


def test_a_package_that_is_nowhere_is_refused_with_its_name(run: Any) -> None:
    assert "surely-absent" in refused(run, "environment.packages=[surely-absent]")
