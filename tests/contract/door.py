"""The behaviour of the front door: a program of its own, wherever the others start their sandboxes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path


def front_door(bench):
    # A process of its own, on this side of any launcher: its files are its caller's.
    with tempfile.TemporaryDirectory(prefix="contract-door-") as directory:
        return through_the_door(bench, Path(directory), Path(directory, "spec.json"))


def through_the_door(bench, work, spec):
    fields = {"role": "tool", "write": [str(work)], "cwd": str(work), "enforce": "best_effort"}
    spec.write_text(json.dumps(fields), encoding="utf-8")
    hidden = {"PATH": "/nowhere"} if bench.backend == "unconfined" else {}
    python = [sys.executable, "-m", "hermit.sandbox"]

    def door(*words, stdin=b""):
        ran = subprocess.run(
            [*python, *words], input=stdin, env={**os.environ, **hidden}, capture_output=True, check=False
        )
        return [ran.returncode, ran.stdout.decode()]

    return {
        "input and code": door(str(spec), "--", "/bin/sh", "-c", "/bin/cat; exit 7", stdin=b"through"),
        "missing": door(str(spec), "--", "/no/program")[0],
        "signal": door(str(spec), "--", "/bin/sh", "-c", "kill -TERM $$")[0],
        "from stdin": door("-", "--", "/bin/sh", "-c", "exit 3", stdin=json.dumps(fields).encode())[0],
        "no spec": door("/no/spec.json", "--", "true")[0],
        "broken spec": door("-", "--", "true", stdin=b"{")[0],
        "no command": door(str(spec))[0],
        "closed input": shut([*python, str(spec), "--", "/bin/echo", "heard"], hidden),
    }


def shut(words, hidden):
    """A front door whose caller closed the standard input; it starts with descriptor 0 free."""
    shell = ["/bin/sh", "-c", 'exec "$@" <&-', "sh", *words]
    ran = subprocess.run(shell, env={**os.environ, **hidden}, capture_output=True, check=False)
    return [ran.returncode, ran.stdout.decode()]
