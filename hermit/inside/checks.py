"""What the relay tries, from inside, before the command starts. Each check says what it saw."""

from __future__ import annotations

import _socket
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Addresses of the documentation ranges (RFC 5737, RFC 3849): nobody answers there. Asking for a route to them with a
# datagram socket sends no packet, and a TCP connection is tried only where there is no route.
OUTSIDE = ((_socket.AF_INET, "192.0.2.1"), (_socket.AF_INET6, "2001:db8::1"))
CAPABILITIES = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
# What a sandbox can write beside what it was granted: each is its own and bounded, or belongs to the kernel.
OWN_WRITABLE = ("/tmp", "/dev/shm", "/proc", "/dev/pts", "/dev/mqueue")  # noqa: S108
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/console")

Result = tuple[str, bool, str]


def run(orders: dict[str, Any]) -> list[Result]:
    """Every check the orders ask for, in order; none where nothing is confined."""
    if not orders["confined"]:
        return []
    results = [user(), privileges(), namespaces(orders["namespaces"]), processes(), mounts(orders["writable"])]
    if orders["network"] == "isolated":
        results += [interfaces(), outside()]
    return [*results, probes(orders["probes"])]


def user() -> Result:
    """The user and group inside are not root's."""
    ids = (os.getuid(), os.geteuid(), os.getgid(), os.getegid())
    return "unprivileged user", 0 not in ids, f"uid {ids[0]} gid {ids[2]}"


def privileges() -> Result:
    """No capability is held or can be gained, and no program gains privileges."""
    with open("/proc/self/status", encoding="utf-8") as file:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    held = [f"{name} {status[name]}" for name in CAPABILITIES if int(status[name], 16)]
    if status["NoNewPrivs"] != "1":
        held.append("NoNewPrivs is not set")
    return "no capability", not held, ", ".join(held) or "none held, none to gain"


def namespaces(outer: dict[str, str]) -> Result:
    """Each namespace that should be the sandbox's own differs from the host's."""
    shared = [name for name, link in outer.items() if os.readlink(f"/proc/self/ns/{name}") == link]
    return "own namespaces", not shared, f"shared: {', '.join(shared)}" if shared else ", ".join(outer)


def processes() -> Result:
    """``/proc`` shows the sandbox's own processes only: its init and the relay."""
    seen = sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
    alone = seen == [1, os.getpid()] and os.readlink("/proc/self") == str(os.getpid())
    return "own processes", alone, f"{len(seen)} visible"


def mounts(granted: list[str]) -> Result:
    """Nothing is writable but what was granted and what is the sandbox's own."""
    allowed = {*granted, *OWN_WRITABLE, *DEVICES}
    writable = []
    with open("/proc/self/mountinfo", "rb") as file:
        for line in file:
            fields = line.split(b" ")
            target = os.fsdecode(unescape(fields[4]))
            if b"rw" in fields[5].split(b",") and target not in allowed and not inside(target, (*granted, "/proc")):
                writable.append(target)
    return "read-only but for grants", not writable, ", ".join(writable) or f"{len(granted)} granted"


def unescape(field: bytes) -> bytes:
    """A path of mountinfo as it is: blanks, tabs, newlines and backslashes stand there in octal."""
    for code in (b"040", b"011", b"012", b"134"):
        field = field.replace(b"\\" + code, bytes([int(code, 8)]))
    return field


def inside(path: str, roots: tuple[str, ...]) -> bool:
    """Whether a path lies below one of the roots."""
    return any(path.startswith(root.rstrip("/") + "/") for root in roots)


def interfaces() -> Result:
    """No network interface but loopback exists."""
    names = [name for _, name in _socket.if_nameindex()]
    return "loopback only", names == ["lo"], ", ".join(names) or "no interface"


def outside() -> Result:
    """No packet can leave: there is no route, and a TCP connection fails at once."""
    for family, address in OUTSIDE:
        for kind in (_socket.SOCK_DGRAM, _socket.SOCK_STREAM):
            try:
                probe = _socket.socket(family, kind)
            except OSError:  # the kernel has no such protocol
                continue
            try:
                probe.setblocking(False)
                probe.connect((address, 9))
            except BlockingIOError:
                return "outside unreachable", False, f"a connection to {address} was begun"
            except OSError:
                continue
            finally:
                probe.close()
            return "outside unreachable", False, f"there is a route to {address}"
    return "outside unreachable", True, "no route, no connection"


def probes(paths: list[str]) -> Result:
    """The paths that must not exist do not."""
    found = [path for path in paths if exists(path)]
    return "secrets absent", not found, ", ".join(found) or f"{len(paths)} paths absent"


def exists(path: str) -> bool:
    """Whether anything has this name, a dangling link included; a name that may not be looked up counts."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True
