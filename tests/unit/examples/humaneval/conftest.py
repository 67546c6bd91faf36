"""A toy problem beside a copy of the judge, and the judge run in a process that the tests can spare.

Tests change their user and how the judge's process can be reached, so each verdict is reached in a fork of pytest.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

EXAMPLE = Path(__file__).resolve().parents[4] / "examples" / "humaneval"

PROMPT = '''
def half(value):
    return value / 2


def double(value):
    """Twice the value."""
'''
TEST = """
def check(candidate):
    assert candidate(2) == 4
    assert candidate("ab") == "abab"
    assert candidate([1, (2.5, None)]) == [1, (2.5, None), 1, (2.5, None)]
    assert half(candidate(3)) == 3
"""


def load(path: Path) -> ModuleType:
    """The module in this file, under a name that no import finds."""
    spec = importlib.util.spec_from_file_location(f"humaneval_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def in_a_fork(action: Callable[[], Any]) -> Any:
    """What ``action`` returns in a fork of this process, as JSON; ``{"raised": ...}`` where it raises."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(read)
            answer = action()
        except BaseException as error:  # noqa: BLE001 - this copy of pytest must not go on
            answer = {"raised": f"{type(error).__name__}: {error}"}
        try:
            os.write(write, json.dumps(answer).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as stream:
        text = stream.read()
    os.waitpid(pid, 0)
    return json.loads(text)


@dataclass(frozen=True)
class Verdict:
    """What the judge said."""

    score: float
    feedback: str
    outcome: str


@dataclass(frozen=True)
class Bench:
    """A directory with a copy of the judge, one toy problem and a work directory, open to every user."""

    root: Path
    judge: ModuleType
    prepare: ModuleType

    @property
    def solution(self) -> Path:
        return self.root / "work" / "solution.py"

    @property
    def tests(self) -> Path:
        return self.root / "data" / "tests" / "Toy_0.py"

    @property
    def code(self) -> Path:
        return self.tests.with_suffix(".py.code")

    def set_problem(self, *, prompt: str = PROMPT, test: str = TEST) -> None:
        self.tests.parent.mkdir(parents=True, exist_ok=True)
        text = self.prepare.tests_of({"prompt": prompt, "test": test, "entry_point": "double"})
        self.tests.write_text(text)
        self.code.write_bytes(self.prepare.compiled(text, self.tests.name))

    def score(self) -> dict[str, Any]:
        result = self.judge.score({"id": "Toy/0", "prompt": PROMPT, "entry_point": "double"}, None)
        extra = result.extra
        assert extra["shielded"] is (self.judge.shield.version() > 0)
        return {"score": result.score, "feedback": result.feedback, "outcome": extra["outcome"]}

    def verdict(self, source: str | bytes | None = None) -> Verdict:
        """The verdict on this source, or on what is in the work directory."""
        if source is not None:
            self.solution.write_bytes(source.encode() if isinstance(source, str) else source)
        answer = in_a_fork(self.score)
        assert "raised" not in answer, answer
        assert "\n" not in answer["feedback"]
        return Verdict(**answer)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    # pytest's own temporary directories are closed to other users, and one test here becomes another user.
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        root.chmod(0o755)
        (root / "work").mkdir()
        (root / "work").chmod(0o777)
        shutil.copy(EXAMPLE / "judge.py", root / "judge.py")
        monkeypatch.setenv("HERMIT_WORK", str(root / "work"))
        made = Bench(root, load(root / "judge.py"), load(EXAMPLE / "prepare.py"))
        made.set_problem()
        yield made


@pytest.fixture
def hurried(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A bench whose judge waits one second for a solution that never answers."""
    monkeypatch.setattr(bench.judge, "TIME_LIMIT_S", 1.0)
    return bench


@pytest.fixture
def unshielded(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A bench whose judge leaves a solution every file: what stands behind the shield has to hold without it."""
    monkeypatch.setattr(bench.judge.shield, "give_up_files", lambda **_: False)
    return bench


@pytest.fixture
def agent() -> ModuleType:
    return load(EXAMPLE / "agent.py")


@pytest.fixture
def prepare() -> ModuleType:
    return load(EXAMPLE / "prepare.py")


@pytest.fixture(scope="session")
def real_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real problems: those beside the example where they are prepared, else DOWNLOADED by pip, once a session."""
    script = load(EXAMPLE / "prepare.py")
    ready: Path = EXAMPLE / "data"
    if script.is_current(ready):
        return ready
    made = tmp_path_factory.mktemp("humaneval") / "data"
    script.prepare(made)
    return made
