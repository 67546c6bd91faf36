"""Whether somebody's own image can hold sandboxes: what it has of Hermit, bubblewrap and the interpreter.

The image is asked in a closed container, with the options that it would run with.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import hermit
from hermit.errors import PlaceError
from hermit.oci import engine as engines
from hermit.oci.argv import Container, run_arguments
from hermit.oci.container import suited
from hermit.oci.failure import failure
from hermit.proc import capture

if TYPE_CHECKING:
    from hermit.oci.engine import Engine

LEAST_BUBBLEWRAP = (0, 12)
LEAST_PYTHON = (3, 11)
ANSWER_S = 120.0
ASKED = """
import json, os, shutil, subprocess, sys
said = {"python": list(sys.version_info[:3]), "uid": os.getuid()}
try:
    import hermit
    said["hermit"] = hermit.__version__
except Exception as error:
    said["broken"] = f"{type(error).__name__}: {error}"
bwrap = shutil.which("bwrap")
said["bubblewrap"] = ""
if bwrap:
    ran = subprocess.run([bwrap, "--version"], capture_output=True, text=True)
    said["bubblewrap"] = ran.stdout.strip() or f"does not start: {ran.stderr.strip()}"
    level = [bwrap, "--unshare-user", "--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true"]
    ran = subprocess.run(level, capture_output=True, text=True)
    said["starts"] = "" if ran.returncode == 0 else ran.stderr.strip() or f"it ended with {ran.returncode}"
print("hermit-fit " + json.dumps(said))
"""


@dataclass(frozen=True)
class Fitness:
    """One thing that an image needs in order to hold sandboxes.

    Args:
        name: What it is.
        ok: Whether the image has it.
        found: What was found.
        cure: What to do where it is missing.
    """

    name: str
    ok: bool
    found: str
    cure: str = ""


def judged(engine: Engine, image: str) -> tuple[Fitness, ...]:
    """What an image has and lacks to hold sandboxes; nothing is pulled.

    Args:
        engine: The engine that has it.
        image: Its reference.

    Returns:
        A finding each for the image, its interpreter, Hermit in it, bubblewrap, and a sandbox that was started. Where
        one makes the others unanswerable, they are left out.

    Raises:
        PlaceError: The engine does not answer any more.
    """
    found = engines.image_id(engine, image)
    if found is None:
        cure = f"build it, or get it with `hermit image pull {image}`"
        return (Fitness("image", False, f"the image {image} does not exist here", cure),)
    here = Fitness("image", True, f"{image}, {found[:19]}")
    said = _asked(engine, image)
    if isinstance(said, Fitness):
        return (here, said)
    return (here, *_findings(said, image))


def _asked(engine: Engine, image: str) -> dict[str, object] | Fitness:
    container = Container(
        image=image,
        entrypoint="python",
        command=("-c", ASKED),
        tmp_mb=64,
        memory_mb=1024,
        pids=128,
        **suited(engine),
    )
    cure = f"start it from ours: FROM hermit:{hermit.__version__}, and leave PATH, USER and /opt/hermit as they are"
    try:
        finished = capture(run_arguments(container, program=engine.program), timeout_s=ANSWER_S)
    except TimeoutError:
        raise PlaceError(f"the image {image} does not answer", where=engine.program, cure="make engine") from None
    words = finished.stdout.decode(errors="replace")
    answer = re.search(r"^hermit-fit (\{.*\})$", words, re.MULTILINE)
    if answer is not None:
        said: dict[str, object] = json.loads(answer[1])
        return said
    refused = failure(finished.code, finished.stderr.decode(errors="replace"), program=engine.program, image=image)
    what = refused.what if refused is not None else f"its python does not answer: {finished.last_words}"
    return Fitness("interpreter", False, what, cure)


def _findings(said: dict[str, object], image: str) -> tuple[Fitness, ...]:
    own = f"start it from ours: FROM hermit:{hermit.__version__}"
    python = tuple(said["python"]) if isinstance(said["python"], list) else ()
    version = str(said.get("hermit", ""))
    program = str(said["bubblewrap"])
    number = tuple(int(one) for one in re.findall(r"\d+", program)[:2]) if program.startswith("bubblewrap ") else ()
    starts = str(said.get("starts", "there is no bubblewrap to start"))
    return (
        Fitness("interpreter", python >= LEAST_PYTHON, "Python " + ".".join(map(str, python)), own),
        Fitness(
            "hermit",
            version == hermit.__version__,
            f"version {version}" if version else str(said.get("broken", "none")),
            f"{own}, whose version is that of this Hermit, and build {image} again",
        ),
        Fitness("bubblewrap", number >= LEAST_BUBBLEWRAP, program or "none", f"{own}, or install 0.12 or newer"),
        Fitness("sandbox", not starts, starts or "one was started", "run `hermit check` in it for the cause"),
    )
