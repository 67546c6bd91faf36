"""The behaviours every backend has to have, performed with Hermit's own API; prints what happened as JSON.

It runs as a program of its own, from standard input, so that the same text runs here and inside the image. What is
expected stands in the tests, not here.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import json
import os
import signal
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from door import front_door
from places import placed
from programs import AGENTS, FORKS, STUBBORN

from hermit.agent.result import Failure, handed_back
from hermit.domain.bind import Bind
from hermit.domain.command import Command
from hermit.domain.limits import Limits
from hermit.domain.sandbox import Sandbox
from hermit.errors import HermitError
from hermit.streams import Streams

if TYPE_CHECKING:
    from hermit.sandbox import Place

CLOCK_S = 60.0  # a bound on a test gone wrong, never what a behaviour is measured by
LETTER = "\N{LATIN SMALL LETTER E WITH ACUTE}\N{SNOWMAN}"


class Bench:
    """One backend, a scratch directory, and a short way to run a command."""

    def __init__(self, backend: str, place: Place, scratch: Path) -> None:
        self.backend = backend
        self.place = place
        self.scratch = scratch
        self.work = scratch / "work"
        self.shown = scratch / "shown"
        for directory in (self.work, self.shown):
            directory.mkdir()
            if place.owner is not None:
                os.chown(directory, *place.owner)
        (self.shown / "agents.py").write_text(AGENTS, encoding="utf-8")
        (self.shown / "data.txt").write_text("data", encoding="utf-8")
        self.records: list = []

    def sandbox(self, *, limits: dict | None = None, **changes) -> Sandbox:
        bounds = Limits(**{"wall_s": CLOCK_S, **(limits or {})})
        given = {"read": (str(self.shown),), "write": (str(self.work),), "cwd": str(self.work), "limits": bounds}
        return Sandbox(**{**given, **changes})

    def run(self, *argv, sandbox: Sandbox | None = None, stdin: bytes = b"", **more):
        command = Command(argv=argv, stdin=stdin)
        return self.place.run(sandbox or self.sandbox(), command, keep=self.records.append, **more)

    def shell(self, text: str, **more):
        return self.run("sh", "-c", text, **more)

    def python(self, source: str, *arguments: str, **more):
        return self.run("python", "-c", source, *arguments, **more)

    def agent(self, name: str, *, result_bytes: int = 1 << 16, **task):
        job = {
            "callable": f"{self.shown}/agents.py:{name}",
            "task": {"id": "t1", **task},
            "adapter": None,
            "params": {},
            "base": str(self.shown),
        }
        command = Command(
            worker="hermit.agent.worker:run_agent", job=json.dumps(job).encode(), result_bytes=result_bytes
        )
        outcome = self.place.run(self.sandbox(framework=True), command, keep=self.records.append)
        found = handed_back(command, outcome)
        return {"failure": found.cause, "error": found.error} if isinstance(found, Failure) else found

    def lock_is_free(self) -> bool:
        """Whether the stubborn grandchild, which held the lock, is gone."""
        with (self.work / "lock").open("a") as held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
        return True


def text(stream) -> str:
    return stream.kept.decode("utf-8", "backslashreplace")


def exit_codes(bench):
    return [bench.shell(f"exit {code}").code for code in (0, 1, 7, 126, 127, 255)]


def unstartable(bench):
    missing, directory, data = bench.run("no-such-program"), bench.run("/usr"), bench.run(f"{bench.shown}/data.txt")
    return {
        "missing": [missing.code, "no-such-program" in text(missing.stderr)],
        "a directory": directory.code,
        "no program": data.code,
    }


def signals(bench):
    ended = [bench.shell(f"kill -{name} $$") for name in ("TERM", "KILL", "SEGV", "PIPE")]
    return [[outcome.code, outcome.signal, outcome.shell_code, outcome.timed_out] for outcome in ended]


def stdin(bench):
    data = bytes(range(256)) * 4096
    echoed = bench.run("cat", stdin=data, sandbox=bench.sandbox(limits={"output_bytes": 1 << 21}))
    return {"whole": echoed.stdout.kept == data, "nothing": bench.run("cat").stdout.total}


def streams_apart(bench):
    outcome = bench.shell("echo out; echo err >&2")
    return [text(outcome.stdout), text(outcome.stderr)]


def binary_output(bench):
    source = (
        "import sys; sys.stdout.buffer.write(bytes(range(256)) + b'\\xff\\xfe\\x00'); sys.stderr.buffer.write(b'\\xff')"
    )
    outcome = bench.python(source)
    return [outcome.stdout.kept == bytes(range(256)) + b"\xff\xfe\x00", list(outcome.stderr.kept)]


def huge_output(bench):
    outcome = bench.shell(
        "head -c 52428800 /dev/zero; head -c 3000 /dev/zero >&2", sandbox=bench.sandbox(limits={"output_bytes": 1000})
    )
    out, err = outcome.stdout, outcome.stderr
    return [outcome.code, len(out.kept), out.total, out.dropped, len(err.kept), err.total]


def taken_over_streams(bench):
    target = bench.scratch / "taken"
    with target.open("wb") as file:
        outcome = bench.shell("echo to the file; echo kept >&2", streams=Streams(stdout=file.fileno()))
    return [target.read_text(encoding="utf-8"), outcome.stdout.total, text(outcome.stderr)]


def working_directory(bench):
    there = text(bench.run("pwd").stdout).strip() == str(bench.work)
    absent = bench.run("true", sandbox=bench.sandbox(cwd="/no/such/place"))
    return {"there": there, "absent": [absent.code, "/no/such/place" in text(absent.stderr)]}


def environment(bench):
    values = {"PLAIN": "1", "LINES": "a\nb\n", "LETTERS": LETTER, "EMPTY": "", "PATH": "/usr/bin:/bin"}
    host = {"MWM_A": "passes", "MWM_B": "passes", "SECRET": "stays", "PATH": "/usr/bin:/bin"}
    sandbox = bench.sandbox(env=tuple(values.items()), env_allow=("MWM_*",))
    outcome = bench.run("/usr/bin/env", "-0", sandbox=sandbox, variables=host)
    seen = dict(entry.split("=", 1) for entry in outcome.stdout.kept.decode("utf-8").split("\0") if entry)
    return {
        "names": sorted(seen),
        "declared": all(seen[name] == value for name, value in values.items() if name != "PATH"),
        "declared path": seen["PATH"] == values["PATH"],
        "recorded": set(bench.records[-1].variables) == set(seen),
        "values in the record": "a\\nb" in json.dumps(asdict(bench.records[-1]), default=str),
    }


def processors(bench):
    source = "import os; print(len(os.sched_getaffinity(0)))"
    outcome = bench.run("python3", "-c", source)
    return outcome.stdout.kept.decode().strip() == str(len(os.sched_getaffinity(0)))


def paths(bench):
    shown, work = bench.shown, bench.work
    read = bench.run("cat", f"{shown}/data.txt")
    spoiled = bench.shell(f"echo new > {shown}/made; rm {shown}/spare", sandbox=bench.sandbox())
    wrote = bench.shell(f"echo made inside > {work}/made && echo > {work}/sub")
    return {
        "read": text(read.stdout),
        "read-only was written": spoiled.code == 0 or (shown / "made").exists(),
        "written": [wrote.code, (work / "made").read_text(encoding="utf-8")],
    }


def missing_source(bench):
    try:
        outcome = bench.run("true", sandbox=bench.sandbox(read=(f"{bench.scratch}/absent",)))
    except HermitError as error:
        return [type(error).__name__, error.cause, "absent" in str(error), (bench.scratch / "absent").exists()]
    return outcome.code


def renamed_bind(bench):
    sandbox = bench.sandbox(binds=(Bind(str(bench.shown), "/w/other"),))
    try:
        return text(bench.run("cat", "/w/other/data.txt", sandbox=sandbox).stdout)
    except HermitError as error:
        return [type(error).__name__, error.cause]


def timeout_asks_first(bench):
    outcome = bench.shell(
        "trap 'echo goodbye; exit 3' TERM; echo up; while :; do sleep 0.05; done",
        sandbox=bench.sandbox(limits={"wall_s": 0.5}),
    )
    return [outcome.timed_out, text(outcome.stdout), outcome.code]


def timeout_kills_everything(bench):
    sandbox = bench.sandbox(limits={"wall_s": 1.0})
    outcome = bench.python(STUBBORN, f"{bench.work}/lock", "loud", "stay", sandbox=sandbox)
    return {
        "timed out": outcome.timed_out,
        "said": text(outcome.stdout),
        "gone": bench.lock_is_free(),
        "proven": bench.records[-1].empty,
        "recorded": bench.records[-1].ended.startswith("stopped after"),
    }


def leftovers(bench):
    facts = {}
    for manner in ("loud", "quiet"):
        outcome = bench.python(STUBBORN, f"{bench.work}/lock", manner, "go")
        facts[manner] = [outcome.code, outcome.timed_out, text(outcome.stdout), bench.lock_is_free()]
    return facts


def early_close(bench):
    outcome = bench.shell("exec >&- 2>&- <&-; sleep 0.2; exit 5")
    return [outcome.code, outcome.timed_out]


def parallel_starts(bench):
    gate = threading.Barrier(100)

    def one(number):
        gate.wait()
        return text(bench.shell(f"echo {number}").stdout).strip()

    with ThreadPoolExecutor(100) as pool:
        return list(pool.map(one, range(100))) == [str(number) for number in range(100)]


def loud_starts(bench):
    size = 2_000_000

    def one(_number):
        outcome = bench.shell(f"head -c {size} /dev/zero; head -c {size} /dev/zero >&2")
        return [outcome.code, outcome.stdout.total, outcome.stderr.total] == [0, size, size]

    with ThreadPoolExecutor(50) as pool:
        return all(pool.map(one, range(50)))


def memory_limit(bench):
    source = "import sys\ntry:\n    x = bytearray(400 << 20)\nexcept MemoryError:\n    sys.exit(9)"
    bounded = bench.python(source, sandbox=bench.sandbox(limits={"memory_mb": 200}))
    return [bounded.code, bench.python(source, sandbox=bench.sandbox(limits={"memory_mb": 800})).code]


def file_limit(bench):
    outcome = bench.run(
        "sh", "-c", "exec head -c 3000000 /dev/zero > big", sandbox=bench.sandbox(limits={"file_mb": 1})
    )
    return [outcome.signal == signal.SIGXFSZ, (bench.work / "big").stat().st_size]


def cpu_limit(bench):
    outcome = bench.shell("while :; do :; done", sandbox=bench.sandbox(limits={"cpu_s": 1}))
    return [outcome.signal in (signal.SIGKILL, signal.SIGXCPU), outcome.timed_out]


def pids_limit(bench):
    said = text(bench.python(FORKS, sandbox=bench.sandbox(limits={"pids": 16})).stdout).split()
    return {"refused": said[0] != "0", "at most": int(said[1]) <= 16, "some": int(said[1]) >= 8}


def scientific(bench):
    source = "import numpy, pandas, scipy.stats, torch; assert float(torch.ones(300, 300).sum()) == 90000"
    if importlib.util.find_spec("torch") is None:
        return "not installed"
    default = {name: getattr(Limits(), name) for name in ("memory_mb", "pids", "file_mb", "open_files", "tmp_mb")}
    outcome = bench.python(source, sandbox=bench.sandbox(limits=default))
    return [outcome.code, outcome.stderr.kept.decode()[-300:]]


def tmp_limit(bench):
    source = "head -c 3000000 /dev/zero > $1/big; echo $? $(stat -c %s $1/big); rm -f $1/big"
    sandbox = bench.sandbox(limits={"tmp_mb": 1})
    facts = {}
    for place in ("/tmp", "/dev/shm"):
        code, size = text(bench.run("sh", "-c", source, "sh", place, sandbox=sandbox).stdout).split()
        facts[place] = [code != "0", int(size) <= 1 << 20]
    return facts


def usage(bench):
    outcome = bench.python("x = b'x' * (64 << 20); sum(range(200000))")
    return [outcome.cpu_s > 0, 64 <= outcome.max_rss_mb < 1024, outcome.wall_s > 0]


def worker_value(bench):
    return bench.agent("value", text="x" * (5 << 20))["output"] == {
        "id": "t1",
        "size": 5 << 20,
        "cwd": str(bench.work),
    }


def worker_failures(bench):
    names = ("exception", "leave", "leave_at_once", "killed", "too_large", "not_json", "wrong_type")
    return {name: bench.agent(name) for name in names}


def worker_forged(bench):
    # Without a sandbox the other processes are this machine's own: there the worker alone is attacked.
    scope = "every process of the sandbox" if bench.place.confined else "the worker"
    found = bench.agent("forged", scope=scope)
    return {"as root": os.geteuid() == 0, "result": found.get("output", found.get("failure")), "log": found.get("log")}


def worker_descriptors(bench):
    return [bench.agent("descriptors"), bench.agent("forked")["output"]]


def command_descriptors(bench):
    # The descriptor of the listing itself is closed by the time it is looked up.
    source = "import os; print([n for n in os.listdir('/proc/self/fd') if int(n) > 2 and os.path.lexists(f'/proc/self/fd/{n}')])"
    return text(bench.python(source).stdout).strip()


def given_up(bench):
    reader, writer = os.pipe()
    timer = threading.Timer(0.5, os.close, (writer,))
    timer.start()
    try:
        bench.python(STUBBORN, f"{bench.work}/lock", "loud", "stay", cancel=reader)
    except HermitError as error:
        return [type(error).__name__, bench.lock_is_free()]
    finally:
        timer.join()
        os.close(reader)
    return "ran on"


BEHAVIOURS = (
    exit_codes, unstartable, signals, stdin, streams_apart, binary_output, huge_output, taken_over_streams,
    working_directory, environment, processors, paths, missing_source, renamed_bind, timeout_asks_first, timeout_kills_everything,
    leftovers, early_close, parallel_starts, loud_starts, memory_limit, file_limit, cpu_limit, pids_limit, scientific, tmp_limit, usage,
    worker_value, worker_failures, worker_forged, worker_descriptors, command_descriptors, given_up, front_door,
)  # fmt: skip


def main(backend: str) -> None:
    facts: dict = {}
    with tempfile.TemporaryDirectory(prefix="contract-") as scratch, placed(backend, scratch) as place:
        bench = Bench(backend, place, Path(scratch))
        for behaviour in BEHAVIOURS:
            try:
                facts[behaviour.__name__] = behaviour(bench)
            except Exception as error:  # noqa: BLE001 - one that breaks is a fact, and the others still count
                facts[behaviour.__name__] = f"raised {type(error).__name__}: {error}"
        facts["records"] = [asdict(record)["backend"] for record in bench.records[:1]]
        with contextlib.suppress(FileNotFoundError):
            (bench.work / "lock").unlink()
    json.dump(facts, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
