"""What a role of a method sees: presets for methods whose texts and programs have names of their own for things.

A view is a value. ``View.of`` makes the sandbox with that view of another one: on the host of the evolver sandbox, or inside
of ``ctx.sandbox``, where the new one is started inside the learner's and can only narrow it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hermit.domain.bind import Bind
from hermit.domain.pathmap import Layout

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from hermit.domain.sandbox import Sandbox

    Source = str | os.PathLike[str]

ROOT = "/w"


@dataclass(frozen=True)
class View:
    """What is shown, and where.

    Args:
        binds: Everything that is shown.
        layout: The working directory as it is told.
    """

    binds: tuple[Bind, ...]
    layout: Layout

    def of(self, sandbox: Sandbox) -> Sandbox:
        """A sandbox with this view in place of its own; network, variables, limits, probes and enforcement stay."""
        return sandbox.view(self.binds, self.layout)


def mwm(
    adapter: Source,
    *,
    evidence: Source,
    environment: Mapping[str, Source] | None = None,
    skills: Source | None = None,
    patterns: Source | None = None,
    world_model: Source | None = None,
) -> View:
    """MWM's names: ``/w`` is the adapter, which it writes; the rest is read at the root.

    Args:
        adapter: At ``/w``.
        evidence: At ``/evidence``.
        environment: Each at its name below ``/environment``.
        skills: At ``/skills``.
        patterns: At ``/patterns``.
        world_model: At ``/world-model``.
    """
    named = {"evidence": evidence, "skills": skills, "patterns": patterns, "world-model": world_model}
    shown = {name: source for name, source in named.items() if source is not None}
    shown |= {f"environment/{name}": source for name, source in (environment or {}).items()}
    return _working_in(adapter, shown)


def rrsi(directory: Source, *, adapter: Source, material: Source) -> View:
    """One proposer or role of RRSI: its own directory at ``/w``, the adapter and the material to read, and of the others nothing.

    Args:
        directory: The role's own directory.
        adapter: At ``/adapter``.
        material: At ``/material``.
    """
    return _working_in(directory, {"adapter": adapter, "material": material})


def harness2(session: Source, *, material: Source) -> View:
    """One session of Harness2: its own directory, which holds all that it works on, and the material to read.

    Args:
        session: At ``/w``.
        material: At ``/material``.
    """
    return _working_in(session, {"material": material})


def _working_in(directory: Source, shown: Mapping[str, Source]) -> View:
    own = Bind(str(directory), ROOT, writable=True)
    binds = (own, *(Bind(str(source), f"/{name}") for name, source in shown.items()))
    return View(binds, Layout(own.source, ROOT))
