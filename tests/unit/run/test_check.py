"""`hermit check` finds out by trying, and names a cure for everything that is not as it has to be."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hermit import sandbox as sandboxes
from hermit.run import check
from hermit.run.doctor.finding import Level

if TYPE_CHECKING:
    from hermit.run.doctor.finding import Finding


def by_name(path: Path | None = None) -> dict[str, Finding]:
    """What is found on a machine whose PATH this is."""
    return {finding.name: finding for finding in check.machine({"PATH": str(path or "/usr/bin")})}


@pytest.mark.bwrap
def test_a_fit_machine_is_found_by_starting_a_sandbox_and_trying_from_inside() -> None:
    found = by_name()
    assert found["sandbox"].ok
    assert "one was started" in found["sandbox"].found
    for name in (
        "no route outside: IPv4",
        "no capability: CapEff",
        "own processes",
        "secrets absent",
        "unprivileged user",
    ):
        assert found[name].ok, found[name]


def test_a_machine_without_bubblewrap_is_not_fit_and_is_told_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = by_name(tmp_path)
    assert (found["sandbox"].level, found["bubblewrap"].level) == (Level.BEST_EFFORT, Level.BEST_EFFORT)
    assert "bubblewrap" in found["sandbox"].cure


def test_everything_that_is_not_as_it_has_to_be_has_a_cure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for finding in by_name(tmp_path).values():
        assert finding.ok or finding.cure, finding


def test_a_missing_engine_is_named_and_not_needed(tmp_path: Path) -> None:
    found = by_name(tmp_path)["container engine"]
    assert (found.ok, found.needed, "no container engine is installed" in found.found) == (False, False, True)


def test_every_finding_has_an_id_of_its_own() -> None:
    ids = [finding.id for finding in check.machine({"PATH": "/usr/bin:/bin"})]
    assert len(set(ids)) == len(ids)


def test_the_reference_names_every_id_of_a_finding() -> None:
    text = (Path(__file__).parents[3] / "docs" / "reference" / "cli.md").read_text()
    ids = {finding.id for finding in check.machine({"PATH": "/usr/bin:/bin"}) if finding.group != "isolation"}
    assert [name for name in sorted(ids) if f"`{name}`" not in text] == []


def test_a_missing_package_is_named_and_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "PACKAGES", ("json", "surely_absent"))
    found = by_name()["scientific packages"]
    assert (found.ok, found.needed, "surely_absent" in found.found) == (False, False, True)


@pytest.mark.parametrize(
    ("overrides", "named"),
    [
        ((), ""),
        (("environment.network=allowlist", "environment.allowed_hosts=[api.example.com]"), ""),
        (("environment.network=allowlist", "environment.allowed_hosts=[mygithub.example.com]"), ""),
        (("environment.network=allowlist", "environment.allowed_hosts=[a.example.com,github.com]"), "github.com may"),
        (("environment.network=allowlist", "environment.allowed_hosts=['*.GitHubUserContent.com:443']"), "*.GitHub"),
        (("environment.network=public",), "a public network may hold the benchmark itself"),
    ],
)
def test_a_host_that_may_hold_the_benchmark_is_warned_of_and_does_not_make_the_config_unfit(
    run: Any, overrides: tuple[str, ...], named: str
) -> None:
    found = check.published(run.config(*overrides))
    assert [finding.found.startswith(named) for finding in found] == [True] * bool(named)
    assert check.fit(found)
    assert all(finding.cure for finding in found)


def probe(run: Any, *overrides: str) -> Finding:
    """One attempt at the first task, without a sandbox."""
    return check.probe(run.plan(*overrides), sandboxes.unconfined("a test of the probe"))


def test_a_probe_makes_one_attempt_and_leaves_nothing(run: Any) -> None:
    before = run.files()
    found = probe(run)
    assert (found.ok, found.name, found.found.startswith("score 0 in")) == (True, "task t/0", True)
    assert run.files() == before
    assert list(run.scratch.iterdir()) == []


@pytest.mark.parametrize(
    ("file", "source", "words"),
    [
        ("agent", "def run(task, adapter): raise RuntimeError('why')", "agent_error in the phase agent, exception: "),
        ("judge", "def score(task, output): return None", "judge_error in the phase judge, result: "),
        ("judge", "def score(task, output): return float('nan')", "judge_error in the phase judge, result: "),
        ("agent", "def run(task, adapter):\n    while True: pass", "timeout in the phase agent, timeout: "),
    ],
)
def test_a_probe_that_fails_says_how_and_what_to_do(run: Any, file: str, source: str, words: str) -> None:
    (run.root / f"{file}.py").write_text(source)
    found = probe(run, "agent.timeout_min=0.01")
    assert not found.ok
    assert words in found.found
    assert found.cure
