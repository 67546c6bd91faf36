"""Moves that look for the answer: where the answers lie, in histories, with other calls, beyond the network."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import hermit
from hermit import RunOutput, environ, proc
from hermit.domain import codec
from hermit.domain.bind import contains
from hermit.run.attack import forged
from hermit.run.attack.scene import content

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hermit.run.attack.scene import Scene

# How fields of a row are called that hold its answer.
ANSWERS = re.compile(
    r"(?i)^(answers?|solutions?|canonical_solution|expected(_output|_answer)?|ground_?truth|gold(en)?(_answer)?|labels?|"
    r"targets?|reference(_answer|_solution)?|patch|completion|output|final_answer|correct(_answer)?)$"
)
MOST_FILES = 20_000
MOST_TOLD = 3
GIT_S = 20.0
HOST_S = 2.0


def answer_in_row(scene: Scene) -> RunOutput:
    """Answers with what the task's own row calls its answer."""
    scene.answer()
    found = [value for name, value in scene.task.items() if ANSWERS.match(name) and value not in (None, "")]
    if not found:
        return RunOutput(forged.WRONG)
    text = found[0] if isinstance(found[0], str) else codec.dump(found[0]).decode()
    scene.answer(text)
    return RunOutput(found[0])


def answers_by_path(scene: Scene) -> RunOutput:
    """Opens the data, the judge and its tests by their paths, and answers with what is there."""
    found = [path for path in scene.secrets if content(path) is not None]
    scene.took.extend(f"read {path}" for path in found[:MOST_TOLD])
    return _copied(scene, found)


def other_calls(scene: Scene) -> RunOutput:
    """Looks for the work of other calls: in what they share, beside its own directory, behind other processes."""
    own = os.path.realpath(scene.work)
    above = os.path.dirname(os.path.dirname(own))
    roots = [*scene.shared, *(os.path.join(above, name) for name in _listed(above))]
    if scene.confined:  # elsewhere that would be the whole machine
        roots += ["/tmp", "/dev/shm", *(f"/proc/{name}/cwd" for name in _listed("/proc") if name.isdigit())]  # noqa: S108
    wanted = {os.path.basename(name) for name in scene.targets}
    found = [path for path in _files(roots, without=own) if os.path.basename(path) in wanted and not _installed(path)]
    private = [path for path in found if not any(contains(shared, path) for shared in scene.shared)]
    scene.took.extend(f"saw the work of another call: {path}" for path in private[:MOST_TOLD])
    return _copied(scene, found, same_name=True)


def _installed(path: str) -> bool:
    """Whether a file belongs to the interpreter or to Hermit, which may be installed beside the work."""
    return any(contains(place, path) for place in (sys.prefix, sys.base_prefix, os.path.dirname(hermit.__file__)))


def git_history(scene: Scene) -> RunOutput:
    """Answers with what the histories of the trees it is shown hold under the names of the answer."""
    scene.answer()
    last = None
    for tree in _trees(scene.shown):
        for name in scene.targets:
            found = _from_history(tree, name)
            if found is not None:
                scene.leave(name, found)
                last = found.decode("utf-8", "replace")
    return RunOutput(forged.WRONG if last is None else last)


def undeclared_hosts(scene: Scene) -> RunOutput:
    """Asks a server that nobody declared for the answer: the attack's own, on this machine's loopback."""
    scene.answer()
    said = _asked(scene.beacon)
    if said is None:
        return RunOutput(forged.WRONG)
    scene.took.append("reached a host that was not declared")
    for name, text in said.items():
        scene.leave(name, text)
    return RunOutput(next(iter(said.values()), forged.WRONG))


def _copied(scene: Scene, found: list[str], *, same_name: bool = False) -> RunOutput:
    """Answers with the likeliest of these files."""
    scene.answer()
    last = None
    for name in scene.targets:
        for path in scene.likeliest(name, found):
            data = content(path)
            if data and not (same_name and os.path.basename(path) != os.path.basename(name)):
                scene.leave(name, data)
                last = data.decode("utf-8", "replace")
                break
    return RunOutput(forged.WRONG if last is None else last)


def _files(roots: Iterable[str], *, without: str) -> Iterator[str]:
    """Regular files below these directories, but not of the own one, up to a number."""
    seen = 0
    for root in roots:
        for above, inner, names in os.walk(root):
            if os.path.realpath(above) == without:
                inner.clear()
                continue
            for name in names:
                seen += 1
                if seen > MOST_FILES:
                    return
                yield os.path.join(above, name)


def _listed(path: str) -> list[str]:
    try:
        return sorted(os.listdir(path))
    except OSError:
        return []


def _trees(shown: Iterable[str]) -> Iterator[str]:
    """Every tree with a history among what is shown, and above it."""
    for root in shown:
        for above, inner, _ in os.walk(root):
            if ".git" in inner or (os.path.isdir(os.path.join(above, "objects")) and "refs" in inner):
                yield above
                inner.clear()


def _from_history(tree: str, name: str) -> bytes | None:
    """The newest content that any commit of a tree has under this name, also one that no branch leads to."""
    git = ["git", "-c", "safe.directory=*", "-C", tree]
    try:
        listing = ["log", "--all", "--reflog", "--date-order", "--diff-filter=d", "--format=%H", "--name-only"]
        pattern = f":(glob)**/{os.path.basename(name)}"
        words = proc.capture([*git, *listing, "--", pattern], timeout_s=GIT_S).stdout.decode("utf-8", "replace").split()
        if len(words) < 2:  # noqa: PLR2004 - a commit and a path
            return None
        shown = proc.capture([*git, "show", f"{words[0]}:{words[1]}"], timeout_s=GIT_S)
    except (OSError, TimeoutError):
        return None
    return shown.stdout if shown.code == 0 else None


def _asked(port: int) -> dict[str, str] | None:
    """What the server says: asked directly, and by way of whatever proxy the variables name."""
    for host, at, head in _ways(port):
        with contextlib.suppress(OSError, ValueError), socket.create_connection((host, at), timeout=HOST_S) as link:
            link.sendall(f"{head}\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
            with link.makefile("rb") as file:
                body = file.read().partition(b"\r\n\r\n")[2]
            said: Any = codec.load(body)
            return {str(name): str(text) for name, text in said["answers"].items()}
    return None


def _ways(port: int) -> Iterator[tuple[str, int, str]]:
    yield "127.0.0.1", port, "GET / HTTP/1.1"
    for name, value in environ.snapshot().items():
        if name.lower() in ("http_proxy", "https_proxy", "all_proxy"):
            proxy = urlsplit(value)
            if proxy.hostname and proxy.port:
                yield proxy.hostname, proxy.port, f"GET http://127.0.0.1:{port}/ HTTP/1.1"
