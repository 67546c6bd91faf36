"""What an acting agent is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from hermit.domain.trial import RunOutput


class Agent:
    """An agent under test. A subclass says in :meth:`run` what one call does; one object is made for each call.

    Args:
        params: The run config's ``agent.params``.
        base: The directory of the run config.
    """

    def __init__(self, params: dict[str, Any], base: Path) -> None:
        self.params = params
        self.base = base

    def run(self, task: dict[str, Any], adapter: Path | None) -> RunOutput:  # noqa: ARG002 - a subclass uses them
        """Attempts one task in the working directory, which is the call's own and writable.

        Args:
            task: The task's row.
            adapter: The frozen adapter, read-only; ``None`` for the baseline without one.
        """
        raise TypeError(f"{type(self).__name__} has no run(task, adapter)")
