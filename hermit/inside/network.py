"""What the relay tries where there must be no network but the sandbox's own loopback.

No packet leaves: to connect a datagram socket only asks for a route, a TCP connection is tried only where there is no
route, and the one byte that looks for a resolver is sent only inside a network namespace that holds loopback alone.
"""

from __future__ import annotations

import _socket
import errno
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

Seen = tuple[bool, str]

# Addresses of the documentation ranges (RFC 5737, RFC 3849): nobody answers there.
OUTSIDE = (("IPv4", _socket.AF_INET, "192.0.2.1"), ("IPv6", _socket.AF_INET6, "2001:db8::1"))
# Where a machine or a container usually has its resolver.
RESOLVERS = ("127.0.0.53", "127.0.0.11")
DNS, DISCARD = 53, 9
UNREACHABLE = (
    errno.ENETUNREACH,
    errno.EHOSTUNREACH,
    errno.EADDRNOTAVAIL,
    errno.EAFNOSUPPORT,
    errno.EACCES,
    errno.EPERM,
)
# A bound on waiting for what has to answer at once, on the sandbox's own loopback.
ANSWER_S = 1.0
# The kernel's numbers for a question about its sockets (sock_diag(7)). Its table of them as text, /proc/net/tcp, is
# thirty times slower: for that it walks the whole machine's table of connections.
SOCK_DIAG, SOCK_DIAG_BY_FAMILY = 4, 20
REQUEST, DUMP = 0x001, 0x300
ERROR, DONE = 2, 3
LISTEN = 10
HEADER, QUESTION = 16, 56
PORT = slice(HEADER + 4, HEADER + 6)


def plan(orders: dict[str, Any]) -> list[tuple[str, Callable[..., Seen], tuple[Any, ...]]]:
    """The checks of an isolated network and what each is given."""
    ports = orders.get("ports")
    outer = orders["namespaces"].get("net", "")
    checks: list[tuple[str, Callable[..., Seen], tuple[Any, ...]]] = [
        ("loopback only", interfaces, ()),
        *((f"no route outside: {name}", route, (family, address)) for name, family, address in OUTSIDE),
        *((f"no connection outside: {name}", connection, (family, address)) for name, family, address in OUTSIDE),
        ("no resolver", resolvers, (outer,)),
        ("no socket name of the host", socket_names, ()),
    ]
    if ports is not None:
        checks += [("declared ports answer", answering, (ports,)), ("no other port open", listeners, (ports,))]
    return checks


def interfaces() -> Seen:
    """No network interface but loopback exists."""
    names = [name for _, name in _socket.if_nameindex()]
    return names == ["lo"], ", ".join(names) or "no interface"


def attempt(family: int, kind: int, address: tuple[str, int]) -> str:
    """What speaks against a way to an address; empty where the way is open, or may be."""
    try:
        probe = _socket.socket(family, kind)
    except OSError as refused:
        return reason(refused)
    try:
        probe.setblocking(False)
        probe.connect(address)
    except OSError as refused:  # a connection that was begun is among them
        return reason(refused)
    finally:
        probe.close()
    return ""


def reason(refused: OSError) -> str:
    """The kernel's reason, where it means that there is no way."""
    return (refused.strerror or str(refused)) if refused.errno in UNREACHABLE else ""


def route(family: int, address: str, port: int = DISCARD) -> Seen:
    """No packet to an address outside would find a way."""
    refused = attempt(family, _socket.SOCK_DGRAM, (address, port))
    return bool(refused), refused or f"there is a route to {address}"


def connection(family: int, address: str) -> Seen:
    """A connection to an address outside fails at once; where there is a route none is begun."""
    closed, seen = route(family, address)
    if not closed:
        return False, f"not tried: {seen}"
    refused = attempt(family, _socket.SOCK_STREAM, (address, DISCARD))
    return bool(refused), refused or f"a connection to {address} was begun"


def resolvers(outer: str) -> Seen:
    """Nobody inside answers a question for a name, and nobody outside can be asked."""
    if os.readlink("/proc/self/ns/net") == outer or not interfaces()[0]:
        return False, "not tried: this is not a network of loopback alone"
    found = [address for address in RESOLVERS if not deaf(address)]
    _, family, address = OUTSIDE[0]
    closed, seen = route(family, address, DNS)
    if not closed:
        found.append(seen)
    return not found, ", ".join(found) or f"{', '.join(RESOLVERS)} refuse, {address}: {seen}"


def deaf(address: str) -> bool:
    """Whether one byte to the resolver's port of an own address is refused."""
    probe = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM)
    try:
        probe.settimeout(ANSWER_S)
        probe.connect((address, DNS))
        probe.send(b"?")
        probe.recv(1)
    except OSError as refused:
        return refused.errno == errno.ECONNREFUSED or bool(reason(refused))
    finally:
        probe.close()
    return False


def socket_names() -> Seen:
    """No Unix socket of this network namespace has a name: the host's abstract ones are those of another."""
    rows = [line.split(None, 7) for line in lines("/proc/net/unix")]
    found = [row[7].decode("utf-8", "backslashreplace") for row in rows if len(row) > 7]  # noqa: PLR2004 - the column
    return not found, ", ".join(found[:8]) or f"{len(rows)} sockets, none named"


def answering(ports: list[int]) -> Seen:
    """Each declared port takes a connection."""
    found = []
    for port in ports:
        probe = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
        try:
            probe.settimeout(ANSWER_S)
            probe.connect(("127.0.0.1", port))
        except OSError as refused:
            found.append(f"{port}: {refused.strerror or refused}")
        finally:
            probe.close()
    return not found, ", ".join(found) or ", ".join(map(str, ports)) or "none declared"


def listeners(ports: list[int]) -> Seen:
    """No port is open but the declared ones."""
    families = ((_socket.AF_INET, "tcp"), (_socket.AF_INET6, "tcp6"))
    opened = {port for family, table in families for port in listening(family, table)}
    found = sorted(opened - set(ports))
    return not found, ", ".join(map(str, found)) or f"{len(opened)} open"


def listening(family: int, table: str) -> list[int]:
    """The ports where somebody listens: asked of the kernel, read from its table where it cannot be asked."""
    try:
        return dumped(family)
    except OSError:
        rows = [line.split() for line in lines(f"/proc/net/{table}")]
        return [int(row[1].rpartition(b":")[2], 16) for row in rows if int(row[3], 16) == LISTEN]


def dumped(family: int) -> list[int]:
    """The kernel's answer.

    Raises:
        OSError: It has no such question.
    """
    link = _socket.socket(_socket.AF_NETLINK, _socket.SOCK_RAW | _socket.SOCK_CLOEXEC, SOCK_DIAG)
    try:
        link.settimeout(ANSWER_S)
        link.send(question(family))
        found: list[int] = []
        while messages_in(link.recv(1 << 16), found):
            pass
        return found
    finally:
        link.close()


def question(family: int) -> bytes:
    """A request for every listening TCP socket of one family: a header, the family, the protocol, the states."""
    header = number(HEADER + QUESTION, 4) + number(SOCK_DIAG_BY_FAMILY, 2) + number(REQUEST | DUMP, 2) + bytes(8)
    wanted = bytes((family, _socket.IPPROTO_TCP, 0, 0)) + number(1 << LISTEN, 4)
    return header + wanted.ljust(QUESTION, b"\0")


def number(value: int, size: int) -> bytes:
    """A number as the machine writes it."""
    return value.to_bytes(size, sys.byteorder)


def messages_in(answer: bytes, found: list[int]) -> bool:
    """Adds the ports of one answer; returns whether more is to come.

    Raises:
        OSError: The answer is a refusal, or none.
    """
    if not answer:
        raise OSError("the kernel does not tell its sockets")
    while answer:
        length = int.from_bytes(answer[:4], sys.byteorder)
        kind = int.from_bytes(answer[4:6], sys.byteorder)
        if kind in (ERROR, DONE) or length < HEADER:
            # A kernel that lacks the part which knows of TCP says so at the end, not at once.
            if kind != DONE or int.from_bytes(answer[HEADER : HEADER + 4], sys.byteorder, signed=True) < 0:
                raise OSError("the kernel does not tell its sockets")
            return False
        found.append(int.from_bytes(answer[PORT], "big"))
        answer = answer[-(-length // 4) * 4 :]
    return True


def unrouted() -> int:
    """How many connections and packets have found no way out of this network so far, by the kernel's count.

    0 where it keeps none. A question for a name is among them, where the resolver is an address outside.
    """
    names, values = [row.split() for row in rows_of("/proc/net/snmp") if row.startswith(b"Ip:")] or ([], [])
    found = dict(zip(names, values, strict=True)).get(b"OutNoRoutes", 0)
    six = dict(row.split() for row in rows_of("/proc/net/snmp6")).get(b"Ip6OutNoRoutes", 0)
    return int(found) + int(six)


def lines(path: str) -> list[bytes]:
    """The rows of one of the kernel's tables without their header."""
    return rows_of(path)[1:]


def rows_of(path: str) -> list[bytes]:
    """The rows of one of the kernel's tables; none where the kernel has no such protocol."""
    try:
        with open(path, "rb", 0) as file:
            return file.readall().splitlines()
    except FileNotFoundError:
        return []
