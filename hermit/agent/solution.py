"""Agents that have no thought of their own, for `hermit check`: one hands in a solution, the other nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from hermit.agent.base import Agent
from hermit.domain import codec
from hermit.domain.trial import RunOutput

if TYPE_CHECKING:
    from pathlib import Path


class Solution(Agent):
    """Hands in what a directory holds for a task; it runs in the task sandbox as every agent does.

    The directory ``<solutions>/<id>/`` is what the agent would have left in its working directory, ``<solutions>/<id>.json``
    what it would have returned as its output; one of the two is enough. In these names an id is percent-encoded.
    """

    def run(self, task: dict[str, Any], adapter: Path | None) -> RunOutput:  # noqa: ARG002 - a solution needs none
        """Hands in the solution of one task.

        Raises:
            FileNotFoundError: There is none.
        """
        name = quote(str(task.get("id", task.get("task_id"))), safe="")
        files = os.path.join(self.params["solutions"], name)
        answer = f"{files}.json"
        if not os.path.isdir(files) and not os.path.isfile(answer):
            raise FileNotFoundError(f"there is no solution of this task: neither {files}/ nor {answer}")
        if os.path.isdir(files):
            _copy(files, ".")
        if not os.path.isfile(answer):
            return RunOutput()
        with open(answer, "rb") as file:
            return RunOutput(codec.load(file.read()))


def _copy(source: str, target: str) -> None:
    for directory, _, names in os.walk(source):
        into = os.path.join(target, os.path.relpath(directory, source))
        os.makedirs(into, exist_ok=True)
        for name in names:
            path = os.path.join(directory, name)
            with open(path, "rb") as file, open(os.path.join(into, name), "wb") as copy:
                copy.write(file.read())
                os.fchmod(copy.fileno(), os.fstat(file.fileno()).st_mode & 0o777)


def nothing(task: dict[str, Any], adapter: Path | None) -> RunOutput:  # noqa: ARG001 - an agent is called with them
    """Hands in nothing, for a judge that must not pay for it."""
    return RunOutput()
