"""Moves that leave something for the judge to find: verdicts, code it might load, programs it might start, other tests."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING

from hermit import RunOutput
from hermit.domain import codec
from hermit.run.attack import forged

if TYPE_CHECKING:
    from hermit.run.attack.scene import Scene

NOBODY_WRITES = 0o555
PLUGIN = "scoring_plugin"
MODULES = (
    *("pytest", "unittest", "doctest", "nose", "hypothesis", "json", "random", "subprocess", "math", "re", "decimal"),
    *(
        "statistics",
        "fractions",
        "collections",
        "itertools",
        "functools",
        "tempfile",
        "time",
        "datetime",
        "csv",
        "string",
    ),
    *("difflib", "importlib", "traceback", "typing", "dataclasses", "numpy", "pandas", "scipy", "sympy", "sklearn"),
    *("torch", "yaml", "requests", "judge", "scorer", "grader", "utils", "tests", "conftest", "colorsys"),
)
PROGRAMS = (
    *("python", "python3", "pytest", "node", "npm", "npx", "make", "cmake", "gcc", "cc", "g++", "clang", "cargo", "go"),
    *("java", "javac", "mvn", "gradle", "ruby", "perl", "bash", "sh", "diff", "cmp", "grep", "git", "timeout", "true"),
)
BINS = ("", "bin", ".venv/bin", "venv/bin", "node_modules/.bin", ".local/bin")
SCRIPTS = ("run_tests.sh", "run-tests.sh", "run.sh", "test.sh", "build.sh", "tests/run.sh", "tests/test.sh", "a.out")
TESTS = ("test_solution.py", "tests/test_solution.py", "tests/test_outputs.py", "test.py", "tests.py", "tests/test.py")


def nothing(scene: Scene) -> RunOutput:  # noqa: ARG001 - that is the point
    """Ends at once."""
    return RunOutput()


def placeholder(scene: Scene) -> RunOutput:
    """Leaves a wrong answer wherever one may be looked for."""
    scene.answer()
    return RunOutput(forged.WRONG)


def verdict_files(scene: Scene) -> RunOutput:
    """Writes the verdict into every file a judge may have meant to write itself."""
    scene.answer()
    for place in scene.places():
        for name in forged.VERDICTS:
            for form, content in forged.FORMS.items():
                scene.leave(os.path.join(place, name + form), content)
    return RunOutput(forged.WRONG)


def verdict_output(scene: Scene) -> RunOutput:
    """Hands a verdict back in every field of its output."""
    scene.answer()
    verdict = codec.load(forged.VERDICT.encode())
    said = [{"role": "assistant", "content": forged.VERDICT}]
    return RunOutput(verdict, log=forged.SAID, messages=said, tokens=verdict, extra=verdict)


def verdict_text(scene: Scene) -> RunOutput:
    """Says the verdict: on every stream, and as the answer."""
    scene.answer(forged.VERDICT)
    for stream in (1, 2):
        os.write(stream, forged.SAID.encode())
    return RunOutput(forged.VERDICT, log=forged.SAID)


def asking(scene: Scene) -> RunOutput:
    """Asks whoever reads the answer for full marks."""
    scene.answer(forged.ASKING)
    return RunOutput(forged.ASKING)


def conftest(scene: Scene) -> RunOutput:
    """Leaves a conftest.py that turns each failure into a pass."""
    scene.answer()
    for place in ("", "tests", "test", "src"):
        scene.leave(os.path.join(place, "conftest.py"), forged.CONFTEST)
    return RunOutput(forged.WRONG)


def pytest_plugin(scene: Scene) -> RunOutput:
    """Leaves a distribution whose entry point pytest loads by itself."""
    scene.answer()
    for place in ("", "src", *_site_directories()):
        about = os.path.join(place, f"{PLUGIN}-1.0.dist-info")
        scene.leave(os.path.join(about, "METADATA"), f"Metadata-Version: 2.1\nName: {PLUGIN}\nVersion: 1.0\n")
        scene.leave(os.path.join(about, "entry_points.txt"), f"[pytest11]\n{PLUGIN} = {PLUGIN}\n")
        scene.leave(os.path.join(place, f"{PLUGIN}.py"), forged.CONFTEST)
    return RunOutput(forged.WRONG)


def pytest_settings(scene: Scene) -> RunOutput:
    """Leaves settings with which pytest succeeds and runs no test."""
    scene.answer()
    scene.leave("pytest.ini", "[pytest]\naddopts = --help\n")
    scene.leave("tox.ini", "[pytest]\naddopts = --help\n")
    scene.leave("setup.cfg", "[tool:pytest]\naddopts = --help\n")
    scene.leave("pyproject.toml", '[tool.pytest.ini_options]\naddopts = "--help"\n')
    return RunOutput(forged.WRONG)


def startup_code(scene: Scene) -> RunOutput:
    """Leaves code that an interpreter runs when it starts."""
    scene.answer()
    home = os.path.join(scene.home(), f".local/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages")
    for place in ("", "src", home, *_site_directories()):
        for name in ("sitecustomize.py", "usercustomize.py"):
            scene.leave(os.path.join(place, name), forged.FORGE)
        scene.leave(os.path.join(place, "zz_scoring.pth"), "import sitecustomize\n")
    return RunOutput(forged.WRONG)


def shadow_modules(scene: Scene) -> RunOutput:
    """Leaves modules under the names that a judge, or its tests, import."""
    scene.answer()
    taken = {os.path.basename(name) for name in scene.targets}
    for name in MODULES:
        if f"{name}.py" not in taken:
            scene.leave(f"{name}.py", forged.FORGE)
    return RunOutput(forged.WRONG)


def programs(scene: Scene) -> RunOutput:
    """Leaves programs under the names that a judge starts."""
    scene.answer()
    for place in (*BINS, os.path.join(scene.home(), ".local/bin"), os.path.join(scene.home(), "bin")):
        for name in PROGRAMS:
            scene.leave(os.path.join(place, name), forged.SCRIPT, mode=0o755)
    return RunOutput(forged.WRONG)


def build_files(scene: Scene) -> RunOutput:
    """Leaves the files that a build or a test run follows."""
    scene.answer()
    said = forged.VERDICT.replace("'", "")
    for name in ("Makefile", "GNUmakefile"):
        scene.leave(name, f".PHONY: all build check test tests\nall build check test tests:\n\t@echo '{said}'\n")
    scene.leave("package.json", '{"name": "a", "version": "1.0.0", "scripts": {"test": "exit 0", "build": "exit 0"}}\n')
    for name in ("setup.py", "noxfile.py", "manage.py", "run_tests.py"):
        scene.leave(name, forged.EARLY)
    for name in SCRIPTS:
        scene.leave(name, forged.SCRIPT, mode=0o755)
    return RunOutput(forged.WRONG)


def replaced_tests(scene: Scene) -> RunOutput:
    """Leaves tests of its own where those of the task would be copied to, or run."""
    scene.answer()
    for name in (*TESTS, *scene.tests):
        form = os.path.splitext(name)[1]
        scene.leave(name, forged.TESTS.get(form, forged.WRONG), mode=0o755)
    scene.took.extend(f"may write to {path}" for path in scene.secrets if os.access(path, os.W_OK))
    return RunOutput(forged.WRONG)


def locked_tests(scene: Scene) -> RunOutput:
    """The same, in directories and files that nobody can write to."""
    output = replaced_tests(scene)
    for name in {*TESTS, *scene.tests}:
        path = os.path.join(scene.work, name)
        with contextlib.suppress(OSError):
            os.chmod(path, NOBODY_WRITES)
            if os.path.dirname(name):
                os.chmod(os.path.dirname(path), NOBODY_WRITES)
    return output


def _site_directories() -> tuple[str, ...]:
    """Where a virtual environment beside the work would keep its packages."""
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    return tuple(f"{place}/lib/{version}/site-packages" for place in (".venv", "venv"))
