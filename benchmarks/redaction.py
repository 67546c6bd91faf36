"""How fast the keys are taken out of what a run keeps, in GB of text for each second of processor time.

    python benchmarks/redaction.py [--megabytes N]

Twenty keys of one vendor, which all begin alike, over a quarter of random bytes and three quarters of text, in which none
stands. Reading the same bytes is measured beside it. Processor time, for a shared machine's clock measures its neighbours.
"""

from __future__ import annotations

import argparse
import os
import secrets
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from hermit.handoff import redact, scrub

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 5
LINE = b'{"role": "assistant", "content": "def f(x):\\n    return x + 1  # sk- is how a key begins"}\n'


def rate(action: Callable[[], object], size: int) -> float:
    """The median of a few rounds, in GB a second of processor time."""
    found = []
    for _ in range(ROUNDS):
        began = time.process_time()
        action()
        found.append(size / (time.process_time() - began) / 1e9)
    return statistics.median(found)


def read(path: Path) -> None:
    """Reads a file in the pieces that a search reads it in."""
    with path.open("rb", buffering=0) as file:
        while file.read(redact.PIECE):
            pass


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=256)
    megabytes = parser.parse_args().megabytes
    keys = [redact.Key(f"N{number}_API_KEY", "sk-" + secrets.token_urlsafe(32)) for number in range(20)]
    coded = redact.Redactor(keys)
    forms, redact.forms = redact.forms, lambda value: (value.encode(),)
    plain = redact.Redactor(keys)
    redact.forms = forms
    with tempfile.TemporaryDirectory(prefix="hermit-redaction-") as root:
        file = Path(root) / "kept"
        unit = os.urandom(1 << 20) + (LINE * ((3 << 20) // len(LINE) + 1))[: 3 << 20]
        file.write_bytes(unit * (megabytes // 4))
        size = file.stat().st_size
        print(f"search: {'ahocorasick_rs' if redact.fast_search() else 'standard library'}, {size >> 20} MiB")
        print(f"reading alone                    {rate(lambda: read(file), size):6.2f} GB/s")
        print(
            f"20 keys                          {rate(lambda: scrub.tree(plain, root, found=redact.Found()), size):6.2f} GB/s"
        )
        print(
            f"20 keys with their encoded forms {rate(lambda: scrub.tree(coded, root, found=redact.Found()), size):6.2f} GB/s"
        )


if __name__ == "__main__":
    main()
