"""An agent without a model that knows every program and writes it down carelessly, unless a skill tells it to take care.

It stands for a model that could solve the problems and loses points by its habits. It begins with the canonical program,
makes the slips that fall to the problem, and then goes over its draft with the techniques that the skills of its adapter
ask for. A technique sees the draft and the prompt alone: what it puts right, it puts right without the canonical program.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermit import RunOutput, Session

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

REFERENCE = Path(__file__).resolve().parent / "data" / "reference"
ANSWER = Path("solution.py")
# What a skill's description has to speak of, so that the agent reads it.
SUBJECT = "Python"


def run(task: dict[str, Any], adapter: Path | None) -> RunOutput:
    """A careless draft, gone over with what the skills ask for, in ``solution.py``.

    Raises:
        FileNotFoundError: The sandbox does not show the canonical programs.
    """
    program = REFERENCE / f"{task['id'].replace('/', '_')}.py"
    if not program.is_file():
        raise FileNotFoundError(f"{program} is not shown in this sandbox: run prepare.py, and name data/reference")
    draft = careless(program.read_text(encoding="utf-8"), task)
    answer = careful(draft, task, rules=rules_of(Session(adapter)))
    ANSWER.write_text(answer, encoding="utf-8")
    said = [{"role": "user", "content": task["prompt"]}, {"role": "assistant", "content": answer}]
    return RunOutput(output=answer, cost_usd=0.0, messages=said)


def rules_of(session: Session) -> set[str]:
    """Each line of the skills that speak of the subject."""
    texts = [skill.text for skill in session.skills.values() if SUBJECT in skill.description]
    return {line.strip() for text in texts for line in text.splitlines()}


def careless(program: str, task: dict[str, Any]) -> str:
    """The program with the slips that fall to this problem."""
    number = int(task["id"].rpartition("/")[2])
    for every, slip in SLIPS:
        if number % every == 0:
            program = slip(program)
    return program


def careful(draft: str, task: dict[str, Any], *, rules: Collection[str]) -> str:
    """The draft, after each technique that the rules ask for."""
    for rule, technique in TECHNIQUES.items():
        if rule in rules:
            draft = technique(draft, task)
    return draft


# The slips


def misname(program: str) -> str:
    """The last function has a name of the agent's own."""
    function = last_function(program)
    return program if function is None else renamed(program, function.name, "my_function")


def leave_out_return(program: str) -> str:
    """The function's last statement computes a value and does not return it."""
    function = last_function(program)
    if function is None or not isinstance(function.body[-1], ast.Return):
        return program
    lines = program.splitlines(keepends=True)
    place = function.body[-1].lineno - 1
    lines[place] = re.sub(r"\breturn\s*", "", lines[place], count=1)
    return "".join(lines)


def leave_out_imports(program: str) -> str:
    """No line of the program is an import of its head."""
    return "".join(line for line in program.splitlines(keepends=True) if not is_import(line))


def indent_with_tabs(program: str) -> str:
    """The last line is indented with tabs, all others with spaces."""
    head, _, last = program.rstrip().rpartition("\n")
    code = last.lstrip(" ")
    return f"{head}\n{chr(9) * ((len(last) - len(code)) // 4)}{code}\n"


# The order is that of writing; a problem has each slip whose number divides its own.
SLIPS: tuple[tuple[int, Callable[[str], str]], ...] = (
    (2, misname),
    (3, leave_out_return),
    (1, leave_out_imports),
    (5, indent_with_tabs),
)


# The techniques


def with_spaces(draft: str, task: dict[str, Any]) -> str:
    """Each line begins with spaces where it began with tabs."""
    return re.sub(r"^\t+", lambda tabs: "    " * len(tabs[0]), draft, flags=re.MULTILINE)


def with_imports(draft: str, task: dict[str, Any]) -> str:
    """The imports of the prompt's head are there."""
    missing = [line for line in task["prompt"].splitlines(keepends=True) if is_import(line) and line not in draft]
    return "".join(missing) + draft


def with_name(draft: str, task: dict[str, Any]) -> str:
    """The last function has the name that the task gives."""
    function = last_function(draft)
    return draft if function is None else renamed(draft, function.name, task["entry_point"])


def with_return(draft: str, task: dict[str, Any]) -> str:
    """The value that the last statement of the function computes is returned."""
    function = last_function(draft)
    if function is None or not isinstance(function.body[-1], ast.Expr):
        return draft
    lines = draft.splitlines(keepends=True)
    place = function.body[-1].lineno - 1
    code = lines[place].lstrip()
    lines[place] = f"{lines[place][: -len(code)]}return {code}"
    return "".join(lines)


# The order is that of going over a draft: what cannot be read as a program yet comes first.
TECHNIQUES: dict[str, Callable[[str, dict[str, Any]], str]] = {
    "- Indent with spaces, never with a tab.": with_spaces,
    "- Begin with the imports that the prompt begins with.": with_imports,
    "- Give the function the name that the task gives it.": with_name,
    "- End the function with a return of its value.": with_return,
}


def last_function(program: str) -> ast.FunctionDef | None:
    """The last function at the top of a program; ``None`` where there is none, or the text is no program."""
    try:
        body = ast.parse(program).body
    except SyntaxError:
        return None
    return next((statement for statement in reversed(body) if isinstance(statement, ast.FunctionDef)), None)


def renamed(program: str, name: str, new: str) -> str:
    """The program with another name wherever this one stands."""
    return re.sub(rf"\b{re.escape(name)}\b", new, program)


def is_import(line: str) -> bool:
    """Whether a line is an import of a program's head."""
    return line.startswith(("import ", "from "))
