from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hermit.adapter import template

from .conftest import EXAMPLE, load

if TYPE_CHECKING:
    from types import ModuleType

PROMPT = "import math\n\ndef root(x):\n    '''As it is.'''\n"
PROGRAM = f"{PROMPT}    y = x\n    return math.sqrt(y)\n"


def task(number: int) -> dict[str, str]:
    return {"id": f"HumanEval/{number}", "prompt": PROMPT, "entry_point": "root"}


@pytest.fixture
def skilled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The agent, in a work directory of its own, with one program for all problems."""
    module = load(EXAMPLE / "skilled.py")
    (tmp_path / "reference").mkdir()
    for number in range(164):
        (tmp_path / "reference" / f"HumanEval_{number}.py").write_text(PROGRAM)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setattr(module, "REFERENCE", tmp_path / "reference")
    return module


def adapter_with(directory: Path, rules: list[str], *, about: str = "Python programs") -> Path:
    """An adapter of the template with a skill of these rules."""
    directory.mkdir(exist_ok=True)
    template.named("skills-and-tools").files.write(str(directory))
    skill = directory / "skills" / "programs" / "SKILL.md"
    skill.parent.mkdir()
    skill.write_text("\n".join(["---", "name: programs", f"description: {about}.", "---", *rules, ""]))
    return directory


@pytest.mark.parametrize(
    ("number", "draft"),
    [
        (7, "\ndef root(x):\n    '''As it is.'''\n    y = x\n    return math.sqrt(y)\n"),
        (2, "\ndef my_function(x):\n    '''As it is.'''\n    y = x\n    return math.sqrt(y)\n"),
        (3, "\ndef root(x):\n    '''As it is.'''\n    y = x\n    math.sqrt(y)\n"),
        (5, "\ndef root(x):\n    '''As it is.'''\n    y = x\n\treturn math.sqrt(y)\n"),
        (30, "\ndef my_function(x):\n    '''As it is.'''\n    y = x\n\tmath.sqrt(y)\n"),
    ],
)
def test_each_problem_has_the_slips_that_fall_to_it(skilled: ModuleType, number: int, draft: str) -> None:
    assert skilled.run(task(number), None).output == draft
    assert Path("solution.py").read_text() == draft


@pytest.mark.parametrize("number", [2, 3, 5, 7, 30])
def test_with_every_rule_the_program_is_whole(skilled: ModuleType, tmp_path: Path, number: int) -> None:
    adapter = adapter_with(tmp_path / "adapter", list(skilled.TECHNIQUES))
    assert skilled.run(task(number), adapter).output == PROGRAM


def test_each_rule_mends_its_own_slip_and_no_other(skilled: ModuleType, tmp_path: Path) -> None:
    def after(*rules: str) -> str:
        return str(skilled.careful(skilled.careless(PROGRAM, task(30)), task(30), rules=rules))

    spaces, imports, name, give = skilled.TECHNIQUES
    assert "\t" not in after(spaces)
    assert after(imports).startswith("import math\n\ndef my_function")
    assert "def root(x)" in after(spaces, name)
    assert "    return math.sqrt(y)\n" in after(spaces, give)
    assert after(name) == after(give) == after(), "a text that is no program yet is left as it is"


def test_a_technique_changes_nothing_where_nothing_is_wrong(skilled: ModuleType) -> None:
    assert skilled.careful(PROGRAM, task(7), rules=list(skilled.TECHNIQUES)) == PROGRAM


def test_the_agent_reads_the_skills_that_speak_of_its_subject_alone(skilled: ModuleType, tmp_path: Path) -> None:
    adapter = adapter_with(tmp_path / "adapter", list(skilled.TECHNIQUES), about="cooking")
    assert "import math" not in skilled.run(task(7), adapter).output


def test_the_template_as_it_is_mends_nothing(skilled: ModuleType, tmp_path: Path) -> None:
    adapter = adapter_with(tmp_path / "adapter", [])
    assert skilled.run(task(30), adapter).output == skilled.run(task(30), None).output


def test_no_problem_is_in_two_splits_and_none_in_neither(real_data: Path) -> None:
    train, held_out, everything = (
        (real_data / name).read_text().splitlines() for name in ("train.txt", "held-out.txt", "test.txt")
    )
    assert (len(train), len(held_out)) == (40, 124)
    assert sorted(train + held_out) == sorted(everything)


def test_of_the_real_programs_the_rules_mend_every_slip(real_data: Path) -> None:
    module = load(EXAMPLE / "skilled.py")
    rules: list[str] = list(module.TECHNIQUES)
    slips = 0
    for line in (real_data / "tasks.jsonl").read_text().splitlines():
        row: dict[str, Any] = json.loads(line)
        program = (real_data / "reference" / f"{row['id'].replace('/', '_')}.py").read_text()
        draft = module.careless(program, row)
        slips += draft.strip() != program.strip()
        mended = module.careful(draft, row, rules=rules)
        assert words(mended) == words(program), row["id"]
    assert slips > 100


def words(program: str) -> list[str]:
    """The lines of a program that hold something, imports first."""
    lines = [line.rstrip() for line in program.splitlines() if line.strip()]
    return sorted(lines, key=lambda line: not line.startswith(("import ", "from ")))
