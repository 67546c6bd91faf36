"""Which addresses are somebody else's on the public internet. Pure.

An allowed name can resolve to any address, by mistake or on purpose, so each address is judged before it is dialled.
The tables are our own: the standard library's ``is_global`` has changed its mind between patch releases of one Python.
"""

from __future__ import annotations

import socket
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermit.net.hosts import Address

SPECIAL_IPV4 = (
    (IPv4Network("0.0.0.0/8"), "unspecified"),
    (IPv4Network("10.0.0.0/8"), "private"),
    (IPv4Network("100.64.0.0/10"), "shared by a carrier"),
    (IPv4Network("127.0.0.0/8"), "loopback"),
    (IPv4Network("168.63.129.16/32"), "a cloud's metadata service"),
    (IPv4Network("169.254.0.0/16"), "link-local"),
    (IPv4Network("172.16.0.0/12"), "private"),
    (IPv4Network("192.0.0.0/24"), "reserved"),
    (IPv4Network("192.0.2.0/24"), "for documentation"),
    (IPv4Network("192.88.99.0/24"), "a tunnel's relay"),
    (IPv4Network("192.168.0.0/16"), "private"),
    (IPv4Network("198.18.0.0/15"), "for benchmarks"),
    (IPv4Network("198.51.100.0/24"), "for documentation"),
    (IPv4Network("203.0.113.0/24"), "for documentation"),
    (IPv4Network("224.0.0.0/4"), "multicast"),
    (IPv4Network("240.0.0.0/4"), "reserved"),
)
SPECIAL_IPV6 = (
    (IPv6Network("::1/128"), "loopback"),
    (IPv6Network("::/128"), "unspecified"),
    (IPv6Network("fc00::/7"), "private"),
    (IPv6Network("fe80::/10"), "link-local"),
    (IPv6Network("ff00::/8"), "multicast"),
    (IPv6Network("2001::/32"), "a tunnel's (Teredo)"),  # it embeds an IPv4 address that nothing here could judge
    (IPv6Network("2001::/23"), "reserved"),
    (IPv6Network("2001:db8::/32"), "for documentation"),
    (IPv6Network("2002::/16"), "a tunnel's (6to4)"),
    (IPv6Network("3fff::/20"), "for documentation"),
)
GLOBAL_IPV6 = IPv6Network("2000::/3")  # all that is given out; the rest is special or of no use
NAT64 = IPv6Network("64:ff9b::/96")  # the way to IPv4 on networks without it: its last 32 bits are the address


def special(address: Address) -> str:
    """What makes an address no public one, such as ``private``; empty for a public address."""
    if isinstance(address, IPv6Address):
        embedded = _embedded(address)
        return _special_ipv6(address) if embedded is None else special(embedded)
    return next((kind for network, kind in SPECIAL_IPV4 if address in network), "")


def _embedded(address: IPv6Address) -> IPv4Address | None:
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return IPv4Address(int(address) & 0xFFFFFFFF) if address in NAT64 else None


def _special_ipv6(address: IPv6Address) -> str:
    for network, kind in SPECIAL_IPV6:
        if address in network:
            return kind
    return "" if address in GLOBAL_IPV6 else "reserved"


def look_up(name: str) -> Sequence[str]:
    """The addresses of a name, as the host's resolver orders them; it blocks.

    Raises:
        OSError: The name has none.
    """
    # As bytes, or the standard library would encode the name once more, by rules of its own.
    found = socket.getaddrinfo(name.encode("ascii"), None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))
