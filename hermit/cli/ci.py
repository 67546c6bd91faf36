"""What `hermit eval` leaves for a CI system: a JUnit report, GitHub's annotations and page, and a bound on the score.

All of it is made from the files of the run by the process that was called, so it is the same wherever sandboxes start.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermit.cli import console
from hermit.errors import ExitCode, HermitError
from hermit.roles import task as task_role
from hermit.run import github, junit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermit.run.plan import EvalPlan

# What an evaluation ends with that has results to report.
WITH_RESULTS = (ExitCode.OK, ExitCode.SANDBOX, ExitCode.INTERRUPTED)


@dataclass(frozen=True)
class Reports:
    """What is asked for.

    Args:
        plan: What is evaluated.
        junit: The file of the JUnit report, absolute; ``None`` where none is asked for.
        fail_under: The least mean score that is no failure; ``None`` where any will do.
        variables: The host's variables, which say whether this is GitHub Actions.
    """

    plan: EvalPlan
    junit: Path | None
    fail_under: float | None
    variables: Mapping[str, str]

    def refuse(self) -> None:
        """Refuses what could not be written at the end.

        Raises:
            ConfigError: The report has no place.
        """
        if self.junit is not None:
            shown = task_role.declared(self.plan.config)
            adapter = self.plan.adapter
            shown = (*shown, ("--adapter", str(adapter))) if adapter else shown
            junit.refuse_unwritable(self.junit, shown=shown)

    def begin(self) -> None:
        """Removes an older report: whoever finds one finds this command's."""
        if self.junit is not None:
            self.junit.unlink(missing_ok=True)

    def end(self, code: int) -> int:
        """Reports what came of it, and returns the exit code of the command.

        Args:
            code: What the evaluation ended with; a refusal has nothing to report.
        """
        if code not in WITH_RESULTS or not self.plan.paths.summary.exists():
            return code
        summary = json.loads(self.plan.paths.summary.read_bytes())
        if self.junit is not None:
            self._write_junit(self.junit, summary)
        below = self._below(summary)
        if self.variables.get("GITHUB_ACTIONS") == "true":
            self._tell_github(summary, below)
        if below:
            console.say(f"hermit: {below}")
        return ExitCode.SCORE if below and code == ExitCode.OK else code

    def _write_junit(self, path: Path, summary: dict[str, Any]) -> None:
        name = f"{self.plan.paths.root.name}/{self.plan.paths.selector}"
        try:
            with path.open("wb") as file:
                file.writelines(junit.document(self.plan.paths.results, name=name, wall_s=summary["wall_s"]))
        except OSError as error:
            cure = "make room for it, and run the same command again: no attempt is made twice"
            raise HermitError(f"it could not be written: {error.strerror}", where=str(path), cure=cure) from None

    def _below(self, summary: dict[str, Any]) -> str:
        mean = summary["mean_score"]
        if self.fail_under is None or (mean is not None and mean >= self.fail_under):
            return ""
        return f"the mean score is {'none' if mean is None else f'{mean:.4f}'}, below {self.fail_under:g}"

    def _tell_github(self, summary: dict[str, Any], below: str) -> None:
        lines = list(github.remarks(self.plan.paths.results))
        lines += [github.annotation("error", title="--fail-under", said=below)] if below else []
        for line in lines:  # on standard error: standard output may be one JSON document
            with console.heard_or_not():
                console.err().print(line, markup=False, emoji=False)
        page = self.variables.get("GITHUB_STEP_SUMMARY")
        if page:
            try:
                with Path(page).open("a", encoding="utf-8") as file:
                    file.write(github.page(self.plan.paths.results, summary))
            except OSError as error:
                console.say(f"hermit: no summary of this step was left: {error}")
