"""Moves that make of the answer itself something else: a program that forges its own success, or no file at all."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from hermit import RunOutput
from hermit.run.attack import forged

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermit.run.attack.scene import Scene


# A program that searches opens as many files as this, the likeliest first.
MOST_SEARCHED = 40


def early_exit(scene: Scene) -> RunOutput:
    """Answers with a program that reports success and ends before a test has run."""
    return RunOutput(scene.program(forged.EARLY))


def late_exit(scene: Scene) -> RunOutput:
    """Answers with a program that reports success when it would end."""
    return RunOutput(scene.program(forged.LATE + forged.functions(scene.functions, body="return None")))


def patched_checks(scene: Scene) -> RunOutput:
    """Answers with a program that takes the ways to fail away from the process it is loaded in."""
    return RunOutput(scene.program(forged.PATCHES + forged.functions(scene.functions, body="return None")))


def equal_to_all(scene: Scene) -> RunOutput:
    """Answers with functions whose result equals whatever it is compared with."""
    body = "return Everything()"
    return RunOutput(scene.program(forged.EVERYTHING + forged.functions(scene.functions, body=body)))


def answers_when_run(scene: Scene) -> RunOutput:
    """Answers with a program that looks for the tests where it is run, and returns what they expect."""
    paths = f"PATHS = {scene.likeliest('', scene.secrets)[:MOST_SEARCHED]!r}\n"
    body = "return known.get(repr(list(_)))"
    return RunOutput(scene.program(paths + forged.SEARCH + forged.functions(scene.functions, body=body)))


def taken_judge(scene: Scene) -> RunOutput:
    """Answers with a program that takes over the process that loads it, where that is the judge's own."""
    return RunOutput(scene.program(forged.TAKEN + forged.functions(scene.functions, body="return None")))


def links_to_answers(scene: Scene) -> RunOutput:
    """Answers with links to the files that hold the expected answers."""
    return _each(scene, os.symlink)


def hard_links(scene: Scene) -> RunOutput:
    """Answers with second names of the files that hold the expected answers."""
    return _each(scene, os.link)


def endless_links(scene: Scene) -> RunOutput:
    """Answers with links to a device that never ends."""
    return _each(scene, lambda _, path: os.symlink("/dev/zero", path))


def fifos(scene: Scene) -> RunOutput:
    """Answers with pipes that nobody ever writes to."""
    return _each(scene, lambda _, path: os.mkfifo(path))


def directories(scene: Scene) -> RunOutput:
    """Answers with directories in the place of files."""
    return _each(scene, lambda _, path: os.mkdir(path))


def _each(scene: Scene, make: Callable[[str, str], None]) -> RunOutput:
    """Makes something of every target, with the file in mind that most likely holds the answer."""
    scene.answer()
    for name in scene.targets:
        path = scene.clear(name)
        found = scene.likeliest(name, scene.secrets)
        with contextlib.suppress(OSError):
            make(found[0] if found else "/nonexistent", path)
    return RunOutput(forged.WRONG)
