"""The strict sandbox: where code runs that came with an adapter or a template, and that nobody here wrote.

It shows the adapter and the template, read-only, with the system and the interpreter; no network, no variable, nothing else.
Inside a task sandbox the same one is started again for the adapter's own code, by what ``HA_ADAPTER_SANDBOX`` holds: a
sandbox for ``python -m hermit.sandbox``. That one can only narrow what the task sandbox shows.
"""

from __future__ import annotations

import json
from dataclasses import fields

from hermit.domain.limits import Limits
from hermit.domain.sandbox import Enforce, Sandbox

VARIABLE = "HA_ADAPTER_SANDBOX"
# A tool or a render of an adapter computes an answer; none needs a machine.
LIMITS = Limits(memory_mb=1024, file_mb=64, pids=64, wall_s=60, disk_mb=64)


def sandbox(adapter: str, *, template: str | None = None, enforce: Enforce = Enforce.REQUIRED) -> Sandbox:
    """The sandbox of a check or a render: it keeps no record, for it shows the adapter and the template alone."""
    shown = (adapter,) if template is None else (adapter, template)
    return Sandbox(role="check", read=shown, limits=LIMITS, enforce=enforce)


def to_environment(strict: Sandbox) -> str:
    """A strict sandbox as ``HA_ADAPTER_SANDBOX`` holds it: one line of JSON, for the front door."""
    bounds = {bound.name: getattr(strict.limits, bound.name) for bound in fields(strict.limits)}
    document = {
        "role": strict.role,
        "read": list(strict.read),
        "enforce": strict.enforce.value,
        "limits": {name: value for name, value in bounds.items() if value is not None},
    }
    return json.dumps(document)
