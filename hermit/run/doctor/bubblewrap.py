"""Which bubblewrap is here, and what is known to be wrong with it, found by trying."""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import TYPE_CHECKING

from hermit.bwrap import argv
from hermit.bwrap.preflight import NO_PROCESS
from hermit.proc import capture
from hermit.run.doctor.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ANSWER_S = 20
INSTALL = "apt-get install bubblewrap"


def probes(environ: Mapping[str, str], *, starts: bool) -> Iterator[Finding]:
    """The version, and whether a link in the parents of a mount point is followed.

    Args:
        environ: The host's variables.
        starts: Whether it starts here at all: a hole is looked for where there is a way to it.
    """
    program = shutil.which("bwrap", path=environ.get("PATH", ""))
    if program is None:
        yield Finding("bubblewrap", False, "no `bwrap` on the PATH", INSTALL, unconfined=True)
        return
    try:
        said = capture([program, "--version"], timeout_s=ANSWER_S)
    except (OSError, TimeoutError) as error:
        cure = NO_PROCESS.cure if isinstance(error, BlockingIOError) else INSTALL
        yield Finding("bubblewrap", False, f"{program} does not run: {error}", cure, unconfined=True)
        return
    words = said.stdout.decode(errors="replace").split()
    right = said.code == 0 and words[:1] == ["bubblewrap"] and bool(words[1:])
    found = f"{words[1]} at {program}" if right else f"{program} is not bubblewrap: it says {said.last_words!r}"
    yield Finding("bubblewrap", right, found, INSTALL, unconfined=True)
    if right and starts:
        yield link_parent(program)


def link_parent(program: str) -> Finding:
    """Whether a link that a command has made leads a later mount out of its place.

    A mount point is asked for below ``work/link``, and ``link`` leads to a directory of the machine, by the name that the
    machine's root has while bubblewrap mounts. One that follows the link leaves the mount point in there.
    """
    name = "links above mounts"
    try:
        with tempfile.TemporaryDirectory(prefix="hermit-check-") as home:
            followed = _followed(program, home)
    except (OSError, TimeoutError) as error:
        return Finding(name, True, f"not tried: {error}")
    if followed:
        found = "followed out of the sandbox; Hermit mounts nothing below what a command can write"
        return Finding(name, False, found, "use bubblewrap 0.12 or newer", needed=False)
    return Finding(name, True, "not followed")


def _followed(program: str, home: str) -> bool:
    work, beside = os.path.join(home, "work"), os.path.join(home, "beside")
    os.mkdir(work)
    os.mkdir(beside)
    os.symlink(f"/oldroot{beside}", os.path.join(work, "link"))
    capture([program, *argv.below_a_link(work), "/usr/bin/true"], timeout_s=ANSWER_S)
    return bool(os.listdir(beside))
