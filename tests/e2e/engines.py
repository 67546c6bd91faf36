"""An engine of a test's own: it can be stopped, killed and emptied without anybody else noticing.

It runs in a network namespace of its own, because an engine that has no bridge removes that of the machine's. Its image is
ours without the large packages, which no test here needs: that one is there in seconds.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from hermit.run.place import VERSION_LABEL

if TYPE_CHECKING:
    from collections.abc import Iterator

LARGE = ("torch*", "scipy*", "pandas*", "numpy*", "sympy*", "networkx*")
PACKAGES = "opt/hermit/lib/python3.11/site-packages"
WITHIN_S = 90.0


class OwnEngine:
    """A dockerd with its own data, reached by its own socket."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.address = f"unix://{home}/engine.sock"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def variables(self) -> dict[str, str]:
        """What a command needs to find it."""
        return {"DOCKER_HOST": self.address}

    def ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Asks it by its client."""
        env = {**os.environ, **self.variables}
        return subprocess.run(["docker", *words], capture_output=True, text=True, env=env, check=False)

    def start(self) -> None:
        """Starts it, and waits until it answers."""
        home = self.home
        with open(home / "log", "ab") as log:
            places = ["--data-root", str(home / "data"), "--exec-root", str(home / "exec")]
            places += ["--pidfile", str(home / "pid"), "--host", self.address]
            argv = ["unshare", "--net", "dockerd", *places, "--bridge", "none", "--iptables=false"]
            self._process = subprocess.Popen(argv, stdout=log, stderr=log, start_new_session=True)
        deadline = time.monotonic() + WITHIN_S
        while self.ask("version").returncode:
            assert self._process.poll() is None, (home / "log").read_text()[-2000:]
            assert time.monotonic() < deadline, "the engine of the test never answered"
            time.sleep(0.1)

    def end(self, number: int = signal.SIGTERM) -> None:
        """Ends it by a signal; what it started ends with it, or is found again by the next start."""
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process.pid, number)
        self._process.wait(WITHIN_S)
        self._process = None
        # As `make engine` does: its number may be somebody else's by now, and the next start would wait for that.
        (self.home / "exec" / "containerd" / "containerd.pid").unlink(missing_ok=True)

    def remove(self) -> None:
        """Ends it and everything it started, and takes its data away."""
        if self._process is not None:
            for name in self.ask("ps", "--all", "--quiet").stdout.split():
                self.ask("rm", "--force", name)
            self.end(signal.SIGKILL)  # nothing of it is needed, and it may take its time to end
        for line in reversed(Path("/proc/self/mountinfo").read_text().splitlines()):
            place = line.split()[4]
            if place.startswith(f"{self.home}/"):
                subprocess.run(["umount", "--lazy", place], check=False)
        shutil.rmtree(self.home, ignore_errors=True)


def small_image(tar: Path) -> None:
    """Ours without what is large, as a file, out of the machine's engine."""
    made = subprocess.run(["docker", "create", "hermit"], capture_output=True, text=True, check=True).stdout.strip()
    try:
        patterns = [f"{PACKAGES}/{name}" for name in LARGE]
        with subprocess.Popen(["docker", "export", made], stdout=subprocess.PIPE) as export, tar.open("wb") as file:
            less = ["tar", "--delete", "--file", "-", "--wildcards", *patterns]
            subprocess.run(less, stdin=export.stdout, stdout=file, check=True)
    finally:
        subprocess.run(["docker", "rm", "--force", made], capture_output=True, check=True)


def give_image(engine: OwnEngine, tar: Path) -> None:
    """Puts the small image where its runs look for it, by both names."""
    label = 'index .Config.Labels "{}"'
    words = ["docker", "image", "inspect", "--format", "{{" + label.format(VERSION_LABEL) + "}}", "hermit"]
    version = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    settings = ["ENV PATH=/opt/hermit/bin:/usr/local/bin:/usr/bin:/bin", "USER 1000:1000", "ENV HOME=/tmp"]
    changes = [word for line in (*settings, f"LABEL {VERSION_LABEL}={version}") for word in ("--change", line)]
    said = engine.ask("import", *changes, str(tar), "hermit")
    assert said.returncode == 0, said.stderr
    engine.ask("tag", "hermit", "hermit-judge")


@contextlib.contextmanager
def own_engine() -> Iterator[OwnEngine]:
    """One that has the small image; it is gone afterwards."""
    home = Path(tempfile.mkdtemp(prefix="engine-", dir="/tmp"))
    engine = OwnEngine(home)
    try:
        engine.start()
        small_image(home / "hermit.tar")
        give_image(engine, home / "hermit.tar")
        yield engine
    finally:
        engine.remove()
