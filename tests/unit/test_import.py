"""What `import hermit` gives, and what it costs."""

from __future__ import annotations

import subprocess
import sys


def test_the_public_names_come_from_hermit_itself() -> None:
    from hermit import Agent, Bind, JudgeResult, RunOutput, Sandbox

    assert RunOutput(output=1) == RunOutput(output=1)
    assert JudgeResult(1.0).score == 1.0
    assert Sandbox(binds=(Bind("/a", "/b"),)).mounts == (Bind("/a", "/b"),)
    assert issubclass(Agent, object)


def test_importing_the_public_names_loads_no_library_beside_the_standard_one() -> None:
    program = (
        "import sys; from hermit import Agent, Bind, JudgeResult, RunOutput, Sandbox; "
        "print([name for name in ('pydantic', 'typer', 'rich', 'yaml') if name in sys.modules])"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"


def test_an_agent_that_wants_an_output_pays_for_no_dataclass() -> None:
    program = "import sys; from hermit import RunOutput; print('dataclasses' in sys.modules)"
    told = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "False"
