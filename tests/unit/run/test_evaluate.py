"""A run goes on where it stopped, adds to nothing that is not its own, and belongs to one process."""

from __future__ import annotations

import errno
import fcntl
import itertools
import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from hermit import sandbox as sandboxes
from hermit.domain.attempt import Phase, Status
from hermit.errors import ConfigError, ExitCode, Interrupted, SandboxError
from hermit.run import bench as benches
from hermit.run import evaluate, trial
from hermit.run.report import Row

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Which attempts are made; each ends well at once, with a score of 1."""
    made: list[tuple[str, int]] = []

    def attempt(bench: Any, attempt: Any) -> Row:
        made.append(attempt.key)
        return Row(id=attempt.key[0], repeat=attempt.key[1], status=Status.OK)

    monkeypatch.setattr(trial, "attempt", attempt)
    return made


def breaking(made: Callable[[Any], Row | None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Attempts do what ``made`` says; where it says nothing they end well."""

    def attempt(bench: Any, attempt: Any) -> Row:
        return made(attempt) or Row(id=attempt.key[0], repeat=attempt.key[1], status=Status.OK)

    monkeypatch.setattr(trial, "attempt", attempt)


def test_every_attempt_becomes_a_row_and_the_summary_adds_them_up(run: Any) -> None:
    shown: list[Any] = []
    summary = run.evaluate("eval.repeats=2", shown=shown)
    assert sorted((row["id"], row["repeat"], row["judge"]["score"]) for row in run.rows) == [
        (f"t/{number}", repeat, number / 2) for number in range(3) for repeat in (0, 1)
    ]
    assert (summary["mean_score"], summary["cost_usd"], summary["errors"], summary["complete"]) == (0.5, 3.0, 0, True)
    assert json.loads((run.evaluation / "summary.json").read_text()) == summary
    assert [one.tally.attempts for one in shown[-1:]] == [6]
    assert shown[0].row is None


def test_a_run_without_a_sandbox_says_so_in_every_row_and_judges_on_the_host(run: Any) -> None:
    summary = run.evaluate("judge.mode=separate", "judge.collect=[answer]")
    assert {(row["confined"], row["judged"]) for row in run.rows} == {(False, "host")}
    assert summary["unconfined"] == 3


def test_a_second_run_makes_only_what_is_missing(run: Any, attempts: list[Any]) -> None:
    run.evaluate()
    first, *_ = (run.evaluation / "results.jsonl").read_bytes().splitlines(keepends=True)
    (run.evaluation / "results.jsonl").write_bytes(first + b'{"id": "t')
    attempts.clear()
    shown: list[Any] = []
    summary = run.evaluate(shown=shown)
    assert len(attempts) == 2
    assert json.loads(first)["id"] not in {task_id for task_id, _ in attempts}
    assert sorted(row["id"] for row in run.rows) == ["t/0", "t/1", "t/2"]
    assert (shown[0].resumed, shown[0].total, summary["attempts"]) == (1, 3, 3)


def test_a_finished_run_makes_nothing_again(run: Any, attempts: list[Any]) -> None:
    run.evaluate()
    attempts.clear()
    assert run.evaluate()["attempts"] == 3
    assert attempts == []


def test_fresh_starts_over(run: Any, attempts: list[Any]) -> None:
    run.evaluate()
    (run.evaluation / "logs").mkdir()
    (run.evaluation / "logs" / "old").touch()
    attempts.clear()
    run.evaluate(fresh=True)
    assert len(attempts) == 3
    assert not (run.evaluation / "logs" / "old").exists()


@pytest.mark.parametrize(
    ("override", "key"),
    [
        ("judge.mode=shared", "settings.judge"),
        ("agent.params.model=x", "settings.agent"),
        ("eval.repeats=2", "settings.eval"),
    ],
)
def test_results_of_something_else_are_not_added_to_and_the_changed_key_is_named(
    run: Any, attempts: list[Any], override: str, key: str
) -> None:
    run.evaluate()
    attempts.clear()
    before = (run.evaluation / "results.jsonl").read_bytes()
    with pytest.raises(ConfigError, match=f"{key}.* changed") as caught:
        run.evaluate(override)
    assert "--fresh" in caught.value.cure
    assert (attempts, (run.evaluation / "results.jsonl").read_bytes()) == ([], before)
    assert run.evaluate(override, fresh=True)["errors"] == 0


def test_an_edited_judge_is_something_else(run: Any, attempts: list[Any]) -> None:
    run.evaluate()
    (run.root / "judge.py").write_text("def score(task, output): return 1\n")
    with pytest.raises(ConfigError, match=r"contents\.judge\.path changed"):
        run.evaluate()


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"digest"', "{}"])
def test_a_lock_that_cannot_be_read_is_refused_by_its_path_or_as_another_layout(
    run: Any, attempts: list[Any], text: str
) -> None:
    run.evaluate()
    (run.evaluation / "lock.json").write_text(text)
    with pytest.raises(ConfigError) as caught:
        run.evaluate()
    assert str(run.evaluation) in caught.value.where
    assert run.evaluate(fresh=True)["errors"] == 0


def test_two_processes_never_work_in_one_run(run: Any, attempts: list[Any]) -> None:
    run.evaluate()
    held = os.open(run.evaluation, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        before = (run.evaluation / "results.jsonl").read_bytes()
        for fresh in (False, True):
            with pytest.raises(ConfigError, match="another process works in this run"):
                run.evaluate(fresh=fresh)
        assert (run.evaluation / "results.jsonl").read_bytes() == before
    finally:
        os.close(held)
    assert run.evaluate()["errors"] == 0


def test_the_run_is_free_again_when_it_ends(run: Any, attempts: list[Any]) -> None:
    run.evaluate()
    with evaluate.claimed(run.plan(), fresh=False):
        pass


def test_a_run_directory_that_cannot_be_made_is_refused(run: Any, attempts: list[Any]) -> None:
    (run.root / "runs").mkdir()
    (run.root / "runs" / "one").write_text("a file")
    with pytest.raises(ConfigError, match="it cannot be created") as caught:
        run.evaluate()
    assert "trainer.output_dir" in caught.value.cure


def test_attempts_that_were_finished_before_the_run_was_given_up_are_kept(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def give_up(attempt: Any) -> None:
        if attempt.key[0] == "t/2":
            raise Interrupted("given up")

    breaking(give_up, monkeypatch)
    with pytest.raises(Interrupted) as caught:
        run.evaluate("agent.concurrency=1")
    assert caught.value.exit_code is ExitCode.INTERRUPTED
    assert {row["id"] for row in run.rows} == {"t/0", "t/1"}
    summary = json.loads((run.evaluation / "summary.json").read_text())
    assert (summary["attempts"], summary["complete"]) == (2, False)


def test_a_broken_sandbox_is_a_row_that_is_made_again_by_the_next_run(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_one(attempt: Any) -> Row | None:
        key = attempt.key
        broken = Row(id=key[0], repeat=0, status=Status.SANDBOX_ERROR, phase=Phase.START, cause="check")
        return broken if key[0] == "t/1" else None

    breaking(break_one, monkeypatch)
    summary = run.evaluate()
    assert (summary["statuses"]["sandbox_error"], summary["errors"]) == (1, 1)
    breaking(lambda _: None, monkeypatch)
    summary = run.evaluate()
    assert (summary["statuses"]["sandbox_error"], summary["attempts"], len(run.rows)) == (0, 3, 3)


def test_more_attempts_than_may_wait_are_all_made(run: Any, attempts: list[Any]) -> None:
    rows = [{"id": str(number), "n": 1} for number in range(150)]
    (run.root / "data" / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (run.root / "data" / "test.txt").write_text("".join(f"{number}\n" for number in range(150)))
    assert run.evaluate("agent.concurrency=3")["attempts"] == 150
    assert len(set(attempts)) == 150


def test_an_error_of_ours_ends_the_run_with_what_was_finished_kept(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(attempt: Any) -> None:
        if attempt.key[0] == "t/2":
            raise ZeroDivisionError

    breaking(fail, monkeypatch)
    with pytest.raises(ZeroDivisionError):
        run.evaluate("agent.concurrency=1")
    assert {row["id"] for row in run.rows} == {"t/0", "t/1"}


HOSTILE = {
    "a cost no float holds": "return RunOutput(1, cost_usd=10 ** 400)",
    "costs that add up to infinity": "return RunOutput(1, cost_usd=1.5e308)",
    "half a surrogate": "return RunOutput(1, log='\\ud800')",
    "an error in half a surrogate": "raise RuntimeError('\\ud800')",
    "an end as if it were not found": "import os; os.write(2, b'\\n'); os._exit(127)",
    "a wrong field": "o = RunOutput(1); o.more = 1; return o",
    "a field of another type": "o = RunOutput(1); o.tokens = 'x'; return o",
    "a tree too deep to remove": (
        "import os\n    for _ in range(1500): os.mkdir('d'); os.chdir('d')\n    return RunOutput(1)"
    ),
    "closed directories": "import os; os.makedirs('a/b'); os.chmod('a/b', 0); os.chmod('a', 0); return RunOutput(1)",
    "a file with no name in utf-8": "open(b'\\xff', 'w'); return RunOutput(1)",
    "a number past all floats on the descriptor": (
        'import os\n    for fd in range(3, 50):\n        try: os.write(fd, b\'{"value": {"output": 1e999}}\')\n'
        "        except OSError: pass\n    os._exit(0)"
    ),
    "nesting that only just is read": "x = 1\n    for _ in range(975): x = [x]\n    return RunOutput(x)",
}


@pytest.mark.parametrize("way", HOSTILE)
def test_no_agent_can_end_the_run(run: Any, way: str) -> None:
    (run.root / "agent.py").write_text(f"from hermit import RunOutput\ndef run(task, adapter):\n    {HOSTILE[way]}\n")
    (run.root / "judge.py").write_text("def score(task, output): return 1\n")
    summary = run.evaluate()
    assert (summary["attempts"], summary["complete"], summary["statuses"]["sandbox_error"]) == (3, True, 0)
    assert list(run.scratch.iterdir()) == []
    json.dumps(summary, allow_nan=False)
    for row in run.rows:
        json.dumps(row, allow_nan=False)


class Lossy:
    """A place under which the first few starts lose their container; the others run without a sandbox."""

    confined = True
    owner = None

    def __init__(self, losses: int, *, again: bool) -> None:
        self.left = losses
        self.again = again
        self.starts = 0

    def run(self, sandbox: Any, command: Any, *, keep: Any, **more: Any) -> Any:
        self.starts += 1
        if self.left > 0:
            self.left -= 1
            raise SandboxError("the container was killed", where="hermit", cause="container killed", again=self.again)
        return sandboxes.unconfined("a test").run(replace(sandbox, binds=()), command, keep=keep, **more)


@pytest.mark.parametrize(
    ("losses", "again", "starts", "broken"),
    [(2, True, 5, 0), (3, True, 5, 1), (4, True, 6, 1), (1, False, 3, 1)],
)
def test_an_attempt_whose_container_was_lost_is_made_anew_a_bounded_number_of_times(
    run: Any, losses: int, again: bool, starts: int, broken: int
) -> None:
    place: Any = Lossy(losses, again=again)
    settings = ("agent.concurrency=1", "judge.mode=host")
    summary = evaluate.evaluate(run.plan(*settings), place, fresh=False, show=lambda _: None)
    assert (place.starts, summary["statuses"]["sandbox_error"]) == (starts, broken)
    causes = [row["cause"] for row in run.rows if row["status"] == "sandbox_error"]
    assert causes == ["container killed"] * broken
    assert sum(row["status"] == "ok" for row in run.rows) == 3 - broken


def test_a_full_disk_is_a_row_with_its_name_and_the_other_attempts_are_kept(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = benches._directory, itertools.count()

    def full(above: Any) -> Any:
        if next(calls) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(above)

    monkeypatch.setattr(benches, "_directory", full)
    place = sandboxes.unconfined("a test")
    summary = evaluate.evaluate(run.plan("agent.concurrency=1"), place, fresh=False, show=lambda _: None)
    assert (summary["statuses"]["ok"], summary["statuses"]["sandbox_error"]) == (2, 1)
    broken = [(row["phase"], row["cause"]) for row in run.rows if row["status"] == "sandbox_error"]
    assert broken == [("prepare", "disk full")]


@pytest.mark.parametrize(
    ("number", "step", "phase", "cause"),
    [
        (errno.EIO, "act", "agent", "host"),
        (errno.ENOSPC, "act", "agent", "disk full"),
        (errno.EDQUOT, "collect", "collect", "disk full"),
        (errno.EMFILE, "judge", "judge", "host"),
        (errno.EIO, "keep_logs", "report", "host"),
    ],
)
def test_a_call_of_the_machine_that_fails_is_ours_told_by_its_phase_and_ends_no_run(
    run: Any, monkeypatch: pytest.MonkeyPatch, number: int, step: str, *, phase: str, cause: str
) -> None:
    def fail(*_: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(trial.Trial, step, fail)
    summary = run.evaluate()
    assert {(row["status"], row["failed_by"], row["phase"], row["cause"]) for row in run.rows} == {
        ("sandbox_error", "infrastructure", phase, cause)
    }
    assert (summary["mean_score"], summary["failed_by"]["infrastructure"], summary["scored"]) == (None, 3, 0)


def test_a_sandbox_that_breaks_once_its_agent_runs_is_told_in_the_phase_of_the_agent(
    run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise SandboxError("the relay said far more than a relay says", cause="relay")

    monkeypatch.setattr(trial.Trial, "act", fail)
    run.evaluate()
    assert {(row["phase"], row["cause"]) for row in run.rows} == {("agent", "relay")}


def test_a_sandbox_that_fails_while_it_starts_is_a_row_with_its_cause(run: Any) -> None:
    class Broken:
        confined = True
        owner = None

        def run(self, *_: Any, **__: Any) -> Any:
            raise SandboxError("it fell over", where="the task sandbox", cause="check")

    place: Any = Broken()
    summary = evaluate.evaluate(run.plan(), place, fresh=False, show=lambda _: None)
    assert (summary["mean_score"], summary["statuses"]["sandbox_error"]) == (None, 3)
    assert {(row["phase"], row["cause"], row["error"]) for row in run.rows} == {
        ("start", "check", "the task sandbox: it fell over")
    }
