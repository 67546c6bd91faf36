"""The agent that cheats: it stands in the place of the user's own, with what that one is shown, and plays one cheat."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from hermit.run.attack import cheats
from hermit.run.attack.scene import Scene

if TYPE_CHECKING:
    from pathlib import Path

    from hermit import RunOutput


def run(task: dict[str, Any], adapter: Path | None, params: dict[str, Any]) -> RunOutput:  # noqa: ARG001 - what every agent takes
    """Plays the cheat that ``params`` names, and says what it got hold of."""
    scene = Scene.told(task, os.getcwd(), params["hints"])
    output = cheats.by_name(params["cheat"]).play(scene)
    output.extra = {**output.extra, "took": scene.took}
    return output
