"""Keys that earlier run configs had, and where each of them went."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Moved:
    """A key that no longer exists: the keys that took its place, or the reason that none did.

    A key that ends in ``.*`` stands for the section above the star and everything in it.
    """

    key: str
    homes: tuple[str, ...] = ()
    reason: str = ""

    @property
    def path(self) -> tuple[str, ...]:
        """The parts of the key or section this row refuses."""
        return tuple(self.key.removesuffix(".*").split("."))

    @property
    def sentence(self) -> str:
        """Where the key went, without a full stop."""
        return f"{self.key} moved to {', '.join(self.homes)}" if self.homes else f"{self.key} is gone: {self.reason}"


_NETWORK = ("environment.network", "environment.allowed_hosts", "sandbox.evolver.allowed_hosts")
_ISOLATION = "a learner runs in the run's sandbox, so remove it and see sandbox.enabled and sandbox.enforce"

MOVED: tuple[Moved, ...] = (
    Moved("sandbox.network", _NETWORK),
    Moved("sandbox.allow", _NETWORK),
    Moved("sandbox.read", ("environment.read", "evolver_access.environment")),
    Moved("sandbox.packages", ("environment.packages",)),
    Moved("sandbox.env", ("environment.env", "sandbox.evolver.env")),
    Moved("sandbox.audit", ("environment.*",)),
    Moved("sandbox.profiles.*", ("environment.*",)),
    Moved("evolver.params.hide", ("sandbox.hide",)),
    Moved("evolver.params.isolation", reason=_ISOLATION),
    Moved("evolver.isolation", reason=_ISOLATION),
    Moved("pipeline.run", ("agent.name",)),
    Moved("pipeline.params", ("agent.params",)),
    Moved("pipeline.concurrency", ("agent.concurrency",)),
    Moved("evolver_access.send_material_out", reason="no setting sends learning material out of a run, so remove it"),
)
