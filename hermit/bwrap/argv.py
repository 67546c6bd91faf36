"""The order of operations that sets a sandbox up, as values, and their spelling as bubblewrap options. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from hermit.domain.bind import Bind, contains
from hermit.domain.limits import MIB
from hermit.domain.network import Network
from hermit.domain.sandbox import GID, UID

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from hermit.domain.sandbox import Sandbox

# Written out one by one: the option for all of them together only tries the user namespace.
NAMESPACES = ("user", "pid", "ipc", "uts", "cgroup", "mnt", "net")
# bubblewrap accepts at most 9000 arguments, those of its argument file included.
MOST_ARGUMENTS = 9000
EMPTY_SIZE = 4096
# The first version that mounts what a descriptor leads to, and compares the two afterwards.
FIRST_WITH_DESCRIPTORS = (0, 10)
NO_SOURCES: Mapping[Bind, int] = MappingProxyType({})


@dataclass(frozen=True)
class Show:
    """A path of the place, shown inside."""

    bind: Bind

    def options(self, descriptor: int | None = None) -> tuple[str, ...]:
        """Its spelling: with a descriptor of the source where there is one, else by the source's path."""
        option = "--bind" if self.bind.writable else "--ro-bind"
        if descriptor is None:
            return (option, self.bind.source, self.bind.target)
        return (f"{option}-fd", str(descriptor), self.bind.target)


@dataclass(frozen=True)
class Link:
    """A symbolic link of the sandbox's own."""

    text: str
    path: str

    def options(self) -> tuple[str, ...]:
        """Its spelling."""
        return ("--symlink", self.text, self.path)


@dataclass(frozen=True)
class Scratch:
    """An empty directory in memory, writable and bounded."""

    path: str
    size: int

    def options(self) -> tuple[str, ...]:
        """Its spelling."""
        return ("--size", str(self.size), "--tmpfs", self.path)


@dataclass(frozen=True)
class Empty:
    """An empty read-only directory in place of what would be there."""

    path: str

    def options(self) -> tuple[str, ...]:
        """Its spelling."""
        return ("--size", str(EMPTY_SIZE), "--tmpfs", self.path, "--remount-ro", self.path)


@dataclass(frozen=True)
class Seal:
    """What was built at this path so far can no longer be changed."""

    path: str

    def options(self) -> tuple[str, ...]:
        """Its spelling."""
        return ("--remount-ro", self.path)


@dataclass(frozen=True)
class Kernel:
    """A fresh ``/proc`` or ``/dev``."""

    kind: str

    def options(self) -> tuple[str, ...]:
        """Its spelling."""
        return (f"--{self.kind}", f"/{self.kind}")


@dataclass(frozen=True)
class File:
    """A small file of the sandbox's own, made anew in each and sealed with the directory it lies in."""

    path: str
    content: bytes

    def options(self, descriptor: int) -> tuple[str, ...]:
        """Its spelling, with a descriptor that holds the content."""
        return ("--perms", "0444", "--file", str(descriptor), self.path)


@dataclass(frozen=True)
class Filter:
    """System calls that nobody inside can make, as the kernel's seccomp reads them."""

    content: bytes
    path: str = "seccomp"  # what its descriptor goes by; it lies nowhere

    def options(self, descriptor: int) -> tuple[str, ...]:
        """Its spelling, with a descriptor that holds the content."""
        return ("--seccomp", str(descriptor))


# What bubblewrap reads from a descriptor.
Handed = File | Filter
Operation = Show | Link | Scratch | Empty | Seal | Kernel | Handed


def operations(
    sandbox: Sandbox,
    *,
    system: Iterable[Operation],
    python: Iterable[Operation],
    kernel: Iterable[Operation] = (Kernel("proc"), Kernel("dev")),
) -> tuple[Operation, ...]:
    """The operations in the order they are carried out: the system, the kernel's own, then parents before children.

    Args:
        sandbox: What is shown.
        system: What of the place every sandbox shows.
        python: The interpreter with its environment.
        kernel: What lies at ``/proc`` and ``/dev``.

    Raises:
        ValueError: A path of the sandbox's own would be shown below a directory that the command can write, or two
            would be shown at one place.
    """
    own: list[Operation] = [Show(bind) for bind in sandbox.mounts]
    placed = sorted({*python, *own}, key=_depth)
    _refuse_conflicts(placed)
    placed, opened = _opened(placed)
    size = sandbox.limits.tmp_mb * MIB
    return (
        *system,
        *kernel,
        Scratch("/dev/shm", size),  # noqa: S108 - the sandbox's own
        Seal("/dev"),
        Scratch("/tmp", size),  # noqa: S108 - the sandbox's own
        *placed,
        *opened,
        Seal("/"),
    )


def _opened(placed: list[Operation]) -> tuple[list[Operation], list[Seal]]:
    """An empty directory in which something is shown is closed once everything is in its place."""
    places = [place(operation) for operation in placed]

    def holds(operation: Operation) -> bool:
        return isinstance(operation, Empty) and any(
            contains(operation.path, path) for path in places if path != operation.path
        )

    opened = [operation.path for operation in placed if isinstance(operation, Empty) and holds(operation)]
    built = [Scratch(place(operation), EMPTY_SIZE) if holds(operation) else operation for operation in placed]
    return built, [Seal(path) for path in opened]


def covered(plan: tuple[Operation, ...], covers: Iterable[Operation]) -> tuple[Operation, ...]:
    """The plan with covers over what it shows; the root is sealed after them."""
    *built, seal = plan
    return (*built, *covers, seal)


def place(operation: Operation) -> str:
    """Where inside an operation puts something."""
    return operation.bind.target if isinstance(operation, Show) else getattr(operation, "path", "/")


def _depth(operation: Operation) -> tuple[int, str]:
    path = place(operation)
    return path.count("/"), path


def _refuse_conflicts(placed: list[Operation]) -> None:
    writable: list[str] = []
    seen: dict[str, Operation] = {}
    for operation in placed:
        path = place(operation)
        for root in writable:
            if contains(root, path):
                raise ValueError(
                    f"{root} cannot be shown writable: {path} has to be shown below it, and a link left there would "
                    "lead that mount out of the sandbox"
                )
        if path in seen and seen[path] != operation:
            raise ValueError(f"{path} would be shown twice, once by the sandbox itself")
        seen[path] = operation
        if isinstance(operation, Show) and operation.bind.writable:
            writable.append(path)


def takes_descriptors(version: str) -> bool:
    """Whether a bubblewrap mounts what a descriptor leads to; an older one looks every path up again."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return found is not None and (int(found[1]), int(found[2])) >= FIRST_WITH_DESCRIPTORS


def options(
    sandbox: Sandbox,
    plan: Iterable[Operation],
    *,
    status: int,
    texts: Mapping[str, int],
    sources: Mapping[Bind, int] = NO_SOURCES,
    shared: Container[str] = (),
) -> tuple[str, ...]:
    """The whole argument file: namespaces, identity, status, then the operations.

    Args:
        sandbox: Whose network is its own or not.
        plan: The operations, in order.
        status: The descriptor that bubblewrap reports on.
        texts: For the path of each file of the sandbox's own a descriptor that holds its content.
        sources: For each bind that is mounted by a descriptor the one of its source.
        shared: Namespaces of the sandbox around this one that it has to stay in; ``cgroup`` is the only one there is.

    Raises:
        ValueError: There are more than bubblewrap takes.
    """
    isolated = ("--unshare-net",) if sandbox.network is Network.ISOLATED else ()
    grouped = () if "cgroup" in shared else ("--unshare-cgroup",)
    spelled = [
        *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", *grouped, *isolated),
        *("--uid", str(UID), "--gid", str(GID), "--cap-drop", "ALL"),
        *("--die-with-parent", "--as-pid-1", "--new-session", "--clearenv", "--json-status-fd", str(status)),
    ]
    whole = tuple(plan)
    # A descriptor serves once: where the system shows the same path too, the grant is the later of the two.
    granting = {operation.bind: at for at, operation in enumerate(whole) if isinstance(operation, Show)}
    for at, operation in enumerate(whole):
        if isinstance(operation, Handed):
            spelled += operation.options(texts[operation.path])
        elif isinstance(operation, Show) and granting[operation.bind] == at:
            spelled += operation.options(sources.get(operation.bind))
        else:
            spelled += operation.options()
    if len(spelled) > MOST_ARGUMENTS:
        raise ValueError(
            f"{len(spelled)} arguments for bubblewrap, which takes {MOST_ARGUMENTS}; declare fewer paths: each that is "
            "shown takes 3, and so does each hidden file, but a directory counts once whatever is in it"
        )
    return tuple(spelled)


def below_a_link(work: str) -> tuple[str, ...]:
    """The options of a start that mounts below ``link``, which lies in a directory that is shown writable.

    No sandbox of ours has such a mount: it is how a bubblewrap is asked whether it follows the link.
    """
    shown = ("--ro-bind", "/usr", "/usr", "--bind", work, "/work")
    return ("--unshare-all", *shown, "--tmpfs", "/work/link/point")


def told(complaint: str, sources: Mapping[Bind, int]) -> str:
    """What bubblewrap complains of, with each source that it knows by a descriptor named as it was declared."""
    names = {number: bind.source for bind, number in sources.items()}
    return re.sub(r"/proc/self/fd/(\d+)", lambda found: names.get(int(found[1]), found[0]), complaint)


def argument_file(spelled: Iterable[str]) -> bytes:
    """The options as bubblewrap reads them from a descriptor: a NUL after each."""
    return b"".join(option.encode("utf-8", "surrogateescape") + b"\0" for option in spelled)
