"""`check_spec` runs an adapter's code, and its template's, where it can do nothing else than answer."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from hermit import sandbox as sandboxes
from hermit.adapter import files as adapter_files
from hermit.adapter import template as templates
from hermit.adapter.files import File, Files
from hermit.adapter.spec import State
from hermit.domain.sandbox import Enforce
from hermit.run.adapter_check import Strict, check_spec, settled

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MANIFEST = """\
template: {id: small, version: 1}
exports: {tools: tools.py}
structure:
  learnable: [ADAPTER.md, tools.py]
  fixed: [check.py, answer.txt]
check: check.py:check
"""
CHECK = """\
import os
def check(argument):
    with open(os.path.join(argument["adapter"], "ADAPTER.md")) as file:
        text = file.read()
    with open(os.path.join(argument["root"], "answer.txt")) as file:
        wanted = file.read()
    return [] if wanted in text else [{"path": "ADAPTER.md", "reason": f"it does not say {wanted}"}]
"""
TEXTS = {
    "adapter.yaml": MANIFEST,
    "ADAPTER.md": "say please",
    "tools.py": "def add(argument): return 1\n",
    "check.py": CHECK,
    "answer.txt": "please",
}
# Says in its own failure what it can see and do.
SPIES = """
import os, socket
there = [path for path in (%(secret)r, %(hermit)r, "/root/.ssh") if os.path.lexists(path)]
try:
    open(__file__, "a")
    there.append("wrote")
except OSError:
    pass
variables = sorted(set(os.environ) - {"HOME", "LANG", "LC_CTYPE", "PATH", "TMPDIR", "USER"})
interfaces = [name for _, name in socket.if_nameindex() if name != "lo"]
raise RuntimeError(f"saw {there} {variables} {interfaces}")
"""


def of(changes: Any) -> Files:
    """The small template's files with some changed."""
    merged = {**TEXTS, **changes}
    return Files({path: File(text.encode()) for path, text in merged.items() if text is not None})


@pytest.fixture
def template() -> Any:
    """A template with tools and a check of its own."""
    return templates.of_files(of({}), source="small")


@pytest.fixture
def checked(template: Any, tmp_path: Path) -> Callable[..., Any]:
    """What the six checks say; without a sandbox unless a place is given."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()

    def run(changes: Any, place: Any = None, root: Any = None) -> Any:
        where = Strict(place or sandboxes.unconfined("a test"), Enforce.REQUIRED, str(scratch))
        report = check_spec(adapter_files.Reading(of(changes)), root or template, where=where)
        assert list(scratch.iterdir()) == [], "a check leaves its scratch as it was"
        return report

    return run


def failed(report: Any) -> dict[int, str]:
    """The number of each check that failed, with the first reason."""
    return {check.number: check.problems[0].reason for check in report.failed}


def test_an_adapter_that_breaks_nothing_passes_all_six(checked: Callable[..., Any]) -> None:
    report = checked({"ADAPTER.md": "do say please"})
    assert report.passed
    assert report.as_json()["passed"] is True


@pytest.mark.parametrize(
    ("changes", "number", "said"),
    [
        ({"tools.py": "raise ValueError('why')"}, 5, "it does not run: exception: ValueError: why"),
        ({"tools.py": "def add(a): pass\nadd = 1"}, 5, "the tool add is not there once it has run"),
        ({"tools.py": "def add(a): pass\nimport sys; sys.exit(0)"}, 5, "it does not run: exit"),
        ({"tools.py": "def add(a): pass\nimport os; os._exit(0)"}, 5, "it does not run: exit"),
        ({"tools.py": "import absent_module\ndef add(a): pass"}, 5, "ModuleNotFoundError"),
        ({"ADAPTER.md": "nothing"}, 6, "it does not say please"),
    ],
)
def test_code_that_fails_fails_its_check(checked: Callable[..., Any], changes: Any, number: int, said: str) -> None:
    found = failed(checked(changes))
    assert list(found) == [number]
    assert said in found[number]


def test_nothing_is_run_where_the_rules_are_broken(checked: Callable[..., Any], tmp_path: Path) -> None:
    report = checked({"tools.py": f"open({str(tmp_path / 'ran')!r}, 'w')", "more.txt": "x"})
    assert [check.state for check in report.checks] == [State.FAILED, *[State.PASSED] * 4, State.NOT_RUN]
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ("'text'", "returned no list"),
        ("[1]", "neither text nor a problem"),
        ("['plain words']", "plain words"),
        ("1 / 0", "failed: exception: ZeroDivisionError"),
        ("{1, 2}", "failed: result"),
    ],
)
def test_a_templates_check_that_answers_something_else_has_not_passed(
    checked: Callable[..., Any], returned: str, said: str
) -> None:
    code = f"def check(argument): return {returned}\n"
    root = templates.of_files(of({"check.py": code}), source="small")
    found = failed(checked({"check.py": code}, root=root))
    assert list(found) == [6]
    assert said in found[6]


def test_the_template_s_check_is_the_templates_own_whatever_lies_in_the_adapter(checked: Callable[..., Any]) -> None:
    assert 4 in failed(checked({"check.py": "def check(argument): return []\n", "ADAPTER.md": "nothing"}))


@pytest.mark.bwrap
def test_the_code_of_an_adapter_sees_the_adapter_and_nothing_else(
    checked: Callable[..., Any], place: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODEL_API_KEY", "not-for-an-adapter-0123")
    (tmp_path / "answers.jsonl").write_text("42")
    spy = SPIES % {"secret": str(tmp_path / "answers.jsonl"), "hermit": os.path.dirname(sandboxes.__file__) + "/run"}
    code = f"def add(argument): pass\n{spy}"
    assert failed(checked({"tools.py": code}, place)) == {5: "it does not run: exception: RuntimeError: saw [] [] []"}
    # The planted failure: the same code where nothing is confined.
    open_words = failed(checked({"tools.py": code}))[5]
    assert "answers.jsonl" in open_words
    assert "MODEL_API_KEY" in open_words
    assert "wrote" in open_words


@pytest.mark.bwrap
def test_the_code_of_a_template_sees_the_adapter_and_the_template_and_nothing_else(
    checked: Callable[..., Any], place: Any, tmp_path: Path
) -> None:
    (tmp_path / "answers.jsonl").write_text("42")
    spy = SPIES % {"secret": str(tmp_path / "answers.jsonl"), "hermit": os.path.dirname(sandboxes.__file__) + "/run"}
    code = "def check(argument):" + spy.replace("\n", "\n    ")
    root = templates.of_files(of({"check.py": code}), source="small")
    said = failed(checked({"check.py": code}, place, root))
    assert said == {6: "the template's check failed: exception: RuntimeError: saw [] [] []"}
    assert checked({}, place).passed


@pytest.mark.bwrap
def test_code_that_never_ends_is_ended(
    checked: Callable[..., Any], place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    from hermit.domain import strict

    monkeypatch.setattr(strict, "LIMITS", replace(strict.LIMITS, wall_s=1.0))
    found = failed(checked({"tools.py": "def add(a): pass\nwhile True: pass"}, place))
    assert "it does not run: timeout" in found[5]


@pytest.fixture
def settle(template: Any, tmp_path: Path) -> Callable[..., Any]:
    """What becomes of what a learner left."""
    where = Strict(sandboxes.unconfined("a test"), Enforce.REQUIRED, str(tmp_path))

    def run(changes: Any) -> Any:
        return settled(adapter_files.Reading(of(changes)), template, before=template.files, where=where)

    return run


def test_what_passes_is_kept_as_it_is(settle: Callable[..., Any]) -> None:
    found = settle({"ADAPTER.md": "please, please"})
    assert (found.outcome, found.files) == ("kept", of({"ADAPTER.md": "please, please"}))
    assert found.as_json() == {
        "outcome": "kept",
        "passed": True,
        "checks": found.report.as_json()["checks"],
        "repairs": [],
        "more_repairs": {},
        "after_repair": None,
    }


def test_what_breaks_a_rule_is_repaired_and_told(settle: Callable[..., Any]) -> None:
    found = settle({"ADAPTER.md": "please, please", "answer.txt": "x", "more.txt": "x"})
    assert (found.outcome, found.files) == ("repaired", of({"ADAPTER.md": "please, please"}))
    said = found.as_json()
    assert said["passed"] is False
    assert said["repairs"] == [
        {"path": "more.txt", "done": "dropped", "reason": "it is under no rule of the structure"},
        {"path": "answer.txt", "done": "restored", "reason": "it is fixed, and differs from the template's"},
    ]
    assert said["after_repair"]["passed"] is True


def test_what_no_repair_mends_is_taken_back_whole(settle: Callable[..., Any], template: Any) -> None:
    found = settle({"ADAPTER.md": "nothing", "more.txt": "x"})
    assert (found.outcome, found.files) == ("taken back", template.files)
    assert found.as_json()["after_repair"]["checks"][5]["problems"] == [
        {"path": "ADAPTER.md", "reason": "it does not say please"}
    ]
