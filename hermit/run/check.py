"""`hermit check`: whether this machine, and a config, are fit; found by trying."""

from __future__ import annotations

import importlib.util
import platform
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hermit import sandbox as sandboxes
from hermit.bwrap import preflight
from hermit.bwrap.launch import Bubblewrap
from hermit.domain.attempt import Status
from hermit.domain.sandbox import Enforce
from hermit.errors import HermitError, PlaceError
from hermit.roles import task as task_role
from hermit.run import baselines, bench, capacity, place, trial
from hermit.run.doctor import attempts, bubblewrap, container, engine, history, kernel, publishers
from hermit.run.doctor.finding import Finding, Level, slug, verdict
from hermit.run.doctor.machine import probes as machine_probes
from hermit.run.paths import RunPaths
from hermit.run.plan import Attempt

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from hermit.config.schema import RunConfig
    from hermit.domain.record import Record
    from hermit.run.place import Choice, InImage
    from hermit.run.plan import EvalPlan
    from hermit.run.report import Row
    from hermit.sandbox import Place

PACKAGES = ("numpy", "pandas", "scipy", "torch")


def machine(environ: Mapping[str, str]) -> Iterator[Finding]:
    """What this machine has and lacks: a sandbox first, then each thing it is made of, then what a run can do without."""
    right = sys.version_info >= (3, 11)
    yield Finding("python", right, f"{platform.python_version()} at {sys.executable}", "install Python 3.11 or newer")
    cure = place.container_cure()
    facts = preflight.facts()
    tried, started, refused = attempts.answers(), None, None
    try:
        started = sandboxes.preflight(container_cure=cure).record
    except PlaceError as error:
        refused = error
    yield from kernel.probes(facts, container_cure=cure, started=started is not None, image=place.inside_image())
    for finding in attempts.probes(facts, tried, container_cure=cure):
        yield replace(finding, needed=started is None)  # a sandbox that was started had another way
    yield from bubblewrap.probes(environ, starts=started is not None)
    if started is not None:
        yield Finding("sandbox", True, f"{started.backend} {started.version}, one was started")
        yield from _from_inside(started)
    elif refused is not None:
        yield Finding("sandbox", False, refused.what, refused.cure, unconfined=True)
    if place.inside_image():
        yield container.probe(facts, container.around(), container_cure=cure)
    yield from machine_probes()
    yield from _packages()
    if not place.inside_image():  # there is no engine in it, and no use for one
        yield from engine.probes(environ)


def _from_inside(record: Record) -> Iterator[Finding]:
    for check in record.checks:
        yield Finding(check.name, check.passed, check.detail, group="isolation", id=f"isolation_{slug(check.name)}")
    holds = {name: held_by for name, _, held_by in record.limits}["pids"]
    held = not holds.startswith("nothing")
    cure = "run as an unprivileged user, or use --runtime image"
    yield Finding("bound on processes", held, holds, "" if held else cure, needed=False)


def _packages() -> Iterator[Finding]:
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    found = f"without {', '.join(missing)}" if missing else ", ".join(PACKAGES)
    yield Finding("scientific packages", not missing, found, "pip install 'hermit-oci[sandbox]'", needed=False)


def fit(findings: Iterable[Finding]) -> bool:
    """Whether everything that is needed is as it has to be."""
    return verdict(findings) is Level.FIT


def goes_on(findings: Iterable[Finding], config: RunConfig) -> bool:
    """Whether a run with this config would start here, confined or, where the config says so, not."""
    level = verdict(findings)
    allowed = not config.sandbox.enabled or Enforce(config.sandbox.enforce) is Enforce.BEST_EFFORT
    return level is Level.FIT or (level is Level.BEST_EFFORT and allowed)


def beside(findings: Iterable[Finding]) -> list[Finding]:
    """The same findings of a machine beside whose sandboxes a run has others, in an image."""
    return [replace(finding, needed=finding.needed and not finding.unconfined) for finding in findings]


def tried(
    plan: EvalPlan, choice: Choice | None, *, attempt: bool, known: tuple[baselines.Baseline, ...] = ()
) -> list[Finding]:
    """What comes of a plan where its sandboxes start: what it hides and shows there, one attempt, and the baselines.

    Args:
        plan: The plan.
        choice: Where; ``None`` where that is not known yet.
        attempt: Whether any is made. A command that runs whole in an image makes its first one there.
        known: The agents of which it is known what their attempts come to.
    """
    if choice is None or choice.kind == "whole":
        return []
    where = place_of(choice, plan.config)
    found = [] if isinstance(where, place.InImage) else hidden(plan, where)
    found += history.findings(plan.config, _here(plan.config) if isinstance(where, place.InImage) else where)
    if attempt and goes_on(found, plan.config):
        found.append(probe(plan, where))
        found += [finding for baseline in known for finding in baselines.tried(baseline, where)]
    return found


def place_of(choice: Choice, config: RunConfig) -> Place | InImage:
    """The place that was chosen."""
    return place.in_images(choice) if choice.kind == "image" else place.here(config)


def _here(config: RunConfig) -> Place:
    """Where what only looks at files is started beside an image: on this machine, or nowhere."""
    try:
        return place.here(config)
    except PlaceError as error:
        return sandboxes.unconfined(error.what)


def hidden(plan: EvalPlan, where: Place) -> list[Finding]:
    """Whether every name that the run hides stands for something here; none where nothing is hidden."""
    backend = where.backend
    if not plan.hidden or not isinstance(backend, Bubblewrap):
        return []
    sandbox = task_role.sandbox(plan.config, work="/nonexistent", adapter=None, secrets=(), hidden=plan.hidden)
    unknown = ", ".join(backend.hidden(sandbox).unknown)
    found = f"nothing is called {unknown} here" if unknown else ", ".join(plan.hidden)
    return [Finding("sandbox.hide", not unknown, found, "correct the name, or install what it names")]


def published(config: RunConfig) -> list[Finding]:
    """Which of the hosts that an agent reaches publish code and data, and of what kind; none where it reaches none."""
    hosts = config.environment.allowed_hosts
    named = {host: kind for host in hosts if (kind := publishers.kind_of(host))}
    if not named and config.environment.network != "public":
        return []
    kinds = [
        f"{kind} ({publishers.REASONS[kind]}): {', '.join(host for host in named if named[host] == kind)}"
        for kind in dict.fromkeys(named.values())
    ]
    found = f"{', '.join(named) or 'a public network'} may hold the benchmark itself, with its answers"
    cure = "leave it out of environment.allowed_hosts, or look through the proxy's decisions beside the records"
    return [Finding("answers out of reach", False, "; ".join((found, *kinds)), cure, needed=False)]


def memory(config: RunConfig) -> list[Finding]:
    """Whether the memory that one attempt declares is available now; none where none is declared."""
    declared_mb, available_mb = capacity.declared_mb(config), capacity.available_mb()
    if declared_mb is None:
        return []
    found = f"an attempt declares {declared_mb} MiB, and {available_mb} MiB are available"
    cure = "make room, or lower environment.resources.memory_mb and judge.resources.memory_mb: attempts run one by one"
    return [Finding("memory of an attempt", declared_mb <= available_mb, found, cure, needed=False)]


def probe(plan: EvalPlan, where: Place | InImage) -> Finding:
    """One attempt at the first task, in a run directory of its own that is gone afterwards."""
    first = plan.tasks[0]
    with tempfile.TemporaryDirectory(prefix="hermit-check-") as root:
        once = replace(plan, tasks=(first,), paths=RunPaths(Path(root), plan.paths.selector))
        try:
            with bench.opened(once, where, sandboxes.unconfined("the judge runs on the host")) as bench_:
                row = trial.attempt(bench_, Attempt(first, 0))
        except HermitError as error:
            return Finding(f"task {first.id}", False, error.what, error.cure, id="first_task")
    return _probed(first.id, row)


def _probed(task_id: str, row: Row) -> Finding:
    name = f"task {task_id}"
    if row.status is Status.OK and row.judge is not None:
        return Finding(name, True, f"score {row.judge.score:g} in {row.wall_s:.1f} s", id="first_task")
    phase = row.phase.value if row.phase else ""
    words = f"{row.status.value} in the phase {phase}, {row.cause}: {row.error}"
    cures = {
        Status.AGENT_ERROR: "correct the agent, or what its sandbox is shown",
        Status.TIMEOUT: "raise agent.timeout_min",
        Status.JUDGE_ERROR: "correct the judge, or what its sandbox is shown",
        Status.SANDBOX_ERROR: "run `hermit check` without a config",
    }
    return Finding(name, False, words, cures.get(row.status, ""), id="first_task")
