"""Says whether a directory is an adapter of a template: ``python -m hermit.spec ADAPTER --root TEMPLATE``."""

from __future__ import annotations

import sys

from hermit.cli import main, spec

if __name__ == "__main__":
    sys.exit(main.run(sys.argv[1:], program=spec.app, name="python -m hermit.spec"))
