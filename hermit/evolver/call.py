"""A tool of the trainer's from a shell: ``python -m hermit.evolver.call TOOL [JSON]``, with ``-`` for standard input.

It prints what the tool returned as JSON and ends with 0; where the tool failed it says why on standard error and ends with 1.
"""

from __future__ import annotations

import json
import os
import sys

from hermit import environ
from hermit.evolver.tools import Tool, ToolError

USAGE = "usage: python -m hermit.evolver.call TOOL [JSON | -]"
VARIABLE = "HERMIT_TOOL_URL"
LONGEST_S = 24 * 60 * 60.0  # the trainer ends a tool that takes too long


def main(words: list[str]) -> int:
    """Calls the tool; returns the exit code."""
    url = environ.snapshot().get(VARIABLE, "")
    if len(words) not in (1, 2) or words[0].startswith("-"):
        return _say(2, USAGE, code=2)
    if not url:
        return _say(2, f"{VARIABLE} is not set: there is no trainer here", code=2)
    try:
        text = "{}" if len(words) == 1 else _standard_input() if words[1] == "-" else words[1]
        returned = Tool(name=words[0], url=url, timeout_s=LONGEST_S)(json.loads(text))
    except ValueError as error:
        return _say(2, f"what {words[0]} is given is no JSON: {error}", code=2)
    except ToolError as error:
        return _say(2, str(error), code=1)
    return _say(1, json.dumps(returned), code=0)


def _standard_input() -> str:
    with open(0, "rb", closefd=False) as file:
        return file.read().decode()


def _say(descriptor: int, words: str, *, code: int) -> int:
    data = f"{words}\n".encode("utf-8", "backslashreplace")
    while data:
        data = data[os.write(descriptor, data) :]
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
