"""What the tests share: where sandboxes can start, what a missing tool means, and that nothing is left behind."""

from __future__ import annotations

import functools
import glob
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hermit import sandbox as sandboxes
from hermit.bundle import FIRST_WORDS
from hermit.errors import PlaceError
from hermit.oci import engine as engines
from hermit.run import place as places

ROOT = Path(__file__).resolve().parent.parent
NEEDS = frozenset(filter(None, os.environ.get("HERMIT_TEST_NEEDS", "").split(",")))


def registry_program() -> str | None:
    """Debian's registry, installed or beside this interpreter."""
    return shutil.which("docker-registry", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}")


def browser_program() -> str | None:
    """A Chromium that starts without a screen."""
    names = ("chromium", "chromium-headless-shell", "google-chrome")
    return next(filter(None, map(shutil.which, names)), None)


@functools.cache
def missing(tool: str) -> str:
    """Why a tool is not to be had here; empty where it is."""
    try:
        if tool == "bwrap":
            sandboxes.preflight()
        elif tool == "registry":
            return "" if registry_program() else "docker-registry is missing  -> scripts/registry.sh"
        elif tool == "chromium":
            return "" if browser_program() else "chromium is missing  -> scripts/chromium.sh"
        else:
            found = engines.find(os.environ)
            if tool == "image":
                places.refuse_unfit_image(found, "hermit")
    except PlaceError as error:
        return str(error)
    return ""


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test whose tool is missing is skipped, and fails where HERMIT_TEST_NEEDS says that it must run."""
    needs = {"bwrap": "bwrap", "docker": "docker", "image": "docker", "registry": "docker", "chromium": "chromium"}
    wanting = [tool for tool in needs if item.get_closest_marker(tool) is not None and missing(tool)]
    for tool in wanting:
        if needs[tool] in NEEDS:
            pytest.fail(f"{tool} is needed here: {missing(tool)}", pytrace=False)
    for tool in wanting:
        pytest.skip(f"{tool}: {missing(tool)}")


@pytest.fixture(scope="session")
def place() -> sandboxes.Place:
    """Bubblewrap on this machine; ask for the marker `bwrap` beside it."""
    return sandboxes.preflight()


@pytest.fixture(scope="session")
def engine() -> engines.Engine:
    """The container engine of this machine; ask for the marker `docker` beside it."""
    return engines.find(os.environ)


@pytest.fixture(scope="session")
def chromium() -> str:
    """The browser of this machine; ask for the marker `chromium` beside it."""
    return browser_program() or "chromium"


def left_behind() -> set[str]:
    """Everything of ours that could outlive a test: containers, mounts, processes, control groups, scratch."""
    found = {f"directory {path}" for path in Path("/tmp").glob("hermit-*")}
    for hierarchy in ("memory", "pids"):
        found |= {
            f"control group {path}" for path in glob.glob(f"/sys/fs/cgroup/{hierarchy}/**/hermit-*", recursive=True)
        }
    mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    found |= {f"mount {line.split()[4]}" for line in mounts if "hermit" in line.split()[4]}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            found |= _process(entry)
    if not missing("docker"):
        program = engines.find(os.environ).program
        asked = [
            ("ps", "--all", "--format", "container {{.Names}}"),
            ("images", "--format", "image {{.Repository}}:{{.Tag}}"),
        ]
        for words in asked:
            listed = subprocess.run([program, *words], capture_output=True, text=True, check=False)
            found |= {line for line in listed.stdout.splitlines() if "<none>" not in line}
    return found


def _process(entry: Path) -> set[str]:
    try:
        command = (entry / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return set()
    ours = os.path.basename(command[0]) == b"bwrap" or FIRST_WORDS.encode() in command
    return {f"process {b' '.join(command).decode(errors='replace')[:120]}"} if ours else set()


def pytest_configure() -> None:
    """Takes every signal as it comes by default: a session that `nohup` or a shell's `&` started ignores some of them.

    What is ignored is inherited, by the programs of the tests too, and some of these say what a signal does to them.
    """
    for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Notes what was there before; the workers of a parallel run leave that to the one that started them."""
    if not hasattr(session.config, "workerinput"):
        session.config.stash[BEFORE] = left_behind()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """The whole session fails where it left anything behind."""
    if BEFORE not in session.config.stash:
        return
    left = left_behind() - session.config.stash[BEFORE]
    if left:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        print("\nthe tests left behind:\n  " + "\n  ".join(sorted(left)))


BEFORE = pytest.StashKey[set[str]]()
