"""Where a backend starts its sandboxes."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from hermit import sandbox as sandboxes

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def placed(backend: str, scratch: str) -> Iterator[sandboxes.Place]:
    """Where this backend starts its sandboxes, with what they share below ``scratch``."""
    if backend != "launcher":
        yield sandboxes.preflight() if backend == "bubblewrap" else sandboxes.unconfined("the contract says so")
        return
    from hermit.oci import engine as engines
    from hermit.oci.launcher import Launcher
    from hermit.oci.life import Shape

    engine = engines.find(os.environ)
    image = engines.image_id(engine, "hermit")
    with Launcher(engine, Shape(image=image, name="hermit", exchange=scratch, memory_mb=3072)) as launcher:
        yield sandboxes.Place(launcher, launcher.record, launcher.owner)
